"""Every table: its columns, their types and meaning, and its key. docs/tables.md is generated from this."""

from cbmt_core.schema.comparisons import COMPARISON_TABLES
from cbmt_core.schema.diagnostics import DIAGNOSTIC_TABLES
from cbmt_core.schema.forecasts import MODEL_TABLES
from cbmt_core.schema.kinds import FIRM, MODEL, OUTCOME, SCHEMAS, Column, Table, View
from cbmt_core.schema.orders import ORDER_TABLES, ORDER_VIEWS, STUDY, STUDY_WINDOW, TIMELINE
from cbmt_core.schema.planning import PLANNING_TABLES
from cbmt_core.schema.state import FIRM_STATE, SNAPSHOT
from cbmt_core.schema.views import ANSWER_VIEWS, FORECAST_VIEWS

__all__ = [
    "DIAGNOSTIC_TABLES",
    "FILE_TABLES",
    "FIRM",
    "FIRM_STATE",
    "MODEL",
    "OUTCOME",
    "SCHEMAS",
    "SNAPSHOT",
    "STUDY",
    "STUDY_WINDOW",
    "TABLES",
    "TIMELINE",
    "VIEWS",
    "Column",
    "Table",
    "View",
]

TABLES: dict[str, Table] = {
    table.name: table for table in (*ORDER_TABLES, *MODEL_TABLES, *COMPARISON_TABLES, *PLANNING_TABLES)
}
"""The tables of the lake, beside DIAGNOSTIC_TABLES."""
FILE_TABLES: tuple[Table, ...] = (SNAPSHOT, FIRM_STATE, TIMELINE, STUDY, STUDY_WINDOW)
"""The tables of the published file that no step makes."""
VIEWS: tuple[View, ...] = (*ORDER_VIEWS, *FORECAST_VIEWS, *ANSWER_VIEWS)
"""The views of the published file."""
