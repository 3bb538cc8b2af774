"""External calibration: hand-made quarters give hand-computed errors; a mistake in a table is reported with its row."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cbmt_core import duck
from cbmt_core.design import StudyDesign
from cbmt_core.diagnostics.calibration import AnalystTables, calibrate, read_tables, weekly_sales
from cbmt_core.errors import BadTable
from cbmt_core.evaluation import Relations
from cbmt_core.simulate import Economy

DESIGN = StudyDesign()
CALENDAR = [
    ("2019Q1", date(2019, 1, 1), date(2019, 3, 31)),
    ("2019Q2", date(2019, 4, 1), date(2019, 6, 30)),
    ("2019Q3", date(2019, 7, 1), date(2019, 9, 30)),
    ("2019Q4", date(2019, 10, 1), date(2019, 12, 31)),
    ("2020Q1", date(2020, 1, 1), date(2020, 3, 31)),
]


def weekly_of(firms: dict[str, float], currency: str = "USD") -> pd.DataFrame:
    """A hundred a week, forecast as a hundred times the firm's factor."""
    weeks = list(DESIGN.study)
    rows = [
        (firm, currency, week, 100.0, 100.0 * (factor if week > DESIGN.origin else 1.0))
        for firm, factor in firms.items()
        for week in weeks
    ]
    return pd.DataFrame(rows, columns=["firm", "currency", "week", "actual", "expected"])


def tables_of(mapping: dict[str, str], analyst: float = 1.2, calendar=CALENDAR) -> AnalystTables:
    """Every ticker has the calendar; analysts expect `analyst` times a revenue of 1000."""
    tickers = sorted(set(mapping.values()))
    quarters = [(t, *quarter) for t in tickers for quarter in calendar]
    forecasts = [
        (t, name, day, value * 1000, 1000.0)
        for t in tickers
        for name, *_ in calendar
        for day, value in (("2018-06-01", analyst), ("2019-03-31", analyst), ("2019-04-01", 9.0), ("2016-12-31", 9.0))
    ]  # fmt: skip
    quarter_frame = pd.DataFrame(quarters, columns=["ticker", "quarter", "first_day", "last_day"])
    forecast_frame = pd.DataFrame(forecasts, columns=["ticker", "quarter", "made_on", "forecast", "actual"])
    return AnalystTables(
        tickers=pd.DataFrame({"firm": list(mapping), "ticker": list(mapping.values())}),
        quarters=quarter_frame.astype({"first_day": "datetime64[s]", "last_day": "datetime64[s]"}),
        forecasts=forecast_frame.astype({"made_on": "datetime64[s]"}),
        quarters_file="quarters.csv",
    )


def test_quarters_are_summed_collapsed_and_scored_as_by_hand():
    made = calibrate(
        tables_of({"Avis": "CAR", "Budget": "CAR"}), weekly_of({"Avis": 1.1, "Budget": 1.3}), DESIGN, "cbmt"
    )
    rows = made.quarters.set_index("horizon")
    # The quarter before the origin is over; that of 2020 ends after the data.
    assert list(rows["quarter"]) == ["2019Q2", "2019Q3", "2019Q4"]
    assert list(rows.index) == ["Q1", "Q2", "Q3"]
    # Sundays of April to June 2019: 7 April to 30 June.
    assert rows.loc["Q1", ["weeks", "weeks_ahead", "firms"]].tolist() == [13, 13, 2]
    assert rows.loc["Q1", "panel_sales"] == 13 * 200
    assert rows.loc["Q1", "panel_forecast"] == pytest.approx(13 * 240)
    assert rows.loc["Q1", "model_smape"] == pytest.approx(200 * 40 / 440)
    # Two forecasts are eligible: one made on the day of the origin, none after it or before calibration.
    assert rows.loc["Q1", "analyst_forecasts"] == 2
    assert rows.loc["Q1", "analyst_smape"] == pytest.approx(200 * 0.2 / 2.2)


def test_a_quarter_in_progress_at_the_origin_counts_with_the_weeks_seen():
    calendar = [("F1", date(2019, 2, 3), date(2019, 5, 4)), ("F2", date(2019, 5, 5), date(2019, 8, 3))]
    made = calibrate(tables_of({"a": "T"}, calendar=calendar), weekly_of({"a": 2.0}), DESIGN, "cbmt")
    first = made.quarters.set_index("horizon").loc["Q1"]
    assert (first["weeks"], first["weeks_ahead"]) == (13, 4)
    assert first["panel_forecast"] == 9 * 100 + 4 * 200


