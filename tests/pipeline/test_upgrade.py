"""Projects of 0.4: refused until they are upgraded, which keeps what was ingested and searched."""

from __future__ import annotations

import json
import shutil
from datetime import date
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from helpers.small_project import FIRMS, make_all, new_project

from cbmt_core.errors import CbmtError
from cbmt_core.names import Unit
from cbmt_pipeline.cli import main
from cbmt_pipeline.plan import State, Task, the_plan
from cbmt_pipeline.project import Project
from cbmt_pipeline.transaction import carry_out

JOURNAL = b'{"op_code": 0}\n'


@pytest.fixture
def old(tmp_path: Path) -> Project:
    """As 0.4 left it: an intake, one file a firm and table, networks without an origin, and no note of the layout."""
    project = new_project(tmp_path)
    for firm in FIRMS:
        for table in ("firm_week", "cohort_week", "forecast_week"):
            folder = project.lake.root / table / f"firm={Unit(firm).slug}"
            folder.mkdir(parents=True)
            (folder / "part.parquet").write_bytes(b"PAR1 of another layout")
    (project.lake.root / "accuracy").mkdir()
    (project.lake.root / "accuracy/whole.parquet").write_bytes(b"PAR1 of another layout")
    models = project.data / "models" / f"firm={Unit(FIRMS[0]).slug}"
    (models / "cbmt").mkdir(parents=True)
    (models / "cbmt/fit.json").write_text("{}")
    (models / "search.journal").write_bytes(JOURNAL)
    (project.lake.root / "schema.json").unlink()
    return project


def cbmt(project: Project, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["--project", str(project.root), *arguments])


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    }


@pytest.mark.parametrize("command", ["run", "status", "study", "ingest", "ui"])
def test_a_project_of_0_4_is_refused_and_not_touched(old: Project, command: str) -> None:
    before = files(old.data)
    refused = cbmt(old, command)
    assert refused.exit_code == 1
    assert "was made by version 0.4 or earlier: run `cbmt upgrade`" in refused.output
    assert {k: v for k, v in files(old.data).items() if not k.endswith("span.json")} == before


def test_upgrading_keeps_intake_and_searches_pins_the_study_and_removes_the_tables(old: Project) -> None:
    intake, study = files(old.intake.folder), old.study()
    assert old.config.study is None
    done = cbmt(old, "upgrade")
    assert done.exit_code == 0, done.output
    assert f"study pinned at {study.origin}" in done.output
    assert f"searches of {Unit(FIRMS[0]).slug} kept" in done.output

    project = Project(old.root)
    kept = files(project.intake.folder)
    assert {name: kept[name] for name in intake} == intake
    assert project.config.study is not None
    assert project.config.study.origin == study.origin
    assert project.config.study.holdout_weeks == study.holdout_weeks
    assert project.config.design.washout_weeks == study.washout_weeks
    assert project.study() == study
    assert sorted(path.name for path in project.lake.root.iterdir()) == ["intake", "schema.json"]
    unit = Unit(FIRMS[0])
    assert Path(project.search_storage(study.origin, unit)).read_bytes() == JOURNAL
    assert [path.name for path in (project.data / "models").iterdir()] == [f"origin={study.origin}"]
    assert not project.model_folder(study.origin, unit, "cbmt").exists(), "its networks are trained again"


def test_an_upgraded_project_is_like_any_other(old: Project) -> None:
    cbmt(old, "upgrade")
    project = Project(old.root)
    project.check_schema()
    assert cbmt(project, "status").exit_code == 0
    assert len(State(project, the_plan()).todo(the_plan()["firm_data"])) == len(FIRMS)
    assert make_all(project) == {}
    before = files(project.data)
    assert "nothing to do" in cbmt(project, "upgrade").output
    assert files(project.data) == before


@pytest.mark.parametrize("step", ["shutil.rmtree", "cbmt_pipeline.project.Project.mark_schema"])
def test_an_upgrade_that_was_stopped_goes_on(
    old: Project, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise OSError("planted")

    with monkeypatch.context() as patch:
        patch.setattr(step, stopped)
        assert cbmt(old, "upgrade").exit_code != 0
    assert "run `cbmt upgrade`" in cbmt(old, "status").output
    assert cbmt(old, "upgrade").exit_code == 0
    project = Project(old.root)
    assert Path(project.search_storage(project.study().origin, Unit(FIRMS[0]))).read_bytes() == JOURNAL
    assert sorted(path.name for path in project.lake.root.iterdir()) == ["intake", "schema.json"]


def test_a_study_that_was_pinned_stays_where_it_is(old: Project) -> None:
    pinned = date(2017, 5, 14)
    assert old.study().holdout_weeks > 13
    file = old.root / "cbmt.toml"
    file.write_text(f"{file.read_text()}\n[study]\norigin = {pinned}\nholdout_weeks = 13\n")
    assert cbmt(Project(old.root), "upgrade").exit_code == 0
    study = Project(old.root).study()
    assert (study.origin, study.holdout_weeks) == (pinned, 13)


@pytest.mark.parametrize("command", ["run", "status", "upgrade"])
def test_a_lake_of_a_newer_version_is_refused(tmp_path: Path, command: str) -> None:
    project = new_project(tmp_path)
    note = project.lake.root / "schema.json"
    note.write_text(json.dumps({"schema": 99}))
    with pytest.raises(CbmtError, match="newer version"):
        project.check_schema()
    refused = cbmt(project, command)
    assert refused.exit_code == 1
    assert "was made by a newer version (lake layout 99, this one knows 2)" in refused.output
    assert json.loads(note.read_text()) == {"schema": 99}


def test_a_new_project_is_of_the_present_layout_whoever_reads_its_files(tmp_path: Path) -> None:
    """Files may be read first by a sensor of the UI, without the command line."""
    project = new_project(tmp_path)
    shutil.rmtree(project.data)
    carry_out(project, the_plan(), Task(the_plan()["intake"], None, None))
    assert json.loads((project.lake.root / "schema.json").read_text()) == {"schema": 2}
    assert cbmt(project, "status").exit_code == 0
