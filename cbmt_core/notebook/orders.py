"""Panels from a frame of orders, by the same rules as the pipeline reads files."""

from __future__ import annotations

import difflib
import tempfile
import warnings
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa

from cbmt_core import duck
from cbmt_core.cohorts import make_cohort_week
from cbmt_core.config import ProjectConfig
from cbmt_core.customers import customer_history
from cbmt_core.errors import BadFirmData, CbmtError
from cbmt_core.names import Unit
from cbmt_core.notebook.panel import Panel, Panels
from cbmt_core.transactions import Intake, firm_timeline, project_timeline
from cbmt_core.transactions.amounts import NO_CURRENCY
from cbmt_core.transactions.orders import make_orders

__all__ = ["RowsNotUsed", "panel_from_orders", "panels_from_orders"]


class RowsNotUsed(UserWarning):
    """Some rows of the orders could not be used."""


def panel_from_orders(
    orders: Any,
    *,
    country: str = "US",
    name: str = "firm",
    customer: str = "customer",
    order_time: str = "order_time",
    amount: str = "amount",
    order_id: str | None = "order_id",
    timezone: str = "UTC",
    order_grain: str = "order",
    washout_weeks: int | None = None,
) -> Panel:
    """The weekly cohorts of one firm, from its orders.

    Rows are judged, and merged into orders, by the rules of `cbmt ingest`. Rows that cannot be used are left out
    with a `RowsNotUsed` warning that counts them by reason. Only whole weeks (Sunday to Saturday) count.

    Args:
        orders: a pandas, polars or Arrow frame, one row an order or a line of one.
        country: ISO code of the holiday calendar.
        name: what to call the firm.
        customer: column that tells customers apart.
        order_time: column of order times: times, dates, or text in ISO 8601.
        amount: column of amounts, all in one currency.
        order_id: column of order ids, where the frame has it; rows with the same id are one order. Without, an order
            is what a customer bought at one time.
        timezone: zone that times with an offset are brought to; others are taken as local already.
        order_grain: "order", or "day" to merge a customer's orders of a day.
        washout_weeks: first weeks whose customers count as old, because their first order may lie before the data.
            Unless stated, 52 where the data are long enough, else 26, 13 or none.

    >>> import cbmt_core as cbmt
    >>> panel = cbmt.panel_from_orders(cbmt.example_orders(), country="US", name="Example")
    >>> panel
    Panel of 'Example': 165 weeks from 2017-01-01 to 2020-02-23, after a washout of 52; 165 cohorts, 3,276 customers
    """
    columns = {"customer": customer, "order_time": order_time, "amount": amount, "order_id": order_id}
    options = {"timezone": timezone, "order_grain": order_grain}
    panels = _panels(orders, columns, options, country, washout_weeks, name)
    return next(iter(panels.values()))


def panels_from_orders(
    orders: Any,
    *,
    firm: str = "firm",
    country: str = "US",
    customer: str = "customer",
    order_time: str = "order_time",
    amount: str = "amount",
    order_id: str | None = "order_id",
    timezone: str = "UTC",
    order_grain: str = "order",
    washout_weeks: int | None = None,
) -> Panels:
    """The panels of several firms over the same weeks, by name.

    Args:
        firm: column with the names of the firms. The others are those of `panel_from_orders`.

    >>> import cbmt_core as cbmt
    >>> panels = cbmt.panels_from_orders(cbmt.example_orders(firms=2, scale=0.003))
    >>> sorted(panels)
    ['Keldevar Foods', 'Mirregard Grill Co.']
    >>> panels["keldevar"]
    Traceback (most recent call last):
    cbmt_core.names.UnknownFirm: no firm is called 'keldevar'; did you mean Keldevar Foods?
    """
    columns = {"customer": customer, "order_time": order_time, "amount": amount, "order_id": order_id}
    options = {"timezone": timezone, "order_grain": order_grain}
    return _panels(orders, {**columns, "firm": firm}, options, country, washout_weeks, None)


