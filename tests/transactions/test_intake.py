"""The intake: new files append, known ones change nothing, a failure leaves everything as it was."""

import os
import subprocess
import sys
from datetime import date, timedelta

import pytest
from helpers import TESTS
from helpers.sources import HEAD, Shop

from cbmt_core.errors import BadFirmData, CbmtError
from cbmt_core.names import Unit


def lines(firm, *customers):
    return "".join(f"{firm},{c},2017-01-01,5\n" for c in customers)


def customers(shop):
    return sorted(c for (c,) in shop.rows("customer"))


def files(shop):
    return {p.name: p.read_bytes() for p in shop.intake.folder.iterdir() if p.is_file() and p.name[0] != "."}


def test_a_second_run_reads_what_is_new(shop):
    shop.put("a.csv", HEAD + lines("F", "c1"))
    assert [e.file for e in shop.update().read] == ["orders/a.csv"]
    shop.put("b.csv", HEAD + lines("F", "c2"))
    report = shop.update()
    assert [e.file for e in report.read] == ["orders/b.csv"]
    assert report.unchanged == 1
    assert customers(shop) == ["c1", "c2"]


def test_the_same_file_twice_changes_nothing(shop):
    first = shop.put("a.csv", HEAD + lines("F", "c1"))
    shop.update()
    before, version = files(shop), shop.intake.version
    assert shop.update().read == []
    assert files(shop) == before
    shop.put("copy.csv", first.read_bytes())
    report = shop.update()
    assert (report.read, report.unchanged) == ([], 2)
    assert shop.intake.version == version
    assert customers(shop) == ["c1"]


def test_a_touched_file_changes_no_rows_and_waits_no_more(shop):
    file = shop.put("a.csv", HEAD + lines("F", "c1"))
    shop.update()
    version = shop.intake.version
    os.utime(file, ns=(1, 1))
    assert shop.intake.waiting(shop.project, shop.root)
    assert shop.update().read == []
    assert shop.intake.version == version
    assert shop.intake.waiting(shop.project, shop.root) == ""


def test_a_file_that_grew_is_read_anew_not_twice(shop):
    shop.put("a.csv", HEAD + lines("F", "c1"))
    shop.update()
    shop.put("a.csv", HEAD + lines("F", "c1", "c2"))
    shop.update()
    assert customers(shop) == ["c1", "c2"]


def test_a_rotated_file_keeps_its_rows(shop):
    shop.put("orders.csv", HEAD + lines("F", "c1"))
    shop.update()
    (shop.orders / "orders.csv").rename(shop.orders / "orders.1.csv")
    shop.put("orders.csv", HEAD + lines("F", "c2"))
    shop.update()
    assert customers(shop) == ["c1", "c2"]
    shop.update()
    assert customers(shop) == ["c1", "c2"]


def test_a_file_that_becomes_a_copy_of_another_loses_its_old_rows(shop):
    shop.put("a.csv", HEAD + lines("F", "c1"))
    shop.put("b.csv", HEAD + lines("F", "c2"))
    shop.update()
    shop.put("a.csv", HEAD + lines("F", "c2"))
    shop.update()
    assert customers(shop) == ["c2"]


def test_rows_stay_when_their_file_has_gone(shop):
    file = shop.put("a.csv", HEAD + lines("F", "c1"))
    shop.put("b.csv", HEAD + lines("F", "c2"))
    shop.update()
    file.unlink()
    shop.update()
    assert customers(shop) == ["c1", "c2"]


def test_another_way_of_reading_reads_again(shop):
    shop.put("a.csv", HEAD + "F,c,2017-01-01T00:30:00Z,5\n")
    shop.update()
    shop.config({"timezone": "America/New_York"})
    assert len(shop.update().read) == 1
    assert [str(t) for (t,) in shop.rows("ordered_at")] == ["2016-12-31 19:30:00"]


def test_an_unreadable_file_leaves_its_source_as_it_was_and_others_go_on(tmp_path):
    shop = Shop(tmp_path, {}, {"name": "other", "path": "other"})
    (tmp_path / "other").mkdir()
    shop.put("a.csv", HEAD + lines("F", "c1"))
    (tmp_path / "other/o.csv").write_text(HEAD + lines("G", "c9"))
    shop.update()
    shop.put("b.csv", HEAD + lines("F", "c2"))
    broken = shop.put("z.parquet", b"nothing")
    (tmp_path / "other/p.csv").write_text(HEAD + lines("G", "c8"))
    report = shop.update()
    assert list(report.failed) == ["shop"]
    assert str(broken) in report.failed["shop"]
    assert customers(shop) == ["c1", "c8", "c9"]
    broken.unlink()
    assert shop.update().failed == {}
    assert customers(shop) == ["c1", "c2", "c8", "c9"]


def test_two_sources_with_the_same_bytes_are_two(tmp_path, con):
    shop = Shop(tmp_path, {"firm": "A"}, {"name": "second", "firm": "B"})
    shop.put("a.csv", HEAD + lines("x", "c1", "c2"))
    shop.update()
    assert sorted(shop.rows("source, firm, customer")) == [
        ("second", "B", "c1"), ("second", "B", "c2"), ("shop", "A", "c1"), ("shop", "A", "c2"),
    ]  # fmt: skip
    shop.config({}, {"name": "second"})
    shop.update()
    counts = shop.make(con, "x")
    assert (counts.rows_in, counts.rows_used, counts.rows_quarantined) == (4, 2, 2)


