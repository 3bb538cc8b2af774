"""The command line `cbmt`: simulate, ingest, run, status, ui."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from cbmt_core.errors import CbmtError
from cbmt_core.models import benchmarks
from cbmt_pipeline.project import CONFIG_FILE, Project

__all__ = ["main"]

console = Console(highlight=False, soft_wrap=True)


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
    )


class _Group(click.Group):
    """Turns our own errors into a message and exit code 1; a traceback is for bugs."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except CbmtError as error:
            raise click.ClickException(str(error)) from None


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--project",
    "root",
    type=click.Path(file_okay=False, path_type=Path),
    default=".",
    envvar="CBMT_PROJECT",
    help=f"Folder that holds {CONFIG_FILE} and data/.  [default: here]",
)
@click.pass_context
def main(ctx: click.Context, root: Path) -> None:
    """Weekly customer cohorts, forecasts of their drivers, and why revenue changes.

    \b
    A first look, on an invented economy:
        cbmt simulate            sixteen firms into data/raw/economy
        cbmt run                 everything from raw orders to data/cbmt.duckdb
        cbmt ui                  the same in the Dagster UI

    \b
    Your own orders:
        cbmt ingest orders.csv --currency USD --timezone America/New_York \\
            --column firm=brand --column customer=user_id --column order_time=created_at
        cbmt run
    """
    ctx.obj = Project(root.resolve())


@main.command()
@click.option("--firms", default=16, show_default=True, help="How many firms; 966 is the paper's panel.")
@click.option(
    "--scale", default=0.02, show_default=True, help="Share of customers kept; 1 is the paper's size."
)
@click.option("--seed", default=20260626, show_default=True, help="Same seed, same economy.")
@click.option(
    "--out",
    default="data/raw/economy",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Folder for orders/ and, apart from it, truth/ (what is true but hidden; for tests).",
)
@click.option(
    "--format",
    "file_format",
    type=click.Choice(["parquet", "csv", "csv.gz"]),
    default="parquet",
    show_default=True,
)
@click.pass_obj
def simulate(project: Project, firms: int, scale: float, seed: int, out: Path, file_format: str) -> None:
    """Invent an economy: firms in 25 industries whose customers place orders.

    Writes one file of orders a firm, and adds the folder to the project file as the source "economy".
    """
    from cbmt_core.simulate import Economy, write_economy
    from cbmt_pipeline.sources import add_source

    if firms < 1 or scale <= 0:
        raise click.UsageError("--firms must be at least 1 and --scale above 0")
    folder = out if out.is_absolute() else project.root / out
    started, orders = time.monotonic(), 0
    with _progress() as progress:
        task = progress.add_task("simulating firms", total=firms)

        def on_firm(_: object, count: int) -> None:
            nonlocal orders
            orders += count
            progress.advance(task)

        write_economy(
            Economy(firms=firms, scale=scale, seed=seed), folder, file_format=file_format, on_firm=on_firm
        )
    source = {
        "name": "economy",
        "path": str(out / "orders"),
        "currency": "USD",
        "timezone": "America/New_York",
    }
    names = ("firm", "customer", "order_time", "amount", "order_id", "industry")
    add_source(project.root, source, {name: name for name in names})
    console.print(
        f"{orders:,} orders of {firms} firms in {time.monotonic() - started:.1f} s: {folder}/orders"
    )


@main.command()
@click.argument("path", required=False)
@click.option("--name", help="Name of the source.  [default: the file's or folder's name]")
@click.option("--currency", help="ISO code of the amounts' currency, such as USD. Stated, never guessed.")
@click.option("--timezone", help="Zone of the order times, such as Europe/London. Stated, never guessed.")
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="OURS=THEIRS",
    help="Which column is which: firm, customer, order_time, amount, order_id, industry, segment.",
)
@click.option("--firm", help="Name of the only firm, for files without a firm column.")
@click.option("--table", help="Table to read, for a DuckDB file.")
@click.option("--order-grain", type=click.Choice(["order", "day"]), default="order", show_default=True)
@click.option("--country", help="Holiday calendar of a new project (ISO code).  [default: US]")
@click.pass_obj
def ingest(
    project: Project,
    path: str | None,
    name: str | None,
    currency: str | None,
    timezone: str | None,
    columns: tuple[str, ...],
    firm: str | None,
    table: str | None,
    order_grain: str,
    country: str | None,
) -> None:
    """Read orders: CSV (also gzipped), Parquet, a DuckDB table, or a folder of files.

    With PATH, the file or folder becomes a source of the project; without, the sources the project
    has are looked through for new files. Files that were read before are not read again. Rows that
    cannot be used go to quarantine with a reason.
    """
    from cbmt_pipeline.sources import add_source

    if path is not None:
        mapping = dict(_pair(text) for text in columns)
        if firm is None:
            mapping.setdefault("firm", "firm")
        for needed in ("customer", "order_time", "amount"):
            mapping.setdefault(needed, needed)
        if currency is None or timezone is None:
            raise click.UsageError("state --currency (such as USD) and --timezone (such as America/New_York)")
        source = {
            "name": name or Path(path).name.split(".")[0],
            "path": path,
            "currency": currency,
            "timezone": timezone,
            "firm": firm,
            "table": table,
            "order_grain": order_grain,
        }
        if add_source(project.root, source, mapping, country):
            console.print(f"added source {source['name']!r} to {project.root / CONFIG_FILE}")
    _read_new_files(project)


