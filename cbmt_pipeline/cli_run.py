"""`cbmt run`: read new files, bring every firm up to date, publish."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table

from cbmt_core.config import PROFILE_NAMES
from cbmt_core.errors import CbmtError
from cbmt_core.models import benchmarks, networks
from cbmt_core.names import Unit
from cbmt_pipeline.progress import Bar, console, listen
from cbmt_pipeline.project import PLUS_MODEL, Project

if TYPE_CHECKING:
    from cbmt_pipeline.runner import RunOutcome

__all__ = ["read_new_files", "run"]

EVALUATION = (
    ("accuracy", "bridge"),
    ("comovement",),
    ("difficulty",),
    ("routing",),
    ("external_calibration",),
    ("exhibits",),
)
"""Assets across firms, run by run: what fails in one leaves the others as they are."""
MOST_TOLD = 20
"""Files and warnings named one by one."""


def read_new_files(project: Project) -> None:
    before, there = {entry.stem for entry in project.intake.ledger()}, project.lake.units("firm_week")
    _ = project.config
    outcome = _across_firms("reading source files", project, "intake")
    ledger = project.intake.ledger()
    read = [entry for entry in ledger if entry.stem not in before]
    for entry in read[:MOST_TOLD]:
        bad = ""
        if entry.bad_rows:
            reasons = ", ".join(f"{reason} {n:,}" for reason, n in project.intake.bad_rows(entry).items())
            bad = f", {entry.bad_rows:,} cannot be used: {reasons}"
        console.print(f"  {entry.file}: {entry.rows:,} rows{bad}", markup=False)
    if len(read) > MOST_TOLD:
        console.print(f"  and {len(read) - MOST_TOLD} more files")
    console.print(
        f"read {len(read)} new files, {sum(e.rows for e in read):,} rows; "
        f"the project holds {len(ledger)} files, {sum(e.rows for e in ledger):,} rows, "
        f"{len(project.intake.units()):,} firms"
    )
    if not outcome.success:
        raise CbmtError(outcome.failure)
    if gone := sorted(
        {unit.name for unit in there} - {unit.name for unit in project.lake.units("firm_week")}
    ):
        console.print(f"in no source any more, and taken out of the tables: {', '.join(gone)}", markup=False)


@click.command()
@click.option(
    "--firm", "firms", multiple=True, help="Only this firm (its name or partition key); may be repeated."
)
@click.option("--workers", default=os.cpu_count() or 1, show_default="cores", type=click.IntRange(min=1))
@click.option("--model", "only", multiple=True, help="Forecast with this model only; may be repeated.")
@click.option(
    "--profile",
    type=click.Choice(PROFILE_NAMES),
    help="How much work the networks may be.  [default: cbmt.toml's, or quick]",
)
@click.option("--no-networks", is_flag=True, help="Only the benchmarks: seconds a firm, not minutes.")
@click.option(
    "--all", "everything", is_flag=True, help="Make every firm anew, also those that are up to date."
)
@click.pass_obj
def run(
    project: Project,
    firms: tuple[str, ...],
    workers: int,
    only: tuple[str, ...],
    profile: str | None,
    no_networks: bool,
    everything: bool,
) -> None:
    """Read new files, bring every firm's tables up to date, publish data/cbmt.duckdb.

    Runs the same assets on the same Dagster instance as the UI, with a pool of worker processes and
    no daemon. A firm that fails is named with its reason; the others go on. Exit code 1 if any failed.
    A run that was stopped, at whatever point, goes on where it was when it is started again.
    """
    from cbmt_core.firm_tables import DATA_TABLES
    from cbmt_pipeline.batches import BATCH
    from cbmt_pipeline.runner import run_assets

    known = [*benchmarks(), *networks(), PLUS_MODEL]
    if unknown := sorted(set(only) - set(known)):
        raise click.UsageError(f"no model is called {', '.join(unknown)}; there are: {', '.join(known)}")
    if no_networks and (trained := sorted(set(only) - set(benchmarks()))):
        raise click.UsageError(f"{', '.join(trained)} cannot be made with --no-networks")
    project.networks()  # A name in cbmt.toml that is none is told now, not after the benchmarks.
    started = time.monotonic()
    intake_error = ""
    try:
        read_new_files(project)
    except CbmtError as error:
        if not project.intake.ledger():
            raise
        intake_error = str(error)
        console.print(intake_error, style="red")
    units = {unit.slug: unit for unit in project.intake.units()}
    if firms:
        wanted = [slug for slug, unit in units.items() if unit.name in firms or slug in firms]
        unknown_firms = set(firms) - {name for slug in wanted for name in (slug, units[slug].name)}
        if unknown_firms:
            raise CbmtError(f"no firm is called {', '.join(sorted(unknown_firms))}; `cbmt status` lists them")
    else:
        wanted = list(units) if everything else [unit.slug for unit in project.stale_units()]
    design = project.design()
    console.print(
        f"study: calibration {design.calibration.first} to {design.calibration.last}, "
        f"holdout {design.holdout.first} to {design.holdout.last}; "
        f"{len(wanted):,} of {len(units):,} firms to make"
    )
    chosen = set(wanted) if firms else None
    outcomes = _stage("cohort tables", project, DATA_TABLES, wanted, workers, batch=BATCH)
    warnings = sorted(text for outcome in outcomes for text in outcome.warnings)
    for text in warnings[:MOST_TOLD]:
        console.print(f"warning: {text}", style="yellow", markup=False)
    if len(warnings) > MOST_TOLD:
        console.print(
            f"and {len(warnings) - MOST_TOLD} more warnings: the checks `trusted` in the UI tell them"
        )
    missing = project.missing_forecasts()
    if everything:
        missing = {unit: benchmarks() for unit in project.lake.units("firm_week")}
    todo = _todo(missing, chosen, only)
    forecasts = _stage(
        "benchmarks",
        project,
        ["benchmark_forecasts"],
        list(todo),
        workers,
        config=lambda slug: {"ops": {"benchmark_forecasts": {"config": {"models": todo[slug]}}}},
    )
    if not no_networks:
        forecasts += _networks(project, chosen, only, workers, profile, everything)
        if not only or PLUS_MODEL in only:
            forecasts += _plus(project, chosen, workers, everything)
    if only and not forecasts:
        console.print(
            f"nothing to do for {', '.join(only)}: up to date; after a change of its code use --all"
        )
    outcomes += forecasts
    measure = project.lake.units("firm_week") if everything else project.unmeasured_units()
    slugs = [unit.slug for unit in measure if chosen is None or unit.slug in chosen]
    outcomes += _stage("measures", project, ["firm_measures"], slugs, workers, batch=BATCH)
    with console.status("evaluating and publishing data/cbmt.duckdb"):
        if project.lake.units("forecast_week"):
            outcomes += [run_assets(project, assets) for assets in EVALUATION]
        published = run_assets(project, ["warehouse"])
    if published.success:
        with console.status("writing the report"):
            outcomes.append(run_assets(project, ["report"]))
    failures = [o.failure for o in outcomes if not o.success]
    for failure in failures:
        console.print(failure, style="red")
    if not published.success:
        raise CbmtError(f"data/cbmt.duckdb was left as it was: {published.failure}")
    _print_made(project, time.monotonic() - started)
    if failures or intake_error:
        sys.exit(1)


def _networks(
    project: Project,
    chosen: set[str] | None,
    only: tuple[str, ...],
    workers: int,
    profile: str | None,
    everything: bool,
) -> list[RunOutcome]:
    profile = profile or project.config.networks.profile
    models = [name for name in only if name in networks()] if only else project.networks()
    missing = project.missing_networks(models, profile)
    if everything:
        missing = dict.fromkeys(project.lake.units("firm_week"), models)
    todo = _todo(missing, chosen, ())

    def config(slug: str) -> dict[str, Any]:
        tuning = {"models": todo[slug], "profile": profile, "fresh": everything}
        return {
            "ops": {
                "tuned_models": {"config": tuning},
                "neural_forecasts": {"config": {"models": todo[slug]}},
            }
        }

    title = f"networks ({profile})"
    return _stage(title, project, ["tuned_models", "neural_forecasts"], list(todo), workers, config=config)


def _plus(project: Project, chosen: set[str] | None, workers: int, everything: bool) -> list[RunOutcome]:
    """cbmt_plus of the firms that have a network: priors are learned from all firms before any of them."""
    from cbmt_pipeline.batches import BATCH

    def slugs(units: Sequence[Unit]) -> list[str]:
        return [unit.slug for unit in units if chosen is None or unit.slug in chosen]

    if not any(project.network_forecasts(unit).get("cbmt") for unit in project.lake.units("firm_week")):
        return []
    series = slugs(project.lake.units("firm_week") if everything else project.without_weekly_series())
    outcomes = _stage("weekly series", project, ["weekly_series"], series, workers, batch=BATCH)
    if series or not project.lake.has_whole("path_prior"):
        outcomes.append(_across_firms("priors of cbmt_plus", project, "path_priors"))
    return outcomes + _stage(PLUS_MODEL, project, ["plus_forecasts"], slugs(project.without_plus()), workers)


def _across_firms(title: str, project: Project, asset: str) -> RunOutcome:
    """Materialise an asset that is not partitioned behind a bar."""
    from cbmt_pipeline.runner import run_assets

    with Bar(title, 1) as bar:
        listen(bar.hear)
        try:
            outcome = run_assets(project, [asset])
            bar.advance("")
        finally:
            listen(None)
    return outcome


def _stage(
    title: str,
    project: Project,
    assets: Sequence[str],
    firms: Sequence[str],
    workers: int,
    *,
    batch: int = 1,
    config: Callable[[str], dict[str, Any]] | None = None,
) -> list[RunOutcome]:
    """Materialise assets of firms behind a bar."""
    from cbmt_pipeline.runner import run_firms

    if not firms:
        return []
    with Bar(title, len(firms)) as bar:
        return run_firms(
            project,
            assets,
            firms,
            workers=workers,
            batch=batch,
            on_batch=lambda outcome: bar.advance(*outcome.firms),
            on_news=bar.hear,
            config=config,
        )


def _todo(
    missing: dict[Unit, list[str]], chosen: set[str] | None, only: tuple[str, ...]
) -> dict[str, list[str]]:
    """Partition key -> models to run there: those missing, of the chosen firms and models."""
    todo = {
        unit.slug: [name for name in models if not only or name in only]
        for unit, models in missing.items()
        if chosen is None or unit.slug in chosen
    }
    return {slug: models for slug, models in todo.items() if models}


def _print_made(project: Project, seconds: float) -> None:
    import duckdb

    with duckdb.connect(str(project.warehouse), read_only=True) as con:
        names = [name for (name,) in con.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
        counts = {name: con.execute(f'SELECT count(*) FROM "{name}"').fetchall()[0][0] for name in names}
        errors = con.execute(
            "SELECT model, firms, mean, median, average_rank, reference FROM accuracy_summary WHERE metric = 'smape' "
            "AND outcome = 'total_sales' AND horizon = 'full' AND industry = '(all)' ORDER BY mean"
        ).fetchall()
        ((forecast_firms,),) = con.execute(
            "SELECT count(DISTINCT firm) FROM accuracy JOIN firm USING (firm) WHERE segment IS NULL"
        ).fetchall()
        lacking = con.execute("SELECT diagnostic, note FROM diagnostic WHERE NOT made").fetchall()
        failed = con.execute(
            "SELECT model, count(*), min_by(firm, firm), min_by(reason, firm) FROM model_fit WHERE NOT succeeded "
            "GROUP BY model ORDER BY ALL"
        ).fetchall()
    console.print("\n" + ", ".join(f"{name} {rows:,}" for name, rows in counts.items() if rows))
    if errors:
        table = Table("model", "firms", "mean", "median", "rank", title="holdout error of total sales, SMAPE")
        for column in table.columns[1:]:
            column.justify = "right"
        for model, firms, mean, median, rank, _ in errors:
            place = "" if rank is None else f"{rank:.1f}"
            table.add_row(model, str(firms), f"{mean:.2f}", f"{median:.2f}", place)
        console.print(table)
        _, compared, *_, reference = errors[0]
        if compared < forecast_firms:
            console.print(
                f"compared on the {compared:,} of {forecast_firms:,} firms that have a forecast by {reference}; "
                "run it for the others too"
            )
    for model, count, firm, reason in failed:
        others = f" and of {count - 1:,} more (see model_fit)" if count > 1 else ""
        console.print(f"no {model} of {firm}{others}: {reason}", markup=False)
    for diagnostic, note in lacking:
        console.print(f"no {diagnostic.replace('_', ' ')}: {note}")
    console.print(f"\nmade in {seconds:.0f} s")
    console.print(f"  DuckDB file  {project.warehouse}   (open it read-only: duckdb -readonly)")
    console.print(f"  report       {project.report}   (open it in a browser)")
    console.print("  UI           cbmt ui, then http://127.0.0.1:3000")
