"""Errors from tables equal errors from panels; comparisons equal hand-computed and textbook ones."""

from datetime import date

import numpy as np
import pandas as pd
import pytest
from helpers.evaluation_tables import cohort_week_of, fill, forecasts, perturbed
from scipy import stats

from cbmt_core import duck
from cbmt_core.compose import compose
from cbmt_core.evaluation import ALL_INDUSTRIES, Relations, accuracy, compare, failures, whole_firms
from cbmt_core.evaluation.paired import (
    MIN_FIRMS,
    RESAMPLES,
    SEED,
    bootstrap_means,
    common_sample,
    paired_tests,
)
from cbmt_core.forecasting import ModelRun
from cbmt_core.metrics import OUTCOMES, score
from cbmt_core.models import FitRecord
from cbmt_core.panel import FirmPanel
from cbmt_core.simulate import Economy, sample_cohorts

MODELS = ["seasonal_naive", "cohort_glm"]


def panels_of(firms, scale=0.02):
    """Panels whose money has the four places that the tables keep."""
    economy = Economy(firms=firms, scale=scale)
    drawn = (sample_cohorts(economy, spec).panel() for spec in economy.specs())
    return [FirmPanel.from_cohort_week(p.firm, cohort_week_of(p), p.design) for p in drawn]


def made_up(panel, model, noise, seed, horizon=None):
    design = panel.design
    seen = panel.until(design.origin)
    forecast = compose(seen, perturbed(seen, horizon or design.holdout_weeks, noise, seed))
    return ModelRun(panel.firm, model, design.origin, seed, 0.0, FitRecord(), forecast)


@pytest.fixture(scope="module")
def simulated():
    panels = panels_of(3)
    runs = [run for panel in panels for run in forecasts(panel, MODELS)]
    runs += [made_up(panel, "rf", 0.3, k, horizon=20) for k, panel in enumerate(panels)]
    runs += [made_up(panel, "xgb", 0.3, k, horizon=52) for k, panel in enumerate(panels)]
    with duck.connect() as con:
        fill(con, panels, runs)
        yield con, panels, runs


def test_errors_from_tables_are_those_from_panels(simulated):
    con, panels, runs = simulated
    table = accuracy(con, Relations()).set_index(["firm", "model", "outcome", "horizon"])
    expected = {}
    for panel in panels:
        for run in (run for run in runs if run.firm == panel.firm):
            for s in score(panel, run.forecast, run.origin):
                expected[panel.firm, run.model, s.outcome, s.horizon] = s
    assert set(table.index) == set(expected)
    for key, s in expected.items():
        row = table.loc[key]
        assert row["weeks"] == s.weeks
        assert row["smape"] == pytest.approx(s.smape, abs=1e-9, nan_ok=True)
        assert row["mase"] == pytest.approx(s.mase, abs=1e-9, nan_ok=True)


def test_models_that_forecast_the_same_tie_whatever_the_order_of_rows(simulated):
    con, _, _ = simulated
    both = {
        name: f"(FROM {name} WHERE model = 'cohort_glm' UNION ALL BY NAME "
        f"SELECT * REPLACE ('ssw_v1' AS model) FROM (FROM {name} WHERE model = 'cohort_glm' ORDER BY hash({by}, week)))"
        for name, by in (("forecast_week", "firm"), ("forecast_cohort_week", "cohort"))
    }
    table = accuracy(con, Relations(**both))
    one, other = (table[table["model"] == name].reset_index(drop=True) for name in ("cohort_glm", "ssw_v1"))
    assert len(one) == len(other) > 0
    assert (one["smape"] == other["smape"]).all()
    assert set(compare(table, whole_firms(con, Relations()))["average_rank"]) == {1.5}


def odd(panel, kind):
    """The panel with an unusual holdout: nobody orders, nobody is new, or one cohort alone sells."""
    table = cohort_week_of(panel)
    held = table["week"] > pd.Timestamp(panel.design.origin)
    if kind == "nobody new":
        table = table[table["cohort"] <= pd.Timestamp(panel.design.origin)]
    elif kind == "dead":
        table = table[table["cohort"] <= pd.Timestamp(panel.design.origin)]
        table.loc[held, ["orders", "repeat_orders", "sales", "repeat_sales", "ropc"]] = 0
        table.loc[held, "aov"] = np.nan
    else:
        table = table[table["left_censored"]]
    return FirmPanel.from_cohort_week(kind, table.assign(firm=kind), panel.design)


