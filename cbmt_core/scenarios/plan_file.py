"""Reading a plan by month from a CSV."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import duckdb

from cbmt_core.duck import literal, path_literal
from cbmt_core.errors import ConfigError

__all__ = ["read_plan"]


def read_plan(con: duckdb.DuckDBPyConnection, path: Path, firm: str, firms: int = 1) -> dict[date, float]:
    """First day of each month -> planned sales of a firm.

    Args:
        path: CSV with month (2020-06 or a day of it), sales and maybe firm.
        firms: number of firms of the project: a file without a column `firm` can only be used with one.
    """
    if not path.exists():
        raise ConfigError(f"[plan] file: there is no file {path}")
    source = f"read_csv({path_literal(path)}, all_varchar = true)"
    try:
        names = [row[0] for row in con.execute(f"DESCRIBE FROM {source}").fetchall()]
    except duckdb.Error as error:
        raise ConfigError(f"[plan] file: {path} cannot be read: {str(error).splitlines()[0]}") from None
    if missing := [name for name in ("month", "sales") if name not in names]:
        raise ConfigError(
            f"[plan] file: {path} has no column {', '.join(missing)}; it needs month (2020-06), sales and, for several "
            f"firms, firm. It has {', '.join(names)}"
        )
    if "firm" not in names and firms > 1:
        raise ConfigError(f"[plan] file: {path} needs a column firm, because the project has {firms} firms")
    where = f"WHERE firm = {literal(firm)}" if "firm" in names else ""
    rows = con.execute(
        f"SELECT month, sales, try_cast(CASE WHEN length(trim(month)) = 7 THEN trim(month) || '-01' ELSE month END "
        f"AS DATE), try_cast(sales AS DOUBLE) FROM {source} {where}"
    ).fetchall()
    plan: dict[date, float] = {}
    for month, sales, day, amount in rows:
        if day is None or amount is None or not amount >= 0:
            raise ConfigError(
                f"[plan] file: {path} has the row month {month!r}, sales {sales!r}; write 2020-06 and 120000"
            )
        first = day.replace(day=1)
        if first in plan:
            raise ConfigError(
                f"[plan] file: {path} has two rows for {first:%Y-%m}" + (f" of {firm}" if where else "")
            )
        plan[first] = amount
    return plan