def test_a_tenth_of_the_tickers_is_trimmed_by_the_size_of_the_difference():
    factors = {f"f{k:02d}": 1 + 0.01 * k for k in range(20)}
    made = calibrate(
        tables_of({firm: firm.upper() for firm in factors}, analyst=1.1), weekly_of(factors), DESIGN, "cbmt"
    )
    # Analysts err by 1.10; the firms farthest from that are forecast exactly (0) or by 1.01 and 1.19.
    assert set(made.quarters.loc[made.quarters["trimmed"], "ticker"]) == {"F00", "F01"}
    assert set(made.summary["firms"]) == {18}
    kept = [200 * 0.01 * k / (2 + 0.01 * k) for k in range(2, 20)]
    assert made.summary["model_smape"].tolist() == pytest.approx([np.mean(kept)] * 3)
    assert "20 forecast firms map to 20 tickers" in made.note
    # The bootstrap's standard error is that of a mean of 18 values.
    expected = np.std(kept) / np.sqrt(18)
    assert made.summary["model_se"].to_numpy() == pytest.approx(expected, rel=0.1)
    assert made.summary["analyst_se"].to_numpy() == pytest.approx(0.0, abs=1e-9)


def test_the_published_sample_is_trimmed_to_the_published_size():
    factors = {f"f{k}": 1 + 0.001 * k for k in range(248)}
    made = calibrate(
        tables_of({firm: firm for firm in factors}), weekly_of(factors), DESIGN, "cbmt", resamples=2
    )
    assert set(made.summary["firms"]) == {223}


def test_few_tickers_have_no_standard_error_and_unlike_currencies_are_not_added():
    weekly = pd.concat([weekly_of({"a": 1.1, "b": 1.1}), weekly_of({"c": 1.1}, "GBP")])
    made = calibrate(tables_of({"a": "A", "b": "BC", "c": "BC"}), weekly, DESIGN, "cbmt")
    assert set(made.quarters["ticker"]) == {"A"}
    assert made.summary["model_se"].isna().all()
    assert "differ in currency: BC" in made.note


def test_nothing_that_matches_is_no_error():
    made = calibrate(tables_of({"x": "X"}), weekly_of({"a": 1.0}), DESIGN, "cbmt")
    assert made.quarters.empty
    assert made.summary.empty
    assert made.note.startswith("0 forecast firms map to 0 tickers")


def test_a_calendar_that_begins_after_the_origin_is_refused():
    with pytest.raises(
        BadTable, match=r"quarters\.csv: the quarters of T begin on 2019-07-01.*add the quarter"
    ):
        calibrate(tables_of({"a": "T"}, calendar=CALENDAR[2:]), weekly_of({"a": 1.0}), DESIGN, "cbmt")


def test_weekly_sales_are_observed_up_to_the_origin_and_forecast_after_it():
    weeks = list(DESIGN.study)
    with duck.connect() as con:
        observed = [(f, w, 100 + k) for f in ("a", "b", "c~s") for k, w in enumerate(weeks)]
        con.register("o", pd.DataFrame(observed, columns=["firm", "week", "sales"]))
        ahead = [
            (f, m, DESIGN.origin, w, 7.0)
            for f in ("a", "b", "c~s")
            for m in ("cbmt", "other")
            for w in DESIGN.holdout
        ]
        # The forecast of b lacks a week.
        ahead.remove(("b", "cbmt", DESIGN.origin, DESIGN.holdout.last, 7.0))
        con.register("f", pd.DataFrame(ahead, columns=["firm", "model", "origin", "week", "sales"]))
        con.execute("CREATE TABLE firm_week AS SELECT firm, week::DATE AS week, sales FROM o")
        con.execute(
            "CREATE TABLE forecast_week AS SELECT * REPLACE (week::DATE AS week, origin::DATE AS origin) FROM f"
        )
        con.execute(
            "CREATE TABLE firm AS SELECT DISTINCT firm, 'USD' AS currency, "
            "CASE WHEN firm LIKE '%~%' THEN 's' END AS segment FROM firm_week"
        )
        rows = weekly_sales(con, Relations(), DESIGN, "cbmt")
    assert set(rows["firm"]) == {"a"}
    assert rows["actual"].tolist() == [100 + k for k in range(len(weeks))]
    assert rows["expected"].tolist() == [100 + k for k in range(118)] + [7.0] * 47


HEADS = {
    "tickers": "firm,ticker",
    "quarters": "ticker,quarter,first_day,last_day",
    "forecasts": "ticker,quarter,made_on,forecast,actual",
}
GOOD = {
    "tickers": ["Avis,CAR", "Budget,CAR"],
    "quarters": ["CAR,2019Q1,2019-01-01,2019-03-31", "CAR,2019Q2,2019-04-01,2019-06-30"],
    "forecasts": ["CAR,2019Q2,2019-02-01,100,110", "CAR,2019Q2,2019-03-01,105,"],
}


def written(folder: Path, **changes: list[str]) -> dict[str, Path]:
    paths = {}
    for name, rows in {**GOOD, **changes}.items():
        paths[name] = folder / f"{name}.csv"
        paths[name].write_text("\n".join([HEADS[name], *rows]) + "\n")
    return paths


