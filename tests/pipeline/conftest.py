"""A project of twenty firms, one of them corrupt, run for real."""

from __future__ import annotations

import pytest
from projects import FIRMS, FLOORS, RunProject, cbmt, corrupt_amounts


@pytest.fixture(scope="session")
def twenty_firms(tmp_path_factory: pytest.TempPathFactory) -> RunProject:
    root = tmp_path_factory.mktemp("twenty")
    cbmt(root, "simulate", "--firms", str(FIRMS), "--scale", "0.003", "--format", "csv")
    files = sorted((root / "data/raw/economy/orders").glob("*.csv"))
    corrupt_amounts(files[3])
    return RunProject(root, files[3].name.removesuffix(".csv"), cbmt(root, "run", *FLOORS, check=False))
