"""Settings of every test: one thread of arithmetic, as in the pipeline's runs; long trials only when asked for."""

from __future__ import annotations

import os

import pytest
from threadpoolctl import threadpool_limits

# Test processes run side by side; on matrices this small, threads that wait for each other cost more than they
# give. The variables reach the processes that tests start.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
threadpool_limits(1)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests marked `soak` unless -m names them."""
    if "soak" in config.option.markexpr:
        return
    long = [item for item in items if item.get_closest_marker("soak")]
    config.hook.pytest_deselected(items=long)
    items[:] = [item for item in items if item not in set(long)]
