"""The paper's findings as queries: its figure, ours, and the rule that compares them.

Sections and tables of the paper are named in `place`. Figures of the paper stand here; ours come from the file.
"""

from __future__ import annotations

from dataclasses import dataclass

from cbmt_core.exhibits import LABELS, REPRESENTATIVES
from panel_results.verdicts import Count, Estimate

__all__ = ["FINDINGS", "Finding"]


@dataclass(frozen=True)
class Finding:
    claim: str
    place: str
    paper: str
    rule: Estimate | Count
    sql: str
    """One row: value, low, high, n (and remark) for an estimate; hits, of, n (and remark) for a count."""
    diagnostic: str = ""


OTHER_MODELS = ", ".join(f"'{name}'" for name in REPRESENTATIVES if name != "cbmt")
BRIDGED = "'wg_pnbd_e_pp', 'rf', 'xgb', 'wg_pnbd_fp', 'wg_pnbd_pp', 'wg_pnbd_e_fp'"
MEANS = "'means ' || d2(mean) || ' and ' || d2(other_mean) AS remark"


def _change(reference: str, where: str) -> str:
    return f"""SELECT change AS value, low, high, firms AS n, {MEANS} FROM paired
        WHERE reference = '{reference}' AND {where}"""


def _lower(model: str, paper: str, size: float, *, reference: str = "cbmt", outcome: str = "total_sales",
           place: str = "tab:eval_main", metric: str = "smape") -> Finding:  # fmt: skip
    where = f"model = '{model}' AND outcome = '{outcome}' AND metric = '{metric}'"
    claim = f"{LABELS[reference]} errs less than {LABELS[model]}: {outcome}, mean {metric.upper()}"
    return Finding(claim, place, paper, Estimate(size=size, unit=" %"), _change(reference, where))


def _closest(outcome: str, paper: str, size: float) -> Finding:
    sql = f"""SELECT change AS value, low, high, firms AS n, named(model) || ', ' || {MEANS} FROM paired
        WHERE reference = 'cbmt' AND outcome = '{outcome}' AND metric = 'smape' AND model IN ({OTHER_MODELS})
        ORDER BY other_mean LIMIT 1"""
    claim = f"CBMT errs less than the best representative benchmark: {outcome}"
    return Finding(claim, "tab:eval_main", paper, Estimate(size=size, unit=" %"), sql)


ACCURACY = (
    _lower("wg_pnbd_e_pp", "15.48 against 22.11: -30 %", -30.0),
    _lower("gls_v2", "15.48 against 42.36: -63 %", -63.5),
    _lower("lstm", "15.48 against 28.15: -45 %", -45.0),
    _lower("rf", "15.48 against 23.57: -34 %", -34.3),
    _closest("acquisition", "19.30 against 23.31: -17 %", -17.2),
    _closest("ropc", "35.56 against 37.26: -5 %", -4.6),
    _closest("aov", "35.94 against 38.59: -7 %", -6.9),
    _closest("cohort_sales", "53.91 against 59.29: -9 %", -9.1),
    _lower("wg_pnbd_e_pp", "-39 %", -39.0, metric="mase", place="tab:eval_all"),
    _lower("rf", "-49 %", -49.0, metric="mase", place="tab:eval_all"),
    Finding(
        "CBMT is no worse than the network that forecasts total sales alone", "tab:wa_direct_sales_results",
        "15.48 against 15.90: -2.65 %, p = .222", Estimate(or_equal=True, size=-2.65, unit=" %"),
        _change("cbmt", "model = 'direct' AND outcome = 'total_sales' AND metric = 'smape'"),
    ),
    Finding(
        "CBMT wins from single-task on most firms", "Absolute and Relative Performance Evaluation",
        "74.3 % (718 of 966)", Estimate(border=50.0, below=False, size=74.3, unit=" %"),
        """SELECT 100 * win_rate AS value, 100 * win_low AS low, 100 * win_high AS high, firms AS n FROM paired
        WHERE reference = 'cbmt' AND model = 'single_task' AND outcome = 'total_sales' AND metric = 'smape'""",
    ),
    Finding(
        "CBMT has the best average rank of the 16 models on every outcome", "tab:avg_rank",
        "5 of 5: ranks 3.50, 2.12, 6.07, 2.15, 3.06", Count(5, 1.0),
        """SELECT count(*) FILTER (own = least) AS hits, CASE WHEN max(models) >= 12 THEN count(own) END AS "of",
            max(firms) AS n, 'ranks ' || string_agg(d2(own), ', ') || ' among ' || max(models) AS remark
        FROM (SELECT outcome, min(rank) FILTER (model = 'cbmt') AS own, min(rank) AS least, max(firms) AS firms,
            max(models_ranked) AS models
            FROM (UNPIVOT exhibit.average_rank_all ON acquisition, ropc, aov, cohort_sales, total_sales
                INTO NAME outcome VALUE rank) GROUP BY outcome
            ORDER BY list_position(['acquisition', 'ropc', 'aov', 'cohort_sales', 'total_sales'], outcome))""",
    ),
    Finding(
        "Errors grow with the horizon, for every representative model and outcome", "fig:hetero_horizon",
        "25 of 25", Count(25),
        """SELECT count(*) FILTER (sorted) AS hits, count(*) AS "of", max(n) AS n FROM (SELECT max(firms) AS n,
            list(mean ORDER BY weeks) = list_sort(list(mean)) AS sorted FROM exhibit.horizon
            GROUP BY outcome, model)""",
    ),
    Finding(
        "CBMT errs least of the representative models at every horizon", "fig:hetero_horizon",
        "20 of 20 (outcomes and horizons)", Count(20),
        """SELECT count(*) FILTER (own = least) AS hits, count(own) AS "of", max(n) AS n,
            'among ' || max(models) || ' models' AS remark FROM (SELECT min(mean) FILTER (model = 'cbmt') AS own,
            min(mean) AS least, max(firms) AS n, count(*) AS models FROM exhibit.horizon GROUP BY outcome, horizon)""",
    ),
    Finding(
        "CBMT errs least in nearly every industry, of CBMT, WG-PNBD-E PP and LSTM", "fig:hetero_industry_sales",
        "24 of 25", Count(25),
        """SELECT count(*) FILTER (own = least) AS hits, count(own) AS "of", sum(n) AS n FROM
            (SELECT min(mean) FILTER (model = 'cbmt') AS own, min(mean) AS least, max(firms) AS n
            FROM exhibit.industry WHERE model IN ('cbmt', 'wg_pnbd_e_pp', 'lstm') GROUP BY industry)""",
    ),
)  # fmt: skip

