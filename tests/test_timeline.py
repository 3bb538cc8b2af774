"""Timelines and origins: which weeks count, and that new weeks move nothing that was there."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cbmt_core.config import DesignConfig, ProjectConfig, StudyConfig
from cbmt_core.design import StudyDesign
from cbmt_core.errors import ConfigError, HistoryTooShort
from cbmt_core.timeline import HORIZON, Origin, Timeline, week_of, whole_weeks

PAPER = StudyDesign()
FIRST = date(2018, 7, 1)
WEEK = timedelta(days=7)
WINDOWS = (
    "washout", "training", "validation", "calibration", "holdout", "study", "bridge_baseline", "bridge_target",
)  # fmt: skip

spans = st.tuples(st.dates(date(1995, 1, 1), date(2035, 1, 1)), st.integers(0, 400))
"""First day and length in weeks."""
washouts = st.sampled_from([0, 13, 26, 52])


def of_weeks(weeks, first=FIRST, **stated):
    return Timeline.for_span(first, first + timedelta(days=7 * weeks - 1), **stated)


def project(study=None, **design):
    source = {"name": "shop", "path": "orders.csv", "currency": "GBP", "timezone": "Europe/London"}
    sections = {"design": design} | ({"study": study} if study else {})
    return ProjectConfig.from_mapping({"sources": [source], **sections}, "cbmt.toml")


def test_the_papers_span_gives_the_papers_dates():
    timeline = Timeline.for_span(date(2016, 1, 1), date(2020, 2, 29))
    assert timeline == Timeline()
    assert (timeline.observed_from, timeline.observed_to) == (PAPER.observed_from, PAPER.observed_to)
    assert timeline.washout == PAPER.washout
    assert timeline.panel == PAPER.study
    assert timeline.left_censored_cohort == date(2016, 12, 25)
    assert StudyDesign.over(timeline) == PAPER
    assert StudyDesign.at(timeline, date(2019, 3, 31), 47) == PAPER
    assert PAPER.forecast_origin == Origin(date(2019, 3, 31), 47, "study")


@pytest.mark.parametrize(
    ("weeks", "washout"),
    [
        (1, 0),
        (25, 0),
        (26, 0),  # the shortest live forecast
        (38, 0),
        (39, 13),
        (51, 13),
        (52, 26),
        (84, 26),
        (85, 0),  # the shortest study
        (98, 13),
        (111, 26),
        (137, 52),
        (400, 52),
    ],
)
def test_the_washout_is_the_longest_that_leaves_enough(weeks, washout):
    timeline = of_weeks(weeks)
    assert timeline.washout_weeks == washout
    assert len(timeline.panel) == weeks - washout
    assert bool(timeline.live_origins()) == (weeks >= 26)


def test_a_stated_washout_and_holdout_decide():
    assert of_weeks(60, washout_weeks=0).washout_weeks == 0
    assert of_weeks(30, washout_weeks=29).washout_weeks == 29
    assert of_weeks(140, holdout_weeks=47).washout_weeks == 13
    assert of_weeks(140, validation_weeks=40).washout_weeks == 26


@pytest.mark.parametrize(("weeks", "stated", "missing"), [(0, {}, 1), (52, {"washout_weeks": 52}, 1)])
def test_a_span_without_a_week_after_the_washout_is_refused(weeks, stated, missing):
    with pytest.raises(HistoryTooShort, match=f"hold {weeks} whole weeks") as error:
        of_weeks(weeks, **stated)
    assert error.value.missing == missing


@given(first=st.dates(date(1995, 1, 1), date(2035, 1, 1)), days=st.integers(-10, 60))
def test_whole_weeks_lie_within_the_days(first, days):
    last = first + timedelta(days=days)
    week, count = whole_weeks(first, last)
    assert week == week_of(week)
    assert timedelta() <= week - first < WEEK
    # By counting: Saturdays that close a week whose Sunday is not before the first day.
    closed = [first + timedelta(days=k) for k in range(6, days + 1)]
    assert count == sum(day.weekday() == 5 for day in closed)


def test_without_a_washout_the_days_before_the_first_whole_week_are_not_observed():
    timeline = Timeline.for_span(date(2018, 7, 3), date(2019, 1, 31))  # a Tuesday
    assert timeline.washout_weeks == 0
    assert timeline.observed_from == timeline.first_week == date(2018, 7, 8)
    assert timeline.left_censored_cohort is None


def test_the_live_origin_is_the_last_whole_week():
    timeline = Timeline.for_span(date(2018, 7, 1), date(2020, 1, 15))  # a Wednesday
    (live,) = timeline.live_origins()
    assert live == Origin(date(2020, 1, 5), HORIZON, "live")
    assert live.target.first == date(2020, 1, 12)
    assert len(live.target) == 52


def test_the_papers_backtests_are_a_quarter_apart_and_hold_its_origin():
    found = [origin.week for origin in PAPER.backtest_origins()]
    assert found == [
        date(2017, 12, 31),
        date(2018, 4, 1),
        date(2018, 7, 1),
        date(2018, 9, 30),
        date(2018, 12, 30),
        date(2019, 3, 31),
        date(2019, 6, 30),
        date(2019, 9, 29),
        date(2019, 12, 29),
    ]


@given(span=spans, washout=st.one_of(st.none(), washouts))
def test_backtests_have_a_year_before_them_and_a_week_after(span, washout):
    first, weeks = span
    try:
        timeline = of_weeks(weeks, first, washout_weeks=washout)
    except HistoryTooShort:
        return
    found = [origin.week for origin in timeline.backtest_origins()]
    assert all(b - a == 13 * WEEK for a, b in pairwise(found))
    assert all(week_of(week) == week for week in found)
    assert all((week - PAPER.origin) % (13 * WEEK) == timedelta() for week in found)
    assert all(origin.horizon == 52 for origin in timeline.backtest_origins())
    panel = timeline.panel
    # Every week of the grid that has 52 weeks up to it and one after it, and no other.
    grid = [w for k, w in enumerate(panel) if k >= 51 and (w - PAPER.origin) % (13 * WEEK) == timedelta()]
    assert found == [week for week in grid if week < panel.last]


@given(span=spans, more=st.integers(0, 60), washout=washouts)
def test_new_weeks_move_no_backtest(span, more, washout):
    first, weeks = span
    assume(weeks > washout + 1)
    before = of_weeks(weeks, first, washout_weeks=washout).backtest_origins()
    after = of_weeks(weeks + more, first, washout_weeks=washout).backtest_origins()
    assert after[: len(before)] == before
    assert len(after) - len(before) <= -(-more // 13)


@given(span=spans, washout=washouts, back=st.integers(0, 30))
def test_the_prior_is_never_learned_after_the_origin(span, washout, back):
    first, weeks = span
    assume(weeks > washout + back + 1)
    timeline = of_weeks(weeks, first, washout_weeks=washout)
    for origin in timeline.backtest_origins():
        assert timeline.prior_week(origin) == origin.week
    study = Origin(timeline.panel.last, 10, "study")
    assert timeline.prior_week(study) == study.week
    live = Origin(timeline.panel.last - back * WEEK, HORIZON, "live")
    learned = timeline.prior_week(live)
    if learned is None:
        assert not [o for o in timeline.backtest_origins() if o.week <= live.week]
        assert (live.week - timeline.panel.first).days // 7 + 1 < 52 + 12
    else:
        assert timedelta() <= live.week - learned < 13 * WEEK
        assert timeline.prior_week(Origin(learned, 52, "backtest")) == learned
    # A vintage's prior stays the same when weeks arrive.
    assert of_weeks(weeks + 20, first, washout_weeks=washout).prior_week(live) == learned


@given(weeks=st.integers(85, 300), more=st.integers(0, 200))
def test_a_pinned_study_stays_where_it_is_when_weeks_arrive(weeks, more):
    """Also where the longer data would let the washout grow, which was chosen and not stated."""
    made = project()
    last = FIRST + timedelta(days=7 * weeks - 1)
    study = made.study_design(made.timeline(FIRST, last))
    pinned = project(study={"origin": study.origin, "holdout_weeks": study.holdout_weeks})
    timeline = pinned.timeline(FIRST, last + more * WEEK)
    again = pinned.study_design(timeline)
    for name in WINDOWS:
        assert getattr(again, name) == getattr(study, name), name
    assert again.origin == study.origin
    assert len(again.panel) == len(study.panel) + more
    assert timeline.backtest_origins()[: len(study.backtest_origins())] == study.backtest_origins()


@given(weeks=st.integers(86, 300), more=st.integers(1, 60))
def test_a_study_at_an_origin_does_not_depend_on_later_weeks(weeks, more):
    timeline = of_weeks(weeks, washout_weeks=0)
    longer = of_weeks(weeks + more, washout_weeks=0)
    study = StudyDesign.over(timeline)
    again = StudyDesign.at(longer, study.origin, study.holdout_weeks)
    for name in WINDOWS:
        assert getattr(again, name) == getattr(study, name), name
    assert again.observed_to == longer.observed_to
    assert StudyDesign.at(study, study.origin, study.holdout_weeks) == study


def test_a_study_over_too_short_a_timeline_counts_what_is_missing():
    """84 weeks have a washout of 26 for their live forecast; a study would be made without one."""
    timeline = of_weeks(84)
    with pytest.raises(HistoryTooShort, match=r"hold 84 whole weeks.* so 1 are missing"):
        project().study_design(timeline)
    stated = project(washout_weeks=26)
    with pytest.raises(HistoryTooShort, match=r"hold 84 whole weeks.* so 27 are missing"):
        stated.study_design(stated.timeline(FIRST, timeline.observed_to))
    # A washout that came from elsewhere and does not give way counts, or nothing would seem to be missing.
    with pytest.raises(HistoryTooShort, match="so 37 are missing"):
        StudyDesign.over(of_weeks(100, washout_weeks=52))


@pytest.mark.parametrize(
    ("origin", "holdout", "words"),
    [
        (date(2020, 2, 16), 47, "ends after the data's last whole week, 2020-02-23"),
        (date(2019, 4, 7), 47, "ends after the data's last whole week, 2020-02-23"),
        (date(2018, 5, 6), 10, "has 51 weeks for training, from 2017-01-01 on, and needs 52"),
        (date(2015, 5, 3), 47, "has 0 weeks for training"),
    ],
)
def test_a_study_that_is_not_in_the_data_names_its_settings(origin, holdout, words):
    with pytest.raises(ConfigError, match=words) as error:
        StudyConfig(origin=origin, holdout_weeks=holdout).design(Timeline())
    assert f"[study] origin = {origin}, holdout_weeks = {holdout}" in str(error.value)


def test_a_study_in_the_data_is_made():
    assert StudyConfig(origin=date(2019, 3, 31), holdout_weeks=47).design(Timeline()) == PAPER
    shortest = StudyConfig(origin=date(2018, 5, 13), holdout_weeks=1).design(Timeline())
    assert (shortest.training_weeks, shortest.validation_weeks, shortest.holdout_weeks) == (52, 20, 1)


@pytest.mark.parametrize(
    ("study", "words"),
    [
        ({"origin": date(2019, 4, 1), "holdout_weeks": 47}, "study.origin: .*2019-03-31, not 2019-04-01"),
        ({"origin": date(2019, 3, 31), "holdout_weeks": 53}, "study.holdout_weeks"),
        ({"origin": date(2019, 3, 31), "holdout_weeks": 0}, "study.holdout_weeks"),
        ({"origin": date(2019, 3, 31)}, "study.holdout_weeks"),
    ],
)
def test_a_study_that_cannot_be_read_names_its_setting(study, words):
    with pytest.raises(ConfigError, match=words):
        project(study=study)


def test_stated_days_cut_the_data():
    config = DesignConfig(first_day=date(2017, 1, 1), last_day=date(2019, 12, 28))
    cut = config.timeline(date(2016, 1, 1), date(2020, 2, 29))
    assert cut == Timeline.for_span(date(2017, 1, 1), date(2019, 12, 28))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"first_week": date(2016, 1, 4)}, "must be a Sunday, got Monday"),
        ({"observed_from": date(2016, 1, 5)}, "observed_from"),
        ({"washout_weeks": 0}, "without a washout"),
        ({"washout_weeks": -1}, "negative"),
    ],
)
def test_impossible_timelines_are_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        Timeline(**wrong)


def test_data_that_end_before_the_panel_have_no_origin():
    ended = Timeline(observed_to=date(2016, 6, 1))
    assert len(ended.panel) == 0
    assert ended.live_origins() == ended.backtest_origins() == []
