"""The sales bridge between two windows, and how well models forecast it."""

from cbmt_core.bridge.contributions import CONTRIBUTIONS, TOLERANCE, BridgeWindows, contributions, tolerance
from cbmt_core.bridge.errors import BridgeErrors, bridge_errors
from cbmt_core.bridge.table import REALISED, bridge_table

__all__ = [
    "CONTRIBUTIONS",
    "REALISED",
    "TOLERANCE",
    "BridgeErrors",
    "BridgeWindows",
    "bridge_errors",
    "bridge_table",
    "contributions",
    "tolerance",
]
