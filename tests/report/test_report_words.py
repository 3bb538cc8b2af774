"""The report's sentences for gains, losses and standstills; never a number that is none."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbmt_core.report import words
from cbmt_core.report.numbers import Money, count, percent, points, short, value
from cbmt_core.report.story import choose
from cbmt_core.report.words import Bridge

USD = Money("USD")


def bridge(volume, spend, new, baseline=1000.0):
    """Contributions in points of the baseline."""
    parts = [baseline * part / 100 for part in (volume, spend, new)]
    return Bridge(
        baseline, baseline + sum(parts), *parts, orders=(100.0, 100.0 + volume), spend=(8.0, 8.0 * (1 + spend / 100)),
        target_first=date(2019, 4, 7), target_last=date(2020, 2, 23), weeks=47,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (171361.78, "171K"), (3745.16, "3.75K"), (28584, "28.6K"), (999_600, "1.00M"), (1_240_000, "1.24M"),
        (2.5e9, "2.50B"), (842, "842"), (0, "0"), (-5191.9, "−5.19K"), (0.4, "0.40"), (None, "–"), (float("nan"), "–"),
    ],
)  # fmt: skip
def test_short_numbers(number, text):
    assert short(number) == text


def test_signs_and_units():
    assert points(2.234) == "+2.2 points"
    assert points(-0.04) == "0.0 points"
    assert percent(-13.79, plus=True) == "−13.8%"
    assert count(12812) == "12,812"
    assert value(0.0312, 3) == "0.031"
    assert short(20000, trim=True) == "20K"
    assert USD.short(-19647, plus=True) == "−$19.6K"
    assert Money("CHF").short(1500) == "CHF\u00a01.50K"
    assert Money("GBP").price(53.472) == "£53.47"


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ((-12, -3, 17), "Sales are forecast to rise 2.0%, from $1.00K to $1.02K"),
        ((-9, -4, -1), "Sales are forecast to fall 14.0%, from $1.00K to $860"),
        ((0.2, 0, 0.1), "Sales are forecast to stay about level, at $1.00K"),
    ],
)
def test_headline(parts, text):
    assert words.headline(bridge(*parts), USD) == text


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (
            (-12, -3, 17),
            "In the existing base, fewer repeat orders cost $120 (−12.0 points), and lower spend per order costs $30 "
            "(−3.0 points). New customers bring $170 more than first orders did in the baseline (+17.0 points), "
            "which more than makes up for the loss.",
        ),
        (
            (9, -2, -10),
            "In the existing base, more repeat orders add $90 (+9.0 points), but lower spend per order costs $20 "
            "(−2.0 points). New customers bring $100 less than first orders did in the baseline (−10.0 points), "
            "which takes back more than the gain.",
        ),
        (
            (0.1, 0, 0),
            "In the existing base, the number of repeat orders changes little (+0.1 points), and spend per order "
            "changes little (0.0 points). New customers bring about as much as first orders did in the baseline "
            "(0.0 points).",
        ),
    ],
)
def test_sources(parts, text):
    assert words.sources(bridge(*parts), USD) == text


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ((5, 1, 3), "+9.0% forecast: both the existing base and new customers add"),
        ((-5, 1, -3), "−7.0% forecast: both the existing base and new customers bring less"),
        ((-5, 0, 3), "−2.0% forecast: new customers do not make up for a shrinking base"),
        ((-5, 0, 5), "0.0% forecast: new customers just make up for a shrinking base"),
        ((5, 0, -3), "+2.0% forecast: the existing base grows while new customers bring less"),
        ((0.1, 0.1, 4), "+4.2% forecast: new customers add to a steady base"),
        ((0, 0, 0), "0.0% forecast: neither the existing base nor new customers move much"),
    ],
)
def test_one_line(parts, text):
    assert words.one_line(bridge(*parts)) == text


@pytest.mark.parametrize(
    ("forecast", "realised", "text"),
    [
        ((2, 0, 0), (-7, 0, 0), "In the event sales fell 7.0%: the forecast was 9.0 points too high."),
        (
            (2, 0, 0),
            (2.2, 0, 0),
            "In the event sales rose 2.2%: the forecast was right to within half a point.",
        ),
        (
            (-3, 0, 0),
            (0.1, 0, 0),
            "In the event sales stayed about level: the forecast was 3.1 points too low.",
        ),
    ],
)
def test_outcome(forecast, realised, text):
    assert words.outcome(bridge(*forecast), bridge(*realised)) == text
    assert words.outcome(bridge(*forecast), None) == ""


def test_what_to_watch():
    assert words.weakest_source(bridge(-14, -3, 17), USD) == (
        "Largest loss: repeat orders of the existing base fall 14.0%, from 100 to 86, which costs $140 (−14.0 points)."
    )
    assert words.weakest_source(bridge(1, -3, 17), USD) == (
        "Largest loss: spend per repeat order falls 3.0%, from $8.00 to $7.76, which costs $30 (−3.0 points)."
    )
    assert "new customers bring $40 less" in words.weakest_source(bridge(1, 2, -4), USD)
    assert words.weakest_source(bridge(1, 2, 3), USD) == ""
    assert "38% of the last year's sales" in words.left_censored(0.3846)
    assert "only 5% of the last year's sales" in words.left_censored(0.05)
    assert words.left_censored(None) == words.left_censored(0.0) == ""
    assert "14% less often" in words.cohort_quality(-14.2, 13)
    assert "about as often" in words.cohort_quality(1.0, 13)
    assert words.cohort_quality(None, 13) == ""
    assert words.acquisition_trend(573, 541).endswith("6% more than in the year before (541).")
    assert "fewer" in words.acquisition_trend(400, 541)
    assert words.acquisition_trend(5, 0) == ""


def test_certainty():
    known = words.certainty("CBMT", 15.63, 47, 1, 16)
    assert "off by 15.6% in an average week" in known
    assert known.endswith("the smallest error of 16 models.")
    assert "number 3 of 16" in words.certainty("CBMT", 15.63, 47, 3, 16)
    assert "not yet known" in words.certainty("CBMT", None, 0, None, 0)
    assert "not yet known" in words.certainty("CBMT", float("nan"), 0, None, 0)


def test_lists_and_counts():
    assert words.listed(["a"]) == "a"
    assert words.listed(["a", "b", "c"]) == "a, b and c"
    assert words.plural(1, "firm") == "1 firm"
    assert words.plural(1200, "week") == "1,200 weeks"


PART = st.floats(-90, 90) | st.sampled_from([0.0, 1e-9, -1e-9])


@given(PART, PART, PART, st.floats(1e-2, 1e12))
def test_no_sentence_ever_shows_a_number_that_is_none(volume, spend, new, baseline):
    one = bridge(volume, spend, new, baseline)
    told = [
        words.headline(one, USD), words.sources(one, USD), words.one_line(one, one), words.outcome(one, one),
        words.weakest_source(one, USD), words.period(one),
    ]  # fmt: skip
    for text in told:
        assert not {"nan", "None", "inf"} & set(text.replace("(", " ").replace("$", " ").split())
        assert "  " not in text
        assert "−−" not in text


@pytest.mark.parametrize(
    ("errors", "chosen"),
    [
        ({"cohort_glm": None, "rf": None}, "cohort_glm"),
        ({"cohort_glm": None, "cbmt": None, "cbmt_plus": None}, "cbmt_plus"),
        ({"cbmt": 10.0, "cbmt_plus": 12.0, "lstm": 1.0}, "cbmt"),
        ({"cbmt": float("nan"), "cohort_glm": 3.0}, "cbmt"),
        ({"xgb": None, "rf": None}, "rf"),
        ({"mine": None}, "mine"),
    ],
)
def test_the_model_told_about(errors, chosen):
    assert choose(errors) == chosen
