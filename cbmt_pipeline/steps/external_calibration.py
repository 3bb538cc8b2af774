"""Errors by fiscal quarter compared with those of analysts, from the tables of [calibration] in cbmt.toml."""

from dataclasses import replace

from cbmt_core.errors import BadTable
from cbmt_core.evaluation import reference_of
from cbmt_core.names import Unit
from cbmt_core.timeline import Origin
from cbmt_pipeline.diagnostic_steps import diagnostic_made, diagnostic_step
from cbmt_pipeline.manifest import digest_of
from cbmt_pipeline.project import Project
from cbmt_pipeline.work import Made, Work


def _paths(project: Project) -> list[str]:
    wanted = project.config.calibration
    return [wanted.tickers, wanted.quarters, wanted.forecasts] if wanted else []


def make(work: Work) -> Made:
    from cbmt_core.diagnostics.calibration import calibrate, calibration_tables, read_tables, weekly_sales

    paths = [work.project.root / path for path in _paths(work.project)]
    if not paths:
        return diagnostic_made(work, calibration_tables(None))
    try:
        tables = read_tables(*paths)
    except BadTable as error:
        # The note goes into `diagnostic`; the step counts as not done, so that a corrected file is read.
        return replace(diagnostic_made(work, calibration_tables(None, str(error))), rejected=str(error))
    model = reference_of(work.frame("accuracy")["model"].unique())
    sales = weekly_sales(work.con, work.relations(), work.study, model)
    return diagnostic_made(work, calibration_tables(calibrate(tables, sales, work.study, model)))


def _settings(project: Project, unit: Unit | None, origin: Origin | None) -> dict[str, str]:
    """Digests of the analysts' tables, from their path, size and modification time."""
    files = [(path, project.root / path) for path in _paths(project)]
    seen = [(name, (s := f.stat()).st_size, s.st_mtime_ns) if f.exists() else (name,) for name, f in files]
    return {"analysts": digest_of(seen)}


STEP = diagnostic_step(
    "external_calibration",
    make,
    "Errors by fiscal quarter beside those of analysts, from the tables of [calibration] in cbmt.toml.",
    ("calibration_quarter", "calibration_summary"),
    needs=("accuracy", "firm", "firm_week"),
    code=("cbmt_core.diagnostics.calibration",),
    settings=_settings,
)
