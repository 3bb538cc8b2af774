"""The choice of a model: from backtests up to the origin alone, and not by luck."""

from __future__ import annotations

import json
import math
from datetime import date, timedelta

import duckdb
import numpy as np
import pandas as pd
import pytest

from cbmt_core.backtest import forecast_choices
from cbmt_core.backtest.choice import MARGIN, MIN_OBSERVED_WEEKS, PRIOR_BACKTESTS
from cbmt_core.evaluation import Relations
from cbmt_core.schema import TABLES
from cbmt_core.timeline import Origin

WEEK = timedelta(days=7)
LIVE = Origin(date(2020, 2, 23), 52, "live")
MODELS = ("plus", "glm")
QUARTERS = tuple(LIVE.week - 13 * k * WEEK for k in range(1, 7))
"""Backtest origins, newest first."""


class Book:
    """Hand-made tables. Sales are 100 a week, and forecasts miss each week by the same stated SMAPE."""

    def __init__(self) -> None:
        self.weeks: list[tuple[str, date, float]] = []
        self.forecasts: list[tuple[str, str, date, str, date, float]] = []
        self.fits: list[tuple[str, str, date, str, bool]] = []
        self.firms: list[tuple[str, str | None]] = []

    def firm(self, name, *, fitted=MODELS, failed=(), segment=None):
        self.firms.append((name, segment))
        self.weeks += [(name, LIVE.week + k * WEEK, 100.0) for k in range(-140, 1)]
        self.fits += [(name, model, LIVE.week, "live", True) for model in fitted]
        self.fits += [(name, model, LIVE.week, "live", False) for model in failed]
        return self

    def backtest(self, firm, origin, *, purpose="backtest", weeks=52, **errors):
        """Forecasts of `weeks` weeks; `errors` by model, in SMAPE."""
        for model, error in errors.items():
            sales = 100 * (200 + error) / (200 - error)
            self.forecasts += [
                (firm, model, origin, purpose, origin + k * WEEK, sales) for k in range(1, weeks + 1)
            ]
        return self

    def connection(self, seed=None):
        frames = {
            "firm_week": pd.DataFrame(self.weeks, columns=["firm", "week", "sales"]),
            "forecast_week": pd.DataFrame(
                self.forecasts, columns=["firm", "model", "origin", "purpose", "week", "sales"]
            ),
            "model_fit": pd.DataFrame(self.fits, columns=["firm", "model", "origin", "purpose", "succeeded"]),
            "firm": pd.DataFrame(self.firms, columns=["firm", "segment"]).assign(
                industry=None, currency="EUR"
            ),
        }
        con = duckdb.connect()
        for name, frame in frames.items():
            types = {column.name: column.type for column in TABLES[name].columns}
            select = ", ".join(f"CAST({column} AS {types[column]}) AS {column}" for column in frame)
            rows = frame if seed is None else frame.sample(frac=1, random_state=seed)
            con.register("rows", rows)
            con.execute(f"CREATE TABLE {name} AS SELECT {select} FROM rows")
            con.unregister("rows")
        return con

    def choices(self, models=MODELS, origin=LIVE, seed=None):
        return forecast_choices(self.connection(seed), Relations(), origin, models)

    def choice(self, firm="ACME", **options):
        rows = self.choices(**options)
        (row,) = rows[rows["firm"] == firm].to_dict("records")
        return row


def steady(book, firm, origins=QUARTERS[:4], **errors):
    """Backtests of a firm with the same errors every quarter."""
    for origin in origins:
        book.backtest(firm, origin, **errors)
    return book


def evidence(row, model):
    return json.loads(row["evidence"])[model]


def test_rows_are_those_of_the_table():
    rows = steady(Book().firm("ACME"), "ACME", plus=10, glm=12).choices()
    assert list(rows.columns) == TABLES["forecast_choice"].column_names
    con = duckdb.connect()
    con.register("rows", rows)
    stored = con.execute(f"SELECT {TABLES['forecast_choice'].select()} FROM rows").fetchall()
    assert stored[0][:4] == ("ACME", LIVE.week, "live", "plus")


def test_a_clear_winner_is_chosen_and_says_why():
    row = steady(Book().firm("ACME"), "ACME", plus=20, glm=10).choice()
    assert row["model"] == "glm"
    assert row["backtests"] == 4
    assert row["error"] == pytest.approx(10)
    assert row["why"] == "smallest backtest error: 10.0 % over 4 backtests, plus 20.0 %"


def test_the_default_stays_where_it_errs_least():
    row = steady(Book().firm("ACME"), "ACME", plus=10, glm=20).choice()
    assert (row["model"], row["error"]) == ("plus", pytest.approx(10))
    assert row["why"] == "smallest backtest error: 10.0 % over 4 backtests, glm 20.0 %"


