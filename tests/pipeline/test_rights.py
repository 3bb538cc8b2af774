"""Folders that must not be written, of another user, and files that another process has locked: a line that says so."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from helpers.projects import cbmt
from helpers.small_project import make_all, new_project
from helpers.whole_state import differences, whole_state

from cbmt_pipeline.plan import the_plan
from cbmt_pipeline.project import Project
from cbmt_pipeline.publish import publish
from cbmt_pipeline.snapshot import Snapshot

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("rights")]

NOBODY = 65534
root_only = pytest.mark.skipif(os.getuid() != 0, reason="needs root, to mount and to become another user")


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = new_project(tmp_path_factory.mktemp("rights"), ("one",))
    assert make_all(project) == {}
    publish(project, the_plan())
    return project


def short(done: subprocess.CompletedProcess[str], words: str) -> None:
    """It failed in a few lines that say what to do."""
    said = done.stdout + done.stderr
    assert done.returncode == 1, said
    assert words in said, said
    assert "Traceback" not in said, said
    assert len(done.stderr.splitlines()) < 8, said


@root_only
def test_a_project_on_a_read_only_file_system(published: Project, tmp_path: Path) -> None:
    before = whole_state(published)
    mounts = [["mount", "--bind", published.root, tmp_path], ["mount", "-o", "remount,ro,bind", tmp_path]]
    if any(subprocess.run(command, capture_output=True).returncode for command in mounts):
        pytest.skip("a folder cannot be mounted here")
    try:
        short(cbmt(tmp_path, "run", "--live-only", check=False), "read-only file system")
    finally:
        subprocess.run(["umount", "-l", tmp_path], check=True)
    assert differences(whole_state(published), before) == []


AS_NOBODY = """
import os, sys
from pathlib import Path
from cbmt_pipeline.cli import main
os.setgroups([]); os.setgid(65534); os.setuid(65534)
sys.argv = ["cbmt", "--project", sys.argv[1], *sys.argv[2:]]
main()
"""


@root_only
def test_a_project_of_another_user(published: Project, tmp_path: Path) -> None:
    root = Path(shutil.copytree(published.root, tmp_path / "other"))
    for folder in (root, *root.parents):
        if folder.is_relative_to(tmp_path.parents[1]):
            folder.chmod(0o755)
    before = whole_state(Project(root))
    command = [sys.executable, "-c", AS_NOBODY, str(root), "run", "--live-only"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"HOME": str(tmp_path)})
    short(done, "this user may not read or write it")
    assert differences(whole_state(Project(root)), before) == []


LOCK = """
import sys, duckdb
con = duckdb.connect(sys.argv[1])
print("locked", flush=True)
sys.stdin.readline()
"""


def test_a_published_file_that_an_analyst_has_open_for_writing_is_replaced(
    published: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project(Path(shutil.copytree(published.root, tmp_path / "locked")))
    command = [sys.executable, "-c", LOCK, str(project.warehouse)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as analyst:
        assert analyst.stdout is not None
        assert analyst.stdout.readline() == "locked\n"
        # As if the study were half made: then its tables come from the file that is locked.
        monkeypatch.setattr(Snapshot, "study_is_complete", False)
        publish(project, the_plan())
        analyst.communicate("\n")
    with duckdb.connect(str(project.warehouse), read_only=True) as con:
        assert con.execute("SELECT count(*) FROM firm").fetchall() == [(1,)]
