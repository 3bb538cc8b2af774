"""Forecast: one model's forecast of one panel, and the questions it answers."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import pandas as pd
from threadpoolctl import threadpool_limits

from cbmt_core import duck
from cbmt_core.bridge import CONTRIBUTIONS, BridgeWindows, bridge_table
from cbmt_core.compose import RevenueForecast, compose
from cbmt_core.errors import CbmtError, ConfigError
from cbmt_core.evaluation import Relations
from cbmt_core.forecasting import ModelRun, forecast_tables
from cbmt_core.metrics import score
from cbmt_core.models import MODELS, FitRecord, FittedForecaster, build
from cbmt_core.names import nearest
from cbmt_core.notebook.panel import Panel
from cbmt_core.timeline import SEASON

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cbmt_core.compose import DriverDraws
    from cbmt_core.scenarios import Scenario

__all__ = ["Forecast", "NoBridge", "make_forecast"]

PERIODS = ("week", "month", "quarter")
SUMMED = ["acquired", "orders", "repeat_orders", "sales"]


class NoBridge(CbmtError):
    """The bridge is undefined; the message says why."""


@dataclass(frozen=True, eq=False, repr=False)
class Forecast:
    """What a model forecasts for the weeks after a panel's last one. Made by `Panel.forecast`."""

    panel: Panel
    """What the model has seen."""
    model: str
    revenue: RevenueForecast
    """The forecast as arrays: drivers `A`, `R`, `V`, cohort sales `Y`, sales `S`."""
    fitted: FittedForecaster
    record: FitRecord
    """Estimates, and problems of the fit."""
    seed: int
    scenarios: tuple[Scenario, ...] = ()
    """Changes applied; empty for the forecast itself."""

    @property
    def origin(self) -> date:
        """The last week before the forecast."""
        return self.panel.origin

    @property
    def note(self) -> str:
        """A remark on the forecast, such as that it relies on a prior; empty if there is none."""
        return self.record.diagnosis

    def __repr__(self) -> str:
        weeks, sales = len(self.revenue.weeks), float(self.revenue.S.sum())
        text = (
            f"Forecast of {self.panel.firm!r} by {self.model}: {weeks} weeks from {self.revenue.weeks[0]}, "
            f"sales {sales:,.0f}"
        )
        before = self.panel.S[-SEASON:][:weeks]
        if self.panel.n_weeks >= SEASON and weeks <= SEASON and before.sum() > 0:
            text += f" ({100 * (sales / before.sum() - 1):+.1f} % on the same weeks a year before)"
        text += "".join(f"; scenario: {one.description}" for one in self.scenarios)
        return text + (f"; {self.note}" if self.note else "")

    def to_frame(self, by: str = "week") -> pd.DataFrame:
        """The forecast as a table.

        Args:
            by: "week": acquired, orders, repeat_orders, ropc, aov and sales of each week, named by its Sunday, and
                `horizon`, which counts the weeks from 1. "quarter": sums of 13 weeks each. "month": sums of calendar
                months, a week's numbers spread evenly over its days; `days` are those the forecast covers.

        >>> import cbmt_core as cbmt
        >>> forecast = cbmt.panel_from_orders(cbmt.example_orders()).forecast("seasonal_naive")
        >>> forecast.to_frame(by="quarter")["sales"].sum().round() == forecast.to_frame()["sales"].sum().round()
        np.True_
        """
        if by not in PERIODS:
            raise ValueError(f"by must be one of {', '.join(PERIODS)}, not {by!r}")
        weekly = self._table("forecast_week").drop(columns=["firm", "model", "origin", "purpose"])
        weekly["week"] = pd.to_datetime(weekly["week"])
        if by == "week":
            return weekly.assign(horizon=weekly["horizon"].astype(int))
        if by == "quarter":
            quarter = (weekly["horizon"].astype(int) - 1) // 13
            dates = weekly.groupby(quarter)["week"].agg(first="min", last="max")
            dates["last"] += pd.Timedelta(days=6)
            return pd.concat([dates, weekly.groupby(quarter)[SUMMED].sum(min_count=1)], axis=1).rename_axis(
                None
            )
        days = weekly.loc[weekly.index.repeat(7), ["week", *SUMMED]]
        month = (days["week"] + pd.to_timedelta(days.groupby(level=0).cumcount(), unit="D")).dt.to_period("M")
        first_days = month.dt.to_timestamp().rename("month")
        sums: pd.DataFrame = days[SUMMED].groupby(first_days).sum(min_count=1) / 7
        return sums.assign(days=first_days.value_counts()).reset_index()

    def cohorts(self) -> pd.DataFrame:
        """The forecast by cohort and week, cohorts yet to be born included."""
        return self._table("forecast_cohort_week").drop(columns=["firm", "model", "origin", "purpose"])

    def bridge(self) -> pd.DataFrame:
        """From the sales of the last year to those forecast, by source: the three add up to the change.

        The target is the forecast's first 52 weeks, or all where they are fewer; the baseline the same weeks a year
        before. Columns: `sales`, and `points`, percent of the baseline's sales.

        Raises:
            NoBridge: if the sources cannot be separated, for example because the baseline was not observed.

        >>> import cbmt_core as cbmt
        >>> bridge = cbmt.panel_from_orders(cbmt.example_orders()).forecast("cohort_glm").bridge()
        >>> list(bridge.index)
        ['last_year', 'order_volume', 'spend_per_order', 'net_replenishment', 'next_year']
        >>> sales = bridge["sales"]
        >>> abs(sales["last_year"] + sales.iloc[1:4].sum() - sales["next_year"]) < 1e-6
        np.True_
        """
        weeks = min(len(self.revenue.weeks), SEASON)
        windows = BridgeWindows.ahead(self.origin, weeks)
        if windows.baseline.first < self.panel.first_week:
            raise NoBridge(
                f"{self.panel.firm}: the bridge starts from the same weeks a year before, from "
                f"{windows.baseline.first} on, but the panel begins with {self.panel.first_week}"
            )
        tables = self._tables()
        with duck.connect() as con:
            cohort_week, firm_week = self.panel.relations(con)
            for name, frame in tables.items():
                con.register(name, frame)
            relations = Relations(cohort_week=cohort_week, firm_week=firm_week)
            rows = bridge_table(con, relations, windows, "live")
        (row,) = rows[rows["model"] == self.model].to_dict("records")
        if row["reason"] is not None and row["reason"] == row["reason"]:
            raise NoBridge(f"{self.panel.firm}: {row['reason']}")
        sources = CONTRIBUTIONS[1:]
        sales = [row["baseline_sales"], *(row[name] for name in sources), row["target_sales"]]
        frame = pd.DataFrame({"sales": sales}, index=["last_year", *sources, "next_year"])
        frame["points"] = 100 * frame["sales"] / row["baseline_sales"]
        return frame

    def draws(self, draws: int = 500) -> DriverDraws:
        """Joint paths of the drivers around the forecast, for models with a distribution of their own (cbmt_plus).

        `cbmt_core.compose.compose_draws` composes their sales.
        """
        from cbmt_core.notebook.whatif import joint_draws

        return joint_draws(self, draws)

    def bands(self, draws: int = 500) -> pd.DataFrame:
        """Ranges that hold the outcome with a probability of `level` percent, all of them quantiles of the same draws.

        One row an `outcome` (sales, orders, acquired, ...), `period` (week, to_date, month, quarter, year) and `level`,
        with `low`, `high`, `median` and `mean`. Means add up over weeks, quantiles do not. The change in sales and its
        sources (see `bridge`) have ranges over the whole forecast, if the same weeks a year before were observed.
        """
        from cbmt_core.notebook.whatif import ranges

        return ranges(self, draws)

    def scenario(
        self,
        *,
        first: str | date | None = None,
        last: str | date | None = None,
        ramp: int = 0,
        **drivers: float | str,
    ) -> Forecast:
        """The forecast with drivers changed; nothing changed gives the same numbers. New cohorts follow.

        Args:
            first: day or month ("2020-06") from which the changes hold; the first week unless stated.
            last: where they end; with the forecast unless stated.
            ramp: weeks over which they grow.
            drivers: `acquisition`, `aov`, `repeat_existing`, `repeat_new` or `repeat` (both), each as a share (-0.1)
                or as text ("-10% from 2020-06", "x1.2", "=120").

        >>> import cbmt_core as cbmt
        >>> forecast = cbmt.panel_from_orders(cbmt.example_orders()).forecast("cohort_glm")
        >>> fewer = forecast.scenario(acquisition=-0.1)
        >>> bool((fewer.revenue.A == 0.9 * forecast.revenue.A).all())
        True
        >>> bool((forecast.scenario(aov=0).revenue.S == forecast.revenue.S).all())
        True
        """
        from cbmt_core.notebook.whatif import changed

        return changed(self, first, last, ramp, drivers)

    def score(self, panel: Panel) -> pd.DataFrame:
        """Errors against a panel that goes on after the forecast's origin: SMAPE and MASE by outcome and horizon.

        >>> import cbmt_core as cbmt
        >>> panel = cbmt.panel_from_orders(cbmt.example_orders())
        >>> backtest = panel.until("2019-03-31").forecast("cohort_glm", weeks=26)
        >>> sorted(set(backtest.score(panel)["outcome"]))
        ['acquisition', 'aov', 'cohort_sales', 'ropc', 'total_sales']
        """
        return pd.DataFrame([asdict(one) for one in score(panel, self.revenue, self.origin)])

    def plot(self, what: str = "sales", *, actual: Panel | None = None, ax: Axes | None = None) -> Axes:
        """Draw the last two years and the forecast, and return the axes.

        Args:
            what: sales, acquired, orders, repeat_orders, ropc or aov.
            actual: a panel that goes on after the origin, to show what happened.
            ax: matplotlib axes to draw on; a new figure unless given.
        """
        from cbmt_core.notebook.plot import plot_weeks

        return plot_weeks(actual or self.panel, self, what, ax)

    def _tables(self) -> dict[str, pd.DataFrame]:
        run = ModelRun(
            self.panel.firm,
            self.model,
            self.origin,
            self.seed,
            0.0,
            record=self.record,
            forecast=self.revenue,
        )
        return forecast_tables([run], "live")

    def _table(self, name: str) -> pd.DataFrame:
        return self._tables()[name]


def make_forecast(panel: Panel, model: str, weeks: int, seed: int, options: Mapping[str, Any]) -> Forecast:
    """Fit a registered model to the whole panel and forecast. `Panel.forecast` explains the arguments."""
    if weeks < 1:
        raise ValueError(f"a forecast goes at least one week ahead, not {weeks}")
    if model not in MODELS:
        near = nearest(model, MODELS)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(MODELS)}"
        raise ConfigError(f"no model is called {model!r}; {hint}")
    with threadpool_limits(1), warnings.catch_warnings():
        # A warning of tqdm in notebooks without ipywidgets; no such bar is shown.
        warnings.filterwarnings("ignore", message="IProgress not found")
        fitted = build(model, **options).fit(panel, seed=seed)
        revenue = compose(panel, fitted.forecast(weeks))
    return Forecast(panel, model, revenue, fitted, getattr(fitted, "record", FitRecord()), seed)
