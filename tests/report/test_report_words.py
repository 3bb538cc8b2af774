"""The report's sentences for gains, losses and standstills; never a number that is none."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbmt_core.report import watch, words
from cbmt_core.report.numbers import Money, count, percent, points, short, value
from cbmt_core.report.story import first_registered
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
    ("before", "after", "text"),
    [
        (1000, 1020, "Sales are forecast to rise 2.0% over the next 52 weeks, from $1.00K to $1.02K"),
        (1000, 860, "Sales are forecast to fall 14.0% over the next 52 weeks, from $1.00K to $860"),
        (1000, 1003, "Sales are forecast to stay about level over the next 52 weeks, at $1.00K"),
        (None, 860, "Sales of $860 are forecast over the next 52 weeks"),
        (0, 860, "Sales of $860 are forecast over the next 52 weeks"),
    ],
)
def test_headline(before, after, text):
    assert words.headline(before, after, USD, "over the next 52 weeks") == text


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (
            (-12, -3, 17),
            "In the existing base, fewer repeat orders cost $120 (−12.0 points), and lower spend per order costs $30 "
            "(−3.0 points). New customers bring $170 more than first orders did in the 52 weeks before (+17.0 points), "
            "which more than makes up for the loss.",
        ),
        (
            (9, -2, -10),
            "In the existing base, more repeat orders add $90 (+9.0 points), but lower spend per order costs $20 "
            "(−2.0 points). New customers bring $100 less than first orders did in the 52 weeks before (−10.0 points), "
            "which takes back more than the gain.",
        ),
        (
            (0.1, 0, 0),
            "In the existing base, the number of repeat orders changes little (+0.1 points), and spend per order "
            "changes little (0.0 points). New customers bring about as much as first orders did in the 52 weeks before "
            "(0.0 points).",
        ),
    ],
)
def test_sources(parts, text):
    assert words.sources(bridge(*parts), USD) == text


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ((5, 1, 3), "both the existing base and new customers add"),
        ((-5, 1, -3), "both the existing base and new customers bring less"),
        ((-5, 0, 3), "new customers do not make up for a shrinking base"),
        ((-5, 0, 5), "new customers just make up for a shrinking base"),
        ((5, 0, -3), "the existing base grows while new customers bring less"),
        ((0.1, 0.1, 4), "new customers add to a steady base"),
        ((0, 0, 0), "neither the existing base nor new customers move much"),
    ],
)
def test_main_reason(parts, text):
    assert words.main_reason(bridge(*parts)) == text


@pytest.mark.parametrize(
    ("forecast", "realised", "text"),
    [
        ((2, 0, 0), (-7, 0, 0), "would rise 2.0% {}; they fell 7.0%: the forecast was 9.0 points too high."),
        (
            (2, 0, 0),
            (2.2, 0, 0),
            "would rise 2.0% {}; they rose 2.2%: the forecast was right to within half a point.",
        ),
        (
            (-3, 0, 0),
            (0.1, 0, 0),
            "would fall 3.0% {}; they stayed about level: the forecast was 3.1 points too low.",
        ),
    ],
)
def test_outcome(forecast, realised, text):
    year = "against the same weeks a year earlier"
    assert words.outcome(bridge(*forecast), bridge(*realised)) == f"It said sales {text.format(year)}"
    assert words.outcome(bridge(0, 0, 0), None) == f"It said sales would stay about level {year}."


def test_the_year_before():
    text = words.year_before(bridge(-11, 0.4, 13.7))
    assert "in the 47 weeks to 29 Feb 2020 sales rose 3.1%" in text
    assert "made −11.0 points, spend per order +0.4 points and new customers +13.7 points" in text
    assert words.year_before(None) == ""
    assert (
        words.largest_shift(bridge(-14, 0, 12), bridge(-11, 0.4, 20))
        == "new customers −8.0 points against the year before"
    )
    assert words.largest_shift(bridge(-14, 0, 12), bridge(-14.1, 0, 12)) == ""
    assert words.largest_shift(bridge(-14, 0, 12), None) == ""


def test_what_to_watch():
    opening = "Largest loss in the 47 weeks to 29 Feb 2020:"
    assert words.weakest_source(bridge(-14, -3, 17), None, USD) == (
        f"{opening} repeat orders of the existing base fall 14.0%, from 100 to 86, which costs $140 (−14.0 points)."
    )
    assert words.weakest_source(bridge(1, -3, 17), bridge(0, 2, 0), USD) == (
        f"{opening} spend per repeat order falls 3.0%, from $8.00 to $7.76, which costs $30 (−3.0 points; "
        "+2.0 points in the year before)."
    )
    assert "new customers bring $40 less" in words.weakest_source(bridge(1, 2, -4), None, USD)
    assert words.weakest_source(bridge(1, 2, 3), None, USD) == ""
    span, first, last = "the 52 weeks to 29 Feb 2020", date(2017, 1, 1), date(2019, 12, 1)
    old = watch.left_censored(0.3846, span, first)
    assert old.startswith(
        f"Old customers: 38% of sales in {span} came from customers acquired before 1 Jan 2017."
    )
    assert "only 5% of sales" in watch.left_censored(0.05, span, first)
    assert watch.left_censored(None, span, first) == watch.left_censored(0.0, span, first) == ""
    assert watch.cohort_quality(-14.2, 13, last) == (
        "Cohort quality: customers acquired in the 52 weeks to 7 Dec 2019 reorder 14% less often in their "
        "first 13 weeks than those of the 52 weeks before."
    )
    assert "about as often" in watch.cohort_quality(1.0, 13, last)
    assert watch.cohort_quality(None, 13, last) == ""
    assert watch.acquisition_trend(573, 541, span) == (
        f"Acquisition: 573 new customers in {span}, 6% more than in the 52 weeks before (541)."
    )
    assert "fewer" in watch.acquisition_trend(400, 541, span)
    assert watch.acquisition_trend(5, 0, span) == ""


def test_how_sure():
    assert words.backtested("CBMT+", 5, 9.1, 14.6) == (
        "In 5 backtests of this firm, CBMT+ was off by 9.1% in an average week 1 to 4 weeks ahead, "
        "and by 14.6% 27 to 52 weeks ahead."
    )
    assert words.backtested("CBMT+", 1, 9.1, float("nan"), live=True).endswith("1 to 4 weeks ahead.")
    assert words.backtested("CBMT+", 1, float("nan"), None) == ""
    assert words.year_off(6.25, 3) == "The total of 52 weeks was off by 6.2% on average (3 forecasts)."
    assert words.year_off(None, 0) == ""
    known = words.tested("CBMT", 15.63, 47, 1, 16)
    assert "off by 15.6% in an average week" in known
    assert known.endswith("the smallest error of 16 models.")
    assert "number 3 of 16" in words.tested("CBMT", 15.63, 47, 3, 16)
    assert words.tested("CBMT", None, 0, None, 0) == words.tested("CBMT", float("nan"), 0, None, 0) == ""
    assert "not yet known" in words.unknown("CBMT")


def test_lists_and_counts():
    assert words.listed(["a"]) == "a"
    assert words.listed(["a", "b", "c"]) == "a, b and c"
    assert words.plural(1, "firm") == "1 firm"
    assert words.plural(1200, "week") == "1,200 weeks"


PART = st.floats(-90, 90) | st.sampled_from([0.0, 1e-9, -1e-9])


@given(PART, PART, PART, st.floats(1e-2, 1e12))
def test_no_sentence_ever_shows_a_number_that_is_none(volume, spend, new, baseline):
    one = bridge(volume, spend, new, baseline)
    said_text = [
        words.headline(one.baseline_sales, one.target_sales, USD, "next"), words.sources(one, USD),
        words.main_reason(one), words.outcome(one, one), words.weakest_source(one, one, USD), words.year_before(one),
        words.largest_shift(one, bridge(spend, new, volume, baseline)),
    ]  # fmt: skip
    for text in said_text:
        assert not {"nan", "None", "inf"} & set(text.replace("(", " ").replace("$", " ").split())
        assert "  " not in text
        assert "−−" not in text


@pytest.mark.parametrize(
    ("models", "first"),
    [
        (["rf", "cohort_glm"], "cohort_glm"),
        (["cbmt_plus", "cbmt"], "cbmt"),
        (["zeta", "mine", "cbmt_plus"], "cbmt_plus"),
        (["zeta", "mine"], "mine"),
    ],
)
def test_without_a_choice_the_registry_decides(models, first):
    assert first_registered(models) == first