FAMILY_FINDINGS = (
    _lower("single_task", "15.48 against 20.54: -24.64 %", -24.64, place="tab:mechanism_improvements"),
    _lower("single_task", "18.57 against 20.54: -9.56 %", -9.56, reference="joint", place="tab:mechanism_improvements"),
    _lower("joint", "15.48 against 18.57: -16.67 %", -16.67, place="tab:mechanism_improvements"),
    _lower("single_task", "21.11 against 35.69: -40.84 %", -40.84, reference="joint", outcome="acquisition",
           place="tab:mechanism_improvements"),
    Finding(
        "The aligned family errs less than the joint one on every outcome", "tab:mechanism_improvements",
        "5 of 5", Count(5, 1.0),
        """SELECT count(*) FILTER (change < 0) AS hits, count(*) AS "of", max(firms) AS n FROM paired
        WHERE reference = 'cbmt' AND model = 'joint' AND metric = 'smape'""",
    ),
)  # fmt: skip

BRIDGE = (
    Finding(
        "CBMT's bridge misses less than the six other models' in nearly every comparison", "tab:source_mae_main",
        "23 of 24", Count(24),
        f"""SELECT count(*) FILTER (difference > 0) AS hits, count(*) AS "of", max(firms) AS n,
            count(*) FILTER (difference_high < 0) || ' surely the other way' AS remark FROM diagnostic.bridge_mae
        WHERE sample = 'primary' AND reference = 'cbmt' AND model IN ({BRIDGED})""",
    ),
    Finding(
        "CBMT's bridge misses the change in sales by less than WG-PNBD-E PP's", "tab:wa_source_mae_paired",
        "7.91 against 18.17: 10.26 points", Estimate(below=False, size=10.26, unit=" points", digits=2),
        """SELECT difference AS value, difference_low AS low, difference_high AS high, firms AS n
        FROM diagnostic.bridge_mae
        WHERE sample = 'primary' AND reference = 'cbmt' AND model = 'wg_pnbd_e_pp' AND contribution = 'sales_change'""",
    ),
)  # fmt: skip


def _test(name: str, claim: str, paper: str, size: float, *, border: float = 0.0, unit: str = "",
          digits: int = 3) -> Finding:  # fmt: skip
    sql = f"""SELECT estimate AS value, low, high, firms AS n, coalesce('p ' || pv(p), note) AS remark
        FROM diagnostic.comovement_test WHERE test = '{name}'"""
    rule = Estimate(border=border, below=False, size=size, unit=unit, digits=digits)
    return Finding(claim, "tab:comovement_main_results", paper, rule, sql, "comovement")