@pytest.mark.parametrize("kind", ["dead", "nobody new", "one cohort"])
def test_odd_holdouts_are_scored_as_panels_are(kind):
    panel = odd(panels_of(1)[0], kind)
    run = made_up(panel, "rf", 0.2, 0)
    with duck.connect() as con:
        fill(con, [panel], [run])
        table = accuracy(con, Relations()).set_index(["outcome", "horizon"])
    expected = score(panel, run.forecast, run.origin)
    assert len(table) == len(expected)
    for s in expected:
        row = table.loc[(s.outcome, s.horizon)]
        assert row["smape"] == pytest.approx(s.smape, abs=1e-9, nan_ok=True)
        assert row["mase"] == pytest.approx(s.mase, abs=1e-9, nan_ok=True)


def test_a_forecast_of_weeks_yet_to_come_has_no_error(simulated):
    con, panels, _ = simulated
    last = panels[0].weeks[-1].astype(object)
    con.execute("CREATE OR REPLACE TEMP VIEW live AS SELECT * REPLACE "
                f"(DATE '{last}' AS origin, week + 7 * 47 AS week) FROM forecast_week")  # fmt: skip
    assert accuracy(con, Relations(forecast_week="(SELECT * FROM live)")).empty


def test_a_model_of_total_sales_alone_is_scored_on_them_alone(simulated):
    con, _, _ = simulated
    only = "(SELECT * REPLACE (NULL AS acquired) FROM forecast_week WHERE model = 'cohort_glm')"
    none = "(SELECT * FROM forecast_cohort_week WHERE false)"
    table = accuracy(con, Relations(forecast_week=only, forecast_cohort_week=none))
    assert set(table["outcome"]) == {"total_sales"}
    both = accuracy(con, Relations()).query("model == 'cohort_glm' and outcome == 'total_sales'")
    np.testing.assert_array_equal(table["smape"], both["smape"])


def test_a_forecast_with_a_hole_is_listed_and_not_scored(simulated):
    con, panels, _ = simulated
    victim = panels[1].firm
    holed = (
        f"(SELECT * FROM forecast_cohort_week WHERE NOT (firm = {duck.literal(victim)} "
        "AND model = 'cohort_glm' AND cohort = DATE '2018-05-06' AND week = DATE '2019-05-05'))"
    )
    con.execute("CREATE OR REPLACE TEMP TABLE fits AS SELECT * FROM model_fit")
    con.execute("UPDATE fits SET succeeded = false, reason = 'a single week' WHERE model = 'rf' AND firm = ?",
                [panels[0].firm])  # fmt: skip
    relations = Relations(forecast_cohort_week=holed, model_fit="fits")
    table = accuracy(con, relations)
    table = table[~((table["model"] == "xgb") & (table["firm"] == panels[2].firm))]
    con.execute("DELETE FROM fits WHERE model = 'xgb' AND firm = ?", [panels[2].firm])
    left = table.query("firm == @victim and model == 'cohort_glm' and horizon == 'full'")
    assert set(left["outcome"]) == {"acquisition", "total_sales"}
    listed = failures(con, relations, table, date(2019, 3, 31)).set_index(["firm", "model"])["reason"]
    assert len(listed) == 3
    assert "ropc, aov, cohort_sales" in listed[victim, "cohort_glm"]
    assert listed[panels[0].firm, "rf"] == "a single week"
    assert "not run" in listed[panels[2].firm, "xgb"]


def test_segments_are_not_firms(simulated):
    con, panels, _ = simulated
    cut = "(FROM firm UNION ALL BY NAME SELECT firm || '~web' AS firm, 'web' AS segment, 'USD' AS currency FROM firm)"
    assert set(whole_firms(con, Relations(firm=cut))["firm"]) == {panel.firm for panel in panels}


def errors(values, outcomes=OUTCOMES, **models):
    """An accuracy table with the same errors for every outcome."""
    rows = [
        (f"f{k}", model, date(2019, 3, 31), outcome, "full", 47, value, value / 10)
        for model, column in {**values, **models}.items()
        for k, value in enumerate(column)
        for outcome in outcomes
    ]
    return pd.DataFrame(
        rows, columns=["firm", "model", "origin", "outcome", "horizon", "weeks", "smape", "mase"]
    )


