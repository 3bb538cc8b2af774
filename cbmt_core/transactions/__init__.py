"""Raw files become clean orders: read once, map, judge every row, merge rows into orders."""

from cbmt_core.transactions.intake import FileReport, Intake, IntakeReport

__all__ = ["FileReport", "Intake", "IntakeReport"]