def _panels(
    orders: Any,
    columns: Mapping[str, str | None],
    options: Mapping[str, str],
    country: str,
    washout_weeks: int | None,
    name: str | None,
) -> Panels:
    """One panel for each firm, of the column `firm` or called `name`."""
    table = _arrow(orders)
    named = _named_columns(table, columns)
    if not table.num_rows:
        raise CbmtError("the orders have no rows")
    with tempfile.TemporaryDirectory() as folder, duck.connect() as con:
        root = Path(folder)
        con.register("orders_of_frame", table.select(list(dict.fromkeys(named.values()))))
        con.execute(f"COPY orders_of_frame TO {duck.literal(str(root / 'orders.parquet'))} (FORMAT parquet)")
        con.unregister("orders_of_frame")
        source: dict[str, Any] = {
            "name": "orders",
            "path": "orders.parquet",
            "currency": NO_CURRENCY,
            **options,
        }
        source |= {"columns": named | ({"firm": None} if name else {}), "firm": name}
        design = {"country": country, "washout_weeks": washout_weeks}
        config = ProjectConfig.from_mapping({"sources": [source], "design": design}, "the orders")
        intake = Intake(root / "intake")
        if failed := intake.update(config, root).failed:
            raise CbmtError(next(iter(failed.values())))
        unused = Counter(intake.bad_rows(intake.ledger()[0]))
        if unused.total() == table.num_rows:
            raise CbmtError(f"none of the {table.num_rows:,} rows can be used: {_counted(unused)}")
        panels, left_out = {}, {}
        for unit in intake.units():
            try:
                panels[unit.name] = _panel(con, unit, intake, config)
            except BadFirmData as error:
                left_out[unit.name] = error.reason
    if not panels:
        raise BadFirmData(*next(iter(left_out.items())))
    if unused:
        text = f"{unused.total():,} of {table.num_rows:,} rows were not used: {_counted(unused)}"
        warnings.warn(text, RowsNotUsed, stacklevel=3)
    for firm, reason in left_out.items():
        warnings.warn(f"{firm} was left out: {reason}", RowsNotUsed, stacklevel=3)
    return Panels(panels)


def _panel(con: duckdb.DuckDBPyConnection, unit: Unit, intake: Intake, config: ProjectConfig) -> Panel:
    timeline = firm_timeline(intake, config, unit)
    make_orders(con, unit, intake, {source.name: source for source in config.sources}, timeline)
    make_cohort_week(con, unit, "transactions", timeline)
    history = customer_history(con, "transactions", "cohort_week", timeline)
    weeks = project_timeline(intake, config).until(timeline.panel.last)
    return Panel.from_table(unit.name, con.execute("FROM cohort_week").df(), weeks, history)


def _counted(reasons: Mapping[str, int]) -> str:
    return ", ".join(f"{reason} {count:,}" for reason, count in reasons.items())


def _arrow(orders: Any) -> pa.Table:
    """Any frame as an Arrow table."""
    if isinstance(orders, pa.Table):
        return orders
    if isinstance(orders, pd.DataFrame):
        try:
            return pa.Table.from_pandas(orders, preserve_index=False)
        except pa.ArrowException:
            # Columns of mixed objects are read as the text they would be in a file.
            mixed = [str(name) for name in orders.columns if orders[name].dtype.kind == "O"]
            texts = {column: orders[column].map(lambda x: None if pd.isna(x) else str(x)) for column in mixed}
            return pa.Table.from_pandas(orders.assign(**texts), preserve_index=False)
    if hasattr(orders, "collect"):
        orders = orders.collect()  # a lazy frame of polars
    if hasattr(orders, "__arrow_c_stream__"):
        return pa.table(orders)
    raise TypeError(f"orders must be a pandas, polars or Arrow frame, not {type(orders).__name__}")


def _named_columns(table: pa.Table, columns: Mapping[str, str | None]) -> dict[str, str]:
    """The columns that are there; the order id may be missing, others may not."""
    there = table.column_names
    named = {ours: theirs for ours, theirs in columns.items() if theirs in there and theirs is not None}
    for ours, theirs in columns.items():
        if ours in named or (ours == "order_id" and theirs in (None, "order_id")):
            continue
        near = difflib.get_close_matches(str(theirs), there, n=1, cutoff=0.5)
        hint = f"; is it {ours}={near[0]!r}?" if near else f"; say which it is with {ours}=..."
        raise CbmtError(f"the orders have no column {theirs!r}{hint} There are {', '.join(map(repr, there))}")
    return named
