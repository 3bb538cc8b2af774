"""Real orders: nothing is lost between the file and the cohort tables, to the cent."""

from pathlib import Path

import duckdb
import pytest

from cbmt_core.cohorts import make_cohort_week, make_firm_week
from cbmt_core.config import ProjectConfig
from cbmt_core.names import Unit
from cbmt_core.stored_panel import read_panel
from cbmt_core.transactions import Intake, project_timeline
from cbmt_core.transactions.orders import make_orders

DATA = Path(__file__).parents[2] / "shared" / "data"
COLUMNS = {
    "firm": "firm_id",
    "customer": "customer_id",
    "order_id": "order_id",
    "order_time": "order_ts",
    "amount": "amount",
}
CENTS = "CAST(round(sum(amount) * 100) AS BIGINT)"


def ingest(folder, name):
    file = DATA / f"{name}.parquet"
    if not file.exists():
        pytest.skip(f"{file.name} is not in {DATA}: put the real data beside the checkout to run this")
    project = ProjectConfig.from_mapping(
        {
            "sources": [
                {
                    "name": name,
                    "path": str(file),
                    "currency": "GBP",
                    "timezone": "Europe/London",
                    "columns": COLUMNS,
                }
            ],
            "design": {"country": "GB"},
        },
        "test",
    )
    intake = Intake(folder / "intake")
    assert intake.update(project, folder).failed == {}
    return project, intake, f"read_parquet('{file}')"


def in_file(relation, where="true"):
    return duckdb.sql(f"SELECT count(*), {CENTS} FROM {relation} WHERE {where}").fetchall()[0]


def test_the_web_shop_keeps_every_order_and_penny(tmp_path):
    project, intake, file = ingest(tmp_path, "online_retail_ii")
    (entry,) = intake.ledger()
    assert (entry.rows, entry.bad_rows) == (36_969, 0)
    (unit,) = intake.units()
    design = project_timeline(intake, project)
    assert design.washout_weeks == 13  # 104 whole weeks: two years from a Tuesday to a Friday
    with duckdb.connect() as con:
        counts = make_orders(con, unit, intake, {s.name: s for s in project.sources}, design)
        assert (counts.rows_used, counts.rows_quarantined) == (36_969, 0)
        assert con.execute(f"SELECT count(*), {CENTS} FROM transactions").fetchall()[0] == in_file(file)
        make_cohort_week(con, unit, "transactions", design)
        make_firm_week(con, unit, "cohort_week", design)
        study = f"order_ts >= DATE '{design.panel.first}' AND order_ts < DATE '{design.panel.last_day}' + 1"
        total = con.execute(
            "SELECT sum(orders), CAST(round(sum(sales) * 100) AS BIGINT) FROM firm_week"
        ).fetchall()
        assert total[0] == in_file(file, study)
        panel = read_panel(con, unit.firm, design, orders="transactions")
        assert panel.S.sum() * 100 == pytest.approx(in_file(file, study)[1])
        assert panel.customers.start[-1] == in_file(file, study)[0]
        in_study = duckdb.sql(
            f"SELECT count(DISTINCT customer_id) FROM {file} WHERE order_ts < DATE '{design.panel.last_day}' + 1"
        ).fetchall()[0][0]
        assert panel.size.sum() == in_study


def test_the_purchase_cards_keep_every_order_and_penny(tmp_path):
    project, intake, file = ingest(tmp_path, "birmingham_pcard_2015_2017")
    (entry,) = intake.ledger()
    assert (entry.rows, entry.bad_rows) == (69_670, 0)
    units = intake.units()
    assert {unit.firm for unit in units} == {
        firm for (firm,) in duckdb.sql(f"SELECT DISTINCT firm_id FROM {file}").fetchall()
    }
    assert len(units) == 248
    design = project_timeline(intake, project)
    rows = orders = cents = 0
    with duckdb.connect() as con:
        for unit in list(units)[:40]:
            counts = make_orders(con, unit, intake, {s.name: s for s in project.sources}, design)
            rows += counts.rows_in
            orders += counts.orders
            cents += con.execute(f"SELECT {CENTS} FROM transactions").fetchall()[0][0]
            assert counts.rows_quarantined == 0
        names = [unit.firm for unit in list(units)[:40]]
        con.execute("CREATE TABLE chosen AS SELECT unnest(?) AS firm_id", [names])
        expected = con.execute(
            f"SELECT count(*), {CENTS} FROM {file} SEMI JOIN chosen USING (firm_id)"
        ).fetchall()[0]
    assert (orders, cents) == expected
    assert rows == orders
    assert Unit("TRAVELODGE") in units
