"""Source sections of `cbmt.toml`, as the command line writes them."""

from __future__ import annotations

import json
from pathlib import Path

from cbmt_core import atomic
from cbmt_core.config import ProjectConfig
from cbmt_core.errors import ConfigError
from cbmt_pipeline.project import CONFIG_FILE

__all__ = ["add_source"]

HEADING = """\
# Project file of the CBMT pipeline. Every [[sources]] section is one data set; see docs/operate.md.
"""


def add_source(
    root: Path, source: dict[str, object], columns: dict[str, str], country: str | None = None
) -> bool:
    """Add a source to the project file, made if missing; False when it stands there already."""
    path = root / CONFIG_FILE
    text = path.read_text(encoding="utf-8") if path.exists() else HEADING
    section = {**source, "columns": columns}
    if path.exists():
        wanted = ProjectConfig.from_mapping({"sources": [section]}, f"source {source['name']!r}").sources[0]
        known = {entry.name: entry for entry in ProjectConfig.load(path).sources}
        if wanted == known.get(wanted.name):
            return False
        if wanted.name in known:
            raise ConfigError(
                f"{path} has another source called {wanted.name!r}: edit it there, or choose another --name"
            )
    elif country:
        text += f"\n[design]\ncountry = {json.dumps(country)}\n"
    lines = ["", "[[sources]]"]
    # A JSON string is a TOML basic string.
    lines += [f"{key} = {json.dumps(value)}" for key, value in source.items() if value is not None]
    mapping = ", ".join(f"{key} = {json.dumps(value)}" for key, value in columns.items())
    lines.append(f"columns = {{ {mapping} }}")
    text = text.rstrip("\n") + "\n" + "\n".join(lines) + "\n"
    _checked(text, path)
    atomic.write_text(path, text)
    return True


def _checked(text: str, path: Path) -> None:
    import tomllib

    ProjectConfig.from_mapping(tomllib.loads(text), str(path))
