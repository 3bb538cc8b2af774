"""Every table of the results: its title, the query that makes it, and a note for readers."""

from __future__ import annotations

from dataclasses import dataclass

from cbmt_core.exhibits import REPRESENTATIVES
from cbmt_core.metrics import FULL, HORIZONS, OUTCOMES

__all__ = ["SECTIONS", "Shown"]


@dataclass(frozen=True)
class Shown:
    title: str
    sql: str
    note: str = ""
    diagnostic: str = ""
    """The diagnostic whose note is given when there are no rows."""


def _among(models: tuple[str, ...]) -> str:
    return ", ".join(f"'{name}'" for name in models)


def _by(name: str, values: tuple[str, ...], cell: str) -> str:
    return ", ".join(f"any_value({cell}) FILTER ({name} = '{value}') AS \"{value}\"" for value in values)


ALL = "metric = 'smape' AND industry = '(all)'"
SHOWN_BY_HORIZON = (*REPRESENTATIVES, "single_task", "joint", "cbmt_plus", "cohort_glm")
BY_INDUSTRY = ("cbmt", "cbmt_plus", "cohort_glm", "wg_pnbd_e_pp", "lstm")
CONTRIBUTIONS = ("sales_change", "order_volume", "spend_per_order", "net_replenishment")


def _outcomes(title: str, cell: str, order: str, note: str = "") -> Shown:
    sql = f"""SELECT named(model) AS "model", {_by("outcome", OUTCOMES, cell)} FROM accuracy_summary s
        WHERE {ALL} AND horizon = 'full' GROUP BY s.model
        ORDER BY any_value({order}) FILTER (outcome = 'total_sales') NULLS LAST, s.model"""
    return Shown(title, sql, note)


def _paired(reference: str) -> Shown:
    return Shown(
        f"{reference} against every other model, total sales",
        f"""SELECT named(model) AS "against", firms::INTEGER AS "firms", d2(mean) AS "{reference}",
            d2(other_mean) AS "other", signed(change) || ' %' AS "difference of means", span(low, high) AS "95 %",
            pct(win_rate) AS "firms won", pv(t_p) AS "p (t)", pv(wilcoxon_p) AS "p (signed rank)" FROM paired
        WHERE reference = '{reference}' AND outcome = 'total_sales' AND metric = 'smape' ORDER BY other_mean, model""",
        f"SMAPE over the full holdout, on the firms both have. Negative differences favour {reference}; the "
        "interval is over resampled firms.",
    )


ACCURACY = (
    Shown(
        "Total sales, every model",
        f"""SELECT named(model) AS "model", firms, d2(mean) AS "mean", d2(median) AS "median", d2(sd) AS "sd",
            d2(average_rank) AS "average rank", pct(first_rank) AS "first" FROM accuracy_summary s
        WHERE {ALL} AND horizon = 'full' AND outcome = 'total_sales' ORDER BY s.mean, s.model""",
        "SMAPE (0 to 200) over the full holdout; all models over the same firms. Ranked are the models that "
        "forecast all five outcomes.",
    ),
    _outcomes("Mean SMAPE by outcome", "d2(mean)", "s.mean", "ROPC and AOV are weighted by cohort size."),
    _outcomes("Median SMAPE by outcome", "d2(median)", "s.median"),
    _outcomes("Average rank by outcome", "d2(average_rank)", "s.average_rank"),
    _outcomes("Share of firms on which a model ranks first", "pct(first_rank)", "-s.first_rank"),
    Shown(
        "MASE of total sales",
        """SELECT named(model) AS "model", firms, d3(mean) AS "mean", d3(median) AS "median" FROM accuracy_summary s
        WHERE metric = 'mase' AND industry = '(all)' AND horizon = 'full' AND outcome = 'total_sales'
        ORDER BY s.mean, s.model""",
    ),
    Shown(
        "Total sales by horizon",
        f"""SELECT named(model) AS "model", {_by("horizon", (*HORIZONS, FULL), "d2(mean)")} FROM accuracy_summary s
        WHERE {ALL} AND outcome = 'total_sales' GROUP BY s.model
        ORDER BY any_value(s.mean) FILTER (horizon = 'full'), s.model""",
        "Mean SMAPE over the first 13, 26, 39 and all weeks.",
    ),
    Shown(
        "Other outcomes by horizon",
        f"""SELECT outcome, named(model) AS "model", {_by("horizon", (*HORIZONS, FULL), "d2(mean)")}
        FROM accuracy_summary s WHERE {ALL} AND outcome <> 'total_sales' AND s.model IN ({_among(SHOWN_BY_HORIZON)})
        GROUP BY outcome, s.model ORDER BY outcome, any_value(s.mean) FILTER (horizon = 'full'), s.model""",
    ),
    Shown(
        "Total sales by industry",
        f"""SELECT industry, max(firms) AS "firms", {_by("model", BY_INDUSTRY, "d2(mean)")} FROM accuracy_summary
        WHERE metric = 'smape' AND horizon = 'full' AND outcome = 'total_sales' AND industry <> '(all)'
        GROUP BY industry ORDER BY any_value(mean) FILTER (model = 'cbmt'), industry""",
        "Few firms each: read the column of firms first.",
    ),
    Shown(
        "Firms without a score",
        """SELECT named(model) AS "model", count(*) AS "firms", any_value(reason) AS "one of the reasons"
        FROM diagnostic.accuracy_failure GROUP BY model ORDER BY 2 DESC, 1""",
    ),
)

