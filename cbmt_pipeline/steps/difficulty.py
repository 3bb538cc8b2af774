"""Predicted forecast error (PHE) of each firm, from features known at the origin."""

from cbmt_pipeline.diagnostic_steps import diagnostic_made, diagnostic_step, gathered
from cbmt_pipeline.work import Made, Work


def make(work: Work) -> Made:
    from cbmt_core.diagnostics.results import difficulty_tables

    return diagnostic_made(work, difficulty_tables(gathered(work)))


STEP = diagnostic_step(
    "difficulty",
    make,
    "How hard each firm is to forecast: predicted error, what drives it, win rates by scale and volatility.",
    (
        "predicted_error",
        "difficulty_band",
        "difficulty_r2",
        "difficulty_importance",
        "difficulty_dependence",
        "difficulty_grid",
    ),
    code=("cbmt_core.diagnostics.results", "cbmt_core.diagnostics.difficulty"),
)
