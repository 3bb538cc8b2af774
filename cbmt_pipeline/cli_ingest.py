"""`cbmt ingest` and `cbmt sources`: take files into the project, see what would be read, list and remove sources."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from decimal import Decimal
from glob import glob
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from cbmt_core import atomic
from cbmt_core.config import ColumnMap, ProjectConfig, SourceConfig
from cbmt_core.errors import CbmtError, ConfigError, UnreadableSource
from cbmt_core.report.words import plural
from cbmt_core.timeline import MIN_LIVE_WEEKS, MIN_STUDY_WEEKS
from cbmt_core.transactions.amounts import NO_CURRENCY
from cbmt_core.transactions.detect import Detected, detect
from cbmt_core.transactions.detect_values import looks_like_amount, looks_like_time
from cbmt_core.transactions.preview import Preview, preview
from cbmt_core.transactions.reader import files_of
from cbmt_core.transactions.reasons import MISSING_CUSTOMER
from cbmt_pipeline.cli_run import read_new_files
from cbmt_pipeline.progress import console
from cbmt_pipeline.project import CONFIG_FILE, Project
from cbmt_pipeline.sources import SourceExists, add_source, country_of, remove_source, section_text

__all__ = ["ingest", "sources"]

NO_ZONE = "UTC"
"""Time zone of previews if none is stated."""
REQUIRED = ("customer", "order_time", "amount")
OPTIONS = {
    "firm": "--firm", "table": "--table", "order_grain": "--order-grain", "delimiter": "--delimiter",
    "decimal_separator": "--decimal-separator", "time_format": "--time-format", "encoding": "--encoding",
    "header_line": "--header-line", "sheet": "--sheet", "refunds": "--refunds", "amount_of": "--amount-of",
}  # fmt: skip


@click.command()
@click.argument("path", required=False)
@click.option("--name", help="Name of the source.  [default: the file's or folder's name]")
@click.option("--currency", help="ISO code of the amounts' currency, such as USD. Stated, never guessed.")
@click.option("--timezone", help="Zone of the order times, such as Europe/London. Stated, never guessed.")
@click.option(
    "--column", "columns", multiple=True, metavar="OURS=THEIRS",
    help=f"Which column is which: {', '.join(ColumnMap.model_fields)}.  [default: by name and content]",
)  # fmt: skip
@click.option("--firm", help="Name of the only firm.  [default: a column, or else the source's name]")
@click.option("--table", help="Table to read, for a DuckDB file.")
@click.option("--sheet", help="Sheet to read, for a workbook.  [default: the first with orders]")
@click.option("--order-grain", type=click.Choice(["order", "day"]), help="'day' merges a customer's day.")
@click.option(
    "--refunds", type=click.Choice(["net", "ignore"]), help="'ignore' gives gross sales.  [default: net]"
)
@click.option(
    "--amount-of",
    type=click.Choice(["line", "order"]),
    help="Whether an order's lines add up or repeat its total.",
)
@click.option("--delimiter", help="Of a CSV file.  [default: detected]")
@click.option(
    "--decimal-separator", type=click.Choice([".", ","]), help="Of amounts in text.  [default: detected]"
)
@click.option(
    "--time-format", multiple=True,
    help="Of order times, such as '%d.%m.%Y %H:%M'; may be repeated.  [default: detected]",
)  # fmt: skip
@click.option("--encoding", help="Of a CSV file, such as cp1252.  [default: detected]")
@click.option(
    "--header-line", type=click.IntRange(1), help="Line that names the columns.  [default: detected]"
)
@click.option(
    "--leave-out",
    multiple=True,
    metavar="COLUMN=VALUE",
    help="Rows that are no sales, such as Status=cancelled.",
)
@click.option(
    "--refund-where",
    multiple=True,
    metavar="COLUMN=VALUE",
    help="Rows that give money back though their amounts have no minus, such as Type=refund.",
)
@click.option(
    "--country", help="Holiday calendar of a new project (ISO code).  [default: that of the time zone]"
)
@click.option("--preview", "only_show", is_flag=True, help="Show what would be read, and add nothing.")
@click.option("--replace", is_flag=True, help="Put it in the place of the source of the same name.")
@click.option("--yes", is_flag=True, help="Do not ask, on a terminal.")
@click.pass_obj
def ingest(project: Project, /, path: str | None, name: str | None, columns: tuple[str, ...], country: str | None,
           only_show: bool, replace: bool, yes: bool, leave_out: tuple[str, ...], refund_where: tuple[str, ...],
           time_format: tuple[str, ...], **options: Any) -> None:  # fmt: skip
    """Read orders: CSV (also gzipped), Excel, Parquet, a DuckDB table, or a folder of files.

    With PATH, the file or folder becomes a source of the project; without, the sources the project
    has are looked through for new files. How the file is written and which column is which is detected,
    said, and written to the project file; options state it instead. On a terminal the outcome is shown
    first and a question asked. Rows that cannot be used go to quarantine with a reason.

    A relative PATH is looked for where you stand and then in the project's folder.
    """
    if path is None:
        read_new_files(project)
        return
    path = _as_written(project, path)
    name = name or Path(path).name.split(".")[0] or "orders"
    stated = {key: value for key, value in options.items() if value is not None}
    if time_format:
        stated["time_format"] = time_format[0] if len(time_format) == 1 else list(time_format)
    for key, texts, example in (
        ("leave_out", leave_out, "Status=cancelled"),
        ("refund_where", refund_where, "Type=refund"),
    ):
        for text in texts:
            column, value = _pair(text, _flag(key), example)
            stated.setdefault(key, {}).setdefault(column, []).append(value)
    given = dict(_pair(text, "--column", "customer=user_id") for text in columns)
    if not only_show and not {"currency", "timezone"} <= stated.keys():
        raise click.UsageError(
            "state --currency (such as USD) and --timezone (such as America/New_York); "
            "--preview shows what is detected without them"
        )
    found = _detected(project, path, name, stated, given)
    written = {"name": name, "path": path, **found.settings, **stated}
    interactive = sys.stdin.isatty() and sys.stdout.isatty()
    if only_show or (interactive and not yes):
        _show(project, written, found)
        if only_show:
            return
        if not click.confirm("read it so?", default=True):
            raise click.Abort
    _add(project, written, found.columns, country, replace=replace, interactive=interactive)


def _as_written(project: Project, path: str) -> str:
    """The path as the project file names it: below the project's folder relative to that, elsewhere absolute."""
    if Path(path).is_absolute():
        return path
    places = [Path(os.path.normpath(folder / path)) for folder in (Path.cwd(), project.root)]
    place = next((p for p in places if p.exists() or glob(str(p), recursive=True)), None)
    if place is None:
        raise UnreadableSource(f"there is no file at {', nor at '.join(dict.fromkeys(map(str, places)))}")
    known = project.config.sources if (project.root / CONFIG_FILE).exists() else ()
    same = (source.path for source in known if os.path.normpath(project.root / source.path) == str(place))
    if Path.cwd() == project.root:
        return next(same, path)
    return next(same, str(place.relative_to(project.root) if place.is_relative_to(project.root) else place))