BRIDGE = (
    Shown(
        "Mean absolute error of the sources of sales change",
        f"""SELECT named(model) AS "model", any_value(firms) AS "firms",
            {_by("contribution", CONTRIBUTIONS, "d2(mae_points)")}
        FROM diagnostic.bridge_mae WHERE sample = 'primary' GROUP BY model
        ORDER BY any_value(mae_points) FILTER (contribution = 'sales_change'), model""",
        "In percent of baseline sales; the same firms for every model.",
    ),
    Shown(
        "The same against the reference, with 95 % intervals",
        f"""SELECT named(model) AS "model", any_value(named(reference)) AS "reference",
            {_by("contribution", CONTRIBUTIONS, "d2(difference) || ' ' || span(difference_low, difference_high)")}
        FROM diagnostic.bridge_mae WHERE sample = 'primary' AND model <> reference GROUP BY model
        ORDER BY any_value(difference) FILTER (contribution = 'sales_change'), model""",
        "Positive differences favour the reference.",
    ),
    Shown(
        "Models whose bridges could not be compared",
        """SELECT named(model) AS "model", firms, eligible_firms AS "eligible", coalesce(reason, '') AS "reason"
        FROM diagnostic.bridge_method WHERE NOT compared ORDER BY model""",
    ),
)

COMOVEMENT = (
    Shown(
        "Five tests of the score",
        """SELECT label AS "test", firms, d3(estimate) AS "estimate", unit, d3(se) AS "se", span(low, high) AS "95 %",
            pv(p) AS "p", d3(adjusted_estimate) AS "adjusted", pv(adjusted_p) AS "adjusted: p", note
        FROM exhibit.comovement_tests ORDER BY row""",
        "Whether cbmt beats single_task more often where the drivers move together. An association, not a cause. "
        "Drivers are in log(1 + x), as the paper prints it; adjusted ones also lose slow movement and holidays.",
        "comovement",
    ),
    Shown(
        "Share of firms that cbmt wins from single_task, by tercile of the score",
        """SELECT tercile, firms, wins, pct(rate) AS "share", span(low, high) AS "95 %",
            pct(adjusted_rate) AS "by the adjusted score", note
        FROM exhibit.comovement_terciles ORDER BY row""",
        diagnostic="comovement",
    ),
    Shown(
        "The score against the simulator's hidden co-movement",
        """SELECT CASE name WHEN 'hidden' THEN 'as printed' ELSE 'adjusted' END AS "score", n::INTEGER AS "firms",
            d3(value) AS "Spearman", span(low, high) AS "95 %", pv(p) AS "p"
        FROM statistic WHERE name IN ('hidden', 'hidden_adjusted') AND value IS NOT NULL ORDER BY name""",
        "The simulator knows how much the drivers of a firm share; no model and no measure sees it.",
        "comovement",
    ),
    Shown(
        "The ten measures most associated with a win",
        """SELECT measure, "group", firms, d2(loading) AS "loading", d2(odds_ratio) AS "odds ratio", pv(p) AS "p",
            d3(q) AS "q", survives FROM exhibit.comovement_columns WHERE p IS NOT NULL ORDER BY row LIMIT 10""",
        "q is p after Benjamini and Hochberg over all measures.",
        "comovement",
    ),
)

