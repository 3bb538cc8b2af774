"""The diagnostics' page: where joint forecasting helps, which firms are hard, which model to deploy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import pandas as pd
from markupsafe import Markup

from cbmt_core.exhibits import LABELS
from cbmt_core.metrics import OUTCOMES
from cbmt_core.report import diagnostic_charts as charts
from cbmt_core.report import diagnostic_words as words
from cbmt_core.report.firm_page import OUTCOME_NAMES
from cbmt_core.report.numbers import count, percent, value
from cbmt_core.report.panel_outlook import link
from cbmt_core.report.rows import query, records
from cbmt_core.report.svg import BLUE, PALETTE

__all__ = ["diagnostic_context"]

DIFFICULTY = ("bands", "band_models", "importance", "shap", "r2", "r2_models", "grid", "grid_legend")
UNITS = {
    "points": "points",
    "probability per SD": "per SD",
    "odds ratio per SD": "× odds per SD",
    "log odds per SD": "log odds per SD",
}
LEVELS = ("low", "medium", "high")
HARDEST = 12
EXHIBITS = (
    "families", "comovement_tests", "comovement_terciles", "comovement_columns", "predicted_difficulty",
    "difficulty_r2", "feature_importance", "shap_dependence", "win_rates", "base_rates", "routing_resplits",
    "external_calibration",
)  # fmt: skip


def diagnostic_context(con: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """The context of the page's template, from the published tables."""
    shown = {name: query(con, f'SELECT * FROM exhibit.{name} ORDER BY "row"') for name in EXHIBITS}
    states = {row["diagnostic"]: row for row in records(query(con, "SELECT * FROM diagnostic.status"))}
    made = {name for name, state in states.items() if state["made"]}
    about = {name: state["note"] for name, state in states.items()}
    return {
        "headline": words.headline(shown, made),
        "lead": words.lead(shown, made),
        "needs": {
            name: about.get(name, "it has not been made yet")
            for name in ("comovement", "difficulty", "routing", "external_calibration")
            if name not in made
        },
        "about": about,
        "outcomes": OUTCOME_NAMES,
        "families": _families(shown["families"]),
        "tests": [_test(row) for row in records(shown["comovement_tests"])],
        "terciles": _terciles(shown["comovement_terciles"]),
        "columns": _columns(shown["comovement_columns"]),
        "survivors": int(shown["comovement_columns"]["survives"].fillna(False).sum()),
        **_difficulty(shown, "difficulty" in made),
        "hardest": _hardest(con),
        "base_rates": [
            (
                row["label"],
                value(row["smape"], 2),
                f"{count(row['to_cbmt'])} / {count(row['to_single_task'])}",
            )
            for row in records(shown["base_rates"])
        ],
        "base_firms": count(shown["base_rates"]["firms"].max()) if len(shown["base_rates"]) else "0",
        "resplits": [_policy(row) for row in records(shown["routing_resplits"])],
        "splits": count(shown["routing_resplits"]["splits"].max()) if len(shown["routing_resplits"]) else "0",
        "calibration": [_quarter(row) for row in records(shown["external_calibration"])],
        "calibrated": next((row["label"] for row in records(shown["external_calibration"])), ""),
    }


def _families(rows: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {
            "name": row["family"],
            "parts": (row["shared_representation"], row["revenue_alignment"]),
            "cells": [
                percent(row[name], plus=True) if row["panel"] == "improvement" else value(row[name], 2)
                for name in OUTCOMES
            ],
            "improvement": row["panel"] == "improvement",
        }
        for row in records(rows)
    ]


def _test(row: Mapping[str, Any]) -> tuple[str, ...]:
    digits = 1 if row["unit"] == "points" else 3
    interval = "–" if row["low"] is None else f"{value(row['low'], digits)} to {value(row['high'], digits)}"
    estimate = "–" if row["estimate"] is None else f"{value(row['estimate'], digits)} {UNITS[row['unit']]}"
    p, adjusted = words.p_value(row["p"]), "–"
    if row["adjusted_estimate"] is not None:
        adjusted = f"{value(row['adjusted_estimate'], digits)} (p {words.p_value(row['adjusted_p'])})"
    return (
        row["label"],
        row["specification"],
        estimate,
        interval,
        p,
        adjusted,
        count(row["firms"]),
        row["note"],
    )


def _terciles(rows: pd.DataFrame) -> Markup | None:
    known = rows.dropna(subset=["rate"])
    if known.empty:
        return None
    bars = [
        charts.RateBar(
            f"{row['tercile'].capitalize()} ({row['firms']})", row["rate"], row["low"], row["high"],
            f"{row['tercile'].capitalize()} co-movement: {row['wins']} of {row['firms']} firms",
        )
        for row in records(known)
    ]  # fmt: skip
    return charts.bars(
        "Joint-model win rate by tercile",
        bars,
        "co-movement score; firms in brackets, lines are 95% intervals",
    )


def _columns(rows: pd.DataFrame) -> Markup | None:
    known = rows.dropna(subset=["coefficient"]).sort_values("coefficient", ascending=False)
    if known.empty:
        return None
    return charts.estimates(
        "Association of each measure with a win of joint forecasting",
        [
            charts.EstimateRow(
                row["measure"].replace("_", " "), row["coefficient"],
                row["coefficient"] - 1.96 * row["se"], row["coefficient"] + 1.96 * row["se"],
                bool(row["survives"]), f"q\t{words.p_value(row['q'])}",
            )
            for row in records(known)
        ],
        "log odds of a win per standard deviation; blue where q is below 0.10",
        width=charts.WIDE, left=230, tall=18,
    )  # fmt: skip


