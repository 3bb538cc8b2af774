"""The command line `cbmt`: simulate, ingest, sources, run, forecast, export, study, status, doctor, ui, upgrade."""

from __future__ import annotations

import atexit
import ipaddress
import os
import signal
import socket
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path

import click
from rich.markup import escape
from rich.table import Table

from cbmt_core.errors import CbmtError
from cbmt_pipeline.cli_export import export
from cbmt_pipeline.cli_forecast import forecast
from cbmt_pipeline.cli_ingest import ingest, sources
from cbmt_pipeline.cli_plan import scenario, target, value
from cbmt_pipeline.cli_run import run
from cbmt_pipeline.cli_status import doctor, status
from cbmt_pipeline.holder import UI_PROCESS, end_left_by_ui, hold
from cbmt_pipeline.plain_errors import plain
from cbmt_pipeline.progress import ProgressBar, console
from cbmt_pipeline.project import CONFIG_FILE, Project

__all__ = ["main", "process"]

LOOPBACK = "127.0.0.1"


class _Group(click.Group):
    """Turns our own errors into a message and exit code 1, and Ctrl-C into 130; a traceback is for bugs."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except CbmtError as error:
            raise click.ClickException(str(error)) from None
        except KeyboardInterrupt:
            console.print("\nstopped; the same command resumes from here")
            sys.exit(130)
        except Exception as error:
            if isinstance(error, click.ClickException | click.exceptions.Exit | click.Abort):
                raise
            folders = (ctx.obj.data, ctx.obj.dagster_home) if isinstance(ctx.obj, Project) else ()
            if text := plain(error, *folders):
                raise click.ClickException(text) from None
            raise


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
        cbmt forecast Fennosk    a firm's next year by quarter, beside the last
        cbmt ui                  the same in the Dagster UI

    \b
    Your own orders:
        cbmt ingest orders.csv --preview
        cbmt ingest orders.csv --firm Shop --currency USD --timezone America/New_York
        cbmt run --live-only     next year's forecast, without backtests and study
        cbmt forecast Shop       by quarter, with its range and why it changes
        cbmt scenario Shop --acquisition -10%
        cbmt value Shop          what the customers are worth
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
    with ProgressBar("simulating firms", firms) as bar:

        def on_firm(_: object, count: int) -> None:
            nonlocal orders
            orders += count
            bar.advance()

        write_economy(
            Economy(firms=firms, scale=scale, seed=seed), folder, file_format=file_format, on_firm=on_firm
        )
    source: dict[str, object] = {
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
@click.option(
    "--refresh", is_flag=True, help="Move the study to the newest weeks; `cbmt run` then makes it again."
)
@click.pass_obj
def study(project: Project, refresh: bool) -> None:
    """Show where the study stands, or move it.

    The study compares all models on a holdout of past weeks. Its dates are pinned in cbmt.toml when it
    is first made, so that new weeks do not restart hours of training.
    """
    project.check_schema()
    if refresh:
        before = project.config.study
        moved = project.move_study()
        if before and (before.origin, before.holdout_weeks) == (moved.origin, moved.holdout_weeks):
            console.print("the study already ends with the newest week")
        else:
            console.print(
                f"the study was moved; `cbmt run` makes it again (earlier ones stay in {project.data}/lake)"
            )
    if why := project.why_no_study():
        raise CbmtError(f"there is no study: {why}")
    design = project.study()
    table = Table("window", "first week", "last week", "weeks", box=None, pad_edge=False)
    for name in ("washout", "training", "validation", "holdout"):
        window = getattr(design, name)
        if len(window):
            table.add_row(name, str(window.first), str(window.last), str(len(window)))
    console.print(table)
    pinned = project.config.study is not None
    console.print(
        f"pinned in {CONFIG_FILE}" if pinned else "not pinned yet: the first run of the study does that"
    )


@main.command()
@click.pass_obj
def upgrade(project: Project) -> None:
    """Bring a project of an earlier version into this one's layout.

    What was ingested and the networks' searches are kept; tables and forecasts are removed, and made again by
    `cbmt run`. The study stays where it was.
    """
    from cbmt_pipeline.upgrade import upgrade as bring

    for line in bring(project):
        console.print(line, markup=False)


def _only_this_machine(host: str) -> bool:
    """Whether nobody but this machine's own users can reach the address."""
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


@main.command()
@click.option("--port", default=3000, show_default=True)
@click.option(
    "--host", default=LOOPBACK, show_default=True, help="Address to listen on; the UI asks for no password."
)
@click.pass_obj
def ui(project: Project, port: int, host: str) -> None:
    """Open the Dagster UI on 127.0.0.1, with the daemon that runs schedules, sensors and backfills."""
    from cbmt_pipeline.instance import use_project
    from cbmt_pipeline.runner import fail_orphaned_runs

    _ = project.config
    project.check_schema()
    if left := end_left_by_ui(project):
        console.print(f"processes that a killed `cbmt ui` left running were ended: {left}")
    # The lock is held by this process and, after exec below, by the UI.
    os.set_inheritable(hold(project, "ui"), True)
    with socket.socket() as probe:
        if probe.connect_ex((LOOPBACK, port)) == 0:
            raise CbmtError(
                f"port {port} is taken, maybe by the UI of another project; choose one with --port"
            )
    fail_orphaned_runs(project, ui_is_gone=True)
    use_project(project)
    os.environ[UI_PROCESS] = str(os.getpid())
    # A shell that starts it in the background has SIGINT ignored, with which Dagster ends its servers.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if not _only_this_machine(host):
        console.print(
            f"[bold]warning:[/bold] listening on {escape(host)}: everyone who reaches this machine can read the data, "
            "start runs and delete them, for the UI asks for no password. Put a proxy before it that does, or leave "
            "out --host."
        )
    console.print(f"the UI will be at http://{escape(host)}:{port} (stop it with Ctrl-C)")
    arguments = [
        "-W",  # It recommends `dg dev` to whoever wrote the command.
        "ignore:Function `dev_command` is superseded",
        "-m",
        "dagster",
        "dev",
        "-m",
        "cbmt_pipeline.definitions",
        "-h",
        host,
        "-p",
        str(port),
    ]
    os.execv(sys.executable, [sys.executable, *arguments])


main.add_command(run)
main.add_command(forecast)
for command in (ingest, sources, scenario, target, value, status, doctor, export):
    main.add_command(command)


def process() -> None:
    """`cbmt` as a process. It exits without the interpreter's clean-up, during which DuckDB prints long errors
    about threads that Torch holds."""
    code: int | str | None = 0
    try:
        main()
    except SystemExit as leaving:
        code = leaving.code
    except Exception:
        code = 1
        traceback.print_exc()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(bool(code)))


if __name__ == "__main__":
    process()