DIFFICULTY = (
    Shown(
        "Cross-validated R² of the errors on what is known at the origin",
        """PIVOT (SELECT outcome, meta_model, firms, label, d3(r2) AS r2 FROM exhibit.difficulty_r2
            WHERE exhibit.difficulty_r2.r2 IS NOT NULL)
        ON label USING any_value(r2) GROUP BY outcome, meta_model, firms ORDER BY outcome, meta_model DESC""",
        diagnostic="difficulty",
    ),
    Shown(
        "Predicted and realised error of cohort sales, by tercile of the predicted one",
        """SELECT band, label AS "model", in_band AS "firms", d2(phe) AS "predicted", d2(smape) AS "realised",
            d1(reduction) || ' %' AS "reference lower by", d1(wins) AS "wins"
        FROM exhibit.predicted_difficulty WHERE smape IS NOT NULL ORDER BY row""",
        diagnostic="difficulty",
    ),
    Shown(
        "How well the predicted error orders firms",
        """SELECT n::INTEGER AS "firms", CASE name WHEN 'phe' THEN 'Spearman' ELSE 'R², all folds together' END
            AS "statistic", d3(value) AS "value", span(low, high) AS "95 %" FROM statistic
        WHERE name LIKE 'phe%' AND value IS NOT NULL ORDER BY name""",
        diagnostic="difficulty",
    ),
    Shown(
        "Permutation importance",
        """SELECT label AS "feature", d3(importance) AS "decline of R²", span(low, high) AS "95 % of shuffles"
        FROM exhibit.feature_importance WHERE importance IS NOT NULL ORDER BY row""",
        diagnostic="difficulty",
    ),
    Shown(
        "Who errs least, by terciles of scale and volatility",
        """SELECT scale, volatility, any_value(in_cell) AS "firms",
            string_agg(label || ' ' || pct(win_rate), ', ' ORDER BY win_rate DESC, label) AS "share of firms"
        FROM exhibit.win_rates WHERE win_rate IS NOT NULL GROUP BY scale, volatility ORDER BY min(row)""",
        diagnostic="difficulty",
    ),
)

ROUTING = (
    Shown(
        "One model for all firms, or each its better one",
        """SELECT label AS "policy", firms, d2(smape) AS "SMAPE", to_cbmt AS "to cbmt",
            to_single_task AS "to single_task" FROM exhibit.base_rates ORDER BY row""",
        "The oracle knows the holdout.",
        "routing",
    ),
    Shown(
        "Held-out firms, over re-randomised splits",
        """SELECT label AS "policy", firms, splits, d3(smape) AS "SMAPE", d3(sd) AS "sd", better, worse,
            d2(to_single_task) AS "to single_task" FROM exhibit.routing_resplits ORDER BY row""",
        "Better and worse count the splits against always cbmt.",
        "routing",
    ),
)

CALIBRATION = (
    Shown(
        "Errors by fiscal quarter ahead",
        """SELECT horizon, label AS "model", firms, d2(model_smape) AS "its error", d2(analyst_smape) AS "analysts'"
        FROM exhibit.external_calibration ORDER BY row""",
        diagnostic="external_calibration",
    ),
)

COST = (
    Shown(
        "Processor seconds a firm",
        """SELECT named(model) AS "model", count(*) AS "fits", count(*) FILTER (NOT succeeded) AS "without forecast",
            d2(median(seconds)) AS "median", d1(max(seconds)) AS "most", d1(sum(seconds)) AS "sum"
        FROM model_fit GROUP BY model ORDER BY sum(seconds) DESC, model""",
        "As each fit recorded them: search, training and forecast of a network; fit and forecast of the others.",
    ),
    Shown("All models", """SELECT d2(sum(seconds) / 3600) AS "processor hours" FROM model_fit"""),
)

SECTIONS: dict[str, tuple[Shown, ...]] = {
    "Accuracy": ACCURACY,
    "Paired comparisons": (_paired("cbmt"), _paired("cbmt_plus")),
    "Families": (
        Shown(
            "Single-task, joint and full",
            f"""SELECT panel, family, shared_representation AS "shared", revenue_alignment AS "aligned", firms,
                {", ".join(f'd2({name}) AS "{name}"' for name in OUTCOMES)} FROM exhibit.families ORDER BY row""",
            "Mean SMAPE, then improvements in percent. Each family is searched for by itself: differences "
            "describe and do not identify causes.",
        ),
    ),
    "Sales bridge": BRIDGE,
    "Co-movement": COMOVEMENT,
    "Difficulty": DIFFICULTY,
    "Routing": ROUTING,
    "External calibration": CALIBRATION,
    "Cost": COST,
}
