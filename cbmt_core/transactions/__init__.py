"""Raw files become clean orders: read once, map, judge every row, merge rows into orders."""

from cbmt_core.transactions.delivery import Deliveries, deliveries, firm_timeline, project_timeline
from cbmt_core.transactions.intake import Intake, IntakeReport
from cbmt_core.transactions.intake_file import FileReport

__all__ = [
    "Deliveries",
    "FileReport",
    "Intake",
    "IntakeReport",
    "deliveries",
    "firm_timeline",
    "project_timeline",
]
