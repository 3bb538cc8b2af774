"""External calibration: forecast errors of panel sales compared with analysts' errors of reported revenue."""

from cbmt_core.diagnostics.calibration.study import Calibration, calibrate, calibration_tables, weekly_sales
from cbmt_core.diagnostics.calibration.tables import AnalystTables, read_tables

__all__ = [
    "AnalystTables",
    "Calibration",
    "calibrate",
    "calibration_tables",
    "read_tables",
    "weekly_sales",
]
