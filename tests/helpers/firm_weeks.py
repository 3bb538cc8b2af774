"""A plan of one step that stores made-up weeks of a firm in the lake."""

from __future__ import annotations

from cbmt_core.names import Unit
from cbmt_core.schema import TABLES
from cbmt_pipeline.plan import Plan, Step, Task
from cbmt_pipeline.transaction import carry_out
from cbmt_pipeline.work import Made

TABLE = TABLES["firm_week"]
WEEKS = (
    "(SELECT '{firm}' AS firm, DATE '2017-01-01' + CAST(7 * i AS INTEGER) AS week, 1 AS acquired, 1 AS orders, "
    "1 AS initial_orders, 0 AS repeat_orders, 5 AS sales, 5 AS initial_sales, 0 AS repeat_sales, "
    "1 AS active_customers, i + 1 AS cumulative_customers, 0 AS ropc, 5 AS aov FROM range({rows}) t(i))"
)


def plan_of(relation):
    """A plan of one step that stores a relation as a firm's weeks."""
    return Plan([Step("weeks", lambda _: Made({TABLE.name: relation}), "Weeks.", "data", writes=(TABLE,))])


def write(project, firm, rows, relation=None):
    plan = plan_of(relation or WEEKS.format(firm=firm.replace("'", "''"), rows=rows))
    return carry_out(project, plan, Task(plan["weeks"], None, Unit(firm))).rows[TABLE.name]
