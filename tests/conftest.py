"""Settings of every test: one thread of arithmetic, as in the pipeline's runs; long trials only when asked for;
tests that share fixtures run on one worker."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits

# Test processes run side by side; on matrices this small, threads that wait for each other cost more than they
# give. The variables reach the processes that tests start.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
threadpool_limits(1)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests marked `soak` unless -m names them, and keep tests that share fixtures on one worker."""
    if "soak" not in config.option.markexpr:
        long = [item for item in items if item.get_closest_marker("soak")]
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in set(long)]
    if getattr(config.option, "loadgroup", False):
        for item in items:
            _name_group(item)


def _name_group(item: pytest.Item) -> None:
    """Add the group to the test's id, by which pytest-xdist sends tests to workers.

    The plugin's own way of doing so has no effect from pytest 9.2 on, a defect known to its authors: each worker
    would build every project that tests share.
    """
    suffix = f"@{_group_of(item)}"
    if not item.nodeid.endswith(suffix):
        item._id = type(item.id).parse(item.nodeid + suffix)
    assert item.nodeid.endswith(suffix), "tests that share fixtures would not share a worker"


def _group_of(item: pytest.Item) -> str:
    """Tests that share fixtures: a marked group, the pages' tests, otherwise those of one file."""
    mark = item.get_closest_marker("xdist_group")
    if mark:
        return str(mark.args[0])
    file = item.path.relative_to(Path(__file__).parent).with_suffix("")
    return "report" if file.parts[0] == "report" else file.as_posix()
