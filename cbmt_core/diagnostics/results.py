"""Tables of the diagnostics co-movement and difficulty, and their rows of `diagnostic`."""

from __future__ import annotations

import pandas as pd

from cbmt_core.diagnostics.comovement import (
    MIN_FIRMS,
    column_results,
    comovement_score,
    five_tests,
    tercile_rates,
    terciles,
)
from cbmt_core.diagnostics.comovement.evidence import SHUFFLES
from cbmt_core.diagnostics.data import DiagnosticData, DiagnosticState
from cbmt_core.diagnostics.difficulty import FIRMS_NEEDED, TARGET_OUTCOME, explain
from cbmt_core.diagnostics.difficulty.drivers import REPEATS
from cbmt_core.evaluation import reference_of
from cbmt_core.schema import Column
from cbmt_core.schema.diagnostics import (
    ADJUSTED_COLUMN,
    ADJUSTED_TERCILE,
    ADJUSTED_TEST,
    DIAGNOSTIC_TABLES,
)

__all__ = ["comovement_tables", "difficulty_tables"]

JOINT, SINGLE = "cbmt", "single_task"

COMPARED = ("lstm", "wg_pnbd_e_pp", "wg_pnbd_pp")
"""Models compared with the reference in the tables of difficulty (table "…by Predicted Difficulty Bands")."""
_DIFFICULTY = {
    "difficulty_r2": "r2",
    "predicted_error": "phe",
    "difficulty_band": "bands",
    "difficulty_importance": "importance",
    "difficulty_dependence": "dependence",
    "difficulty_grid": "grid",
}


def comovement_tables(
    data: DiagnosticData, *, shuffles: int = SHUFFLES
) -> tuple[dict[str, pd.DataFrame], DiagnosticState]:
    """The tables of co-movement: scores always, tests only where both models' forecasts exist.

    Columns called adjusted_ are of drivers without slow movement and holidays; the others follow the paper.
    """
    score, other = comovement_score(data.measures), comovement_score(data.adjusted_measures)
    scores, adjusted = score.values, other.values  # noqa: PD011  fields of the scores, not of frames
    joint, single = (data.smape("total_sales", name) for name in (JOINT, SINGLE))
    # Section "Diagnostic Evidence on Shared-Driver Signal Extraction": WinJoint.
    wins = (joint < single).astype(float).where(joint.notna() & single.notna())
    firms = int((wins.notna() & scores.notna()).sum())
    about = (wins, data.controls, data.industry)
    frames = {
        "comovement_score": pd.DataFrame(
            {
                "score": scores,
                "adjusted_score": adjusted,
                "tercile": terciles(scores[wins.notna()]).reindex(scores.index),
                "adjusted_tercile": terciles(adjusted[wins.notna()]).reindex(adjusted.index),
                "joint_wins": wins.map({1.0: True, 0.0: False}),
            }
        ).rename_axis("firm").reset_index(),
        "comovement_test": _beside(
            five_tests(scores, *about, shuffles=shuffles),
            five_tests(adjusted, *about, shuffles=shuffles),
            ADJUSTED_TEST,
        ),
        "comovement_tercile": _beside(
            tercile_rates(scores, wins), tercile_rates(adjusted, wins), ADJUSTED_TERCILE
        ),
        "comovement_column": _beside(
            column_results(data.measures, *about),
            column_results(data.adjusted_measures, *about),
            ADJUSTED_COLUMN,
        ).assign(loading=score.loadings.to_numpy()),
    }  # fmt: skip
    if lacking := data.lacking((JOINT, SINGLE)):
        note = f"needs forecasts by {JOINT} and {SINGLE}; no firm has one by {' or '.join(lacking)}"
    elif firms < MIN_FIRMS:
        note = score.note or f"{firms} firms have a score and both forecasts; {MIN_FIRMS} are needed"
    else:
        note = (
            f"the score holds {100 * score.explained:.0f}% of the variance of {len(score.loadings)} measures, "
            f"the adjusted one {100 * other.explained:.0f}%"
        )
    return frames, DiagnosticState("comovement", firms, MIN_FIRMS, firms >= MIN_FIRMS, note)


def _beside(printed: pd.DataFrame, adjusted: pd.DataFrame, columns: tuple[Column, ...]) -> pd.DataFrame:
    """Results by the paper's reading, with those of the adjusted measures, row by row, in these columns."""
    return printed.assign(**{c.name: adjusted[c.name.removeprefix("adjusted_")] for c in columns})


def difficulty_tables(
    data: DiagnosticData, *, repeats: int = REPEATS
) -> tuple[dict[str, pd.DataFrame], DiagnosticState]:
    """The tables of difficulty: about the error of CBMT, or of another model until CBMT has run."""
    errors = data.errors.melt(value_name="smape", ignore_index=False).dropna().reset_index()
    if errors.empty:
        return _empty(_DIFFICULTY), DiagnosticState(
            "difficulty", 0, FIRMS_NEEDED, False, "no firm has a forecast of observed weeks yet"
        )
    model = reference_of(errors["model"])
    explained = explain(data.features, errors, model=model, models=(model, *COMPARED), repeats=repeats)
    frames = {name: getattr(explained, part) for name, part in _DIFFICULTY.items()}
    for name in ("predicted_error", "difficulty_importance", "difficulty_dependence"):
        frames[name] = frames[name].assign(model=model)
    firms = int(data.smape(TARGET_OUTCOME, model).notna().sum())
    note = f"predicted error of cohort sales by {model}"
    if firms < FIRMS_NEEDED:
        note = f"needs {FIRMS_NEEDED} firms with a forecast by {model}; there are {firms}"
    return frames, DiagnosticState("difficulty", firms, FIRMS_NEEDED, firms >= FIRMS_NEEDED, note)


def _empty(names: dict[str, str]) -> dict[str, pd.DataFrame]:
    return {name: pd.DataFrame(columns=DIAGNOSTIC_TABLES[name].column_names) for name in names}
