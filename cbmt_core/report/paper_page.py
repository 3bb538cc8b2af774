"""The page of the paper's figures and its algorithm."""

from __future__ import annotations

import base64
from typing import Any

import duckdb

from cbmt_core.exhibits.figures import FIGURES
from cbmt_core.models.neural.config import NetworkConfig
from cbmt_core.report import paper_drawings, paper_figures
from cbmt_core.report.rows import query, records

__all__ = ["paper_context"]

MODEL = "cbmt"
"""Model of the bridge cases: the paper's. The page of a firm shows the model to plan with."""


def paper_context(con: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """The context of the template: figures as embedded pictures, or why one is missing."""
    firm = paper_figures.example_firm(con)
    found = con.execute("SELECT currency FROM firm WHERE firm = ?", [firm]).fetchone() if firm else None
    currency = str(found[0]) if found else ""
    sizes = NetworkConfig()
    windows = con.execute(
        "SELECT \"window\", first_week, last_week FROM study_window WHERE \"window\" IN ('calibration', 'holdout') "
        "AND weeks > 0"
    ).fetchall()
    cases = paper_figures.bridge_cases(con, MODEL)
    pictures: dict[str, bytes | None] = {
        "fig:substantive_goal": paper_figures.decomposition(con, firm, currency) if firm else None,
        "fig:earnest_visualize": paper_figures.firm_map(con),
        "fig:model-free-evidence": paper_figures.cohort_lines(con, firm) if firm else None,
        "fig:simpler_model": paper_drawings.overview(sizes.lookback),
        "fig:cohort-triangle": paper_drawings.cohort_triangle(windows) if len(windows) == 2 else None,
        "fig:source_cases": cases[1] if cases else None,
        "fig:MTL": paper_drawings.architecture(
            lookback=sizes.lookback, width=sizes.width, heads=sizes.heads, feed_forward=sizes.feed_forward,
            encoder=sizes.encoder_layers, decoder=sizes.decoder_layers, head_width=sizes.head_width,
        ),
    }  # fmt: skip
    notes = {
        "fig:MTL": "As the paper specifies it, with the sizes of the code's default setting.",
        "fig:substantive_goal": f"{firm}, the firm with the most customers." if firm else "",
        "fig:model-free-evidence": f"{firm}. Early cohorts are red, late ones blue.",
        "fig:earnest_visualize": "Averages of the calibration, times 52; firms of different currencies share the axis.",
        "fig:source_cases": f"Sales changed alike, for different reasons; bridges of {MODEL}. Points are percent of "
        "the baseline's sales; the axis does not begin at zero.",
    }
    missing = {
        "fig:source_cases": f"needs bridges of {MODEL}, which has not run here",
        "fig:cohort-triangle": "needs a study with a holdout",
    }
    return {
        "figures": [
            {
                "label": figure.label,
                "title": figure.title,
                "page": figure.page,
                "note": notes.get(figure.label, ""),
                "picture": base64.b64encode(picture).decode()
                if (picture := pictures.get(figure.label))
                else "",
                "missing": missing.get(figure.label, "no data yet") if figure.label in pictures else "",
                "link": "" if figure.label in pictures else figure.page.removeprefix("report/"),
            }
            for figure in FIGURES
        ],
        "algorithm": records(query(con, 'SELECT * FROM exhibit.walk_forward_algorithm ORDER BY "row"')),
    }
