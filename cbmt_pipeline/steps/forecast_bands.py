"""Ranges of every live forecast and backtest: calibrated draws, and bands as their quantiles.

Those of the study are made by the same code in `study_bands`, so that live ranges do not wait for the study's
models.
"""

import pandas as pd
from threadpoolctl import threadpool_limits

from cbmt_core import duck
from cbmt_core.bridge import BridgeWindows
from cbmt_core.models import MODELS
from cbmt_core.names import Unit
from cbmt_core.schema import TABLES
from cbmt_core.timeline import Origin
from cbmt_pipeline.forecast_steps import model_options
from cbmt_pipeline.plan import Step
from cbmt_pipeline.project import Project
from cbmt_pipeline.work import Made, Work


def make(work: Work) -> Made:
    from cbmt_core.bands import BridgeBaseline, FirmBands, band_tables

    at = work.at
    own = f"firm = {duck.literal(work.firm.name)}"

    def rows(table: str, unit: Unit | None, where: str = "true") -> pd.DataFrame:
        relation = work.project.lake.relation(TABLES[table], at.week, unit)
        return work.con.execute(f"FROM {relation} WHERE purpose = '{at.purpose}' AND {where}").df()

    sums = _baseline(work)
    models = list(MODELS) if at.purpose == "study" else work.project.live_models()
    firm = FirmBands(
        panel=work.panel(),
        baseline=BridgeBaseline(*sums) if sums else None,
        forecasts=rows("forecast_cohort_week", work.firm),
        weeks=rows("forecast_week", work.firm),
        factors=rows("band_factor", None, own),
        paths=rows("error_path", None),
        priors=model_options(work, "cbmt_plus")["priors"],
        draws=work.project.config.bands.draws,
        seed=work.options.seed,
    )
    chosen = rows("forecast_choice", None, own)["model"].tolist() if at.purpose == "live" else []
    with threadpool_limits(1):
        made = band_tables(firm, models, at, keep_draws=chosen, tell=work.tell)
    ranges = made["forecast_band"]
    if at.purpose == "study":
        # Draws of every model would take twenty times the space; the seed reproduces them.
        return Made(
            {"forecast_band": ranges}, metadata={"models": ranges["model"].nunique(), "bands": len(ranges)}
        )
    year = ranges[(ranges["period"] == "year") & (ranges["outcome"] == "sales") & (ranges["level"] == 80)]
    known = {
        f"{row.model}_{end}": float(getattr(row, end)) for row in year.itertuples() for end in ("low", "high")
    }
    return Made(made, metadata={"bands": len(ranges), **known})


def _baseline(work: Work) -> tuple[float, float, float] | None:
    """Repeat orders, repeat sales and initial sales of the bridge's baseline, where all of it was observed."""
    window = BridgeWindows.ahead(work.at.week, work.at.horizon).baseline
    if window.first < work.project.timeline().panel.first:
        return None
    weeks = work.project.lake.relation(TABLES["cohort_week"], unit=work.firm)
    ((orders, repeat, initial),) = work.con.execute(
        f"SELECT sum(repeat_orders), sum(repeat_sales), sum(initial_sales) FROM {weeks} WHERE week BETWEEN ? AND ?",
        [window.first, window.last],
    ).fetchall()
    return float(orders or 0), float(repeat or 0), float(initial or 0)


def _settings(project: Project, unit: Unit | None, origin: Origin | None) -> dict[str, str]:
    return {"draws": str(project.config.bands.draws), "models": " ".join(project.live_models())}


def _serves(project: Project, origin: Origin) -> list[Origin]:
    """The bands at an origin, and those of the backtests before it."""
    earlier = [own for own in project.origins("backtest") if own.week < origin.week]
    return [*earlier, origin] if origin.purpose in ("live", "backtest") else earlier


STEP = Step(
    name="forecast_bands",
    version="4",
    make=make,
    description="Ranges of sales, drivers and the bridge: quantiles of joint draws, calibrated on backtests.",
    group="live",
    writes=(TABLES["forecast_band"], TABLES["forecast_draw"]),
    needs=(
        "cohort_week",
        "path_priors",
        "live_forecasts",
        "backtest_forecasts",
        "band_factors",
        "forecast_choice",
    ),
    code=("cbmt_core.bands", "cbmt_core.compose", "cbmt_core.uncertainty"),
    purposes=("live", "backtest"),
    batch=20,
    options=("seed",),
    settings=_settings,
    serves=_serves,
)