COMOVEMENT = (
    _test("tercile", "Joint forecasting wins more often in the high tercile of co-movement than in the low one",
          "+8.39 points, p = .016", 8.39, unit=" points", digits=2),
    _test("lpm", "A win is likelier per standard deviation of the score", "+0.039, p = .006", 0.039),
    _test("lpm_controls", "The same with controls and industries", "+0.050, p = .002", 0.050),
    _test("logit", "The odds of a win rise with the score", "odds ratio 1.310, p = .002", 1.310, border=1.0),
    Finding(
        "Shuffled scores do not give the observed association", "tab:comovement_main_results",
        "p = .000 of 1,000 shuffles", Count(1, 1.0),
        """SELECT (p < 0.05 AND estimate > 0)::INTEGER AS hits, count(p) OVER () AS "of", firms AS n,
            coalesce('log odds ' || d3(estimate) || ', p ' || pv(p), note) AS remark
        FROM diagnostic.comovement_test WHERE test = 'placebo'""",
        "comovement",
    ),
    Finding(
        "The share of wins rises from tercile to tercile", "fig:dependence_tercile", "2 of 2 steps", Count(2, 1.0),
        """SELECT (m > l)::INTEGER + (h > m)::INTEGER AS hits, CASE WHEN l + m + h IS NOT NULL THEN 2 END AS "of", n,
            pct(l) || ', ' || pct(m) || ', ' || pct(h) AS remark FROM (SELECT sum(firms) AS n,
            max(rate) FILTER (tercile = 'low') AS l, max(rate) FILTER (tercile = 'medium') AS m,
            max(rate) FILTER (tercile = 'high') AS h FROM diagnostic.comovement_tercile)""",
        "comovement",
    ),
    Finding(
        "Most single measures are positively associated with a win", "Web App. Additional Checks",
        "26 of 34; 10 stand out at q < .10", Count(34, 0.7),
        """SELECT count(*) FILTER (coefficient > 0) AS hits, count(coefficient) AS "of", max(firms) AS n,
            count(*) FILTER (survives) || ' at q < .10' AS remark FROM diagnostic.comovement_column""",
        "comovement",
    ),
)  # fmt: skip

