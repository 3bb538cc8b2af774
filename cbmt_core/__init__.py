"""Forecasts of a firm's sales from its customers: acquisition, repeat orders per customer, average order value.

From a frame of orders (pandas, polars or Arrow) to a forecast:

    import cbmt_core as cbmt

    panel = cbmt.panel_from_orders(orders, country="GB", customer="user_id", order_time="created_at")
    forecast = panel.forecast("cbmt_plus", weeks=52)
    forecast.to_frame()     # acquisition, orders, order value and sales of each week
    forecast.plot()         # beside the last two years
    forecast.bridge()       # last year to next year, by source of the change
    forecast.cohorts()      # by acquisition cohort
    forecast.scenario(acquisition=-0.1)     # the same with a tenth fewer new customers

`cbmt.panels_from_orders` makes the panels of several firms, `cbmt.read_panel` reads one from a file that the pipeline
published, `panel.until("2019-03-31").forecast(...).score(panel)` is a backtest, `cbmt.register_model` adds a model of
your own, `cbmt.MODELS` lists those there are, and `cbmt.example_orders()` invents orders to try it with.

Nothing is imported before it is used: this module by itself loads no library.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cbmt_core.errors import CbmtError
    from cbmt_core.models import (
        MODELS,
        CannotFit,
        FitRecord,
        PrimitiveForecast,
        load,
        register_model,
        save,
        unregister_model,
    )
    from cbmt_core.notebook import (
        Forecast,
        NoBridge,
        Panel,
        Panels,
        RowsNotUsed,
        example_orders,
        panel_from_orders,
        panels_from_orders,
        read_panel,
    )

_HOME = {
    "CbmtError": "errors",
    **dict.fromkeys(
        (
            "MODELS",
            "CannotFit",
            "FitRecord",
            "PrimitiveForecast",
            "load",
            "register_model",
            "save",
            "unregister_model",
        ),
        "models",
    ),
    **dict.fromkeys(("Forecast", "NoBridge", "Panel", "Panels", "RowsNotUsed", "example_orders"), "notebook"),
    **dict.fromkeys(("panel_from_orders", "panels_from_orders", "read_panel"), "notebook"),
}
"""Module of each name, imported when the name is first used."""

__all__ = [
    "MODELS",
    "CannotFit",
    "CbmtError",
    "FitRecord",
    "Forecast",
    "NoBridge",
    "Panel",
    "Panels",
    "PrimitiveForecast",
    "RowsNotUsed",
    "example_orders",
    "load",
    "panel_from_orders",
    "panels_from_orders",
    "read_panel",
    "register_model",
    "save",
    "unregister_model",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
