"""The staged search finds, prunes, repeats itself, and goes on after a kill."""

from __future__ import annotations

import math
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution

from cbmt_core.config import NetworksConfig
from cbmt_core.errors import ConfigError
from cbmt_core.tuning import Choice, Found, Report, Stages, check_storage, forget, search

SPACE = {
    "rate": FloatDistribution(1e-4, 1.0, log=True),
    "width": FloatDistribution(0.0, 1.0),
    "kind": CategoricalDistribution(["a", "b"]),
}
DEFAULT = {"rate": 0.5, "width": 0.9, "kind": "b"}
STAGES = Stages(random=6, grid=4, refined=6)


class Killed(BaseException):
    pass


class Bowl:
    """Least at rate 0.01, width 0.3, kind a; counts its calls and can be killed."""

    def __init__(self, killed_at: int | None = None) -> None:
        self.seen: list[Choice] = []
        self.killed_at = killed_at

    def __call__(self, choice: Choice, report: Report) -> tuple[float, Mapping[str, Any]]:
        if len(self.seen) == self.killed_at:
            raise Killed
        self.seen.append(choice)
        error = (
            math.log10(choice["rate"] / 0.01) ** 2 + (choice["width"] - 0.3) ** 2 + (choice["kind"] == "b")
        )
        return error, {"note": round(error, 6)}


def run(bowl: Bowl, storage: Path | None = None, **options: Any) -> Found:
    return search(bowl, SPACE, [DEFAULT], STAGES, seed=3, storage=storage, **options)


def test_default_comes_first_and_the_stages_improve_on_it() -> None:
    bowl = Bowl()
    found = run(bowl)
    assert bowl.seen[0] == DEFAULT
    assert found.trials == len(bowl.seen) == STAGES.total
    assert found.error == min(found.error, found.history[0]["error"] / 3)
    assert found.notes["note"] == pytest.approx(found.error, abs=1e-6)


def test_grid_lies_within_the_range_of_the_best_random_trials() -> None:
    bowl = Bowl()
    run(bowl)

    def error(choice: Choice) -> float:
        return Bowl()(choice, lambda _: False)[0]

    best = sorted(bowl.seen[:6], key=error)[:2]
    for point in bowl.seen[6:10]:
        for name in ("rate", "width"):
            low, high = sorted(t[name] for t in best)
            assert low * (1 - 1e-9) <= point[name] <= high * (1 + 1e-9)
        assert point["kind"] == best[0]["kind"]


def test_same_seed_same_search_and_another_seed_another() -> None:
    first, again, other = Bowl(), Bowl(), Bowl()
    assert run(first) == run(again)
    assert first.seen == again.seen
    search(other, SPACE, [DEFAULT], STAGES, seed=4)
    assert other.seen[1:] != first.seen[1:]


@pytest.mark.parametrize("killed_at", [0, 3, 8, 13])
def test_killed_search_goes_on_and_ends_as_if_it_had_not_been(tmp_path: Path, killed_at: int) -> None:
    whole = Bowl()
    expected = run(whole)
    first = Bowl(killed_at)
    with pytest.raises(Killed):
        run(first, tmp_path / "studies" / "journal.log")
    rest = Bowl()
    assert run(rest, tmp_path / "studies" / "journal.log") == expected
    assert first.seen + rest.seen == whole.seen, "finished trials are kept, the broken one is done again"
    idle = Bowl(0)
    assert run(idle, tmp_path / "studies" / "journal.log") == expected
    assert not idle.seen


def test_small_gain_does_not_leave_the_default() -> None:
    def flat(choice: Choice, report: Report) -> tuple[float, Mapping[str, Any]]:
        return (1.0 if choice == DEFAULT else 0.99), {}

    assert search(flat, SPACE, [DEFAULT], Stages(random=4), seed=1, margin=0.05).choice == DEFAULT
    assert search(flat, SPACE, [DEFAULT], Stages(random=4), seed=1).choice != DEFAULT


def test_hopeless_trials_are_pruned_and_never_chosen() -> None:
    calls = []

    def objective(choice: Choice, report: Report) -> tuple[float, Mapping[str, Any]]:
        calls.append(choice)
        hopeless = len(calls) > 3
        for _ in range(3):
            if report(100.0 if hopeless else 1.0):
                raise optuna.TrialPruned
        return (100.0 if hopeless else 1.0), {}

    found = search(objective, SPACE, [DEFAULT], Stages(random=8), seed=1)
    assert found.pruned == 5
    assert found.error == 1.0


def test_error_that_is_not_a_number_loses() -> None:
    def objective(choice: Choice, report: Report) -> tuple[float, Mapping[str, Any]]:
        return (2.0 if choice == DEFAULT else float("nan")), {}

    assert search(objective, SPACE, [DEFAULT], Stages(random=3), seed=1).choice == DEFAULT


