"""Co-movement of a firm's drivers: 34 measures, one score, and whether it says where joint forecasts win.

measures = pd.DataFrame({firm: measures_of(panel) for ...}).T   # firms by 34 columns
score = comovement_score(measures)                              # .values, .loadings, .explained, .note
controls = pd.DataFrame({firm: historical_controls(panel, washout_sales) for ...}).T
five_tests(score.values, wins, controls, industry)              # wins: joint errs less, by firm
tercile_rates(score.values, wins)                               # the figure's bars
column_results(measures, wins, controls, industry)              # every measure, Benjamini-Hochberg
measures_table()                                                # the registry as a table
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
from cbmt_core.diagnostics.comovement.score import MIN_FIRMS, Score, ScoreModel, comovement_score, fit_score

__all__ = [
    "CONTROLS",
    "GROUPS",
    "MEASURES",
    "MIN_FIRMS",
    "TERCILES",
    "Measure",
    "Score",
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