def _pair(text: str) -> tuple[str, str]:
    ours, equals, theirs = text.partition("=")
    if not (ours and equals and theirs):
        raise click.UsageError(f"--column takes OURS=THEIRS, such as customer=user_id, not {text!r}")
    return ours, theirs


def _read_new_files(project: Project) -> None:
    from cbmt_pipeline.runner import run_assets

    before = {entry.stem for entry in project.intake.ledger()}
    _ = project.config
    with console.status("reading source files"):
        outcome = run_assets(project, ["intake"])
    ledger = project.intake.ledger()
    read = [entry for entry in ledger if entry.stem not in before]
    for entry in read[:20]:
        bad = f", {entry.bad_rows:,} cannot be used" if entry.bad_rows else ""
        console.print(f"  {entry.file}: {entry.rows:,} rows{bad}")
    if len(read) > 20:
        console.print(f"  and {len(read) - 20} more files")
    console.print(
        f"read {len(read)} new files, {sum(e.rows for e in read):,} rows; "
        f"the project holds {len(ledger)} files, {sum(e.rows for e in ledger):,} rows, "
        f"{len(project.intake.units()):,} firms"
    )
    if not outcome.success:
        raise CbmtError(outcome.failure)


@main.command()
@click.option(
    "--firm", "firms", multiple=True, help="Only this firm (its name or partition key); may be repeated."
)
@click.option("--workers", default=os.cpu_count() or 1, show_default="cores", type=click.IntRange(min=1))
@click.option("--model", "only_models", multiple=True, help="Forecast with this model only; may be repeated.")
@click.option(
    "--all", "everything", is_flag=True, help="Make every firm anew, also those that are up to date."
)
@click.pass_obj
def run(
    project: Project, firms: tuple[str, ...], workers: int, only_models: tuple[str, ...], everything: bool
) -> None:
    """Read new files, bring every firm's tables up to date, publish data/cbmt.duckdb.

    Runs the same assets on the same Dagster instance as the UI, with a pool of worker processes and
    no daemon. A firm that fails is named with its reason; the others go on. Exit code 1 if any failed.
    """
    from cbmt_core.firm_tables import DATA_TABLES
    from cbmt_pipeline.assets.firm_data import BATCH
    from cbmt_pipeline.runner import run_assets, run_firms

    unknown_models = sorted(set(only_models) - set(benchmarks()))
    if unknown_models:
        raise click.UsageError(
            f"no model is called {', '.join(unknown_models)}; there are: {', '.join(benchmarks())}"
        )
    started = time.monotonic()
    intake_error = ""
    try:
        _read_new_files(project)
    except CbmtError as error:
        if not project.intake.ledger():
            raise
        intake_error = str(error)
        console.print(f"[red]{intake_error}[/red]")
    units = {unit.slug: unit for unit in project.intake.units()}
    if firms:
        wanted = [slug for slug, unit in units.items() if unit.name in firms or slug in firms]
        unknown = set(firms) - {name for slug in wanted for name in (slug, units[slug].name)}
        if unknown:
            raise CbmtError(f"no firm is called {', '.join(sorted(unknown))}; `cbmt status` lists them")
    else:
        wanted = list(units) if everything else [unit.slug for unit in project.stale_units()]
    design = project.design()
    console.print(
        f"study: calibration {design.calibration.first} to {design.calibration.last}, "
        f"holdout {design.holdout.first} to {design.holdout.last}; "
        f"{len(wanted):,} of {len(units):,} firms to make"
    )
    outcomes = []
    if wanted:
        with _progress() as progress:
            task = progress.add_task("cohort tables", total=len(wanted))
            outcomes = run_firms(
                project,
                DATA_TABLES,
                wanted,
                workers=workers,
                batch=BATCH,
                on_batch=lambda outcome: progress.advance(task, len(outcome.firms)),
            )
    models = _models_to_run(project, set(wanted) if firms else None, only_models, everything)
    if models:
        with _progress() as progress:
            task = progress.add_task("forecasts", total=len(models))
            outcomes += run_firms(
                project,
                ["benchmark_forecasts"],
                list(models),
                workers=workers,
                batch=1,
                on_batch=lambda outcome: progress.advance(task, len(outcome.firms)),
                config=lambda slug: {"ops": {"benchmark_forecasts": {"config": {"models": models[slug]}}}},
            )
    with console.status("evaluating and publishing data/cbmt.duckdb"):
        if project.lake.units("forecast_week"):
            evaluated = run_assets(project, ["accuracy", "bridge", "exhibits"])
            outcomes.append(evaluated)
        published = run_assets(project, ["warehouse"])
    if published.success:
        with console.status("writing the report"):
            outcomes.append(run_assets(project, ["report"]))
    failures = [o.failure for o in outcomes if not o.success]
    for failure in failures:
        console.print(f"[red]{failure}[/red]")
    if not published.success:
        raise CbmtError(f"data/cbmt.duckdb was left as it was: {published.failure}")
    _print_made(project, time.monotonic() - started)
    if failures or intake_error:
        sys.exit(1)


