"""Co-movement of a firm's drivers: 34 measures, one score, and tests whether it predicts where joint forecasts win.

Every frame and series is indexed by firm.

    measures = pd.DataFrame({p.firm: measures_of(p) for p in panels}).T    # firms by 34 columns
    score = comovement_score(measures)                     # .values, .loadings, .explained, .note, .model
    controls = pd.DataFrame({p.firm: historical_controls(p, washout_sales) for p in panels}).T
    five_tests(score.values, wins, controls, industry)     # wins: whether the joint model errs less
    tercile_rates(score.values, wins)                      # bars of the figure
    column_results(measures, wins, controls, industry)     # every measure by itself, Benjamini-Hochberg
    measures_table()                                       # the registry as a table
"""

from cbmt_core.diagnostics.comovement.battery import MEASURES, measures_of, measures_table
from cbmt_core.diagnostics.comovement.controls import CONTROLS, historical_controls
from cbmt_core.diagnostics.comovement.evidence import (
    TERCILES,
    column_results,
    five_tests,
    tercile_rates,
    terciles,
)
from cbmt_core.diagnostics.comovement.measure import GROUPS, Measure
from cbmt_core.diagnostics.comovement.score import (
    MIN_FIRMS,
    ComovementScore,
    ScoreModel,
    comovement_score,
    fit_score,
)

__all__ = [
    "CONTROLS",
    "GROUPS",
    "MEASURES",
    "MIN_FIRMS",
    "TERCILES",
    "ComovementScore",
    "Measure",
    "ScoreModel",
    "column_results",
    "comovement_score",
    "fit_score",
    "five_tests",
    "historical_controls",
    "measures_of",
    "measures_table",
    "tercile_rates",
    "terciles",
]
