"""Routing: whether a learned rule that chooses between joint and single-task forecasts beats always using one."""

from cbmt_pipeline.diagnostic_steps import diagnostic_made, diagnostic_step, gathered
from cbmt_pipeline.work import Made, Work


def make(work: Work) -> Made:
    from cbmt_core.diagnostics.routing import routing_tables

    def on_split(done: int, total: int) -> None:
        work.tell(f"split {done} of {total}", done / total)

    return diagnostic_made(work, routing_tables(gathered(work), on_split=on_split))


STEP = diagnostic_step(
    "routing",
    make,
    "Whether a rule can choose between joint and single-task forecasts better than always using one of them.",
    ("routing_policy", "routing_choice"),
    code=("cbmt_core.diagnostics.routing",),
)
