"""Choose the model to plan with for each firm, from its own backtests and those of all firms."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
import pandas as pd

from cbmt_core.arrays import Bools, Floats, Ints
from cbmt_core.evaluation.relations import Relations, whole_firms
from cbmt_core.metrics import smape
from cbmt_core.schema import TABLES
from cbmt_core.timeline import Origin

__all__ = ["MARGIN", "MIN_OBSERVED_WEEKS", "PRIOR_BACKTESTS", "forecast_choices"]


MIN_OBSERVED_WEEKS = 13
"""Observed weeks from which on a backtest counts: a quarter."""
PRIOR_BACKTESTS = 8
"""Weight of the other firms' results, as a number of backtests of the firm itself. Backtests a quarter apart share
most of their year, so eight of them are two years. On simulated firms (bench/choice.py) a smaller weight does worse
than always taking the default."""
MARGIN = 0.1
"""Share by which a model must be expected to err less than the default to replace it: with few backtests the
smallest error is partly luck, and a plan should not change its model for a small difference."""
ERROR_FLOOR = 1.0
"""SMAPE below which errors count as this much: ratios of smaller errors mean nothing."""
MAX_RATIO = 4.0
"""Upper limit of error ratios: a firm that went silent has errors of 0 and 200 and must not dominate the mean."""
DIGITS = 10
"""Decimals kept of scores, so that the order in which firms are summed makes no difference."""


def forecast_choices(
    con: duckdb.DuckDBPyConnection, relations: Relations, origin: Origin, models: Sequence[str]
) -> pd.DataFrame:
    """Rows of the table `forecast_choice`: one for each firm that a model was fitted for at `origin`.

    The first model that could be fitted is the firm's default. Another model replaces it if its score is smaller by
    `MARGIN`. A score is the expected error relative to the default's: the ratio of their mean SMAPE over the firm's
    backtests, shrunk geometrically towards the mean ratio over the other firms. Only weeks up to the origin count.
    A firm without a backtest of its own keeps the default: results of firms with long histories need not hold for
    it.

    Args:
        origin: week and purpose of the forecasts to choose from.
        models: names in order of preference.
    """
    errors = _backtest_errors(con, relations, origin, models)
    scored = {str(firm): rows.columns[rows.notna().any()] for firm, rows in errors.groupby(level="firm")}
    whole = set(whole_firms(con, relations)["firm"])
    comparisons: dict[tuple[str, ...], _Comparison] = {}
    rows = []
    for firm, fitted in _fits(con, relations, origin, models).items():
        available = [model for model in models if fitted.get(model)]
        if not available:
            continue
        # Models without a backtest of this firm leave the others' backtests comparable; without the default none are.
        compared = tuple(
            model
            for k, model in enumerate(available)
            if k == 0 or firm not in scored or model in scored[firm]
        )
        if compared not in comparisons:
            comparisons[compared] = _compare(compared, errors, whole)
        failed = [model for model in models[: models.index(available[0])] if model in fitted]
        row = _choice(firm, available, failed, comparisons[compared], judged=firm in scored)
        rows.append({"firm": firm, "origin": origin.week, "purpose": origin.purpose, **row})
    return pd.DataFrame(rows, columns=TABLES["forecast_choice"].column_names)


@dataclass(frozen=True, eq=False)
class _Comparison:
    """The same candidates compared on every firm, over the backtests that all of them have."""

    models: tuple[str, ...]
    """The default first."""
    backtests: Mapping[str, Mapping[str, Mapping[str, float]]]
    """By firm, origin and model: SMAPE."""
    means: Mapping[str, Mapping[str, float]]
    """By firm and model: mean SMAPE of its backtests."""
    scores: Mapping[str, Mapping[str, float]]
    """By firm and model: error to expect, relative to the default's."""
    panel_means: Mapping[str, float]
    """By model: mean over firms; empty without any."""


def _compare(models: tuple[str, ...], errors: pd.DataFrame, whole: set[str]) -> _Comparison:
    """Collect the mean errors of each firm over the backtests that all models have.

    Args:
        models: the default first.
        errors: SMAPE of backtests, rows (firm, origin), a column a model.
        whole: names of the firms; segments of a firm are not among them.
    """
    shared = errors[list(models)].dropna()
    backtests: dict[str, dict[str, dict[str, float]]] = {}
    for (firm, week), *values in shared.itertuples(name=None):
        backtests.setdefault(firm, {})[f"{week:%Y-%m-%d}"] = dict(zip(models, values, strict=True))
    firms = list(backtests)
    means = np.array([[np.mean([e[m] for e in backtests[firm].values()]) for m in models] for firm in firms])
    means = means.reshape(len(firms), len(models))
    member = np.array([firm in whole for firm in firms], bool)
    if not member.any():
        member[:] = True
    scores = _scores(means, np.array([len(backtests[firm]) for firm in firms]), member)
    return _Comparison(
        models=models,
        backtests=backtests,
        means=_named(firms, models, means),
        scores=_named(firms, models, scores),
        panel_means=dict(zip(models, means[member].mean(axis=0).tolist(), strict=True)) if firms else {},
    )


def _scores(means: Floats, backtests: Ints, member: Bools) -> Floats:
    """[firms, models] expected error of each model on each firm, relative to the first model's.

    Args:
        means: [firms, models] mean SMAPE of the firm's backtests.
        backtests: [firms] how many there are.
        member: [firms] whether the firm enters the mean of the others.
    """
    level = np.maximum(means, ERROR_FLOOR)
    own = np.log(np.clip(level / level[:, :1], 1 / MAX_RATIO, MAX_RATIO))
    others = own[member].sum(axis=0) - own * member[:, None]
    # A firm on which all models have equal errors is added: it replaces the others where there are none, and
    # shrinks the mean of a few.
    panel = others / (member.sum() - member + 1)[:, None]
    weight = (backtests / (backtests + PRIOR_BACKTESTS))[:, None]
    return np.asarray(np.exp(weight * own + (1 - weight) * panel).round(DIGITS))


