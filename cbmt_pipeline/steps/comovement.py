"""Co-movement of drivers, and tests whether it predicts where joint forecasting wins."""

from cbmt_pipeline.diagnostic_steps import diagnostic_made, diagnostic_step, gathered
from cbmt_pipeline.work import Made, Work


def make(work: Work) -> Made:
    from cbmt_core.diagnostics.results import comovement_tables

    return diagnostic_made(work, comovement_tables(gathered(work)))


STEP = diagnostic_step(
    "comovement",
    make,
    "Whether joint forecasting wins where a firm's drivers move together: score, five tests, columns.",
    ("comovement_score", "comovement_test", "comovement_tercile", "comovement_column"),
    code=("cbmt_core.diagnostics.results", "cbmt_core.diagnostics.comovement"),
    version="2",
)
