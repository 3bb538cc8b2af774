"""Invented firms for the diagnostics: planted co-movement, difficulty and gains. For tests alone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from functools import cache

import numpy as np
import pandas as pd

from cbmt_core.diagnostics.calibration import Calibration, calibration_tables
from cbmt_core.diagnostics.comovement import MEASURES
from cbmt_core.diagnostics.data import DiagnosticData
from cbmt_core.diagnostics.difficulty import FEATURES
from cbmt_core.diagnostics.results import comovement_tables, difficulty_tables
from cbmt_core.diagnostics.routing import routing_tables
from cbmt_core.metrics import OUTCOMES

__all__ = ["MODELS", "invented_firms", "invented_results", "small_results"]

MODELS = {"cbmt": 0.0, "joint": 1.5, "single_task": 3.0, "lstm": 5.0, "wg_pnbd_e_pp": 7.0, "wg_pnbd_pp": 10.0}
"""Mean points of SMAPE by which each errs more than cbmt."""
LEVEL = {"acquisition": 20.0, "ropc": 35.0, "aov": 35.0, "cohort_sales": 54.0, "total_sales": 16.0}


def invented_firms(
    n: int = 60,
    seed: int = 11,
    *,
    models: dict[str, float] | None = None,
    outcomes: Sequence[str] = OUTCOMES,
) -> DiagnosticData:
    """Firms with a hidden strength of co-movement, a scale and a volatility.

    Measures show the strength; the joint models gain over the single-task one by it. Small and volatile firms
    are hard for every model. A few values are missing.
    """
    rng = np.random.default_rng(seed)
    firms = pd.Index([f"Firm {k:03d}" for k in range(n)], name="firm")
    strength, scale, volatility = rng.standard_normal((3, n))
    signs = np.array([1.0 if measure.rises else -1.0 for measure in MEASURES.values()])
    measures = signs * (0.7 * strength[:, None] + 0.7 * rng.standard_normal((n, len(MEASURES))))
    measures[rng.random(measures.shape) < 0.02] = np.nan
    features = pd.DataFrame(rng.standard_normal((n, len(FEATURES))), firms, list(FEATURES))
    features["total_orders"] = np.round(np.exp(9 + 1.5 * scale))
    features["total_sales"] = features["total_orders"] * np.exp(4 + 0.3 * rng.standard_normal(n))
    features["cohort_sales_cv"] = np.exp(0.5 * volatility)
    hard = np.exp(0.25 * (volatility - scale))
    models = MODELS if models is None else models
    errors = {
        (outcome, model): LEVEL[outcome] * hard * np.exp(0.1 * rng.standard_normal(n))
        + (more + (1.5 * strength if model == "single_task" else 0.0)) * (0.5 + 0.5 * rng.random(n))
        for outcome in outcomes
        for model, more in models.items()
    }
    columns = pd.MultiIndex.from_tuples(list(errors), names=["outcome", "model"])
    return DiagnosticData(
        industry=pd.Series([f"Industry {k % 4}" for k in range(n)], firms),
        errors=pd.DataFrame(np.column_stack(list(errors.values())).clip(0.5, 190), firms, columns)
        if errors
        else pd.DataFrame(index=firms, columns=pd.MultiIndex.from_tuples([], names=["outcome", "model"])),
        measures=pd.DataFrame(measures, firms, list(MEASURES)),
        adjusted_measures=pd.DataFrame(1.1 * measures, firms, list(MEASURES)),
        features=features,
        controls=pd.DataFrame(
            {
                "scale": np.log1p(features["total_sales"]),
                "dispersion": rng.random(n),
            },
            firms,
        ),
    )


def invented_results(
    data: DiagnosticData, *, resplits: int = 3, shuffles: int = 20, repeats: int = 5
) -> dict[str, pd.DataFrame]:
    """Every table that the diagnostics across firms write, from few repeats; calibration is invented too."""
    calibration, state = calibration_tables(_calibration())
    parts = [
        comovement_tables(data, shuffles=shuffles),
        difficulty_tables(data, repeats=repeats),
        routing_tables(data, resplits=resplits),
        (calibration, state),
    ]
    frames = {name: frame for tables, _ in parts for name, frame in tables.items()}
    return {**frames, "diagnostic": pd.concat([state.frame() for _, state in parts])}


@cache
def small_results() -> dict[str, pd.DataFrame]:
    """All tables of sixty firms with the three families, made once a process."""
    families = {name: MODELS[name] for name in ("cbmt", "joint", "single_task")}
    firms = invented_firms(models=families, outcomes=("cohort_sales", "total_sales"))
    return invented_results(firms, resplits=2)


def _calibration() -> Calibration:
    horizons = ("Q1", "Q2", "Q3")
    rng = np.random.default_rng(0)
    quarters = pd.DataFrame(
        [(f"T{k:02d}", h, h, *rng.gamma(4, 1.2, 2)) for k in range(12) for h in horizons],
        columns=["ticker", "quarter", "horizon", "model_smape", "analyst_smape"],
    ).assign(
        first_day=date(2019, 4, 1), last_day=date(2019, 6, 30), firms=1, weeks=13, weeks_ahead=13, model="cbmt",
        panel_sales=1.0, panel_forecast=1.0, revenue=1.0, analyst_forecast=1.0, analyst_forecasts=2, trimmed=False,
    )  # fmt: skip
    means = quarters.groupby("horizon")[["model_smape", "analyst_smape"]].mean().reset_index()
    summary = means.assign(model="cbmt", firms=12, model_se=0.3, analyst_se=0.6)
    return Calibration(quarters, summary, "12 forecast firms map to 12 tickers.")