def test_a_lucky_model_within_the_margin_is_not_chosen():
    row = steady(Book().firm("ACME"), "ACME", plus=20, glm=19.5).choice()
    assert (row["model"], row["error"]) == ("plus", pytest.approx(20))
    assert row["why"] == (
        "the default; another is ahead by too little, or in too few backtests, to replace it: "
        "20.0 % over 4 backtests, glm 19.5 %"
    )


def test_beside_other_firms_the_reason_speaks_of_them():
    book = steady(Book().firm("ACME"), "ACME", plus=20, glm=19.5)
    row = steady(book.firm("BETA"), "BETA", plus=20, glm=20).choice()
    assert row["why"] == (
        "the default; no other is ahead by 10 % once all firms count: 20.0 % over 4 backtests, glm 19.5 %"
    )


def test_one_good_quarter_is_not_enough_where_four_are():
    errors = {"plus": 20, "glm": 12}
    assert steady(Book().firm("ACME"), "ACME", QUARTERS[:1], **errors).choice()["model"] == "plus"
    assert steady(Book().firm("ACME"), "ACME", QUARTERS[:4], **errors).choice()["model"] == "glm"


@pytest.mark.parametrize(("glm", "chosen"), [(14.5, "glm"), (14.7, "plus")])
def test_the_margin_applies_to_the_shrunk_ratio(glm, chosen):
    """By hand: alone and with 4 backtests a ratio counts by its cube root, and 0.9 ** 3 * 20 = 14.58."""
    assert MARGIN == 0.1
    assert steady(Book().firm("ACME"), "ACME", plus=20, glm=glm).choice()["model"] == chosen


def test_scores_are_ratios_shrunk_to_the_other_firms():
    """By hand: own ratios 1/2, 2 and 1; with 2 backtests and K = 8 the firm's own counts 2 / 10."""
    book = Book().firm("A").firm("B").firm("C")
    for firm, plus, glm in (("A", 20, 10), ("B", 5, 10), ("C", 30, 30)):
        steady(book, firm, QUARTERS[:2], plus=plus, glm=glm)
    assert PRIOR_BACKTESTS == 8
    expected = {
        "A": math.exp(0.2 * math.log(0.5) + 0.8 * (math.log(2) + 0) / 3),
        "B": math.exp(0.2 * math.log(2) + 0.8 * (math.log(0.5) + 0) / 3),
        "C": math.exp(0.2 * 0 + 0.8 * (math.log(0.5) + math.log(2)) / 3),
    }
    for firm, score in expected.items():
        row = book.choice(firm)
        assert evidence(row, "glm")["score"] == pytest.approx(score, abs=1e-6)
        assert evidence(row, "plus")["score"] == 1
        assert evidence(row, "plus")["panel_smape"] == pytest.approx((20 + 5 + 30) / 3, abs=1e-4)
        assert evidence(row, "glm")["panel_smape"] == pytest.approx((10 + 10 + 30) / 3, abs=1e-4)
        assert row["model"] == ("glm" if score <= 1 - MARGIN else "plus")


def test_errors_are_the_smape_of_the_observed_weeks():
    """Weeks missed by 20 % and by nothing, and a week in which nothing was sold or forecast: 0/0 counts as 0."""
    book = Book().firm("ACME")
    origin = LIVE.week - 14 * WEEK
    book.backtest("ACME", origin, plus=20, glm=0)
    silent = origin + WEEK
    book.weeks = [(f, week, 0.0 if week == silent else sales) for f, week, sales in book.weeks]
    book.forecasts = [(*row[:4], row[4], 0.0 if row[4] == silent else row[5]) for row in book.forecasts]
    row = book.choice()
    assert evidence(row, "plus")["smape"] == [pytest.approx(20 * 13 / 14, abs=1e-4)]
    assert evidence(row, "glm")["smape"] == [0]
    assert evidence(row, "plus")["origins"] == [str(origin)]


@pytest.mark.parametrize(("observed", "counted"), [(12, 0), (13, 1), (14, 1)])
def test_a_backtest_counts_from_a_quarter_of_observed_weeks_on(observed, counted):
    assert MIN_OBSERVED_WEEKS == 13
    book = Book().firm("ACME").backtest("ACME", LIVE.week - observed * WEEK, plus=20, glm=5)
    assert book.choice()["backtests"] == counted


