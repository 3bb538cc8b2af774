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


def test_folders_on_the_way_are_made(tmp_path: Path) -> None:
    for text in ("one", "two"):
        atomic.write_text(tmp_path / "not" / "yet" / "there.txt", text)
    assert (tmp_path / "not" / "yet" / "there.txt").read_text() == "two"


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


def gone_process() -> int:
    """The number of a process that has ended."""
    process = multiprocessing.get_context("fork").Process(target=int)
    process.start()
    process.join()
    assert process.pid is not None
    return process.pid


def test_what_a_killed_writer_of_this_machine_left_is_swept_at_once(tmp_path: Path) -> None:
    target = tmp_path / "a[1].txt"
    own = atomic.temporary_name(target)
    dead = Path(str(own).replace(f"-{os.getpid()}-", f"-{gone_process()}-"))
    other = Path(str(dead).replace("a[1].txt", "b.txt"))
    for path in (own, dead, Path(f"{dead}.wal"), other):
        path.write_text(path.name)
    atomic.write_text(target, "x")
    assert sorted(path.name for path in tmp_path.glob(".*")) == sorted([own.name, other.name])
    assert atomic.sweep_below(tmp_path) == [other]
    assert sorted(path.name for path in tmp_path.glob(".*")) == [own.name]


@pytest.mark.parametrize(("age", "stays"), [(-60, True), (60, False)])
def test_what_a_writer_of_another_machine_left_is_swept_after_a_day(
    tmp_path: Path, age: int, stays: bool
) -> None:
    target = tmp_path / "a.txt"
    left = tmp_path / ".a.txt.zzzzzz-1-0123456789.tmp"
    left.write_text("half")
    os.utime(left, (time.time() - 24 * 3600 - age,) * 2)
    atomic.write_text(target, "x")
    assert left.exists() == stays


def test_a_folder_is_swept_with_all_it_holds_and_ends_with_its_block(tmp_path: Path) -> None:
    with atomic.temporary_folder(tmp_path / "deep", "reading") as folder:
        (folder / "x").write_text("x")
    assert list((tmp_path / "deep").iterdir()) == []
    dead = Path(str(folder).replace(f"-{os.getpid()}-", f"-{gone_process()}-"))
    (dead / "inner").mkdir(parents=True)
    (dead / "inner" / "x").write_text("x")
    (tmp_path / ".hidden").mkdir()
    assert atomic.sweep_below(tmp_path) == [dead]
    assert atomic.lives(os.getpid())
    assert not atomic.lives(gone_process())


def _hold(lock: Path, inside: multiprocessing.Event, leave: multiprocessing.Event) -> None:  # type: ignore[valid-type]
    with atomic.only_one(lock):
        inside.set()
        leave.wait(30)


def _enter(lock: Path, inside: multiprocessing.Event) -> None:  # type: ignore[valid-type]
    with atomic.only_one(lock):
        inside.set()


def test_two_that_share_a_lock_are_inside_together(tmp_path: Path) -> None:
    with (
        atomic.only_one(tmp_path / "lock", or_shared=True),
        atomic.only_one(tmp_path / "lock", or_shared=True),
    ):
        pass


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
