"""A project's published file, opened for reading, with what the results need beside its tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import duckdb
import pandas as pd

from cbmt_core.duck import literal, path_literal
from cbmt_core.exhibits import LABELS
from panel_results.statistics import PAIRED, against, correlation, explained, oracle

__all__ = ["Evidence"]

REFERENCES = ("cbmt", "cbmt_plus", "joint")
EXTRA_LABELS = {
    "mstl": "MSTL", "auto_ets": "AutoETS", "auto_arima": "AutoARIMA",
    "auto_arima_fourier": "AutoARIMA, Fourier", "prophet": "Prophet",
}  # fmt: skip
MACROS = """
    CREATE TEMP MACRO d1(x) AS printf('%.1f', x::DOUBLE);
    CREATE TEMP MACRO d2(x) AS printf('%.2f', x::DOUBLE);
    CREATE TEMP MACRO d3(x) AS printf('%.3f', x::DOUBLE);
    CREATE TEMP MACRO signed(x) AS printf('%+.1f', x::DOUBLE);
    CREATE TEMP MACRO pct(x) AS printf('%.1f %%', 100 * x::DOUBLE);
    CREATE TEMP MACRO pv(x) AS CASE WHEN x < 0.0005 THEN '< 0.001' ELSE printf('%.3f', x::DOUBLE) END;
    CREATE TEMP MACRO span(low, high) AS printf('[%.2f, %.2f]', low::DOUBLE, high::DOUBLE);
    CREATE TEMP MACRO named(m) AS coalesce((SELECT label FROM label WHERE label.model = m), m);