def test_history_tells_every_trial_and_the_one_chosen() -> None:
    bowl = Bowl()
    found = run(bowl)
    assert [trial["choice"] for trial in found.history] == bowl.seen
    assert [trial["stage"] for trial in found.history] == ["random"] * 6 + ["grid"] * 4 + ["refined"] * 6
    (chosen,) = [trial for trial in found.history if trial["chosen"]]
    assert (chosen["choice"], chosen["error"], chosen["notes"]) == (found.choice, found.error, found.notes)
    assert found.error == min(trial["error"] for trial in found.history)


def test_progress_counts_up_to_the_end(tmp_path: Path) -> None:
    reported: list[tuple[int, int]] = []
    with pytest.raises(Killed):
        run(Bowl(5), tmp_path / "journal")
    run(Bowl(), tmp_path / "journal", progress=lambda *counts: reported.append(counts))
    assert reported == [(k, STAGES.total) for k in range(5, STAGES.total + 1)]


def test_writer_killed_in_the_middle_of_a_line_loses_that_line_only(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    with pytest.raises(Killed):
        run(Bowl(6), journal)
    with journal.open("ab") as file:
        file.write(b'{"op_code":8,"worker_id":"half a li')
    (tmp_path / "journal.lock").symlink_to(journal)
    rest = Bowl()
    assert run(rest, journal) == run(Bowl())
    assert len(rest.seen) == STAGES.total - 6
    idle = Bowl(0)
    assert run(idle, journal) == run(Bowl())


def test_other_data_or_settings_begin_a_study_of_their_own(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    run(Bowl(), journal, depends="these data")
    for options in ({"depends": "other data"}, {"depends": "these data", "study": "other"}):
        again = Bowl()
        run(again, journal, **options)
        assert len(again.seen) == STAGES.total
    wider = {**SPACE, "kind": CategoricalDistribution(["a", "b", "c"])}
    again = Bowl()
    search(again, wider, [DEFAULT], STAGES, seed=3, storage=journal, depends="these data")
    assert len(again.seen) == STAGES.total


def test_forgotten_study_is_searched_anew_and_others_are_kept(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    forget(journal, "firm/cbmt")  # Nothing is there yet.
    for name in ("firm/cbmt", "firm/cbmt_plus"):
        run(Bowl(), journal, study=name)
    forget(journal, "firm/cbmt")
    kept, anew = Bowl(0), Bowl()
    run(kept, journal, study="firm/cbmt_plus")
    run(anew, journal, study="firm/cbmt")
    assert len(anew.seen) == STAGES.total


def test_storage_that_does_not_answer_is_named_without_its_password(tmp_path: Path) -> None:
    check_storage(tmp_path / "new" / "journal")
    with pytest.raises(ConfigError, match=r"cannot be kept in \S+@127\.0\.0\.1:9/none.*postgres") as refusal:
        check_storage("postgresql+psycopg://me:secret@127.0.0.1:9/none")
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql+psycopg://me:hunter2%21@127.0.0.1:9/none",
        "postgresql+psycopg://me:hunter2%21@host with spaces/none",
        "nodriver://me:hunter2%21@127.0.0.1/none",
        "postgresql+psycopg://127.0.0.1:9/none?user=me&password=hunter2%21",
        "sqlite://me:hunter2%21@nowhere/none",
    ],
)
def test_a_password_is_in_no_error_and_no_traceback(address: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_storage(address)
    printed = "".join(traceback.format_exception(caught.value, chain=True))
    shown = "\n".join(line for line in printed.splitlines() if "check_storage(address)" not in line)
    assert "hunter2" not in shown
    assert "***" in str(caught.value)
    networks = NetworksConfig(storage=address)
    assert "hunter2" not in f"{networks!r} {networks}"


@pytest.mark.parametrize("said", ["hunter2%21", "hunter2!"])
def test_a_driver_that_says_the_password_is_not_repeated(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    """Neither in the message nor in what a log of the traceback holds."""

    def refuse(_: object) -> None:
        raise OSError(f"no answer for me:{said}@host\nwith {said}")

    monkeypatch.setattr("cbmt_core.tuning._backend", lambda storage: storage)
    monkeypatch.setattr("cbmt_core.tuning.optuna.get_all_study_names", refuse)
    with pytest.raises(ConfigError, match=r"no answer for me:\*\*\*@host") as caught:
        check_storage("postgresql+psycopg://me:hunter2%21@host/none")
    assert "hunter2" not in str(caught.value)
    assert said not in "".join(traceback.format_exception(caught.value, chain=True)).replace(
        "me:hunter2%21@host/none", ""
    )


def test_an_address_without_a_password_is_shown_whole() -> None:
    with pytest.raises(ConfigError, match=r"nodriver://127\.0\.0\.1:9/none"):
        check_storage("nodriver://127.0.0.1:9/none")
