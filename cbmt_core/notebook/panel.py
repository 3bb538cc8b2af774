"""Panel: a firm's weekly cohorts with the methods that notebooks use; Panels: several by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import duckdb
import numpy as np
import pandas as pd

from cbmt_core import stored_panel
from cbmt_core.cohorts import make_firm_week
from cbmt_core.duck import literal
from cbmt_core.names import Unit, UnknownFirm
from cbmt_core.panel import CustomerHistory, FirmPanel
from cbmt_core.timeline import HORIZON, Timeline

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cbmt_core.models.plus import PathPriors
    from cbmt_core.notebook.forecast import Forecast

__all__ = ["Panel", "Panels", "read_panel"]

SEED = 20260626
"""Of fits where none is stated."""


@dataclass(frozen=True, eq=False, repr=False)
class Panel(FirmPanel):
    """One firm's weekly cohorts: what every model is fitted to.

    Make one with `panel_from_orders` or `read_panel`. `A` and `S` are customers acquired and sales by week; `R`, `V`
    and `Y` repeat orders per customer, average order value and sales by cohort and week; `size` and `birth` are the
    cohorts'.
    """

    cohort_week: pd.DataFrame = field(default_factory=pd.DataFrame)
    """The table it was made from: one row a cohort and week."""

    @classmethod
    def from_table(
        cls, firm: str, cohort_week: pd.DataFrame, timeline: Timeline, history: CustomerHistory | None = None
    ) -> Self:
        """From a firm's rows of `cohort_week`, all columns of them.

        Args:
            firm: name of the firm.
            cohort_week: the firm's rows of that table, with all columns.
            timeline: weeks of the panel.
            history: order weeks of single customers, if known.
        """
        return replace(
            cls.from_cohort_week(firm, cohort_week, timeline, history),
            cohort_week=cohort_week.sort_values(["cohort", "week"], ignore_index=True),
        )

    def __repr__(self) -> str:
        washout = self.design.washout_weeks
        return (
            f"Panel of {self.firm!r}: {self.n_weeks} weeks from {self.first_week} to {self.origin}, "
            f"{f'after a washout of {washout}' if washout else 'without a washout'}; "
            f"{self.n_cohorts:,} cohorts, {self.size.sum():,.0f} customers"
        )

    def until(self, origin: date | str) -> Self:
        """The panel as it was known at the end of the week that begins with `origin`: copies, nothing later.

        Args:
            origin: a Sunday, as a date or as text such as "2019-03-31".
        """
        week = date.fromisoformat(origin) if isinstance(origin, str) else origin
        kept = super().until(week)
        table = self.cohort_week
        if len(table):
            seen = (pd.to_datetime(table["week"]) <= pd.Timestamp(kept.origin)).to_numpy()
            table = table[seen].reset_index(drop=True)
        return replace(kept, cohort_week=table)

    def forecast(
        self, model: str = "cbmt_plus", weeks: int = HORIZON, *, seed: int = SEED, **options: Any
    ) -> Forecast:
        """Fit a model to the panel and forecast the weeks after its last one.

        Args:
            model: a name of `cbmt.MODELS`, or one given to `cbmt.register_model`.
            weeks: weeks ahead.
            seed: the same seed gives the same forecast.
            options: the model's own, such as `priors=panels.learn_priors()` of cbmt_plus.

        Raises:
            CannotFit: where the panel does not hold what the model needs.

        >>> import cbmt_core as cbmt
        >>> panel = cbmt.panel_from_orders(cbmt.example_orders())
        >>> forecast = panel.forecast("cohort_glm", weeks=52)
        >>> forecast.to_frame().shape
        (52, 8)
        """
        from cbmt_core.notebook.forecast import make_forecast

        return make_forecast(self, model, weeks, seed, options)

    def to_frame(self) -> pd.DataFrame:
        """One row a week: acquired, orders, repeat_orders, ropc, aov and sales, by the Sunday of the week."""
        orders = self.orders.sum(axis=0)
        repeats = np.nansum(self.size[:, None] * self.R, axis=0)
        customers = (self.size[:, None] * self.born).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            ropc, aov = repeats / customers, self.S / orders
        values = {"acquired": self.A, "orders": orders, "repeat_orders": repeats, "ropc": ropc, "aov": aov,
                  "sales": self.S}  # fmt: skip
        return pd.DataFrame(values, index=pd.DatetimeIndex(self.weeks, name="week"))

    def plot(self, what: str = "sales", *, ax: Axes | None = None) -> Axes:
        """Draw a column of `to_frame` over the weeks, and return the axes."""
        from cbmt_core.notebook.plot import plot_weeks

        return plot_weeks(self, None, what, ax)

    def relations(self, con: duckdb.DuckDBPyConnection) -> tuple[str, str]:
        """Names of the relations `cohort_week` and `firm_week` of this panel, made on `con`."""
        con.register("panel_rows", self.cohort_week)
        con.execute("CREATE OR REPLACE TEMP TABLE panel_cohort_week AS FROM panel_rows")
        con.unregister("panel_rows")
        make_firm_week(con, Unit(self.firm), "panel_cohort_week", self.design)
        con.execute(f"DELETE FROM firm_week WHERE week > DATE '{self.origin}'")
        return "panel_cohort_week", "firm_week"


class Panels(Mapping[str, Panel]):
    """Panels by the name of the firm. An unknown name raises an error that suggests similar ones."""

    def __init__(self, panels: Mapping[str, Panel]) -> None:
        self._panels = dict(panels)

    def __getitem__(self, firm: str) -> Panel:
        if firm not in self._panels:
            raise UnknownFirm(firm, self._panels)
        return self._panels[firm]

    def __contains__(self, firm: object) -> bool:
        return firm in self._panels

    def __iter__(self) -> Iterator[str]:
        return iter(self._panels)

    def __len__(self) -> int:
        return len(self._panels)

    def __repr__(self) -> str:
        return f"Panels of {len(self)} firms: {', '.join(self._panels)}"

    def learn_priors(self, *, seed: int = SEED) -> PathPriors:
        """What the firms' weekly series have in common: the option `priors` of cbmt_plus. Takes seconds.

        For forecasts from an earlier week, learn from panels that end there:
        `Panels({name: panel.until(week) for name, panel in panels.items()}).learn_priors()`.
        """
        from cbmt_core.models.plus import learn_priors, weekly_series

        frames = [weekly_series(panel, seed=seed) for panel in self.values()]
        (country,) = {panel.design.country for panel in self.values()}
        return learn_priors(pd.concat(frames, ignore_index=True), country)


def read_panel(file: str | Path | duckdb.DuckDBPyConnection, firm: str) -> Panel:
    """A firm's panel from a published or exported DuckDB file.

    Args:
        file: its path, such as "data/cbmt.duckdb", or an open connection.
        firm: as the table `firm` names it.
    """
    if not isinstance(file, duckdb.DuckDBPyConnection):
        with duckdb.connect(str(file), read_only=True) as con:
            return read_panel(con, firm)
    found = stored_panel.read_panel(file, firm, orders="transactions")
    table = file.execute(f"FROM cohort_week WHERE firm = {literal(firm)} ORDER BY cohort, week").df()
    values = {one.name: getattr(found, one.name) for one in fields(found)}
    return Panel(**values, cohort_week=table)
