"""Assets of the diagnostics on two simulated firms: what cannot be made says why, and calibration adds up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
import pytest
from helpers.materialised import Materialised

from cbmt_core.schema import DIAGNOSTIC_TABLES
from cbmt_core.simulate import Economy
from cbmt_pipeline.plan import State, the_plan

pytestmark = pytest.mark.slow

Rows = Callable[[str], list[tuple[Any, ...]]]
"""From a query to its rows in the published file."""
QUARTERS = [
    ("2019Q1", "2019-01-01", "2019-03-31"),
    ("2019Q2", "2019-04-01", "2019-06-30"),
    ("2019Q3", "2019-07-01", "2019-09-30"),
    ("2019Q4", "2019-10-01", "2019-12-31"),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Materialised:
    """Two firms with forecasts, measures and every diagnostic; both firms belong to one ticker."""
    root: Path = tmp_path_factory.mktemp("diagnostics")
    project = Materialised(root, Economy(firms=2, scale=0.003, seed=7))
    names = [unit.name for unit in project.units]
    (root / "tickers.csv").write_text("firm,ticker\n" + "".join(f'"{name}",BOTH\n' for name in names))
    rows = [f"BOTH,{','.join(quarter)}\n" for quarter in QUARTERS]
    (root / "quarters.csv").write_text("ticker,quarter,first_day,last_day\n" + "".join(rows))
    rows = [f"BOTH,{name},2019-01-31,110,100\n" for name, *_ in QUARTERS]
    (root / "forecasts.csv").write_text("ticker,quarter,made_on,forecast,actual\n" + "".join(rows))
    config = root / "cbmt.toml"
    section = "\n".join(f'{name} = "{name}.csv"' for name in ("tickers", "quarters", "forecasts"))
    config.write_text(f"{config.read_text()}\n[calibration]\n{section}\n")
    assert [unit.name for unit in project.missing("firm_measures")] == names
    for unit in project.units:
        project.make(
            ["benchmark_forecasts"], unit, benchmark_forecasts={"models": ["seasonal_naive", "cohort_glm"]}
        )
        project.make(["firm_measures"], unit)
    project.make(["accuracy", "bridge"])
    for step in ("comovement", "difficulty", "routing", "external_calibration", "exhibits"):
        project.make([step])
    project.make(["warehouse"])
    return project


@pytest.fixture(scope="module")
def rows_of(made: Materialised) -> Iterator[Rows]:
    with duckdb.connect(str(made.project.warehouse), read_only=True) as con:
        yield lambda sql: con.execute(sql).fetchall()


def test_every_firm_is_measured_and_up_to_date(made: Materialised, rows_of: Rows) -> None:
    rows = rows_of("SELECT firm, count(*), count(value) FROM diagnostic.comovement_measure GROUP BY firm")
    assert {(count, known > 30) for _, count, known in rows} == {(34, True)}
    rows = rows_of("SELECT firm, count(*), count(value) FROM diagnostic.difficulty_feature GROUP BY firm")
    assert {(count, known) for _, count, known in rows} == {(21, 21)}
    assert rows_of("SELECT count(*) FROM diagnostic.firm_history WHERE scale > 0 AND dispersion >= 0") == [
        (2,)
    ]
    assert made.missing("firm_measures") == {}
    metadata = made.metadata("firm_measures", made.units[0])
    assert metadata["rows"].value == 34 + 21 + 1


def test_what_two_firms_cannot_carry_is_said(rows_of: Rows) -> None:
    rows = dict(rows_of("SELECT diagnostic, note FROM diagnostic.status WHERE NOT made"))
    assert set(rows) == {"comovement", "difficulty", "routing"}
    assert "needs forecasts by cbmt and single_task" in rows["comovement"]
    assert rows["difficulty"] == "needs 30 firms with a forecast by cohort_glm; there are 2"
    assert rows_of("SELECT count(*), count(phe) FROM diagnostic.predicted_error") == [(2, 0)]
    assert rows_of("SELECT count(*) FROM exhibit.contextual_features") == [(21,)]


def test_calibration_adds_up_the_tickers_firms(rows_of: Rows) -> None:
    rows = rows_of(
        "SELECT horizon, quarter, firms, model, panel_sales FROM diagnostic.calibration_quarter ORDER BY horizon"
    )
    assert [row[:4] for row in rows] == [(f"Q{k}", f"2019Q{k + 1}", 2, "cohort_glm") for k in (1, 2, 3)]
    for (*_, sales), (_, first, last) in zip(rows, QUARTERS[1:], strict=True):
        expected = rows_of(
            f"SELECT sum(sales) FROM firm_week WHERE week BETWEEN DATE '{first}' AND DATE '{last}'"
        )
        assert sales == pytest.approx(float(expected[0][0]))
    analysts = rows_of("SELECT DISTINCT analyst_smape, firms, analyst_se FROM exhibit.external_calibration")
    assert analysts == [(pytest.approx(200 * 10 / 210), 1, None)]


def test_a_mistake_in_a_table_stops_calibration_alone(made: Materialised) -> None:
    file = made.project.root / "forecasts.csv"
    good = file.read_text()

    def to_make() -> bool:
        return bool(State(made.project, the_plan()).todo(the_plan()["external_calibration"]))

    assert not to_make()
    try:
        file.write_text(good.replace("2019-01-31,110,100", "soon,110,100", 1))
        assert to_make()
        with pytest.raises(
            dg.Failure, match=r"forecasts\.csv: row 1 .*made_on is 'soon', must be a day"
        ) as failed:
            made.make(["external_calibration"])
        assert not failed.value.allow_retries
        states = duckdb.sql(
            f"FROM {made.project.lake.relation(DIAGNOSTIC_TABLES['diagnostic'])} "
            "WHERE diagnostic = 'external_calibration'"
        )
        assert [note for note in states.df()["note"] if "made_on is 'soon'" in note]
        assert to_make(), "a mended table is read"
    finally:
        file.write_text(good)
        made.make(["external_calibration"])
    assert not to_make()


def test_every_table_of_the_diagnostics_is_published(rows_of: Rows) -> None:
    names = rows_of("SELECT schema_name || '.' || table_name FROM duckdb_tables()")
    assert {table.relation for table in DIAGNOSTIC_TABLES.values()} <= {name for (name,) in names}
