"""Settings of every test: one thread of arithmetic, as in the pipeline's runs."""

from __future__ import annotations

import os

from threadpoolctl import threadpool_limits

# Test processes run side by side; on matrices this small, threads that wait for each other cost more than they
# give. The variables reach the processes that tests start.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
threadpool_limits(1)
