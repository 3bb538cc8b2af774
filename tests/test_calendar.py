"""The calendar: week of year, month and holidays, in the weeks a wall calendar shows."""

from datetime import date

import numpy as np
import pytest

from cbmt_core.calendar import calendar_of, has_holidays


def weeks_with(calendar, name):
    return [
        w.astype(object) for w in calendar.weeks[calendar.holiday[:, calendar.holiday_names.index(name)] > 0]
    ]


def test_holidays_fall_into_the_weeks_of_a_wall_calendar():
    calendar = calendar_of(date(2016, 12, 25), 106)
    assert weeks_with(calendar, "Black Friday") == [date(2017, 11, 19), date(2018, 11, 18)]
    assert weeks_with(calendar, "Cyber Monday") == [date(2017, 11, 26), date(2018, 11, 25)]
    assert weeks_with(calendar, "Easter") == [date(2017, 4, 16), date(2018, 4, 1)]
    assert weeks_with(calendar, "Mother's Day") == [date(2017, 5, 14), date(2018, 5, 13)]
    assert weeks_with(calendar, "Independence Day") == [date(2017, 7, 2), date(2018, 7, 1)]
    assert weeks_with(calendar, "Christmas Day") == [
        date(2016, 12, 25),
        date(2017, 12, 24),
        date(2018, 12, 23),
    ]


def test_new_year_belongs_to_the_week_it_falls_in_even_when_that_began_the_year_before():
    calendar = calendar_of(date(2018, 12, 30), 1)
    assert weeks_with(calendar, "New Year's Day") == [date(2018, 12, 30)]


def test_month_and_week_of_year_are_the_wednesdays():
    calendar = calendar_of(date(2016, 12, 25), 54)
    # 28 Dec 2016, 4 Jan 2017, ..., 27 Dec 2017
    assert list(calendar.month[:2]) == [11, 0]
    assert list(calendar.week_of_year[:3]) == [51, 0, 1]
    assert calendar.month[6] == 1  # Wednesday 8 Feb 2017
    assert calendar.week_of_year[52] == 51  # Wednesday 27 Dec 2017: day 360
    assert calendar.week_of_year[53] == 0


@pytest.mark.parametrize("country", ["US", "GB", "DE", "CN"])
def test_two_calendars_of_a_country_have_the_same_columns(country):
    early, late = calendar_of(date(1999, 1, 3), 60, country), calendar_of(date(2023, 1, 1), 60, country)
    assert early.holiday_names == late.holiday_names
    assert early.holiday.shape == late.holiday.shape == (60, len(early.holiday_names))


def test_what_happened_once_is_no_column():
    assert "Diamond Jubilee of Elizabeth II" not in calendar_of(date(2017, 1, 1), 52, "GB").holiday_names
    assert not [n for n in calendar_of(date(2017, 1, 1), 52, "CN").holiday_names if "substituted" in n]


def test_a_part_of_a_calendar_is_the_calendar_of_the_part():
    whole, part = calendar_of(date(2017, 1, 1), 80), calendar_of(date(2017, 3, 5), 40)
    assert np.array_equal(whole.weeks[9:49], part.weeks)
    assert np.array_equal(whole.week_of_year[9:49], part.week_of_year)
    assert np.array_equal(whole.month[9:49], part.month)
    assert np.array_equal(whole.holiday[9:49], part.holiday)


def test_a_shared_calendar_cannot_be_changed_by_one_of_its_users():
    with pytest.raises(ValueError, match="read-only"):
        calendar_of(date(2017, 1, 1), 10).holiday[0, 0] = 5


def test_countries_are_known_by_their_iso_code():
    assert has_holidays("GB")
    assert not has_holidays("Atlantis")
