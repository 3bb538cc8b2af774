"""A project of a few hand-sized firms, its tables made without an orchestrator."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

from cbmt_core.errors import CbmtError
from cbmt_pipeline.plan import State, the_plan
from cbmt_pipeline.project import Project
from cbmt_pipeline.transaction import carry_out

FIRMS = ("A, B & Söhne", "it's 50% off/..", "🛒 ~ shop")
FIRST, WEEKS = date(2016, 1, 3), 90

CONFIG = """
[[sources]]
name = "shop"
path = "orders"
currency = "GBP"
timezone = "Europe/London"
[quality]
min_customers = 5
"""

MODELS = '[forecast]\nmodels = ["cohort_glm", "seasonal_naive"]\n[networks]\nmodels = []\n'


def orders_csv(firm: str, weeks: int = WEEKS, amount: str = "10.00") -> str:
    """Each week one new customer, who orders again the week after."""
    quoted = '"' + firm.replace('"', '""') + '"'
    lines = ["firm,customer,order_time,amount"]
    for w in range(weeks):
        saturday = FIRST + timedelta(days=7 * w + 6)
        lines += [f"{quoted},c{customer},{saturday},{amount}" for customer in {w, max(0, w - 1)}]
    # The first Sunday and the last Saturday make the span.
    lines.append(f"{quoted},c0,{FIRST},1.00")
    return "\n".join(lines) + "\n"


def new_project(root: Path, firms: tuple[str, ...] = FIRMS) -> Project:
    (root / "orders").mkdir(parents=True)
    (root / "cbmt.toml").write_text(CONFIG)
    for k, firm in enumerate(firms):
        (root / "orders" / f"{k}.csv").write_text(orders_csv(firm))
    project = Project(root)
    project.check_schema()
    assert project.intake.update(project.config, root).failed == {}
    return project


def delivered(root: Path) -> Project:
    """Two firms' files that nothing was made from yet, with two quick models."""
    (root / "orders").mkdir(parents=True, exist_ok=True)
    (root / "cbmt.toml").write_text(CONFIG + MODELS)
    for k, firm in enumerate(("A, B & Söhne", "two")):
        file = root / "orders" / f"{k}.csv"
        file.write_text(orders_csv(firm))
    return Project(root)


def make_all(project: Project) -> dict[str, str]:
    """Make and store every unit's tables; the slugs that failed, with their reason."""
    plan, failed = the_plan(), {}
    for task in State(project, plan).todo(plan["firm_data"], everything=True):
        assert task.unit is not None
        try:
            reason = carry_out(project, plan, task).rejected
        except CbmtError as error:
            reason = str(error)
        if reason:
            failed[task.unit.slug] = reason
    return failed