def _difficulty(shown: Mapping[str, pd.DataFrame], made: bool) -> dict[str, Any]:
    if not made:
        return dict.fromkeys(DIFFICULTY)
    bands, r2, grid = shown["predicted_difficulty"], shown["difficulty_r2"], shown["win_rates"]
    models = list(dict.fromkeys(grid["model"]))
    colours = dict(zip(models, PALETTE, strict=False))
    return {
        "band_models": _names(bands),
        "bands": _bands(bands),
        "importance": _importance(shown["feature_importance"]),
        "shap": _shap(shown["shap_dependence"]),
        "r2_models": _names(r2),
        "r2": _r2(r2),
        "grid": _grid(grid, colours),
        "grid_legend": [(LABELS.get(name, name), colour) for name, colour in colours.items()],
    }


def _names(rows: pd.DataFrame) -> list[str]:
    return list(dict.fromkeys(rows["label"]))


def _bands(rows: pd.DataFrame) -> list[dict[str, Any]]:
    out = []
    for band, part in rows.groupby("band", sort=False):
        parts = records(part)
        cells = [
            value(row["smape"], 1) + (f" ({percent(row['reduction'], digits=0)})" if k else "")
            for k, row in enumerate(parts)
        ]
        own = parts[0]
        wins = f"{value(own['wins'], 0)} of {count(own['in_band'])}"
        out.append(
            {"band": str(band).capitalize(), "phe": value(own["phe"], 1), "cells": cells, "wins": wins}
        )
    return out


def _importance(rows: pd.DataFrame) -> Markup:
    return charts.estimates(
        "Permutation importance",
        [
            charts.EstimateRow(
                row["label"], row["importance"], row["low"], row["high"], row["feature"] != "all other features"
            )
            for row in records(rows)
        ],
        "decline of R² when the feature is shuffled across firms",
        left=200,
    )  # fmt: skip


def _shap(rows: pd.DataFrame) -> list[tuple[str, Markup]]:
    out = []
    for feature, part in rows.groupby("feature", sort=False):
        label = str(part["label"].iloc[0])
        points = [(row["firm"], float(row["value"]), float(row["shap"])) for row in records(part)]
        # Scale spans orders of magnitude; volatility does not.
        log = feature == "total_orders" and min(p[1] for p in points) > 0
        out.append(
            (
                label,
                charts.dependence(
                    label, points, label[0].lower() + label[1:], "points of predicted error", log=log
                ),
            )
        )
    return out


def _r2(rows: pd.DataFrame) -> list[tuple[str, str, list[str]]]:
    names = {"gbr": "Gradient boosting", "elastic_net": "Elastic net"}
    models = list(dict.fromkeys(rows["model"]))
    return [
        (
            OUTCOME_NAMES[str(outcome)],
            names[str(meta)],
            [value(v, 3) for v in part.set_index("model")["r2"].reindex(models)],
        )
        for (outcome, meta), part in rows.groupby(["outcome", "meta_model"], sort=False)
    ]


def _grid(rows: pd.DataFrame, colours: Mapping[str, str]) -> Markup:
    cells: dict[tuple[str, str], tuple[int, Sequence[charts.RateBar]]] = {}
    for (scale, volatility), part in rows.groupby(["scale", "volatility"], sort=False):
        found = records(part)
        bars = [
            charts.RateBar(
                row["label"], float("nan") if row["win_rate"] is None else row["win_rate"], row["low"], row["high"],
                f"{row['label']}: {scale} scale, {volatility} volatility", colours.get(row["model"], BLUE),
            )
            for row in found
        ]  # fmt: skip
        cells[(str(scale), str(volatility))] = (int(found[0]["in_cell"] or 0), bars)
    return charts.win_grid("Win rates by scale and volatility", cells, LEVELS)


def _hardest(con: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    """Firms with the largest predicted error, and which model the logistic rule would give them."""
    rows = query(
        con,
        "SELECT p.firm, slug, phe, smape, c.model FROM diagnostic.predicted_error p JOIN firm USING (firm) "
        "LEFT JOIN diagnostic.routing_choice c ON c.firm = p.firm AND c.policy = 'logistic' "
        f"WHERE phe IS NOT NULL ORDER BY phe DESC, p.firm LIMIT {HARDEST}",
    )
    return [
        {
            "name": row["firm"],
            "link": link(row["slug"]),
            "phe": percent(row["phe"]),
            "smape": percent(row["smape"]) if row["smape"] is not None else "no holdout yet",
            "model": LABELS.get(row["model"], "–") if row["model"] else "–",
        }
        for row in records(rows)
    ]


def _policy(row: Mapping[str, Any]) -> tuple[str, ...]:
    fixed = row["policy"] in ("always_cbmt", "always_single_task", "oracle")
    return (
        row["label"],
        value(row["smape"], 3),
        value(row["sd"], 3),
        "–" if fixed else f"{count(row['better'])} / {count(row['worse'])}",
        value(row["to_single_task"], 2),
        value(row["primary_smape"], 3),
        count(row["primary_to_single_task"]),
    )


def _quarter(row: Mapping[str, Any]) -> tuple[str, ...]:
    def with_error(mean: float | None, se: float | None) -> str:
        return value(mean, 2) + (f" ({value(se, 2)})" if se is not None else "")

    return (
        row["horizon"],
        with_error(row["model_smape"], row["model_se"]),
        with_error(row["analyst_smape"], row["analyst_se"]),
        count(row["firms"]),
    )
