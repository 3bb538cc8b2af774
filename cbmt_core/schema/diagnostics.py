"""Tables of the diagnostics and of the comparison with analysts."""

from __future__ import annotations

from dataclasses import replace

from cbmt_core.schema.kinds import FIRM, MODEL, OUTCOME, Column, Table

__all__ = ["ADJUSTED_COLUMN", "ADJUSTED_TERCILE", "ADJUSTED_TEST", "DIAGNOSTIC_TABLES"]


def _number(name: str, meaning: str) -> Column:
    return Column(name, "DOUBLE", meaning, nullable=True)


FIRMS = Column("firms", "INTEGER", "firms it is based on")
NEEDED = Column("firms_needed", "INTEGER", "firms below which there are no numbers")
EXPLAINED = Column("model", "VARCHAR", "model whose error is predicted")
FEATURE = Column("feature", "VARCHAR", "name of the feature; exhibit.contextual_features explains it")
BAND = Column("band", "VARCHAR", "low, medium or high predicted error")
ADJUSTED_TEST = (
    _number("adjusted_estimate", "the same by the adjusted score, without slow movement and holidays"),
    _number("adjusted_low", "lower end of its 95 % interval"),
    _number("adjusted_high", "upper end"),
    _number("adjusted_p", "two-sided p value"),
)
ADJUSTED_TERCILE = (
    _number("adjusted_rate", "share by tercile of the adjusted score"),
    _number("adjusted_low", "lower end of its 95 % bootstrap interval"),
    _number("adjusted_high", "upper end"),
)
ADJUSTED_COLUMN = (
    _number("adjusted_coefficient", "log odds of the adjusted measure"),
    _number("adjusted_p", "two-sided p value"),
    _number("adjusted_q", "p value after Benjamini and Hochberg"),
)

