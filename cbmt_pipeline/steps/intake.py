"""Intake of the source files: each is read once."""

from cbmt_core.errors import UnreadableSource
from cbmt_core.transactions.reader import files_of
from cbmt_pipeline.plan import Step
from cbmt_pipeline.project import Project
from cbmt_pipeline.work import Made, Work

UNFINISHED = ".unfinished"
"""Marker file that exists while the step is carried out."""


def make(work: Work) -> Made:
    project = work.project
    project.check_schema()
    begun = project.intake.folder / UNFINISHED
    begun.parent.mkdir(parents=True, exist_ok=True)
    begun.touch()

    def on_file(file: str, done: int, total: int) -> None:
        work.log(f"{done + 1}/{total} {file}")
        work.tell(f"{done + 1} of {total}: {file}", done / total)

    report = project.intake.update(project.config, project.root, on_file)
    units = project.intake.units()
    ledger = project.intake.ledger()
    gone = []
    if not report.failed:
        # A firm that was renamed in its file, or whose source was removed, would otherwise be counted too.
        with project.committing():
            project.manifests.keep_only({unit.slug for unit in units})
            gone = project.lake.keep_only(units)
        for unit in gone:
            work.log(f"{unit.name} is in no source any more: its tables were removed")
    begun.unlink(missing_ok=True)
    return Made(
        metadata={
            "files": len(ledger),
            "new_files": len(report.read),
            "rows": sum(entry.rows for entry in ledger),
            "new_rows": sum(entry.rows for entry in report.read),
            "bad_rows": sum(entry.bad_rows for entry in ledger),
            "firms": len(units),
            "firms_gone": len(gone),
        },
        # The other sources have been stored.
        rejected="\n".join(_left(name, why) for name, why in report.failed.items()),
    )


def _left(name: str, why: str) -> str:
    """Most reasons begin with the name of their source."""
    why = why.removeprefix(f"source {name!r}: ")
    return f"source {name!r} was left as it was: {why}"


def _stale(project: Project) -> bool:
    """Whether there are new files, a removed source, or a source without files, which the step reports."""
    if (project.intake.folder / UNFINISHED).exists():
        return True  # The last run was killed, perhaps between writing the ledger and removing firms that are gone.
    names = {source.name for source in project.config.sources}
    gone = any(entry.source not in names for entry in project.intake.ledger())
    try:
        for source in project.config.sources:
            files_of(source, project.root)
    except UnreadableSource:
        return True
    return gone or bool(project.intake.waiting(project.config, project.root))


STEP = Step(
    name="intake",
    make=make,
    description="Source files read once, each row mapped and judged.",
    group="data",
    by_firm=False,
    kinds=frozenset({"parquet"}),
    stale=_stale,
)
