"""Shared by planning steps and commands: the forecast to plan with, as draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import duckdb

from cbmt_core.bands import read_draws
from cbmt_core.compose import DriverDraws
from cbmt_core.panel import FirmPanel
from cbmt_core.scenarios import SalesPlan, Scenario, weekly_plan
from cbmt_core.scenarios.plan import spread_year
from cbmt_core.scenarios.plan_file import read_plan
from cbmt_core.scenarios.tables import last_year
from cbmt_core.schema import TABLES
from cbmt_pipeline.manifest import digest_of
from cbmt_pipeline.project import Project
from cbmt_pipeline.work import Work

__all__ = ["Planned", "file_digest", "named_scenarios", "plan_of", "planned"]


@dataclass(frozen=True, eq=False)
class Planned:
    """A firm's live forecast to plan with."""

    panel: FirmPanel
    model: str
    draws: DriverDraws

    @property
    def keys(self) -> dict[str, Any]:
        """Key columns of every row made from it."""
        return {"firm": self.panel.firm, "model": self.model, "origin": self.panel.origin}


def planned(work: Work, *, customers: bool = False) -> Planned | None:
    """The draws made at the live origin; None where the model to plan with has none."""
    lake, week = work.project.lake, work.at.week
    drawn = work.con.execute(
        f"FROM {lake.relation(TABLES['forecast_draw'], week, work.firm)} WHERE purpose = 'live'"
    ).df()
    if drawn.empty or drawn["acquired"].isna().any():
        return None
    (model,) = drawn["model"].unique()
    cells = work.con.execute(
        f"FROM {lake.relation(TABLES['forecast_cohort_week'], week, work.firm)} "
        "WHERE purpose = 'live' AND model = ?",
        [model],
    ).df()
    return Planned(work.panel(customers=customers), str(model), read_draws(drawn, cells, week))


def named_scenarios(project: Project, firm: str) -> list[Scenario]:
    """The scenarios of cbmt.toml that apply to a firm, in the order of the file."""
    return [
        section.scenario(name)
        for name, section in project.config.scenario.items()
        if section.firms is None or firm in section.firms
    ]


def plan_of(
    project: Project, con: duckdb.DuckDBPyConnection, panel: FirmPanel, draws: DriverDraws
) -> SalesPlan | None:
    """The plan of cbmt.toml for a firm, by week of its forecast; None where there is none."""
    wanted, weeks = project.config.plan, draws.centre.weeks
    if wanted is None:
        return None
    firms = len(list(project.intake.units()))
    if wanted.file is not None:
        months = read_plan(con, project.root / wanted.file, panel.firm, firms)
        return weekly_plan(months, weeks) if months else None
    total = wanted.firms.get(panel.firm) if wanted.firms else wanted.sales if firms == 1 else None
    if total is None:
        return None
    past = last_year(panel, len(weeks))
    observed = bool((past > 0).all())
    shape, what = (past, "last year's sales") if observed else (draws.centre.S, "the forecast")
    return spread_year(total, shape, what)


def file_digest(project: Project, name: str | None) -> str:
    """Digest of a file's path, size and modification time."""
    if name is None:
        return ""
    path = project.root / name
    return digest_of([name, *([path.stat().st_size, path.stat().st_mtime_ns] if path.exists() else [])])
