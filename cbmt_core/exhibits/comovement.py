"""Why joint forecasting helps: the measures of co-movement, their score, and the tests of it."""

from __future__ import annotations

import pandas as pd

from cbmt_core.exhibits.evidence import Evidence
from cbmt_core.exhibits.exhibit import Exhibit, number, table
from cbmt_core.schema import Column
from cbmt_core.schema.diagnostics import ADJUSTED_COLUMN, ADJUSTED_TERCILE, ADJUSTED_TEST

__all__ = ["EXHIBITS", "TEST_LABELS"]

TEST_LABELS = {
    "tercile": "Tercile comparison",
    "lpm": "Linear probability",
    "lpm_controls": "Linear probability + controls",
    "logit": "Logit",
    "placebo": "Permutation placebo",
}
UNITS = {
    "tercile": "points",
    "lpm": "probability per SD",
    "lpm_controls": "probability per SD",
    "logit": "odds ratio per SD",
    "placebo": "log odds per SD",
}
LEVELS = ("low", "medium", "high")
FIRMS = Column("firms", "INTEGER", "firms it is based on")
NOTE = Column("note", "VARCHAR", "what is missing where there are no numbers")


def measures(evidence: Evidence) -> pd.DataFrame:
    from cbmt_core.diagnostics.comovement import measures_table

    return measures_table()


def tests(evidence: Evidence) -> pd.DataFrame:
    rows = evidence.result("comovement_test")
    rows = rows.sort_values("test", key=lambda names: names.map(list(TEST_LABELS).index), kind="stable")
    return rows.assign(label=rows["test"].map(TEST_LABELS), unit=rows["test"].map(UNITS))


def columns(evidence: Evidence) -> pd.DataFrame:
    """Every measure's association, sorted by its p value."""
    return evidence.result("comovement_column").sort_values(["p", "measure"], kind="stable")


def terciles(evidence: Evidence) -> pd.DataFrame:
    rows = evidence.result("comovement_tercile")
    return rows.sort_values("tercile", key=lambda names: names.map(LEVELS.index), kind="stable")


EXHIBITS = (
    Exhibit(
        table(
            "comovement_measures",
            "The measures of how far a firm's drivers move together.",
            Column("group", "VARCHAR", "one of eight groups"),
            Column("number", "INTEGER", "number of the family, 1 to 28"),
            Column("family", "VARCHAR", "family"),
            Column("measure", "VARCHAR", "name of the measure in the tables comovement_*"),
            Column("formula", "VARCHAR", "how it is computed"),
            Column("reference", "VARCHAR", "where it comes from"),
        ),
        "Table: Cross-Metric Co-Movement Measures (tab:w1_comovement_measures)",
        "From the registry; values by firm, printed and adjusted, are in comovement_measure.",
        measures,
    ),
    Exhibit(
        table(
            "comovement_tests",
            "Five tests of whether joint forecasting wins more often where drivers move together.",
            Column("test", "VARCHAR", "name in comovement_test"), Column("label", "VARCHAR", "name for readers"),
            Column("specification", "VARCHAR", "what is estimated"), FIRMS,
            number("estimate", "the estimate"), Column("unit", "VARCHAR", "what it is counted in"),
            number("se", "standard error; spread of the shuffled estimates for the placebo"),
            number("low", "lower end of the 95 % interval"), number("high", "upper end"),
            number("p", "two-sided p value"), *ADJUSTED_TEST, NOTE,
        ),
        "Table: Cross-Metric Co-Movement and Joint-Model Performance (tab:comovement_main_results)",
        "A win is a lower SMAPE of total sales by cbmt than by single_task. An association, not a cause. "
        "Drivers are in log(1 + x), as the paper prints it; adjusted ones also lose slow movement and holidays, "
        "because trends correlate in every firm and every model has the calendar as an input.",
        tests,
    ),
    Exhibit(
        table(
            "comovement_columns",
            "Association of every measure of co-movement with a win of joint forecasting.",
            Column("measure", "VARCHAR", "name of the measure"), Column("group", "VARCHAR", "its group"),
            Column("family", "VARCHAR", "its family"), number("loading", "its weight in the score"), FIRMS,
            number("coefficient", "log odds of a win per standard deviation, with controls"),
            number("se", "its standard error"), number("odds_ratio", "its exponential"),
            number("p", "two-sided p value"), number("q", "p value after Benjamini and Hochberg"),
            Column("survives", "BOOLEAN", "whether q is below 0.10"), *ADJUSTED_COLUMN, NOTE,
        ),
        "Table: individual columns of the co-movement battery (Web App. Additional Checks)",
        "Thirty-four tests at once: q, not p, says which stand out.",
        columns,
    ),
    Exhibit(
        table(
            "comovement_terciles",
            "Share of firms where joint forecasting wins, by tercile of the co-movement score.",
            Column("tercile", "VARCHAR", "low, medium or high score"),
            Column("firms", "INTEGER", "firms of the tercile"),
            Column("wins", "INTEGER", "of these, firms where joint forecasting wins"),
            number("rate", "their share"), number("low", "lower end of its 95 % bootstrap interval"),
            number("high", "upper end"), *ADJUSTED_TERCILE,
            Column("note", "VARCHAR", "what is missing where there is no interval"),
        ),
        "Figure: Joint-Model Win Rate by Cross-Metric Co-Movement Tercile (fig:dependence_tercile)",
        "Scores are of the calibration window, wins of the holdout; the adjusted score as in comovement_tests.",
        terciles,
    ),
)  # fmt: skip