def companies(n, industries=("a",)):
    return pd.DataFrame(
        {"firm": [f"f{k}" for k in range(n)], "industry": [industries[k % len(industries)] for k in range(n)],
         "currency": "USD"}
    )  # fmt: skip


def cell(summary, model, outcome="total_sales", metric="smape", industry=ALL_INDUSTRIES):
    rows = summary.query(
        "model == @model and outcome == @outcome and metric == @metric and industry == @industry"
    )
    assert len(rows) == 1
    return rows.iloc[0]


def test_summary_by_hand():
    table = errors({"cbmt": [10, 20, 30], "rf": [20, 20, 50], "lstm": [5, 30, 60]})
    summary = compare(table, companies(3))
    rf, cbmt, lstm = (cell(summary, name) for name in ("rf", "cbmt", "lstm"))
    assert (rf["firms"], rf["reference"], rf["models_ranked"]) == (3, "cbmt", 3)
    assert (cbmt["mean"], cbmt["sd"], cbmt["median"]) == (20, 10, 20)
    assert rf["gap"] == pytest.approx(100 * (30 - 20) / 30)
    assert rf["median_gap"] == 0
    assert rf["difference"] == 10
    # Ranks by firm: cbmt 2, 1.5, 1; rf 3, 1.5, 2; lstm 1, 3, 3. On the second firm two share the first rank.
    assert [cbmt["average_rank"], rf["average_rank"], lstm["average_rank"]] == pytest.approx(
        [4.5 / 3, 6.5 / 3, 7 / 3]
    )
    assert [cbmt["first_rank"], rf["first_rank"], lstm["first_rank"]] == pytest.approx(
        [1.5 / 3, 0.5 / 3, 1 / 3]
    )
    assert (rf["win_rate"], lstm["win_rate"]) == (0, pytest.approx(1 / 3))
    assert np.isnan(cbmt["gap"])
    assert np.isnan(cbmt["difference"])


def test_average_ranks_share_ties():
    rng = np.random.default_rng(4)
    table = errors({name: rng.integers(1, 6, 15) for name in ("cbmt", "rf", "xgb", "lstm")})
    by_firm = table.query("outcome == 'aov'").pivot_table("smape", "firm", "model")
    expected = pd.Series(stats.rankdata(by_firm, axis=1).mean(axis=0), by_firm.columns)
    summary = compare(table, companies(15))
    for model, rank in expected.items():
        assert cell(summary, model, "aov")["average_rank"] == pytest.approx(rank)


def test_published_gaps_follow_from_published_means():
    # Evaluation table, total sales: 15.48 against 42.36, 22.11, 28.15, 23.57 is shown as 63, 30, 45, 34 %.
    published = {"cbmt": [15.48], "gls_v2": [42.36], "wg_pnbd_e_pp": [22.11], "lstm": [28.15], "rf": [23.57]}
    summary = compare(errors(published), companies(1))
    shown = [round(cell(summary, name)["gap"]) for name in ("gls_v2", "wg_pnbd_e_pp", "lstm", "rf")]
    assert shown == [63, 30, 45, 34]


def test_few_firms_have_no_tests_and_no_intervals():
    few = compare(errors({"cbmt": range(MIN_FIRMS - 1), "rf": range(1, MIN_FIRMS)}), companies(MIN_FIRMS - 1))
    row = cell(few, "rf")
    assert row["firms"] == MIN_FIRMS - 1
    assert row[["t_p", "wilcoxon_p", "difference_low", "difference_high"]].isna().all()
    assert np.isnan(cell(compare(errors({"cbmt": [1.0]}), companies(1)), "cbmt")["sd"])