def test_nothing_after_the_origin_reaches_the_choice():
    """Everything that an honest choice must not see is scrambled: later sales, later backtests, other purposes."""
    earlier = Origin(QUARTERS[2], 52, "backtest")
    rng = np.random.default_rng(5)

    def chosen_from(scrambled):
        book = Book()
        for firm, glm in (("A", 10), ("B", 150), ("C", 19)):
            book.firm(firm)
            book.fits += [(firm, model, earlier.week, "backtest", True) for model in MODELS]
            for k, origin in enumerate(QUARTERS):
                good = origin + 13 * WEEK <= earlier.week
                wrong = rng.uniform(1, 199, 2) if scrambled and not good else (20 + k, glm - k)
                book.backtest(firm, origin, plus=wrong[0], glm=wrong[1])
            if scrambled:
                book.fits = [(*fit[:4], fit[3] == "backtest") for fit in book.fits]
                book.backtest(firm, QUARTERS[5] - 4 * WEEK, purpose="live", plus=150, glm=1)
                book.backtest(firm, QUARTERS[5] - 4 * WEEK, purpose="study", plus=150, glm=1)
        if scrambled:
            book.weeks = [
                (firm, week, sales if week <= earlier.week else float(rng.uniform(0, 9999)))
                for firm, week, sales in book.weeks
            ]
        return book.choices(origin=earlier)

    honest = chosen_from(False)
    assert list(honest["model"]) == ["glm", "plus", "glm"]
    assert set(honest["backtests"]) == {3}
    pd.testing.assert_frame_equal(honest, chosen_from(True))


def test_models_are_compared_on_the_backtests_all_have():
    book = Book().firm("ACME", fitted=("plus", "glm", "naive"))
    for origin in QUARTERS[:3]:
        book.backtest("ACME", origin, plus=20, glm=10)
    for origin in QUARTERS[1:4]:
        book.backtest("ACME", origin, naive=30)
    row = book.choice(models=("plus", "glm", "naive"))
    assert row["backtests"] == 2
    for model in ("plus", "glm", "naive"):
        assert evidence(row, model)["origins"] == [str(QUARTERS[2]), str(QUARTERS[1])]


def test_a_candidate_without_backtests_does_not_hide_those_of_the_others():
    book = steady(Book().firm("ACME", fitted=("plus", "glm", "new")), "ACME", plus=20, glm=10)
    row = book.choice(models=("plus", "glm", "new"))
    assert (row["model"], row["backtests"]) == ("glm", 4)
    assert evidence(row, "new") == {"origins": [], "smape": [], "panel_smape": None, "score": None}


def test_a_default_without_backtests_is_not_replaced():
    row = steady(Book().firm("ACME"), "ACME", glm=10).choice()
    assert (row["model"], row["backtests"]) == ("plus", 0)
    assert pd.isna(row["error"])
    assert row["why"] == ("the models share no backtest of this firm that can be scored; plus is the default")


def test_a_default_that_could_not_be_fitted_is_passed_over():
    young = Book().firm("ACME", fitted=["glm", "naive"], failed=["plus"])
    row = young.choice(models=("plus", "glm", "naive"))
    assert (row["model"], row["why"]) == ("glm", "plus could not be fitted; glm is the next")
    assert set(json.loads(row["evidence"])) == {"glm", "naive"}
    row = steady(young, "ACME", plus=5, glm=20, naive=10).choice(models=("plus", "glm", "naive"))
    assert row["model"] == "naive"
    assert row["why"] == (
        "plus could not be fitted; smallest backtest error: 10.0 % over 4 backtests, glm 20.0 %"
    )
    assert evidence(row, "glm")["score"] == 1


def test_the_only_model_is_chosen_with_its_track_record():
    row = steady(Book().firm("ACME", fitted=["glm"], failed=["plus"]), "ACME", plus=5, glm=20).choice()
    assert (row["model"], row["backtests"], row["error"]) == ("glm", 4, pytest.approx(20))
    assert row["why"] == (
        "plus could not be fitted; no other model to compare with; backtest error: 20.0 % over 4 backtests"
    )


def test_a_firm_no_model_could_be_fitted_for_has_no_row():
    book = Book().firm("ACME", fitted=(), failed=MODELS).firm("BETA")
    assert list(book.choices()["firm"]) == ["BETA"]
    assert Book().firm("ACME", fitted=["other"]).choices().empty
    assert list(Book().firm("ACME", fitted=["other"]).choices()) == TABLES["forecast_choice"].column_names


def test_a_young_firm_keeps_the_default_whatever_older_ones_show():
    book = Book().firm("Young")
    for firm in "ABC":
        steady(book.firm(firm), firm, plus=40, glm=10)
    row = book.choice("Young")
    assert row["model"] == "plus"
    assert row["backtests"] == 0
    assert pd.isna(row["error"])
    assert row["why"] == "without a backtest that can be scored, plus is the default"
    assert evidence(row, "glm") == {"origins": [], "smape": [], "panel_smape": 10, "score": None}


