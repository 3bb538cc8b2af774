"""Raw files become clean orders: read once, map, judge every row, merge rows into orders."""

from cbmt_core.transactions.delivery import Deliveries, deliveries, firm_timeline, project_timeline
from cbmt_core.transactions.intake import FileReport, Intake, IntakeReport

__all__ = [
    "Deliveries",
    "FileReport",
    "Intake",
    "IntakeReport",
    "deliveries",
    "firm_timeline",
    "project_timeline",
]
