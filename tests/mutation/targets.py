"""The modules whose tests are tried, with the tests that concern each and how many mutants are drawn from it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TARGETS", "Target"]


@dataclass(frozen=True)
class Target:
    """Modules that the same tests concern."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]
    """Test files, or single tests of them: the quickest first, for the first failure ends a trial."""
    drawn: int
    """How many of the generated mutants are tried."""


BRIDGE, ROUTING, STEPS = "cbmt_core/bridge", "cbmt_core/diagnostics/routing", "cbmt_pipeline"
PUBLISHED = (
    "test_the_tables_hold_what_was_sold",
    "test_every_table_has_its_primary_key",
    "test_every_table_view_and_column_is_explained",
    "test_every_view_can_be_read",
    "test_the_design_comes_back_as_it_was",
    "test_of_the_study_only_the_present_one_is_published",
    "test_a_firm_that_is_gone_leaves_earlier_vintages_too",
    "test_rows_that_name_no_firm_are_in_the_published_quarantine",
)
"""The tests of publishing that kill nothing."""
TARGETS = {
    "compose": Target(("cbmt_core/compose.py",), ("tests/models/test_compose.py",), 18),
    "cohorts": Target(("cbmt_core/cohorts.py",), ("tests/test_cohorts.py",), 28),
    "bridge": Target(
        (f"{BRIDGE}/contributions.py", f"{BRIDGE}/table.py", f"{BRIDGE}/errors.py"),
        ("tests/test_bridge.py",),
        36,
    ),
    "metrics": Target(("cbmt_core/metrics.py",), ("tests/test_metrics.py",), 20),
    "walk_forward": Target(
        ("cbmt_core/models/sequence/walk_forward.py",), ("tests/models/test_walk_forward.py",), 12
    ),
    "loss": Target(("cbmt_core/models/neural/loss.py",), ("tests/models/test_neural_training.py",), 20),
    "routing": Target(
        (f"{ROUTING}/policy.py", f"{ROUTING}/rules.py", f"{ROUTING}/splits.py", f"{ROUTING}/study.py"),
        ("tests/diagnostics/test_routing.py",),
        26,
    ),
    "atomic": Target(("cbmt_core/atomic.py",), ("tests/test_atomic.py",), 10),
    "lake": Target(
        ("cbmt_pipeline/lake.py",), ("tests/pipeline/test_step_files.py", "tests/pipeline/test_lake.py"), 12
    ),
    "work": Target(
        ("cbmt_pipeline/work.py", "cbmt_pipeline/transaction.py", "cbmt_pipeline/manifest.py"),
        ("tests/pipeline/test_step_files.py", "tests/pipeline/test_lake.py"),
        24,
    ),
    "publish": Target(
        ("cbmt_pipeline/publish.py", "cbmt_pipeline/snapshot.py"),
        (
            "tests/pipeline/test_publish_failure.py",
            *(f"tests/pipeline/test_publish.py::{name}" for name in PUBLISHED),
            "tests/pipeline/test_snapshot.py",
        ),
        16,
    ),
}
