"""The page of the paper's figures: all fourteen and the algorithm, each drawn or with the reason why not."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator

import duckdb
import numpy as np
import pandas as pd
import pytest
from helpers.published import publish

from cbmt_core import duck
from cbmt_core.exhibits.figures import FIGURES
from cbmt_core.report import paper_figures
from cbmt_core.report.pages import write_report
from cbmt_core.report.paper_page import paper_context

FIRMS = ("Firm 000", "Firm <1>")


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duck.connect() as connection:
        publish(connection, FIRMS, models=["cohort_glm"])
        yield connection


@pytest.mark.slow
def test_every_figure_is_drawn_linked_or_says_what_is_missing(con, tmp_path):
    write_report(con, tmp_path)
    page = (tmp_path / "paper.html").read_text()
    for figure in FIGURES:
        assert f'id="{figure.label.replace(":", "-")}"' in page
    assert page.count("data:image/png;base64,") == 6, "the seventh needs bridges of cbmt, which has not run"
    assert "Not drawn: needs bridges of cbmt" in page
    assert page.count("<li>") == 9, "the algorithm"
    assert "Firm <1>" not in page, "names are escaped"
    linked = set(re.findall(r'href="([a-z]+\.html)"', page))
    assert all((tmp_path / name).exists() for name in linked)
    assert 'href="paper.html"' in (tmp_path / "index.html").read_text()


@pytest.mark.slow
def test_pictures_are_pictures(con):
    for figure in paper_context(con)["figures"]:
        if figure["picture"]:
            assert base64.b64decode(figure["picture"]).startswith(b"\x89PNG")


def test_bridge_cases_are_firms_that_changed_alike_for_different_reasons():
    realised = pd.DataFrame(
        {
            "firm": list("abcd"),
            "sales_change_points": [9.0, 7.0, 8.5, -30.0],
            "order_volume_points": [7.0, -3.0, 5.0, -40.0],
        }
    )
    assert paper_figures._pair(realised) == ["a", "b"]
    assert paper_figures._pair(realised.iloc[:1]) == ["a"]


@pytest.mark.slow
def test_cases_of_a_model_that_has_run_are_drawn(con):
    firms, picture = paper_figures.bridge_cases(con, "cohort_glm") or ([], b"")
    assert firms == sorted(FIRMS)
    assert picture.startswith(b"\x89PNG")
    assert paper_figures.bridge_cases(con, "rf") is None
    assert not np.isnan(con.execute("SELECT sum(baseline_sales) FROM bridge").fetchone()[0])