def _detected(
    project: Project, path: str, name: str, stated: Mapping[str, Any], given: dict[str, str]
) -> Detected:
    """The format and columns detected in the source's first file."""
    values = {"name": name, "path": path, "currency": NO_CURRENCY, "timezone": NO_ZONE, **stated}
    if unknown := sorted(set(given) - set(ColumnMap.model_fields)):
        raise ConfigError(
            f"--column knows no {', '.join(unknown)}; it knows {', '.join(ColumnMap.model_fields)}"
        )
    source = ProjectConfig.from_mapping(
        {"sources": [{**values, "columns": given}]}, f"source {name!r}"
    ).sources[0]
    files = files_of(source, project.root)
    file = files[0]
    found = detect(file, stated, given, name)
    if not found.rows and len(files) == 1:
        raise UnreadableSource(f"source {name!r}: {path} names columns but holds no rows")
    for note in found.notes:
        console.print(f"detected: {note}", markup=False)
    found.columns = {ours: theirs for ours, theirs in found.columns.items() if theirs}
    folders = {part.split("=", 1)[0] for part in file.parent.parts if "=" in part}
    named = folders | set(found.heading)
    missing = [ours for ours in REQUIRED if ours not in found.columns and ours not in named]
    if missing:
        there = ", ".join(map(repr, found.heading[:50])) + (", ..." if len(found.heading) > 50 else "")
        unnamed = any(looks_like_time(title) or looks_like_amount(title) for title in found.heading)
        garbled = any("\x80" <= sign <= "\x9f" for title in found.heading for sign in title)
        raise UnreadableSource(
            f"source {name!r}: no column for {' and '.join(missing)} was recognised in {path}; it has {there}. "
            f"Say which: {' '.join(f'--column {ours}=THEIRS' for ours in missing)}"
            + (
                ". These look like the values of a row: give the file a first line that names its columns, or "
                "state --header-line"
                if unnamed
                else ""
            )
            + (". Its letters look wrong: state --encoding, such as shift_jis or cp1251" if garbled else "")
        )
    return found


