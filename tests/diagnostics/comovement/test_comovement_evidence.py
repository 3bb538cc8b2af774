"""The five tests find a planted effect, keep their level without one, and say when firms are too few."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from cbmt_core.diagnostics.comovement import (
    MEASURES,
    TERCILES,
    column_results,
    five_tests,
    historical_controls,
    tercile_rates,
    terciles,
)
from cbmt_core.simulate import Economy, sample_cohorts

INDUSTRIES = ("grocery", "apparel", "travel", "home")
NUMBERS = ["estimate", "se", "low", "high", "p"]


class Firms:
    """Firms whose odds of a win rise by exp(effect) a standard deviation of the score."""

    def __init__(self, n: int, effect: float, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.names = pd.Index([f"firm {k}" for k in range(n)])
        self.score = pd.Series(rng.standard_normal(n), self.names)
        self.industry = pd.Series(rng.choice(INDUSTRIES, n), self.names)
        self.controls = pd.DataFrame(
            {"scale": rng.normal(15, 2, n), "dispersion": rng.gamma(2, 0.1, n)}, self.names
        )
        odds = 0.4 + effect * self.score + 0.3 * (self.industry == "travel")
        self.wins = pd.Series(rng.random(n) < 1 / (1 + np.exp(-odds)), self.names)

    def tests(self, shuffles: int = 99) -> pd.DataFrame:
        table = five_tests(self.score, self.wins, self.controls, self.industry, shuffles=shuffles)
        return table.set_index("test")


def test_a_planted_effect_is_found_by_every_test() -> None:
    table = Firms(600, effect=0.6, seed=1).tests(shuffles=199)
    assert list(table.index) == ["tercile", "lpm", "lpm_controls", "logit", "placebo"]
    assert (table["p"] < 0.01).all()
    assert (table["firms"] == 600).all()
    assert (table["note"] == "").all()
    assert table.loc["logit", "low"] < np.exp(0.6) < table.loc["logit", "high"]
    assert np.log(table.loc["logit", "estimate"]) == pytest.approx(table.loc["placebo", "estimate"])
    assert table.loc["tercile", "estimate"] > 10  # points
    # The slope of a probability is at most a quarter of that of the log odds.
    assert 0.08 < table.loc["lpm", "estimate"] < 0.15


def test_the_sign_of_the_effect_is_the_sign_of_the_estimates() -> None:
    firms = Firms(600, effect=0.6, seed=1)
    before = firms.tests(shuffles=20)
    firms.score = -firms.score
    after = firms.tests(shuffles=20)
    linear = ["tercile", "lpm", "lpm_controls", "placebo"]
    np.testing.assert_allclose(after.loc[linear, "estimate"], -before.loc[linear, "estimate"], rtol=1e-6)
    assert after.loc["logit", "estimate"] == pytest.approx(1 / before.loc["logit", "estimate"])


def test_linear_model_is_the_textbook_formula() -> None:
    firms = Firms(300, effect=0.3, seed=2)
    row = firms.tests(shuffles=20).loc["lpm"]
    x, y = firms.score.to_numpy(), firms.wins.to_numpy(float)
    centred = x - x.mean()
    slope = centred @ y / (centred @ centred)
    error = y - y.mean() - slope * centred
    hc1 = np.sqrt(300 / 298 * (centred**2 @ error**2)) / (centred @ centred)
    assert row["estimate"] == pytest.approx(slope)
    assert row["se"] == pytest.approx(hc1)
    assert row["p"] == pytest.approx(2 * stats.norm.sf(abs(slope / hc1)))


def test_tercile_difference_is_that_of_the_rates() -> None:
    firms = Firms(200, effect=0.5, seed=3)
    rates = tercile_rates(firms.score, firms.wins).set_index("tercile")
    assert list(rates.index) == list(TERCILES)
    assert rates["firms"].tolist() == [67, 67, 66]
    assert rates["wins"].sum() == firms.wins.sum()
    assert ((rates["low"] < rates["rate"]) & (rates["rate"] < rates["high"])).all()
    row = firms.tests(shuffles=20).loc["tercile"]
    assert row["estimate"] == pytest.approx(100 * (rates["rate"]["high"] - rates["rate"]["low"]))
    # The pooled two-proportion z test is the chi-squared test of the 2 x 2 table without correction.
    outer = rates.loc[["high", "low"]]
    table = np.column_stack([outer["wins"], outer["firms"] - outer["wins"]])
    assert row["p"] == pytest.approx(stats.chi2_contingency(table, correction=False).pvalue)


def test_terciles_follow_the_order_of_scores() -> None:
    score = pd.Series([5.0, np.nan, 1.0, 3.0, 2.0, 2.0, 9.0], list("abcdefg"))
    assert terciles(score).to_dict() == {
        "c": "low", "e": "low", "f": "medium", "d": "medium", "a": "high", "g": "high",
    }  # fmt: skip


@pytest.mark.slow
def test_type_one_error_is_near_nominal() -> None:
    """Scores dealt at random: each test rejects at 5 % about as often as a fair coin of 5 % would."""
    runs, level = 200, 0.05
    # Nineteen shuffles are enough for a placebo of exactly this level.
    rejected = pd.DataFrame(
        [Firms(150, effect=0.0, seed=1000 + k).tests(shuffles=19)["p"] <= level for k in range(runs)]
    ).sum()
    low, high = stats.binom.ppf([0.0005, 0.9995], runs, level)
    for name, count in rejected.items():
        assert low <= count <= high, f"{name}: {count} of {runs}"


def test_one_sided_industries_are_left_out_of_the_logit_alone() -> None:
    firms = Firms(300, effect=0.5, seed=4)
    firms.wins[firms.industry == "home"] = True
    homes = int((firms.industry == "home").sum())
    table = firms.tests(shuffles=20)
    assert table["firms"].to_dict() == {
        "tercile": 300, "lpm": 300, "lpm_controls": 300, "logit": 300 - homes, "placebo": 300 - homes,
    }  # fmt: skip
    assert str(homes) in table.loc["logit", "note"]


def test_firms_without_controls_or_outcome_drop_out_where_these_are_needed() -> None:
    firms = Firms(300, effect=0.5, seed=5)
    firms.controls.iloc[:5, 0] = np.nan
    firms.wins = firms.wins.astype(object)
    firms.wins.iloc[10:13] = None
    table = firms.tests(shuffles=20)
    assert table["firms"].tolist() == [297, 297, 292, 292, 292]


def test_order_of_firms_does_not_matter() -> None:
    firms = Firms(300, effect=0.3, seed=6)
    before = firms.tests(shuffles=20)
    firms.wins, firms.controls = firms.wins[::-1], firms.controls.sample(frac=1, random_state=0)
    pd.testing.assert_frame_equal(firms.tests(shuffles=20), before)


def test_placebo_is_never_certain_and_reproducible() -> None:
    firms = Firms(300, effect=1.2, seed=7)
    first, again = firms.tests(shuffles=30), firms.tests(shuffles=30)
    pd.testing.assert_frame_equal(first, again)
    assert first.loc["placebo", "p"] == pytest.approx(1 / 31)


@pytest.mark.parametrize("n", [0, 1, 8, 21])
def test_too_few_firms_give_notes_instead_of_numbers(n: int) -> None:
    table = Firms(n, effect=0.0, seed=8).tests(shuffles=20)
    assert len(table) == 5
    assert table[NUMBERS].isna().all(axis=None)
    assert table["note"].str.contains("needed").all()
    assert (table.loc[["tercile", "lpm", "lpm_controls"], "firms"] == n).all()


def test_a_model_that_always_wins_gives_notes_instead_of_numbers() -> None:
    firms = Firms(100, effect=0.0, seed=9)
    firms.wins[:] = True
    table = firms.tests(shuffles=20)
    assert table[NUMBERS].isna().all(axis=None)
    assert (table["note"] != "").all()


def test_columns_are_judged_one_by_one_with_benjamini_hochberg() -> None:
    firms = Firms(400, effect=1.0, seed=10)
    rng = np.random.default_rng(11)
    measures = pd.DataFrame(rng.standard_normal((400, 34)), firms.names, list(MEASURES))
    measures["spearman"] = firms.score * 7 + 3
    measures["granger"] = -firms.score
    measures.iloc[:250, measures.columns.get_loc("kernel_dependence")] = np.nan
    measures["partial"] = 0.5
    table = column_results(measures, firms.wins, firms.controls, firms.industry).set_index("measure")
    assert list(table.index) == list(MEASURES)
    assert table.loc["spearman", "survives"]
    assert table.loc["granger", "survives"]
    assert table.loc["spearman", "coefficient"] == pytest.approx(-table.loc["granger", "coefficient"])
    assert table.loc["spearman", "odds_ratio"] > 2
    assert table.loc["kernel_dependence", "firms"] == 150
    assert np.isnan(table.loc["partial", "p"])
    assert table.loc["partial", "note"]
    # Benjamini and Hochberg (1995) by hand: q_(k) = min over j >= k of m p_(j) / j.
    p = table["p"].dropna().sort_values()
    q = (p * len(p) / np.arange(1, len(p) + 1))[::-1].cummin()[::-1]
    np.testing.assert_allclose(table["q"].dropna()[p.index], q.clip(upper=1))
    # Of 31 columns of noise, hardly any survive.
    assert table["survives"].sum() <= 4


def test_the_score_in_a_column_gives_the_logit_of_the_five_tests() -> None:
    firms = Firms(300, effect=0.5, seed=12)
    score = (firms.score - firms.score.mean()) / firms.score.std(ddof=0)
    measures = pd.DataFrame(dict.fromkeys(MEASURES, score))
    column = column_results(measures, firms.wins, firms.controls, firms.industry).set_index("measure")
    firms.score = score
    logit = firms.tests(shuffles=20).loc["logit"]
    assert column.loc["pearson", ["odds_ratio", "p"]].tolist() == pytest.approx(
        [logit["estimate"], logit["p"]]
    )


def test_controls_are_those_of_whole_years_before_the_origin() -> None:
    economy = Economy(firms=2, seed=5)
    whole = sample_cohorts(economy, economy.specs()[0]).panel()
    panel = whole.until(economy.design.origin)
    years = [7e6, panel.S[:52].sum(), panel.S[52:104].sum()]  # 2016 is the washout
    got = historical_controls(panel, washout_sales=7e6)
    assert got["scale"] == pytest.approx(np.log1p(np.mean(years)))
    assert got["dispersion"] == pytest.approx(np.std(years, ddof=1) / np.mean(years))
    # A year without sales is no year of the firm, and one year has no dispersion.
    assert historical_controls(panel, washout_sales=0.0) == historical_controls(panel)
    short = panel.until(panel.weeks[60].astype(object))
    assert historical_controls(short)["scale"] == pytest.approx(np.log1p(years[1]))
    assert np.isnan(historical_controls(short)["dispersion"])