_ALL = (
    Table(
        "comovement_measure",
        "How far a firm's acquisition, ROPC and AOV move together up to the forecast origin, measure by measure.",
        ("firm", "measure"),
        (
            FIRM,
            Column("measure", "VARCHAR", "name of the measure; exhibit.comovement_measures explains it"),
            _number("value", "of drivers in log(1 + x), as the paper prints it; NULL with too little history"),
            _number("adjusted", "the same without slow movement and holidays, which every model has as inputs"),
        ),
    ),
    Table(
        "difficulty_feature",
        "Features of a firm, known at the forecast origin, that may predict how hard it is to forecast.",
        ("firm", "feature"),
        (
            FIRM,
            FEATURE,
            _number("value", "NULL where the firm's history does not give it"),
        ),
    ),
    Table(
        "firm_history",
        "A firm's whole years of 52 weeks up to the forecast origin, a full washout included.",
        ("firm",),
        (
            FIRM,
            _number("scale", "log of one plus mean annual sales, over years with sales"),
            _number("dispersion", "their coefficient of variation; NULL for a single year"),
        ),
    ),
    Table(
        "diagnostic",
        "What each diagnostic rests on, and why one could not be made.",
        ("diagnostic",),
        (
            Column("diagnostic", "VARCHAR", "comovement, difficulty, routing or external_calibration"),
            FIRMS,
            Column("needed", "INTEGER", "firms it needs"),
            Column("made", "BOOLEAN", "whether its tables are filled"),
            Column("note", "VARCHAR", "what was compared, or what is missing"),
        ),
        partitioned=False,
    ),
    Table(
        "comovement_score",
        "How far each firm's drivers move together, and whether joint forecasting won.",
        ("firm",),
        (
            FIRM,
            _number("score", "first principal component of the measures, in standard deviations across firms"),
            _number("adjusted_score", "the same of the adjusted measures, without slow movement and holidays"),
            Column("tercile", "VARCHAR", "low, medium or high score, among firms with both forecasts", nullable=True),
            Column("adjusted_tercile", "VARCHAR", "low, medium or high adjusted score", nullable=True),
            Column("joint_wins", "BOOLEAN", "whether cbmt errs less than single_task on total sales", nullable=True),
        ),
        partitioned=False,
    ),
    Table(
        "comovement_test",
        "Whether joint forecasting wins more often where the score is higher: five tests.",
        ("test",),
        (
            Column("test", "VARCHAR", "tercile, lpm, lpm_controls, logit or placebo"),
            Column("specification", "VARCHAR", "what is estimated"),
            FIRMS,
            _number("estimate", "points (tercile), probability per standard deviation (lpm), odds ratio (logit) "
                    "or logit coefficient (placebo)"),
            _number("se", "its standard error; of the log odds for the logit, spread of the shuffles for the placebo"),
            _number("low", "lower end of its 95 % interval"),
            _number("high", "upper end"),
            _number("p", "two-sided p value"),
            *ADJUSTED_TEST,
            Column("note", "VARCHAR", "what is missing where there are no numbers"),
        ),
        partitioned=False,
    ),
    Table(
        "comovement_tercile",
        "Share of firms where joint forecasting wins, by tercile of the score.",
        ("tercile",),
        (
            Column("tercile", "VARCHAR", "low, medium or high score"),
            Column("firms", "INTEGER", "firms of the tercile"),
            Column("wins", "INTEGER", "of these, firms where cbmt errs less than single_task"),
            _number("rate", "their share"),
            _number("low", "lower end of its 95 % bootstrap interval; NULL below 10 firms"),
            _number("high", "upper end"),
            *ADJUSTED_TERCILE,
            Column("note", "VARCHAR", "what is missing where there is no interval"),
        ),
        partitioned=False,
    ),
    Table(
        "comovement_column",
        "Association of each measure of co-movement with a win of joint forecasting.",
        ("measure",),
        (
            Column("measure", "VARCHAR", "name of the measure"),
            Column("group", "VARCHAR", "one of eight groups"),
            Column("family", "VARCHAR", "one of 28 families"),
            _number("loading", "weight of the measure in the score"),
            FIRMS,
            _number("coefficient", "log odds of a win per standard deviation, same controls as the logit"),
            _number("se", "its standard error"),
            _number("odds_ratio", "its exponential"),
            _number("p", "two-sided p value"),
            _number("q", "p value after Benjamini and Hochberg"),
            Column("survives", "BOOLEAN", "whether q is below 0.10"),
            *ADJUSTED_COLUMN,
            Column("note", "VARCHAR", "what is missing where there are no numbers"),
        ),
        partitioned=False,
    ),
    Table(
        "predicted_error",
        "How hard each firm is to forecast, predicted from what was known at the origin (PHE).",
        ("firm",),
        (
            FIRM,
            EXPLAINED,
            FIRMS,
            NEEDED,
            _number("phe", "predicted SMAPE of cohort sales over the holdout"),
            Column("band", "VARCHAR", "low, medium or high: its tercile of phe", nullable=True),
            Column(
                "out_of_fold",
                "BOOLEAN",
                "true where the firm has a holdout, which had no part in its prediction; false where it has none yet",
            ),
            _number("smape", "realised SMAPE of cohort sales"),
        ),
        partitioned=False,
    ),
    Table(
        "difficulty_band",
        "Realised error of cohort sales by tercile of the predicted one.",
        ("band", "model"),
        (
            BAND,
            MODEL,
            FIRMS,
            NEEDED,
            Column("in_band", "INTEGER", "firms of the band", nullable=True),
            _number("phe", "mean predicted error in the band"),
            _number("smape", "mean realised error of the model"),
            _number("reduction", "percent by which the reference's mean error is lower"),
            _number("wins", "firms of the band where the model errs least; ties are shared"),
        ),
        partitioned=False,
    ),
    Table(
        "difficulty_r2",
        "Share of the differences in error between firms that the features explain, out of fold.",
        ("outcome", "model", "meta_model"),
        (
            OUTCOME,
            MODEL,
            Column("meta_model", "VARCHAR", "gbr (gradient boosting) or elastic_net"),
            FIRMS,
            NEEDED,
            _number("r2", "mean of the five folds' R²"),
            _number("pooled_r2", "R² of all out-of-fold predictions together"),
        ),
        partitioned=False,
    ),
    Table(
        "difficulty_importance",
        "Decline of R² when a feature is shuffled across firms, over 200 repeats.",
        ("feature",),
        (
            FEATURE,
            EXPLAINED,
            FIRMS,
            NEEDED,
            _number("importance", "mean decline"),
            _number("low", "lower end of what 95 % of the repeats give"),
            _number("high", "upper end"),
        ),
        partitioned=False,
    ),
    Table(
        "difficulty_dependence",
        "What each feature contributes to a firm's predicted error (SHAP values).",
        ("firm", "feature"),
        (
            FIRM,
            FEATURE,
            EXPLAINED,
            FIRMS,
            NEEDED,
            _number("value", "the feature's value"),
            _number("shap", "its contribution in points of SMAPE"),
        ),
        partitioned=False,
    ),
    Table(
        "difficulty_grid",
        "Share of firms where each model errs least, by terciles of scale and volatility.",
        ("scale", "volatility", "model"),
        (
            Column("scale", "VARCHAR", "low, medium or high: tercile of total orders"),
            Column("volatility", "VARCHAR", "low, medium or high: tercile of the variation of cohort sales"),
            MODEL,
            FIRMS,
            NEEDED,
            Column("in_cell", "INTEGER", "firms of the cell", nullable=True),
            _number("wins", "firms where the model errs least; ties are shared"),
            _number("win_rate", "their share"),
            _number("low", "lower end of Wilson's 95 % interval"),
            _number("high", "upper end"),
        ),
        partitioned=False,
    ),
    Table(
        "routing_policy",
        "Mean error that a policy of choosing between cbmt and single_task gives, split by split.",
        ("sample", "split", "policy"),
        (
            Column("sample", "VARCHAR", "all firms, primary (the held-out firms of the first split) or re-split"),
            Column("split", "INTEGER", "0, or the number of the re-split"),
            Column("policy", "VARCHAR", "always_single_task, always_cbmt, logistic, tree, boosted or oracle"),
            Column("firms", "INTEGER", "firms the policy is judged on"),
            Column("smape", "DOUBLE", "their mean SMAPE of total sales over the holdout"),
            Column("to_cbmt", "INTEGER", "of these, firms that get cbmt"),
            Column("to_single_task", "INTEGER", "firms that get single_task"),
            _number("threshold", "probability below which a firm gets single_task; NULL for policies not learned"),
        ),
        partitioned=False,
    ),
    Table(
        "routing_choice",
        "Which of cbmt and single_task each learned rule picks for a firm it has not learned from.",
        ("firm", "policy"),
        (
            FIRM,
            Column("policy", "VARCHAR", "logistic, tree or boosted"),
            Column("sample", "VARCHAR", "held out, training (picked out of fold) or no holdout"),
            Column("probability", "DOUBLE", "probability that cbmt errs less"),
            Column("threshold", "DOUBLE", "probability below which single_task is picked"),
            Column("model", "VARCHAR", "cbmt or single_task"),
        ),
        partitioned=False,
    ),
    Table(
        "calibration_quarter",
        "Fiscal quarters of tickers: the forecast of panel sales beside analysts' forecasts of revenue.",
        ("ticker", "quarter"),
        (
            Column("ticker", "VARCHAR", "ticker as given"),
            Column("quarter", "VARCHAR", "fiscal quarter as given"),
            Column("horizon", "VARCHAR", "Q1 for the first quarter that ends after the forecast origin, and so on"),
            Column("first_day", "DATE", "its first day"),
            Column("last_day", "DATE", "its last day"),
            Column("firms", "INTEGER", "firms of the panel behind the ticker"),
            Column("weeks", "INTEGER", "weeks that begin in the quarter"),
            Column("weeks_ahead", "INTEGER", "of these, weeks after the origin"),
            MODEL,
            Column("panel_sales", "DOUBLE", "sales of the ticker's firms"),
            Column("panel_forecast", "DOUBLE", "the same as forecast: observed up to the origin, the model's after it"),
            Column("model_smape", "DOUBLE", "symmetric percentage error of the two, 0 to 200"),
            Column("revenue", "DOUBLE", "reported revenue as given"),
            Column("analyst_forecast", "DOUBLE", "mean of the forecasts made during calibration"),
            Column("analyst_forecasts", "INTEGER", "how many these are"),
            Column("analyst_smape", "DOUBLE", "symmetric percentage error of the two"),
            Column("trimmed", "BOOLEAN", "whether the ticker is left out: its two errors differ among the most"),
        ),
        partitioned=False,
    ),
    Table(
        "calibration_summary",
        "Mean errors by fiscal quarter ahead, without the trimmed tickers. The targets differ: not a contest.",
        ("horizon",),
        (
            Column("horizon", "VARCHAR", "fiscal quarters after the forecast origin: Q1, Q2, ..."),
            MODEL,
            Column("firms", "INTEGER", "tickers"),
            Column("model_smape", "DOUBLE", "mean error of the model against panel sales"),
            _number("model_se", "its standard error over 1,000 resamples of tickers; NULL below 10"),
            Column("analyst_smape", "DOUBLE", "mean error of analysts against reported revenue"),
            _number("analyst_se", "its standard error, likewise"),
        ),
        partitioned=False,
    ),
)  # fmt: skip

DIAGNOSTIC_TABLES: dict[str, Table] = {
    table.name: replace(table, schema="diagnostic", short="status" if table.name == "diagnostic" else "")
    for table in _ALL
}