def _add(
    project: Project,
    source: dict[str, Any],
    columns: dict[str, str],
    country: str | None,
    *,
    replace: bool,
    interactive: bool,
) -> None:
    file = project.root / CONFIG_FILE
    before = file.read_text(encoding="utf-8") if file.exists() else None
    try:
        added = add_source(project.root, source, columns, country, replace=replace)
    except SourceExists as error:
        if not interactive or not click.confirm(f"{error}\nreplace it?", default=False):
            raise
        added = add_source(project.root, source, columns, country, replace=True)
    if not added:
        read_new_files(project)
        return
    project.__dict__.pop("config", None)
    known = {entry.stem for entry in project.intake.ledger()}
    try:
        read_new_files(project)
    except CbmtError:
        mine = [entry for entry in project.intake.ledger() if entry.source == source["name"]]
        if not mine or {entry.stem for entry in mine} <= known:
            # The source cannot be read as stated: restore the project file for the next attempt.
            if before is None:
                file.unlink()
            else:
                atomic.write_text(file, before)
            project.__dict__.pop("config", None)
            console.print(f"source {source['name']!r} was not added to {file}", style="red", markup=False)
        raise
    holidays, home = project.config.design.country, country_of(str(source["timezone"]))
    elsewhere = f"; the time zone lies in {home}" if home not in (None, holidays) else ""
    console.print(
        f"added source {source['name']!r} to {file}; holidays of {holidays} (country under [design]{elsewhere})",
        markup=False,
    )


def _flag(key: str) -> str:
    return f"--{key.replace('_', '-')}"


def _pair(text: str, option: str, example: str) -> tuple[str, str]:
    ours, equals, theirs = text.partition("=")
    if not (ours and equals and theirs):
        raise click.UsageError(f"{option} takes pairs such as {example}, not {text!r}")
    return ours, theirs


def _show(project: Project, written: dict[str, Any], found: Detected) -> None:
    currency = written.get("currency") or found.currency or found.usual_currency or NO_CURRENCY
    values = {**written, "currency": currency, "timezone": written.get("timezone") or NO_ZONE}
    source = ProjectConfig.from_mapping(
        {"sources": [{**values, "columns": found.columns}]}, "the source"
    ).sources[0]
    seen = preview(source, project.root)
    _show_rows(seen)
    unit = "" if currency == NO_CURRENCY else f" {currency}"
    sales = "" if seen.sales is None else f", {seen.orders:,} orders of {seen.sales:,.2f}{unit}"
    console.print(
        f"{seen.used:,} of {seen.rows:,} rows would be used: {plural(seen.firms, 'firm')}, "
        f"{plural(seen.customers, 'customer')}{sales}, "
        f"{plural(seen.weeks, 'week')} ({seen.first} to {seen.last}); "
        f"{MIN_LIVE_WEEKS} weeks give a forecast, {MIN_STUDY_WEEKS} a study",
        markup=False,
    )
    if seen.refund_rows:
        console.print(
            f"{plural(seen.refund_rows, 'refund')}: {seen.refunds:,.2f}{unit} taken off the orders",
            markup=False,
        )
    if seen.refunds_unmatched:
        console.print(
            f"{seen.refunds_unmatched:,.2f}{unit} of refunds have no earlier order to be taken off: not counted",
            markup=False,
        )
    if guests := seen.reasons.get(MISSING_CUSTOMER):
        console.print(
            f"{plural(guests, 'row')} without a customer, of {seen.guest_sales:,.2f}{unit}: in no cohort",
            markup=False,
        )
    console.print("\nthe command:", style="bold")
    if "timezone" not in written or not (written.get("currency") or found.currency):
        lacking = ["currency"] if not (written.get("currency") or found.currency) else []
        lacking += [] if "timezone" in written else ["time zone"]
        console.print(f"(put your {' and '.join(lacking)} in the place of ???)")
    console.print(_command(source, written, found), markup=False, soft_wrap=True)
    console.print("\nwhat it writes to cbmt.toml:", style="bold")
    section = {**values, "currency": written.get("currency") or found.currency or "???",
               "timezone": written.get("timezone") or "???"}  # fmt: skip
    console.print(section_text(section, found.columns), markup=False, soft_wrap=True)


