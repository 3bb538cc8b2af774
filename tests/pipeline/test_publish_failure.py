"""A publish that breaks half way: the published file stays as it was, with nothing beside it."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
import pytest
from helpers.small_project import FIRMS, new_project

from cbmt_core.schema import TABLES
from cbmt_pipeline import publish as publishing
from cbmt_pipeline.plan import Plan, Step
from cbmt_pipeline.work import Made


def test_a_publish_that_breaks_leaves_the_file_before_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = new_project(tmp_path / "p", FIRMS[:1])
    with duckdb.connect(str(project.warehouse)) as con:
        con.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    before, names = project.warehouse.read_bytes(), sorted(os.listdir(project.data))
    plan = Plan([Step("weeks", lambda _: Made(), "Weeks.", "data", writes=(TABLES["firm_week"],))])

    def broken(*_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(publishing, "_fill", broken)
    with pytest.raises(OSError, match="No space left"):
        publishing.publish(project, plan)
    assert project.warehouse.read_bytes() == before
    assert sorted(os.listdir(project.data)) == names


def test_a_read_that_meets_a_replaced_file_is_tried_five_times(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr("time.sleep", waited.append)
    tries: list[int] = []

    def fails(times: int) -> str:
        tries.append(1)
        if len(tries) <= times:
            raise duckdb.IOException("gone")
        return "read"

    assert publishing.retrying(lambda: fails(4)) == "read"
    assert len(tries) == 5
    assert waited == pytest.approx([0.2, 0.4, 0.6, 0.8])
    tries.clear()
    with pytest.raises(duckdb.IOException):
        publishing.retrying(lambda: fails(5))
    assert len(tries) == 5
