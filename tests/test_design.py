"""StudyDesign: the paper's dates, designs for other spans, and errors that say what is missing."""

from datetime import date, timedelta
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbmt_core.design import StudyDesign
from cbmt_core.errors import HistoryTooShort
from cbmt_core.timeline import Window, week_of

PAPER = StudyDesign()


@pytest.mark.parametrize(
    ("window", "first", "last", "weeks"),
    [
        ("washout", date(2016, 1, 3), date(2016, 12, 25), 52),
        ("calibration", date(2017, 1, 1), date(2019, 3, 31), 118),
        ("training", date(2017, 1, 1), date(2018, 11, 11), 98),
        ("validation", date(2018, 11, 18), date(2019, 3, 31), 20),
        ("holdout", date(2019, 4, 7), date(2020, 2, 23), 47),
        ("bridge_baseline", date(2018, 4, 8), date(2019, 2, 24), 47),
        ("bridge_target", date(2019, 4, 7), date(2020, 2, 23), 47),
    ],
)
def test_the_default_windows_are_the_papers(window, first, last, weeks):
    found = getattr(PAPER, window)
    assert (found.first, found.last, len(found)) == (first, last, weeks)
    assert found.last_day == last + timedelta(days=6)


def test_the_first_two_days_of_2016_are_washout():
    assert PAPER.observed_from == date(2016, 1, 1)
    assert week_of(date(2016, 1, 1)) == date(2015, 12, 27)
    assert PAPER.left_censored_cohort == date(2016, 12, 25)


def test_the_papers_span_gives_the_papers_design():
    assert StudyDesign.for_span(date(2016, 1, 1), date(2020, 2, 29)) == PAPER


@pytest.mark.parametrize(
    ("day", "sunday"),
    [
        (date(2017, 1, 1), date(2017, 1, 1)),
        (date(2017, 1, 7), date(2017, 1, 1)),
        (date(2016, 12, 31), date(2016, 12, 25)),
        (date(2020, 2, 29), date(2020, 2, 23)),
    ],
)
def test_a_week_is_named_by_its_sunday(day, sunday):
    assert week_of(day) == sunday


def test_a_window_knows_its_weeks():
    window = Window(date(2017, 1, 1), 2)
    assert list(window) == [date(2017, 1, 1), date(2017, 1, 8)]
    assert list(window.dates().astype(object)) == list(window)
    assert date(2017, 1, 14) in window
    assert date(2017, 1, 15) not in window
    assert date(2016, 12, 31) not in window
    assert len(Window(date(2017, 1, 1), 0)) == 0
    assert date(2017, 1, 1) not in Window(date(2017, 1, 1), 0)


@pytest.mark.parametrize(
    ("weeks", "washout", "training", "holdout"),
    [
        (85, 0, 52, 13),  # the shortest study: a year, 20 weeks and a quarter
        (97, 0, 52, 25),
        (98, 13, 52, 13),
        (111, 26, 52, 13),
        (137, 52, 52, 13),
        (171, 52, 52, 47),
        (172, 52, 53, 47),
    ],
)
def test_longer_histories_first_gain_washout_then_holdout_then_training(weeks, washout, training, holdout):
    first = date(2018, 7, 1)
    design = StudyDesign.for_span(first, first + timedelta(days=7 * weeks - 1))
    assert (design.washout_weeks, design.training_weeks, design.holdout_weeks) == (washout, training, holdout)
    assert design.validation_weeks == 20


def test_weeks_that_are_not_whole_do_not_count():
    design = StudyDesign.for_span(date(2018, 7, 3), date(2021, 3, 5))  # Tuesday to Friday
    assert design.first_week == date(2018, 7, 8)
    assert design.observed_from == date(2018, 7, 3)
    assert design.study.last == date(2021, 2, 21)
    assert design.observed_to == date(2021, 3, 5)


@given(
    first=st.dates(date(1990, 1, 1), date(2030, 1, 1)),
    days=st.integers(600, 4000),
    washout=st.sampled_from([None, 0, 13, 52]),
    holdout=st.sampled_from([None, 1, 13, 47, 52]),
    validation=st.integers(1, 40),
)
def test_the_windows_of_any_span_follow_each_other(first, days, washout, holdout, validation):
    last = first + timedelta(days=days)
    try:
        design = StudyDesign.for_span(
            first, last, washout_weeks=washout, holdout_weeks=holdout, validation_weeks=validation
        )
    except HistoryTooShort:
        return
    weeks = [*design.washout, *design.training, *design.validation, *design.holdout]
    assert all(b - a == timedelta(days=7) for a, b in pairwise(weeks))
    assert all(week.weekday() == 6 for week in weeks)
    assert first <= weeks[0]
    assert weeks[-1] + timedelta(days=6) <= last
    assert last - (weeks[-1] + timedelta(days=6)) < timedelta(days=7)
    assert weeks[0] - first < timedelta(days=7)
    # The baseline is the target a year before, wholly inside what was observed at the origin.
    assert np.all(design.bridge_target.dates() - design.bridge_baseline.dates() == np.timedelta64(364, "D"))
    assert design.calibration.first <= design.bridge_baseline.first
    assert design.bridge_baseline.last <= design.origin
    assert (design.left_censored_cohort is None) == (design.washout_weeks == 0)


@pytest.mark.parametrize(("weeks", "missing"), [(0, 85), (40, 45), (84, 1)])
def test_too_short_a_history_says_how_many_weeks_are_missing(weeks, missing):
    first = date(2018, 7, 1)
    with pytest.raises(
        HistoryTooShort, match=f"hold {weeks} whole weeks.* so {missing} are missing"
    ) as error:
        StudyDesign.for_span(first, first + timedelta(days=7 * weeks - 1))
    assert error.value.missing == missing


def test_a_stated_washout_is_kept_or_refused():
    first = date(2018, 7, 1)
    last = first + timedelta(days=7 * 100 - 1)
    assert StudyDesign.for_span(first, last, washout_weeks=0).holdout_weeks == 28
    with pytest.raises(HistoryTooShort, match="37 are missing"):
        StudyDesign.for_span(first, last, washout_weeks=52)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"first_week": date(2016, 1, 4)}, "must be a Sunday, got Monday"),
        ({"observed_from": date(2016, 1, 5)}, "observed_from"),
        ({"washout_weeks": 0}, "without a washout"),
        ({"validation_weeks": -1}, "negative"),
        ({"training_weeks": 0}, "negative"),
        ({"observed_to": date(2020, 2, 28)}, "observed_to must not lie before 2020-02-29"),
        ({"holdout_weeks": 53, "observed_to": date(2021, 1, 1)}, "overlap its baseline"),
    ],
)
def test_impossible_designs_are_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        StudyDesign(**wrong)