def test_a_source_taken_out_of_the_project_is_forgotten(tmp_path, con):
    shop = Shop(tmp_path, {}, {"name": "second", "path": "second.csv"})
    shop.put("a.csv", HEAD + lines("F", "c1"))
    (tmp_path / "second.csv").write_text(HEAD + lines("F", "c2"))
    shop.update()
    assert shop.make(con).rows_in == 2
    shop.config({})
    shop.update()
    assert shop.make(con).rows_in == 1


def test_the_intake_may_lie_in_a_folder_of_any_name(tmp_path, con):
    root = tmp_path / "firm=x [1] *" / "it's"
    root.mkdir(parents=True)
    shop = Shop(root)
    shop.put("a.csv", HEAD + lines("F", "c1"))
    assert shop.update().failed == {}
    assert list(shop.intake.units()) == [Unit("F")]
    assert shop.make(con).rows_used == 1


def test_units_are_firms_and_their_segments(shop):
    shop.put(
        "a.csv", "firm,customer,order_time,amount,area\nF,c,2017-01-01,5,north\nF,c,2017-01-01,5,south 1\n"
    )
    shop.put("b.csv", "firm,customer,order_time,amount,area\nG~x,c,2017-01-01,5,north\n")
    shop.config({"columns": {"segment": "area"}})
    shop.update()
    assert list(shop.intake.units()) == [
        Unit("F"), Unit("F", "north"), Unit("F", "south 1"), Unit("G~x"), Unit("G~x", "north"),
    ]  # fmt: skip


def test_a_new_file_changes_the_digest_of_the_firms_it_names_only(shop):
    shop.put("a.csv", HEAD + lines("F", "c") + lines("G", "c"))
    shop.update()
    before = shop.intake.units()
    shop.put("b.csv", HEAD + lines("G", "d"))
    shop.update()
    after = shop.intake.units()
    assert before[Unit("F")] == after[Unit("F")]
    assert before[Unit("G")] != after[Unit("G")]
    assert [e.file for e in shop.intake.files_for(Unit("F"))] == ["orders/a.csv"]
    assert [e.file for e in shop.intake.files_for(Unit("G"))] == ["orders/a.csv", "orders/b.csv"]
    assert shop.intake.files_for(Unit("H")) == []


def daily(first, last, firm="F"):
    days = (last - first).days + 1
    return "".join(f"{firm},c{k},{first + timedelta(days=k)},5\n" for k in range(days))


def test_the_span_is_that_of_the_data(shop):
    shop.put("a.csv", HEAD + daily(date(2016, 1, 1), date(2016, 6, 30)))
    shop.update()
    assert shop.intake.span() == (date(2016, 1, 1), date(2016, 6, 30))


def test_strays_do_not_stretch_the_span(shop):
    many = daily(date(2016, 1, 1), date(2016, 6, 30)) * 10
    shop.put(
        "a.csv", HEAD + many + "F,c,1970-01-01,5\nF,c,2099-01-01,5\nF,c,9999-12-31,5\nF,c,0001-01-01,5\n"
    )
    shop.update()
    assert shop.intake.span() == (date(2016, 1, 1), date(2016, 6, 30))


def test_the_slow_first_weeks_of_a_young_firm_belong_to_the_span(shop):
    slow = "".join(f"F,c,{date(2016, 1, 3) + timedelta(days=7 * k)},5\n" for k in range(5))
    shop.put("a.csv", HEAD + slow + daily(date(2016, 2, 7), date(2016, 12, 31)) * 10)
    shop.update()
    assert shop.intake.span() == (date(2016, 1, 3), date(2016, 12, 31))


def test_an_intake_without_rows_says_what_to_do(shop):
    with pytest.raises(CbmtError, match="run `cbmt ingest` first"):
        shop.intake.span()
    assert shop.intake.units() == {}
    assert shop.intake.version == ""
    shop.put("a.csv", HEAD + "F,c,never,5\n")
    shop.update()
    with pytest.raises(CbmtError, match="no row that was ingested has a readable time"):
        shop.intake.span()


def test_a_firm_without_rows_is_refused_by_name(shop, con):
    with pytest.raises(BadFirmData, match="firm 'F': no ingested file names it"):
        shop.make(con)


UPDATE = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from helpers.sources import Shop
assert not Shop(Path(sys.argv[1])).update().failed
"""


def test_two_processes_at_once_leave_one_whole_ledger(shop):
    for k in range(12):
        shop.put(f"{k:02}.csv", HEAD + lines("F", f"c{k:02}"))
    command = [sys.executable, "-c", UPDATE, str(shop.root), str(TESTS)]
    others = [subprocess.Popen(command) for _ in range(2)]
    assert [process.wait(60) for process in others] == [0, 0]
    assert customers(shop) == [f"c{k:02}" for k in range(12)]


def test_readers_of_the_ledger_before_still_find_its_files(shop):
    shop.put("a.csv", HEAD + lines("F", "c1"))
    shop.update()
    held = [shop.intake.path(e) for e in shop.intake.ledger()]
    shop.put("a.csv", HEAD + lines("F", "c1", "c2"))
    shop.update()
    assert all(path.exists() for path in held)
    shop.put("a.csv", HEAD + lines("F", "c1", "c2", "c3"))
    shop.update()
    assert not any(path.exists() for path in held)


def test_progress_is_reported_for_each_file(shop):
    for k in range(3):
        shop.put(f"{k}.csv", HEAD + lines("F", f"c{k}"))
    calls = []
    shop.intake.update(shop.project, shop.root, lambda *args: calls.append(args))
    assert calls == [("orders/0.csv", 0, 3), ("orders/1.csv", 1, 3), ("orders/2.csv", 2, 3)]