"""
EMPTY_ERRORS = """SELECT NULL::VARCHAR AS firm, NULL::VARCHAR AS model, NULL::VARCHAR AS outcome,
    NULL::VARCHAR AS horizon, NULL::DOUBLE AS smape, NULL::DOUBLE AS mase WHERE false"""
# Whole firms at the study's origin; a rolling origin would count a firm more than once.
ERRORS = """SELECT firm, model, outcome, horizon, smape, mase FROM accuracy JOIN firm USING (firm)
    WHERE segment IS NULL AND origin = (SELECT first_week - 7 FROM study_window WHERE "window" = 'holdout')"""

FEATURE = """SELECT value, smape FROM diagnostic.difficulty_feature JOIN errors USING (firm) WHERE feature = '{}'
    AND model = 'cbmt' AND outcome = 'cohort_sales' AND horizon = 'full'"""
STATISTICS = {
    "hidden": (
        correlation,
        "SELECT score, comovement FROM diagnostic.comovement_score JOIN hidden USING (firm)",
    ),
    "hidden_adjusted": (
        correlation,
        "SELECT adjusted_score, comovement FROM diagnostic.comovement_score JOIN hidden USING (firm)",
    ),
    "scale": (correlation, FEATURE.format("total_orders")),
    "volatility": (correlation, FEATURE.format("cohort_sales_cv")),
    "phe": (
        correlation,
        "SELECT phe, smape FROM diagnostic.predicted_error WHERE out_of_fold AND model = 'cbmt'",
    ),
    "phe_r2": (
        explained,
        "SELECT phe, smape FROM diagnostic.predicted_error WHERE out_of_fold AND model = 'cbmt'",
    ),
    "oracle": (
        oracle,
        """SELECT c.smape, s.smape AS single FROM errors c JOIN errors s USING (firm, outcome, horizon)
            WHERE outcome = 'total_sales' AND horizon = 'full' AND c.model = 'cbmt' AND s.model = 'single_task'""",
    ),
}


class Evidence:
    """SQL on `data/cbmt.duckdb`, read-only, and on a few relations made beside it:

    `errors` (accuracy of whole firms at the study's origin, and the topline models' if they have run), `paired`
    (models against references on the firms both have), `hidden` (the simulator's co-movement), `statistic`
    (correlations, R² and the oracle, with intervals) and `label`. A table that is missing has no rows.
    """

    def __init__(self, project: Path) -> None:
        self.project = project
        self.con = duckdb.connect(str(project / "data" / "cbmt.duckdb"), read_only=True)
        self.con.execute("SET threads = 1; SET enable_progress_bar = false")
        labels = {**LABELS, **EXTRA_LABELS}
        self._keep("label", pd.DataFrame(labels.items(), columns=["model", "label"]), ["model", "label"])
        self.con.execute(MACROS)
        self._errors()
        self._hidden()
        self._paired()
        self._statistics()

    def rows(self, sql: str) -> list[dict[str, object]]:
        """Rows by column name; none where a table the query names is not in the file."""
        try:
            result = self.con.execute(sql)
        except duckdb.CatalogException:
            return []
        names = [column[0] for column in result.description]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]

    def frame(self, sql: str, columns: Sequence[str]) -> pd.DataFrame:
        return pd.DataFrame(self.rows(sql), columns=list(columns))

    def note(self, diagnostic: str) -> str:
        """Why one of the diagnostics could not be made; nothing if it was."""
        rows = self.rows(f"SELECT made, note FROM diagnostic.status WHERE diagnostic = {literal(diagnostic)}")
        return "it has not run" if not rows else "" if rows[0]["made"] else str(rows[0]["note"])

    def _keep(self, name: str, frame: pd.DataFrame, texts: Sequence[str]) -> None:
        """A relation beside the file's, whose columns are texts or numbers, also without rows."""
        kinds = {column: "VARCHAR" if column in texts else "DOUBLE" for column in frame.columns}
        columns = ", ".join(f'CAST("{column}" AS {kind}) AS "{column}"' for column, kind in kinds.items())
        self.con.register("rows", frame)
        self.con.execute(f"CREATE TEMP TABLE {name} AS SELECT {columns} FROM rows")
        self.con.unregister("rows")

    def _errors(self) -> None:
        parts = [ERRORS if self.rows("SELECT 1 FROM accuracy LIMIT 1") else EMPTY_ERRORS]
        topline = self.project / "topline.jsonl"
        if topline.exists() and topline.stat().st_size:
            parts.append(f"""SELECT firm, model, 'total_sales', 'full', smape::DOUBLE, mase::DOUBLE
                FROM read_json({path_literal(topline)}, format = 'newline_delimited') WHERE smape IS NOT NULL""")
        self.con.execute(f"CREATE TEMP TABLE errors AS {' UNION ALL '.join(parts)}")

    def _hidden(self) -> None:
        files = sorted((self.project / "data" / "raw" / "economy" / "truth").glob("*.json"))
        truth = [json.loads(path.read_text(encoding="utf-8")) for path in files]
        rows = [(firm["firm"], firm["comovement"]) for firm in truth]
        self._keep("hidden", pd.DataFrame(rows, columns=["firm", "comovement"]), ["firm"])

    def _paired(self) -> None:
        """Every model against the references, on the firms both have, over the full holdout."""
        errors = self.frame(
            "SELECT * FROM errors WHERE horizon = 'full'",
            ["firm", "model", "outcome", "smape", "mase"],
        )
        rows = [
            {"reference": reference, "model": model, "outcome": outcome, "metric": metric, **found}
            for outcome, part in errors.groupby("outcome")
            for metric in ("smape", "mase")
            for table in [part.pivot_table(index="firm", columns="model", values=metric)]
            for reference in REFERENCES
            for model in table.columns.difference([reference])
            if reference in table and (found := against(table[reference], table[model]))
        ]
        texts = ["reference", "model", "outcome", "metric"]
        self._keep("paired", pd.DataFrame(rows, columns=[*texts, *PAIRED]), texts)

    def _statistics(self) -> None:
        found = {name: make(*self._pair(sql)) for name, (make, sql) in STATISTICS.items()}
        frame = pd.DataFrame([{"name": name, **values} for name, values in found.items()])
        self._keep("statistic", frame, ["name"])

    def _pair(self, sql: str) -> tuple[pd.Series[float], pd.Series[float]]:
        rows = [tuple(row.values()) for row in self.rows(sql)]
        frame = pd.DataFrame(rows, columns=["x", "y"], dtype=float).dropna()
        return frame["x"], frame["y"]
