"""The summary at the end of `cbmt run`: errors of models, failures, and where the results are."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from cbmt_pipeline.progress import console
from cbmt_pipeline.project import Project

__all__ = ["print_summary"]

MOST_MODELS = 5
"""Models of the study that are shown unless all are asked for."""


def print_summary(project: Project, seconds: float, changed: bool, verbose: bool) -> None:
    """Print the summary.

    Args:
        seconds: how long the run took.
        changed: whether it made anything.
        verbose: whether to show all models of the study, fits that failed in it, diagnostics that are missing, and the
            rows of each table.
    """
    import duckdb

    with duckdb.connect(str(project.warehouse), read_only=True) as con:
        errors = con.execute(
            "SELECT model, firms, mean, median, average_rank, reference FROM accuracy_summary WHERE metric = 'smape' "
            "AND outcome = 'total_sales' AND horizon = 'full' AND industry = '(all)' ORDER BY mean"
        ).fetchall()
        ((forecast_firms,),) = con.execute(
            "SELECT count(DISTINCT firm) FROM accuracy JOIN firm USING (firm) WHERE segment IS NULL"
        ).fetchall()
        lacking = con.execute("SELECT diagnostic, note FROM diagnostic.status WHERE NOT made").fetchall()
        failed = con.execute(
            "SELECT model, purpose, count(*), min_by(firm, firm), min_by(reason, firm) FROM model_fit "
            "WHERE NOT succeeded GROUP BY model, purpose ORDER BY ALL"
        ).fetchall()
        ahead, first, last = con.execute(
            "SELECT count(DISTINCT firm), min(week), max(week) + 6 FROM forecast"
        ).fetchall()[0]
        example = con.execute("SELECT min(firm) FROM forecast").fetchall()[0][0]
        sizes = con.execute(
            "SELECT schema_name, string_agg(concat(table_name, ' ', format('{:,}', estimated_size)), ', ' "
            "ORDER BY table_name) FROM duckdb_tables() GROUP BY schema_name ORDER BY schema_name = 'main' DESC, 1"
        ).fetchall()
    listed = changed or verbose
    if listed and errors:
        _print_study(errors, forecast_firms, verbose)
    if listed:
        for model, purpose, count, firm, reason in failed:
            if verbose or purpose == "live":
                others = f" and {count - 1:,} more (see model_fit)" if count > 1 else ""
                console.print(f"{model} ({purpose}) failed for {firm}{others}: {reason}", markup=False)
    if verbose:
        for diagnostic, note in lacking:
            console.print(f"no {diagnostic.replace('_', ' ')}: {note}")
        for schema, tables in sizes:
            console.print(f"rows in {schema}: {tables}", markup=False)
    if ahead:
        firm = "FIRM" if ahead > 1 else f'"{example}"' if " " in example else example
        console.print(
            f"\n{ahead:,} {'firm has' if ahead == 1 else 'firms have'} a live forecast, from {first} to "
            f"{last}: cbmt forecast {firm}",
            markup=False,
        )
    hidden = (
        0 if verbose or not changed else len(lacking) + sum(purpose != "live" for _, purpose, *_ in failed)
    )
    more = "; `cbmt run -v` says more" if hidden else ""
    console.print(f"{'made' if changed else 'checked'} in {seconds:.0f} s{more}")
    console.print(f"  DuckDB file  {project.warehouse}   (open it read-only: duckdb -readonly)")
    console.print(f"  report       {project.report}   (open it in a browser)")
    console.print("  UI           cbmt ui, then http://127.0.0.1:3000")


def _print_study(errors: list[tuple[Any, ...]], forecast_firms: int, verbose: bool) -> None:
    """The models of the study by their error, the smallest first."""
    title = "study: holdout error of total sales, SMAPE"
    table = Table("model", "firms", "mean", "median", "rank", title=title)
    for column in table.columns[1:]:
        column.justify = "right"
    shown = errors if verbose else errors[:MOST_MODELS]
    for model, firms, mean, median, rank, _ in shown:
        place = "" if rank is None else f"{rank:.1f}"
        table.add_row(model, str(firms), f"{mean:.2f}", f"{median:.2f}", place)
    console.print(table)
    if len(shown) < len(errors):
        console.print(
            f"and {len(errors) - len(shown)} more models: `cbmt run -v`, or the table accuracy_summary"
        )
    _, compared, *_, reference = errors[0]
    if compared < forecast_firms:
        console.print(
            f"compared on the {compared:,} of {forecast_firms:,} firms that have a forecast by {reference}; "
            "run it for the others too"
        )
