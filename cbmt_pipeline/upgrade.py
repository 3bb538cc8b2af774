"""Upgrade projects of 0.4 and earlier, whose lake had no origins, to the present layout."""

from __future__ import annotations

import shutil

from cbmt_pipeline.project import LAKE_SCHEMA, Project

__all__ = ["upgrade"]


def upgrade(project: Project) -> list[str]:
    """Keep the intake and the networks' searches, pin the study, remove what is made from them; return what was done.

    Every part may be repeated, so an interrupted upgrade can be run again.
    """
    found = project.lake_schema()
    if found is None or found == LAKE_SCHEMA:
        return ["nothing to do: the project has the present layout"]
    if found > LAKE_SCHEMA:
        project.check_schema()  # Raises.
    lines = []
    if not project.why_no_study():
        project.pin_study()
        origin = project.study().origin
        lines.append(f"study pinned at {origin} in {project.root / 'cbmt.toml'}")
        models = project.data / "models"
        for folder in sorted(models.glob("firm=*")):
            target = models / f"origin={origin}" / folder.name
            target.mkdir(parents=True, exist_ok=True)
            journal = folder / "search.journal"
            if journal.exists():
                journal.replace(target / journal.name)
            shutil.rmtree(folder)
            lines.append(
                f"searches of {folder.name.removeprefix('firm=')} kept; its networks are trained again"
            )
    for folder in sorted(project.lake.root.iterdir()):
        if folder.is_dir() and folder.name != "intake":
            shutil.rmtree(folder)
    lines.append("tables and forecasts of the earlier layout removed: `cbmt run` makes them again")
    project.mark_schema()
    return lines