def _models_to_run(
    project: Project, firms: set[str] | None, only: tuple[str, ...], everything: bool
) -> dict[str, list[str]]:
    """Partition key -> models whose forecasts are missing or outdated there."""
    missing = project.missing_forecasts()
    if everything:
        missing = {unit: benchmarks() for unit in project.lake.units("firm_week")}
    chosen = {
        unit.slug: [name for name in models if not only or name in only]
        for unit, models in missing.items()
        if firms is None or unit.slug in firms
    }
    return {slug: models for slug, models in chosen.items() if models}


def _print_made(project: Project, seconds: float) -> None:
    import duckdb

    with duckdb.connect(str(project.warehouse), read_only=True) as con:
        names = [name for (name,) in con.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
        counts = {name: con.execute(f'SELECT count(*) FROM "{name}"').fetchall()[0][0] for name in names}
        errors = con.execute(
            "SELECT model, firms, mean, median, average_rank FROM accuracy_summary WHERE metric = 'smape' "
            "AND outcome = 'total_sales' AND horizon = 'full' AND industry = '(all)' ORDER BY mean"
        ).fetchall()
    console.print("\n" + ", ".join(f"{name} {rows:,}" for name, rows in counts.items() if rows))
    if errors:
        table = Table("model", "firms", "mean", "median", "rank", title="holdout error of total sales, SMAPE")
        for column in table.columns[1:]:
            column.justify = "right"
        for model, firms, mean, median, rank in errors:
            place = "" if rank is None else f"{rank:.1f}"
            table.add_row(model, str(firms), f"{mean:.2f}", f"{median:.2f}", place)
        console.print(table)
    console.print(f"\nmade in {seconds:.0f} s")
    console.print(f"  DuckDB file  {project.warehouse}   (open it read-only: duckdb -readonly)")
    console.print(f"  report       {project.report}   (open it in a browser)")
    console.print("  UI           cbmt ui, then http://127.0.0.1:3000")


@main.command()
@click.pass_obj
def status(project: Project) -> None:
    """What the project holds: files, firms, and which firms are not up to date."""
    ledger = project.intake.ledger()
    units = project.intake.units()
    done = set(project.lake.units("firm_week"))
    console.print(f"{len(ledger):,} files, {sum(e.rows for e in ledger):,} rows, {len(units):,} firms")
    if not ledger:
        return
    stale = set(project.stale_units())
    table = Table("firm", "partition", "tables", box=None, pad_edge=False)
    for unit in units:
        state = "up to date" if unit not in stale else "to be made anew" if unit in done else "not made"
        table.add_row(unit.name, unit.slug, state)
    console.print(table)


@main.command()
@click.option("--port", default=3000, show_default=True)
@click.pass_obj
def ui(project: Project, port: int) -> None:
    """Open the Dagster UI on 127.0.0.1, with the daemon that runs schedules, sensors and backfills."""
    from cbmt_pipeline.instance import use_project

    _ = project.config
    use_project(project)
    console.print(f"the UI will be at http://127.0.0.1:{port} (stop it with Ctrl-C)")
    arguments = [
        "-m",
        "dagster",
        "dev",
        "-m",
        "cbmt_pipeline.definitions",
        "-h",
        "127.0.0.1",
        "-p",
        str(port),
    ]
    os.execv(sys.executable, [sys.executable, *arguments])


if __name__ == "__main__":
    main()
