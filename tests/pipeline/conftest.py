"""Projects that several tests share: twenty firms, one of them corrupt, run for real; a small demo, made here."""

from __future__ import annotations

import pytest
from helpers.demo_project import make_demo
from helpers.projects import FIRMS, FLOORS, RunProject, cbmt, corrupt_amounts

from cbmt_core.names import Unit
from cbmt_pipeline.project import Project


@pytest.fixture(scope="session")
def twenty_firms(tmp_path_factory: pytest.TempPathFactory) -> RunProject:
    root = tmp_path_factory.mktemp("twenty")
    cbmt(root, "simulate", "--firms", str(FIRMS), "--scale", "0.003", "--format", "csv")
    files = sorted((root / "data/raw/economy/orders").glob("*.csv"))
    corrupt_amounts(files[3])
    bad = Unit.from_slug(files[3].name.removesuffix(".csv"))
    return RunProject(root, bad, cbmt(root, "run", *FLOORS, check=False))


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Of the tests in the xdist group "demo"."""
    return make_demo(tmp_path_factory.mktemp("demo") / "project")