def _show_rows(seen: Preview) -> None:
    table = Table("row", "firm", "customer", "order id", "time", "amount", box=None, pad_edge=False)
    for row in seen.parsed:
        cells = [f"{cell:.2f}" if isinstance(cell, Decimal) else str(cell or "") for cell in row]
        table.add_row(*(cell.replace("[", "\\[") for cell in cells))
    console.print(table)
    if seen.failing:
        counts = ", ".join(f"{reason} {count:,}" for reason, count in seen.reasons.items())
        console.print(f"rows that would not be used ({counts}), such as:", markup=False)
        for number, problems in seen.failing:
            console.print(f"  row {number}: {problems[:300]}", markup=False)


def _command(source: SourceConfig, written: Mapping[str, Any], found: Detected) -> str:
    parts = ["cbmt", "ingest", source.path, "--name", source.name]
    parts += ["--currency", str(written.get("currency") or found.currency or "???")]
    parts += ["--timezone", str(written.get("timezone") or "???")]
    for ours, theirs in found.columns.items():
        parts += ["--column", f"{ours}={theirs}"]
    for key, option in OPTIONS.items():
        value = written.get(key)
        for item in value if isinstance(value, list | tuple) else [] if value is None else [value]:
            parts += [option, str(item)]
    for key in ("leave_out", "refund_where"):
        for column, values in written.get(key, {}).items():
            for value in values:
                parts += [_flag(key), f"{column}={value}"]
    return shlex.join(parts)


@click.group(invoke_without_command=True)
@click.pass_context
def sources(ctx: click.Context) -> None:
    """List the project's sources; show or remove one."""
    if ctx.invoked_subcommand is not None:
        return
    project: Project = ctx.obj
    ledger = project.intake.ledger()
    table = Table(
        "source", "path", "currency", "time zone", "files", "rows", "not used", box=None, pad_edge=False
    )
    for source in project.config.sources:
        mine = [entry for entry in ledger if entry.source == source.name]
        counts = (len(mine), sum(e.rows for e in mine), sum(e.bad_rows for e in mine))
        table.add_row(source.name, source.path, source.currency, source.timezone, *(f"{n:,}" for n in counts))
    console.print(table)


@sources.command()
@click.argument("name")
@click.pass_obj
def show(project: Project, name: str) -> None:
    """Show a source's settings and files, with the rows that were not used."""
    source = next((source for source in project.config.sources if source.name == name), None)
    if source is None:
        names = ", ".join(source.name for source in project.config.sources) or "none"
        raise ConfigError(f"there is no source called {name!r}; the project has {names}")
    values = source.model_dump(exclude_defaults=True, exclude={"columns"})
    columns = {ours: theirs for ours, theirs in source.columns.model_dump().items() if theirs}
    if source.firm is not None:
        columns.pop("firm", None)
    console.print(section_text(values, columns), markup=False, soft_wrap=True)
    for entry in (entry for entry in project.intake.ledger() if entry.source == name):
        reasons = project.intake.bad_rows(entry) if entry.bad_rows else {}
        counts = "".join(f", {reason} {count:,}" for reason, count in reasons.items())
        console.print(f"  {entry.file}: {entry.rows:,} rows{counts}", markup=False)


@sources.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask, on a terminal.")
@click.pass_obj
def remove(project: Project, name: str, yes: bool) -> None:
    """Take a source out of the project. Its files stay; its rows leave the tables with the next run."""
    if sys.stdin.isatty() and not yes:
        click.confirm(f"take {name!r} out of the project?", abort=True)
    remove_source(project.root, name)
    console.print(f"source {name!r} was taken out; the next `cbmt run` removes its rows", markup=False)