DIFFICULTY = (
    Finding(
        "What is known at the origin explains differences in CBMT's error of cohort sales", "tab:cv_r2",
        "R² 0.495", Estimate(below=False, size=0.495, digits=3),
        """SELECT value, low, high, n, 'mean of the folds ' || (SELECT d3(r2) FROM diagnostic.difficulty_r2
            WHERE outcome = 'cohort_sales' AND model = 'cbmt' AND meta_model = 'gbr') AS remark
        FROM statistic WHERE name = 'phe_r2'""", "difficulty",
    ),
    Finding(
        "What is known explains some of the errors of most outcomes and models", "tab:cv_r2",
        "R² above 0 in 38 of 40, from -0.009 to 0.627", Count(40, 0.8),
        """SELECT count(*) FILTER (r2 > 0) AS hits, count(r2) AS "of", max(firms) AS n,
            'from ' || d3(min(r2)) || ' to ' || d3(max(r2)) AS remark FROM diagnostic.difficulty_r2""",
        "difficulty",
    ),
    Finding(
        "Realised errors rise with the predicted one, for every model", "tab:phe_bands", "4 of 4", Count(4, 1.0),
        """SELECT count(*) FILTER (l < m AND m < h) AS hits, count(l + m + h) AS "of", max(n) AS n FROM
            (SELECT max(firms) AS n, max(smape) FILTER (band = 'low') AS l, max(smape) FILTER (band = 'medium') AS m,
            max(smape) FILTER (band = 'high') AS h FROM diagnostic.difficulty_band GROUP BY model)""",
        "difficulty",
    ),
    Finding(
        "CBMT errs least in every band of difficulty", "tab:phe_bands", "3 of 3", Count(3, 1.0),
        """SELECT count(*) FILTER (own = least) AS hits, count(own) AS "of", max(n) AS n,
            'among ' || max(models) || ' models' AS remark FROM (SELECT max(firms) AS n, count(smape) AS models,
            min(smape) FILTER (model = 'cbmt') AS own, min(smape) AS least
            FROM diagnostic.difficulty_band GROUP BY band)""",
        "difficulty",
    ),
    Finding(
        "CBMT's advantage is smaller on hard firms than on easy ones", "tab:phe_bands",
        "3 of 3 (22.3 to 6.8 %, 27.7 to 12.0 %, 46.0 to 13.1 %)", Count(3, 1.0),
        """SELECT count(*) FILTER (l > h) AS hits, count(l + h) AS "of", max(n) AS n,
            string_agg(named(model) || ' ' || d1(l) || ' to ' || d1(h) || ' %', ', ' ORDER BY model) AS remark FROM
            (SELECT model, max(firms) AS n, max(reduction) FILTER (band = 'low') AS l,
            max(reduction) FILTER (band = 'high') AS h
            FROM diagnostic.difficulty_band WHERE model <> 'cbmt' GROUP BY model)""",
        "difficulty",
    ),
    Finding(
        "Total orders and the variation of cohort sales are the two leading features", "fig:top_features_GBR",
        "2 of 2", Count(2, 1.0),
        """SELECT count(*) FILTER (feature IN ('total_orders', 'cohort_sales_cv')) AS hits, count(*) AS "of",
            max(firms) AS n, 'leading: ' || string_agg(feature, ', ' ORDER BY importance DESC) AS remark
        FROM (FROM diagnostic.difficulty_importance WHERE importance IS NOT NULL ORDER BY importance DESC LIMIT 2)""",
        "difficulty",
    ),
    Finding(
        "Larger firms are easier", "fig:shap_dependence", "falls with total orders",
        Estimate(digits=2, unit=" (Spearman with CBMT's error)"),
        "SELECT value, low, high, n FROM statistic WHERE name = 'scale'", "difficulty",
    ),
    Finding(
        "Volatile firms are harder", "fig:shap_dependence", "rises with the variation of cohort sales",
        Estimate(below=False, digits=2, unit=" (Spearman with CBMT's error)"),
        "SELECT value, low, high, n FROM statistic WHERE name = 'volatility'", "difficulty",
    ),
    Finding(
        "CBMT wins most often in every cell of scale and volatility", "fig:winrate_tercile_2drivers",
        "9 of 9", Count(9, 1.0),
        """SELECT count(*) FILTER (own = most) AS hits, count(own) AS "of", max(n) AS n,
            'among ' || max(models) || ' models' AS remark FROM (SELECT max(firms) AS n, count(*) AS models,
            max(win_rate) FILTER (model = 'cbmt') AS own, max(win_rate) AS most FROM diagnostic.difficulty_grid
            WHERE in_cell > 0 GROUP BY scale, volatility)""",
        "difficulty",
    ),
    Finding(
        "CBMT wins less often among volatile firms than among calm ones, at every scale",
        "fig:winrate_tercile_2drivers", "narrows as volatility rises", Count(3, 1.0),
        """SELECT count(*) FILTER (calm > wild) AS hits, count(calm + wild) AS "of", max(n) AS n FROM
            (SELECT max(firms) AS n, max(win_rate) FILTER (volatility = 'low') AS calm,
            max(win_rate) FILTER (volatility = 'high') AS wild FROM diagnostic.difficulty_grid
            WHERE model = 'cbmt' GROUP BY scale)""",
        "difficulty",
    ),
)  # fmt: skip

DEPLOYMENT = (
    Finding(
        "No learned rule beats always using CBMT, on average over re-splits", "tab:deployment_resplit",
        "3 of 3 (15.448, 15.444, 15.457 against 15.441)", Count(3, 1.0),
        """SELECT count(*) FILTER (round(smape - fixed, 9) >= 0) AS hits, count(*) AS "of", max(firms) AS n,
            string_agg(d3(smape), ', ' ORDER BY row) || ' against ' || any_value(d3(fixed)) AS remark
        FROM exhibit.routing_resplits, (SELECT any_value(smape) AS fixed FROM exhibit.routing_resplits
            WHERE policy = 'always_cbmt') WHERE policy IN ('logistic', 'tree', 'boosted')""",
        "routing",
    ),
    Finding(
        "Always CBMT gains more over always single-task than a perfect choice firm by firm could add",
        "tab:deployment_baserates", "5.06 against 0.69 points: +4.37", Estimate(below=False, size=4.37, digits=2,
        unit=" points"), "SELECT value, low, high, n FROM statistic WHERE name = 'oracle'", "routing",
    ),
    Finding(
        "CBMT's errors of panel sales are no larger than analysts' of revenue", "tab:analyst_comparison_main",
        "3 of 3 quarters (4.6 to 5.6 % against 6.4 to 7.4 %)", Count(3, 1.0),
        """SELECT count(*) FILTER (model_smape <= analyst_smape) AS hits, count(*) AS "of", max(firms) AS n
        FROM diagnostic.calibration_summary""",
        "external_calibration",
    ),
)  # fmt: skip

FINDINGS: dict[str, tuple[Finding, ...]] = {
    "Accuracy": ACCURACY,
    "Families": FAMILY_FINDINGS,
    "Sales bridge": BRIDGE,
    "Co-movement": COMOVEMENT,
    "Difficulty": DIFFICULTY,
    "Deployment": DEPLOYMENT,
}
