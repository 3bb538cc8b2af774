"""A notebook and the pipeline agree: the same orders give the same panel, forecast and bridge."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import pytest
from helpers.demo_project import FIRM

import cbmt_core as cbmt
from cbmt_core.names import UnknownFirm
from cbmt_pipeline.project import Project

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("demo")]


@pytest.fixture(scope="module")
def panels(demo: Project) -> cbmt.Panels:
    files = sorted((demo.root / "economy/orders").glob("*.csv"))
    orders = pd.concat([pd.read_csv(file, dtype=str) for file in files], ignore_index=True)
    with pytest.warns(cbmt.RowsNotUsed, match="3 of"):
        return cbmt.panels_from_orders(orders, country="US", timezone="America/New_York")


def test_panels_are_those_of_the_published_file(demo: Project, panels: cbmt.Panels) -> None:
    for firm, panel in panels.items():
        published = cbmt.read_panel(demo.warehouse, firm)
        assert panel.digest == published.digest
        assert panel.design == published.design
        np.testing.assert_array_equal(panel.customers.week, published.customers.week)
        assert published.forecast("seasonal_naive").bridge().equals(panel.forecast("seasonal_naive").bridge())
    assert len(panels) == 3
    with pytest.raises(UnknownFirm, match=f"did you mean {FIRM}"):
        cbmt.read_panel(str(demo.warehouse), FIRM.upper())


def test_forecasts_and_bridges_are_the_published_ones(demo: Project, panels: cbmt.Panels) -> None:
    forecast = panels[FIRM].forecast("cohort_glm", weeks=52)
    with duckdb.connect(str(demo.warehouse), read_only=True) as con:
        week = con.execute(
            "SELECT acquired, orders, sales FROM forecast_week WHERE firm = ? AND model = 'cohort_glm' "
            "AND purpose = 'live' ORDER BY week",
            [FIRM],
        ).df()
        bridge = con.execute(
            "SELECT baseline_sales, order_volume, spend_per_order, net_replenishment, target_sales FROM bridge "
            "WHERE firm = ? AND model = 'cohort_glm' AND purpose = 'live'",
            [FIRM],
        ).fetchall()
    np.testing.assert_allclose(forecast.to_frame()[["acquired", "orders", "sales"]].astype(float), week)
    assert tuple(forecast.bridge()["sales"]) == pytest.approx(bridge[0])