def test_comparisons_use_the_firms_that_every_model_has():
    rng = np.random.default_rng(3)
    columns = {name: rng.gamma(2, 10, 20) for name in ("cbmt", "rf", "rare")}
    table = errors(columns)
    table = table[~((table["model"] == "rf") & (table["firm"] == "f0"))]
    table = table[~((table["model"] == "rare") & (table["firm"] > "f12"))]
    table.loc[(table["model"] == "cbmt") & (table["firm"] == "f1"), "mase"] = np.nan
    summary = compare(table, companies(20))
    assert set(summary["model"]) == {"cbmt", "rf"}  # "rare" has too few of the reference's firms
    assert set(summary.query("metric == 'smape' and industry == '(all)'")["firms"]) == {19}
    assert set(summary.query("metric == 'mase' and industry == '(all)'")["firms"]) == {18}
    assert cell(summary, "cbmt")["mean"] == pytest.approx(columns["cbmt"][1:].mean())


def test_a_model_of_total_sales_alone_has_no_rank():
    table = pd.concat([errors({"cbmt": [2, 2], "rf": [3, 3]}), errors({"direct": [1, 1]}, ["total_sales"])])
    summary = compare(table, companies(2))
    direct = cell(summary, "direct")
    assert direct["mean"] == 1
    assert np.isnan(direct["average_rank"])
    assert cell(summary, "cbmt")["average_rank"] == 1
    assert cell(summary, "cbmt")["models_ranked"] == 2


def test_industries_divide_the_sample():
    table = errors({"cbmt": [1, 2, 3, 4], "rf": [2, 2, 2, 2]})
    firms = companies(4, ("a", "b"))
    firms.loc[3, "industry"] = None
    summary = compare(table, firms)
    assert set(summary["industry"]) == {ALL_INDUSTRIES, "(none)", "a", "b"}
    assert cell(summary, "cbmt", industry="a")["mean"] == 2
    assert cell(summary, "cbmt", industry="(none)")["mean"] == 4


def test_the_reference_is_cbmt_or_the_one_asked_for():
    table = errors({"rf": [1, 2], "cohort_glm": [2, 3], "xgb": [1, 1]})
    assert set(compare(table, companies(2))["reference"]) == {"cohort_glm"}
    assert set(compare(table, companies(2), reference="xgb")["reference"]) == {"xgb"}
    assert set(compare(table, companies(2), models=["rf", "xgb"])["reference"]) == {"rf"}
    with pytest.raises(ValueError, match="lstm"):
        compare(table, companies(2), reference="lstm")


def test_two_origins_are_not_mixed():
    table = errors({"rf": [1, 2]})
    with pytest.raises(ValueError, match="one origin"):
        compare(pd.concat([table, table.assign(origin=date(2018, 1, 7))]), companies(2))


def test_nothing_to_compare_is_an_empty_table():
    assert compare(errors({"rf": [1]}), companies(0)).empty


def test_paired_tests_are_the_textbook_ones():
    rng = np.random.default_rng(1)
    a, b = rng.gamma(2, 10, (40, 3)), rng.gamma(2, 9, (40, 3))
    t, w = paired_tests(a - b)
    for k in range(3):
        assert t[k] == pytest.approx(stats.ttest_rel(a[:, k], b[:, k]).pvalue)
        assert w[k] == pytest.approx(stats.wilcoxon(a[:, k], b[:, k]).pvalue)


def test_equal_models_have_no_p_value():
    t, w = paired_tests(np.zeros((30, 1)))
    assert np.isnan([*t, *w]).all()


def test_bootstrap_draws_whole_firms():
    values = np.random.default_rng(2).gamma(1, 5, (25, 2))
    low, high = bootstrap_means(values)
    drawn = values[np.random.default_rng(SEED).integers(0, 25, (RESAMPLES, 25))].mean(axis=1)
    np.testing.assert_allclose([low, high], np.percentile(drawn, [2.5, 97.5], axis=0), rtol=1e-12)
    theirs = stats.bootstrap((values[:, 0],), np.mean, method="percentile", n_resamples=RESAMPLES, rng=1)
    assert [low[0], high[0]] == pytest.approx(list(theirs.confidence_interval), rel=0.03)


def test_common_sample_by_hand():
    has = pd.DataFrame(
        {"ref": [1, 1, 1, 1, 0], "most": [1, 1, 1, 0, 1], "half": [1, 1, 0, 0, 1]}, index=list("abcde")
    ).astype(bool)
    assert common_sample(has, "ref", 1.0)[0] == ["ref"]
    models, firms = common_sample(has, "ref", 0.75)
    assert (models, list(firms)) == (["ref", "most"], ["a", "b", "c"])
