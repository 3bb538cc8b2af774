"""The library as notebooks use it: orders to a panel, a panel to a forecast, a forecast to answers."""

from cbmt_core.notebook.examples import example_orders
from cbmt_core.notebook.forecast import Forecast, NoBridge
from cbmt_core.notebook.orders import RowsNotUsed, panel_from_orders, panels_from_orders
from cbmt_core.notebook.panel import Panel, Panels, read_panel

__all__ = [
    "Forecast",
    "NoBridge",
    "Panel",
    "Panels",
    "RowsNotUsed",
    "example_orders",
    "panel_from_orders",
    "panels_from_orders",
    "read_panel",
]