def test_what_other_firms_show_decides_where_a_firm_has_little_of_its_own():
    book = steady(Book().firm("ACME"), "ACME", QUARTERS[:1], plus=20, glm=20.4)
    for k in range(6):
        steady(book.firm(f"Firm {k}"), f"Firm {k}", plus=20, glm=10)
    row = book.choice()
    assert row["model"] == "glm"
    panel = (6 * 10 + 20.4) / 7
    assert row["why"] == (
        f"smallest error once all firms count ({panel:.1f} %, plus 20.0 %); "
        "of this firm: 20.4 % over 1 backtest, plus 20.0 %"
    )


def test_segments_do_not_count_for_other_firms():
    alone = steady(Book().firm("ACME"), "ACME", plus=20, glm=10)
    steady(alone.firm("BETA"), "BETA", plus=10, glm=20)
    before = alone.choice("ACME")
    for k in range(5):
        name = f"BETA~{k}"
        steady(alone.firm(name, segment=str(k)), name, plus=5, glm=60)
    assert alone.choice("ACME") == before
    segment = alone.choice("BETA~0")
    # Its own ratio is cut at 4; of the whole firms one halves and one doubles, which leaves no difference.
    assert evidence(segment, "glm")["score"] == pytest.approx(math.exp(math.log(4) / 3), abs=1e-6)
    assert evidence(segment, "glm")["panel_smape"] == pytest.approx(15, abs=1e-4)


def test_segments_count_where_there_is_no_whole_firm():
    book = Book()
    for name, glm in (("A~1", 10), ("A~2", 60)):
        steady(book.firm(name, segment=name[-1]), name, plus=20, glm=glm)
    assert evidence(book.choice("A~1"), "glm")["score"] == pytest.approx(
        math.exp(math.log(0.5) / 3 + 2 / 3 * math.log(3) / 2), abs=1e-6
    )


def test_a_firm_that_equals_another_gets_the_same_choice():
    book = Book()
    rng = np.random.default_rng(3)
    for firm in "ABCDE":
        book.firm(firm)
        for origin in QUARTERS[:4]:
            plus, glm = rng.uniform(5, 30, 2)
            book.backtest(firm, origin, plus=plus, glm=glm)
    twin = [(("Twin", *row[1:])) for row in book.forecasts if row[0] == "C"]
    book.firm("Twin")
    book.forecasts += twin
    rows = book.choices().set_index("firm")
    assert rows.loc["C"].to_dict() == rows.loc["Twin"].to_dict()


@pytest.mark.parametrize("seed", [1, 2])
def test_neither_the_order_of_rows_nor_the_names_of_firms_decide(seed):
    def book(names):
        made, rng = Book(), np.random.default_rng(8)
        for name in names:
            made.firm(name)
            for origin in QUARTERS:
                plus, glm = rng.uniform(5, 30, 2)
                made.backtest(name, origin, plus=plus, glm=glm)
        return made

    names = ["A", "B", "C", "D", "E", "F"]
    rows = book(names).choices()
    pd.testing.assert_frame_equal(rows, book(names).choices(seed=seed))
    renamed = dict(zip(names, np.random.default_rng(seed).permutation(names), strict=True))
    again = book(list(renamed.values())).choices()
    expected = rows.assign(firm=rows["firm"].map(renamed)).sort_values("firm", ignore_index=True)
    pd.testing.assert_frame_equal(expected, again)


def test_silent_firms_have_finite_evidence_and_do_not_outvote_the_others():
    """A firm that stopped selling: one model forecasts nothing and is right, the other a little and errs by 200."""
    book = Book().firm("Gone")
    for origin in QUARTERS[:4]:
        book.backtest("Gone", origin, plus=0, glm=0)
    book.weeks = [(firm, week, 0.0) for firm, week, _ in book.weeks]
    book.forecasts = [(*row[:5], 0.0 if row[1] == "glm" else 0.1) for row in book.forecasts]
    for k in range(9):
        steady(book.firm(f"Firm {k}"), f"Firm {k}", plus=10, glm=11)
    rows = book.choices().set_index("firm")
    assert rows.loc["Gone", "model"] == "glm"
    assert set(rows["model"].drop("Gone")) == {"plus"}
    for row in rows.to_dict("records"):
        for found in json.loads(row["evidence"], parse_constant=pytest.fail).values():
            assert np.isfinite([*found["smape"], found["panel_smape"], found["score"]]).all()
