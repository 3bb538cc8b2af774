"""All tables of firms in one go: a bad firm stops at its bad table, and digests say from which week on data differ."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import duckdb
import pytest
from helpers.small_project import CONFIG, orders_csv

from cbmt_core import calendar
from cbmt_core.config import ProjectConfig
from cbmt_core.firm_tables import DATA_TABLES, FirmTables, make_firm_tables, week_digests
from cbmt_core.names import Unit
from cbmt_core.timeline import Timeline
from cbmt_core.transactions import Intake

FIRST, WEEKS = date(2016, 1, 3), 90
TIMELINE = Timeline.for_span(FIRST, FIRST + timedelta(days=7 * WEEKS - 1), washout_weeks=26)


def tables_of(root: Path, orders: dict[str, str], timeline: Timeline = TIMELINE) -> dict[str, FirmTables]:
    """The tables of firms, one file of orders each."""
    (root / "orders").mkdir(parents=True)
    for k, text in enumerate(orders.values()):
        (root / "orders" / f"{k}.csv").write_text(text)
    (root / "cbmt.toml").write_text(CONFIG)
    project = ProjectConfig.load(root / "cbmt.toml")
    intake = Intake(root / "lake")
    assert intake.update(project, root).failed == {}
    firms = {name: FirmTables(duckdb.connect(), Unit(name), timeline) for name in orders}
    make_firm_tables(list(firms.values()), intake, project)
    return firms


def rows(firm: FirmTables, table: str) -> int:
    return int(firm.con.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0])


def test_a_bad_firm_stops_at_its_bad_table_and_the_others_are_made(tmp_path: Path) -> None:
    bad = orders_csv("bad").replace("10.00", "ten")
    firms = tables_of(tmp_path, {"good": orders_csv("good"), "bad": bad, "too": orders_csv("too")})
    for name in ("good", "too"):
        assert firms[name].made == list(DATA_TABLES)
        assert firms[name].errors == []
        assert [verdict.table for verdict in firms[name].verdicts] == [
            "transactions", "cohort_week", "firm_week",
        ]  # fmt: skip
        assert rows(firms[name], "firm_week") == WEEKS - 26
        # One new customer a week, and the customers of the washout together.
        assert rows(firms[name], "cohort_week") == sum(range(WEEKS - 26 + 1)) + WEEKS - 26
    assert firms["bad"].made == ["transactions", "quarantine"]
    assert any("bad" in error for error in firms["bad"].errors)


def test_a_firm_without_rows_has_an_error_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "orders").mkdir()
    (tmp_path / "orders" / "0.csv").write_text(orders_csv("good"))
    (tmp_path / "cbmt.toml").write_text(CONFIG)
    project, intake = ProjectConfig.load(tmp_path / "cbmt.toml"), Intake(tmp_path / "lake")
    intake.update(project, tmp_path)
    firms = [FirmTables(duckdb.connect(), Unit(name), TIMELINE) for name in ("nobody", "good")]
    make_firm_tables(firms, intake, project)
    assert firms[0].error is not None or firms[0].errors
    assert firms[1].made == list(DATA_TABLES)


@pytest.mark.parametrize("week", [40, 70])
def test_digests_differ_from_the_week_of_a_late_order_on(tmp_path: Path, week: int) -> None:
    late = f"F,c3,{FIRST + timedelta(days=7 * week + 2)},10.00\n"
    before = tables_of(tmp_path / "a", {"F": orders_csv("F")})["F"]
    after = tables_of(tmp_path / "b", {"F": orders_csv("F") + late})["F"]
    one, other = (week_digests(firm.con, TIMELINE) for firm in (before, after))
    assert list(one) == list(other)
    assert list(one) == [
        (TIMELINE.washout.last + timedelta(days=7 * k)).isoformat() for k in range(WEEKS - 26 + 1)
    ]
    changed = [name for name in one if one[name] != other[name]]
    assert changed == [name for name in one if name >= (FIRST + timedelta(days=7 * week)).isoformat()]


def test_digests_do_not_depend_on_the_order_of_rows_but_on_the_calendar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head, *lines = orders_csv("F").splitlines(keepends=True)
    one = tables_of(tmp_path / "a", {"F": head + "".join(lines)})["F"]
    other = tables_of(tmp_path / "b", {"F": head + "".join(reversed(lines))})["F"]
    assert week_digests(one.con, TIMELINE) == week_digests(other.con, TIMELINE)
    abroad = Timeline.for_span(FIRST, FIRST + timedelta(days=7 * WEEKS - 1), washout_weeks=26, country="GB")
    apart = week_digests(one.con, abroad)
    known = week_digests(one.con, TIMELINE)
    assert all(apart[week] != digest for week, digest in known.items())
    monkeypatch.setattr(calendar, "VERSION", "another")
    again = week_digests(one.con, TIMELINE)
    assert all(again[week] != digest for week, digest in known.items())
