"""What `cbmt forecast` prints is what was published: quarters, the year, their ranges and the sources of the change."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner
from helpers.published import FIRMS

from cbmt_pipeline.cli import main

FIRM = FIRMS[2]
SOURCES = ("order_volume", "spend_per_order", "net_replenishment")


@pytest.fixture(scope="module")
def printed(con: duckdb.DuckDBPyConnection, tmp_path_factory: pytest.TempPathFactory) -> str:
    root: Path = tmp_path_factory.mktemp("project")
    (root / "data").mkdir()
    ((name,),) = con.execute("SELECT current_database()").fetchall()
    con.execute(f"ATTACH '{root / 'data' / 'cbmt.duckdb'}' AS published")
    con.execute(f"COPY FROM DATABASE {name} TO published")
    con.execute("DETACH published")
    result = CliRunner().invoke(main, ["--project", str(root), "forecast", FIRM])
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


def test_every_quarter_and_the_year_have_their_range(con: duckdb.DuckDBPyConnection, printed: str) -> None:
    rows = con.execute(
        "SELECT sum(f.sales), any_value(b.low), any_value(b.high) FROM forecast AS f JOIN forecast_band AS b "
        "ON b.firm = f.firm AND b.model = f.model AND b.origin = f.origin AND b.purpose = 'live' "
        "AND f.week BETWEEN b.week AND b.week + 7 * (b.weeks - 1) "
        "WHERE f.firm = ? AND outcome = 'sales' AND level = 80 AND period IN ('quarter', 'year') "
        "GROUP BY b.week, b.weeks",
        [FIRM],
    ).fetchall()
    assert len(rows) == 5
    for sales, low, high in rows:
        assert f"{sales:,.0f} {low:,.0f} - {high:,.0f}" in printed
    whole = con.execute("SELECT low, high FROM forecast_band WHERE firm = ? AND outcome = 'sales' AND level = 80 "
                        "AND period = 'year'", [FIRM]).fetchone()  # fmt: skip
    assert (
        "four years in five end between {:,.0f} and {:,.0f}; the range is borrowed".format(*whole) in printed
    )


def test_the_change_and_each_source_have_their_range(con: duckdb.DuckDBPyConnection, printed: str) -> None:
    ends = dict(
        con.execute(
            "SELECT outcome, [low, high] FROM forecast_band WHERE firm = ? AND level = 80 AND period = 'year'",
            [FIRM],
        ).fetchall()
    )
    line = printed.split("in four years of five: ")[1]
    places = [line.index("{:+,.0f} to {:+,.0f}".format(*ends[name])) for name in ("sales_change", *SOURCES)]
    assert places == sorted(places)
    amounts = con.execute(
        f"SELECT sales_change, {', '.join(SOURCES)} FROM bridge AS b JOIN forecast_choice USING (firm, model, origin, "
        "purpose) WHERE firm = ? AND purpose = 'live'",
        [FIRM],
    ).fetchone()
    for amount in amounts:
        assert f"{amount:+,.0f}" in printed.split("in four years of five")[0]