def test_good_tables_are_read_from_csv_and_parquet_alike(tmp_path):
    paths = written(tmp_path)
    tables = read_tables(**paths)
    assert (len(tables.tickers), len(tables.quarters)) == (2, 2)
    assert tables.forecasts["actual"].isna().tolist() == [False, True]
    for name, path in paths.items():
        frame = pd.read_csv(path)
        for column in frame.columns.intersection(["first_day", "last_day", "made_on"]):
            frame[column] = pd.to_datetime(frame[column]).dt.date
        paths[name] = tmp_path / f"{name}.parquet"
        frame.to_parquet(paths[name])
    again = read_tables(**paths)
    for name in GOOD:
        pd.testing.assert_frame_equal(getattr(tables, name), getattr(again, name), check_dtype=False)


@pytest.mark.parametrize(
    ("table", "rows", "message"),
    [
        ("tickers", ["Avis,CAR", "Avis,HTZ"], r"row 2 .*firm is 'Avis', has another ticker"),
        ("tickers", ["Avis,"], r"row 1 .*ticker is nothing, must be a name"),
        ("quarters", ["T,Q,31/03/2019,2019-06-30"], r"row 1 .*first_day is '31/03/2019', must be a day such as"),
        ("quarters", ["T,Q,2019-07-01,2019-06-30"], r"row 1 .*last_day is 2019-06-30, lies before first_day"),
        ("quarters", ["T,A,2019-01-01,2019-03-31", "T,A,2019-04-01,2019-06-30"], r"row 2 .*'A', is there twice"),
        ("quarters", ["T,A,2019-04-01,2019-06-30", "T,B,2019-01-01,2019-04-15"], r"row 1 .*must not overlap"),
        ("quarters", ["T,A,2019-01-01,2019-03-31", "T,B,2019-07-01,2019-09-30"], r"row 2 .*add the quarter between"),
        ("forecasts", ['T,Q,2019-01-01,"1,000",9'], r"row 1 .*forecast is '1,000', must be a number such as 1234.5"),
        ("forecasts", ["T,Q,2019-01-01,1,9", "T,Q,2019-01-01,-1,9", "T,Q,2019-01-01,x,9"], r"row 2 .*'-1'.*1 more"),
        ("forecasts", ["T,Q,2019-01-01,1,9", "T,Q,2019-01-02,1,8"], r"row 2 .*actual is 8.0, differs"),
        ("forecasts", ["T,Q,2019-01-01,1,n/a"], r"row 1 .*actual is 'n/a', must be a number, or nothing"),
    ],
)  # fmt: skip
def test_a_mistake_is_reported_with_its_file_its_row_and_what_to_do(tmp_path, table, rows, message):
    with pytest.raises(BadTable, match=message) as error:
        read_tables(**written(tmp_path, **{table: rows}))
    assert str(error.value).startswith(str(tmp_path / f"{table}.csv"))


def test_a_file_that_is_no_table_is_reported(tmp_path):
    paths = written(tmp_path)
    paths["tickers"].write_text("")
    with pytest.raises(BadTable, match=r"tickers\.csv: it cannot be read as CSV or Parquet"):
        read_tables(**paths)
    paths["tickers"].write_text("merchant,ticker\nAvis,CAR\n")
    with pytest.raises(BadTable, match=r"it lacks firm; its columns are merchant, ticker: rename or add"):
        read_tables(**paths)


def test_a_missing_file_is_named(tmp_path):
    paths = written(tmp_path)
    paths["quarters"].unlink()
    with pytest.raises(BadTable, match=r"quarters\.csv: it does not exist; correct its path"):
        read_tables(**paths)


def test_weeks_belong_to_the_quarter_they_begin_in():
    # The origin's week begins on 31 March and so belongs to the quarter that is over.
    assert DESIGN.origin == date(2019, 3, 31)
    assert DESIGN.holdout.first == DESIGN.origin + timedelta(days=7)


def test_the_documented_example_fits_the_demo():
    folder = Path(__file__).parents[2] / "docs" / "calibration-example"
    tables = read_tables(*(folder / f"{name}.csv" for name in ("tickers", "quarters", "forecasts")))
    firms = [spec.name for spec in Economy(firms=40).specs()]
    assert sorted(tables.tickers["firm"]) == sorted(firms)
    made = calibrate(tables, weekly_of(dict.fromkeys(firms, 1.1)), DESIGN, "cohort_glm")
    tickers = tables.tickers["ticker"].nunique()
    assert made.quarters["ticker"].nunique() == tickers == 34
    assert made.summary["horizon"].tolist()[:3] == ["Q1", "Q2", "Q3"]
    # A tenth of the tickers is trimmed; the others have standard errors.
    assert made.summary["firms"].tolist()[:3] == [31, 31, 31]
    assert made.summary["model_se"].notna().iloc[:3].all()
