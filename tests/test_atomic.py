"""Files appear whole or not at all: the order of system calls that this rests on, and what is left behind."""

from __future__ import annotations

import multiprocessing
import os
import time
from pathlib import Path

import pytest

from cbmt_core import atomic


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What was synced and renamed, in order: (call, kind of file)."""
    made: list[tuple[str, str]] = []
    fsync, replace = os.fsync, os.replace

    def synced(handle: int) -> None:
        made.append(("fsync", Path(os.readlink(f"/proc/self/fd/{handle}")).suffix))
        fsync(handle)

    def renamed(source: Path, target: Path) -> None:
        made.append(("rename", Path(target).suffix))
        replace(source, target)

    monkeypatch.setattr("os.fsync", synced)
    monkeypatch.setattr("os.replace", renamed)
    return made


def test_content_is_on_the_disk_before_its_name_and_the_name_before_the_end(
    tmp_path: Path, calls: list[tuple[str, str]]
) -> None:
    """Without the first fsync a power cut can leave an empty file under the final name."""
    atomic.write_text(tmp_path / "folder" / "a.json", "{}")
    assert calls == [("fsync", ".tmp"), ("rename", ".json"), ("fsync", "")]
    assert (tmp_path / "folder" / "a.json").read_text() == "{}"


def test_a_target_is_replaced_not_written_over(tmp_path: Path) -> None:
    """Whoever has the old file open goes on reading it."""
    target = tmp_path / "a.txt"
    target.write_text("old")
    with target.open() as reader:
        atomic.write_text(target, "new and longer")
        assert reader.read() == "old"
    assert target.read_text() == "new and longer"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, error: type[BaseException]
) -> None:
    target = tmp_path / "a.txt"
    target.write_text("old")
    with pytest.raises(error), atomic.replacing(target) as temporary:  # noqa: PT012
        temporary.write_text("half")
        raise error
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_two_writers_of_one_file_use_names_of_their_own_that_no_glob_takes_for_data(tmp_path: Path) -> None:
    target = tmp_path / "part.parquet"
    first, second = atomic.temporary_name(target), atomic.temporary_name(target)
    assert first != second
    assert first.parent == tmp_path
    first.write_text("half")
    assert list(tmp_path.glob("*.parquet")) == []


def test_what_killed_writers_left_is_swept_after_a_day_and_only_for_this_target(tmp_path: Path) -> None:
    day = 24 * 3600
    target = tmp_path / "a[1].txt"
    names = {
        "old": atomic.temporary_name(target),
        "old spill": Path(f"{atomic.temporary_name(target)}.wal"),
        "young": atomic.temporary_name(target),
        "another's": atomic.temporary_name(tmp_path / "b.txt"),
    }
    for name, path in names.items():
        path.write_text(name)
        age = day - 60 if name == "young" else day + 60
        os.utime(path, (time.time() - age,) * 2)
    atomic.write_text(target, "x")
    assert sorted(path.read_text() for path in tmp_path.glob(".*")) == ["another's", "young"]


def _hold(lock: Path, inside: multiprocessing.Event, leave: multiprocessing.Event) -> None:  # type: ignore[valid-type]
    with atomic.only_one(lock):
        inside.set()
        leave.wait(30)


def _enter(lock: Path, inside: multiprocessing.Event) -> None:  # type: ignore[valid-type]
    with atomic.only_one(lock):
        inside.set()


def test_one_process_at_a_time_holds_a_lock(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    lock = tmp_path / "deep" / "lock"
    inside, leave, after = context.Event(), context.Event(), context.Event()
    first = context.Process(target=_hold, args=(lock, inside, leave))
    second = context.Process(target=_enter, args=(lock, after))
    first.start()
    assert inside.wait(30)
    second.start()
    assert not after.wait(0.3)
    leave.set()
    assert after.wait(30)
    for process in (first, second):
        process.join(30)
        assert process.exitcode == 0