def _named(firms: Sequence[str], models: Sequence[str], values: Floats) -> dict[str, dict[str, float]]:
    rows = values.tolist()
    return {firm: dict(zip(models, row, strict=True)) for firm, row in zip(firms, rows, strict=True)}


def _choice(
    firm: str, available: Sequence[str], failed: Sequence[str], comparison: _Comparison, *, judged: bool
) -> dict[str, object]:
    """The chosen model of one firm, and the reason in words.

    Args:
        available: models with a forecast, in order of preference.
        failed: models of higher preference that could not be fitted.
        judged: whether any backtest of the firm can be scored.
    """
    default = chosen = available[0]
    backtests = comparison.backtests.get(firm, {})
    own, scores = comparison.means.get(firm), comparison.scores.get(firm)
    if own and scores:
        best = min(comparison.models, key=lambda model: scores[model])
        chosen = best if scores[best] <= 1 - MARGIN else default
        alone = len(comparison.means) == 1
        why = _reason(chosen, default, own, comparison.panel_means, len(backtests), alone=alone)
    elif failed:
        why = f"{default} is the next"
    elif judged:
        why = f"the models share no backtest of this firm that can be scored; {default} is the default"
    else:
        why = f"without a backtest that can be scored, {default} is the default"
    if failed:
        why = f"{' and '.join(failed)} could not be fitted; {why}"
    evidence = {model: _evidence(model, comparison, firm) for model in available}
    return {
        "model": chosen,
        "why": why,
        "backtests": len(backtests),
        "error": own[chosen] if own else None,
        "evidence": json.dumps(evidence, allow_nan=False),
    }


def _reason(
    chosen: str,
    default: str,
    own: Mapping[str, float],
    panel: Mapping[str, float],
    backtests: int,
    *,
    alone: bool,
) -> str:
    """Why a model was chosen from a firm's backtests, in words.

    Args:
        alone: whether no other firm has backtests.
    """
    errors = f"{own[chosen]:.1f} % over {backtests} backtest{'s' if backtests > 1 else ''}"
    errors += "".join(f", {model} {error:.1f} %" for model, error in own.items() if model != chosen)
    if len(own) == 1:
        return f"no other model to compare with; backtest error: {errors}"
    if own[chosen] <= min(own.values()):
        return f"smallest backtest error: {errors}"
    if chosen == default and alone:
        return (
            f"the default; another is ahead by too little, or in too few backtests, to replace it: {errors}"
        )
    if chosen == default:
        return f"the default; no other is ahead by {100 * MARGIN:g} % once all firms count: {errors}"
    return (
        f"smallest error once all firms count ({panel[chosen]:.1f} %, {default} {panel[default]:.1f} %); "
        f"of this firm: {errors}"
    )


def _evidence(model: str, comparison: _Comparison, firm: str) -> dict[str, object]:
    """One candidate's errors on the firm; empty lists and None where it was not compared."""
    compared = model in comparison.models
    backtests = comparison.backtests.get(firm, {}) if compared else {}
    return {
        "origins": list(backtests),
        "smape": [round(errors[model], 6) for errors in backtests.values()],
        "panel_smape": round(comparison.panel_means[model], 6) if model in comparison.panel_means else None,
        "score": round(comparison.scores[firm][model], 6) if backtests else None,
    }


def _fits(
    con: duckdb.DuckDBPyConnection, relations: Relations, origin: Origin, models: Sequence[str]
) -> dict[str, dict[str, bool]]:
    """By firm and model: whether the fit at the origin succeeded. Models that were not run have no entry."""
    found: dict[str, dict[str, bool]] = {}
    rows = con.execute(
        f"SELECT firm, model, succeeded FROM {relations.model_fit} "
        "WHERE origin = $week AND purpose = $purpose AND list_contains($models, model) ORDER BY firm, model",
        {"week": origin.week, "purpose": origin.purpose, "models": list(models)},
    ).fetchall()
    for firm, model, succeeded in rows:
        found.setdefault(firm, {})[model] = succeeded
    return found


def _backtest_errors(
    con: duckdb.DuckDBPyConnection, relations: Relations, origin: Origin, models: Sequence[str]
) -> pd.DataFrame:
    """SMAPE of weekly sales of every backtest: rows (firm, origin), a column a model; NaN where there is none."""
    found = con.execute(
        f"""
        SELECT f.firm, f.origin, f.model, list(CAST(w.sales AS DOUBLE) ORDER BY week) AS actual,
            list(f.sales ORDER BY week) AS forecast
        FROM {relations.forecast_week} AS f JOIN {relations.firm_week} AS w USING (firm, week)
        WHERE f.purpose = 'backtest' AND f.origin < $week AND week <= $week AND list_contains($models, f.model)
        GROUP BY ALL HAVING count(*) >= {MIN_OBSERVED_WEEKS} ORDER BY ALL
        """,
        {"week": origin.week, "models": list(models)},
    ).df()
    pairs = zip(found.pop("actual"), found.pop("forecast"), strict=True)
    found["smape"] = [smape(np.asarray(x, float), np.asarray(f, float)) for x, f in pairs]
    wide = found.pivot(index=["firm", "origin"], columns="model", values="smape")  # noqa: PD010  pivot_table averages duplicates
    return wide.reindex(columns=list(models)).sort_index()
