"""`cbmt export`: the published tables as a self-contained file or folder."""

from __future__ import annotations

import time
from pathlib import Path

import click

from cbmt_core.errors import CbmtError
from cbmt_pipeline.cli_run import chosen_firms
from cbmt_pipeline.plan import the_plan
from cbmt_pipeline.progress import News, ProgressBar, console
from cbmt_pipeline.project import Project

__all__ = ["export"]


@click.command()
@click.argument("target", type=click.Path(path_type=Path))
@click.option("--firm", "firms", multiple=True, help="Only this firm's rows; may be repeated.")
@click.option("--overwrite", is_flag=True, help="Replace what is at TARGET.")
@click.pass_obj
def export(project: Project, target: Path, firms: tuple[str, ...], overwrite: bool) -> None:
    """Write the published tables to a file or folder that needs nothing else.

    TARGET is a DuckDB file (its name ends in .duckdb), or a folder that gets one Parquet file for each table and
    view. Both hold everything that `cbmt run` published, also the orders and the cohorts' forecasts, which
    data/cbmt.duckdb reads from the project's folder: a plain copy of that file lacks them.

    \b
        cbmt export results.duckdb
        cbmt export results/ --firm Fennosk
    """
    from cbmt_pipeline.export import DICTIONARY, is_database
    from cbmt_pipeline.export import export as write

    project.check_schema()
    if not project.warehouse.exists():
        raise CbmtError(f"nothing was published in {project.data} yet; run `cbmt run` first")
    target = target.resolve()
    if target == project.warehouse.resolve():
        raise CbmtError(f"{target} is the published file itself; choose another name")
    if target.exists():
        _may_replace(target, overwrite)
    chosen = chosen_firms(project, firms)
    started = time.monotonic()
    with ProgressBar("exporting tables", 1) as bar:

        def on_table(name: str, done: int, of: int) -> None:
            bar.hear(News("", name, done / of))

        rows = write(project, the_plan(), target, firms=chosen, on_table=on_table)
        bar.advance("")
    size = sum(path.stat().st_size for path in ([target] if target.is_file() else target.rglob("*.parquet")))
    console.print(
        f"{len(rows)} tables, {sum(rows.values()):,} rows, {size / 1e6:,.1f} MB in "
        f"{time.monotonic() - started:.0f} s: {target}"
    )
    if is_database(target):
        console.print(f"open it with DuckDB 1.2 or newer: duckdb -readonly {target}")
    else:
        console.print(f"what the columns mean: {target / DICTIONARY}")


def _may_replace(target: Path, overwrite: bool) -> None:
    from cbmt_pipeline.export import DICTIONARY, is_database

    if not overwrite:
        raise CbmtError(f"{target} is there already; replace it with --overwrite, or choose another name")
    if is_database(target) and target.is_dir():
        raise CbmtError(f"{target} is a folder; a name that ends in .duckdb is for a file")
    if (
        not is_database(target)
        and not (target / DICTIONARY).is_file()
        and (target.is_file() or any(target.iterdir()))
    ):
        raise CbmtError(f"{target} was not made by `cbmt export`, so it is not replaced; choose another name")
