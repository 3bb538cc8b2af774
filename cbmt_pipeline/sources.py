"""Source sections of `cbmt.toml`, as the command line writes them."""

from __future__ import annotations

import json
import tomllib
from importlib.resources import files
from pathlib import Path

from cbmt_core import atomic
from cbmt_core.calendar import has_holidays
from cbmt_core.config import ProjectConfig
from cbmt_core.errors import ConfigError
from cbmt_pipeline.project import CONFIG_FILE

__all__ = ["add_source", "country_of"]

HEADING = """\
# Project file of the CBMT pipeline. Every [[sources]] section is one data set; see docs/operate.md.
"""


def add_source(
    root: Path, source: dict[str, object], columns: dict[str, str], country: str | None = None
) -> bool:
    """Add a source to the project file, made if missing; False when it stands there already.

    A new project has the holiday calendar of `country`, or of the source's time zone.
    """
    path = root / CONFIG_FILE
    text = path.read_text(encoding="utf-8") if path.exists() else HEADING
    source = {key: value for key, value in source.items() if value is not None}
    section = {**source, "columns": columns}
    if path.exists():
        wanted = ProjectConfig.from_mapping({"sources": [section]}, f"source {source['name']!r}").sources[0]
        project = ProjectConfig.load(path)
        if country and country != project.design.country:
            raise ConfigError(
                f"{path} has the holiday calendar of {project.design.country!r}, not of {country!r}: "
                "all firms of a project share one; change country under [design] there"
            )
        known = {entry.name: entry for entry in project.sources}
        if wanted == known.get(wanted.name):
            return False
        if wanted.name in known:
            raise ConfigError(
                f"{path} has another source called {wanted.name!r}: edit it there, or choose another --name"
            )
    elif country := country or country_of(str(source["timezone"])):
        text += f"\n[design]\ncountry = {_toml(country)}\n"
    lines = ["", "[[sources]]"]
    lines += [f"{key} = {_toml(value)}" for key, value in source.items()]
    mapping = ", ".join(f"{key} = {_toml(value)}" for key, value in columns.items())
    lines.append(f"columns = {{ {mapping} }}")
    text = text.rstrip("\n") + "\n" + "\n".join(lines) + "\n"
    _checked(text, path)
    atomic.write_text(path, text)
    return True


def country_of(zone: str) -> str | None:
    """ISO code of the country a time zone lies in; None for UTC and its like, or where no holidays are known."""
    table = files("tzdata").joinpath("zoneinfo", "zone.tab").read_text(encoding="utf-8")
    rows = [line.split("\t") for line in table.splitlines() if not line.startswith("#")]
    country = {name: code for code, _, name, *_ in rows}.get(zone)
    return country if country and has_holidays(country) else None


def _toml(value: object) -> str:
    """A JSON string is a TOML basic string, as long as it has no surrogates."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _checked(text: str, path: Path) -> None:
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} would not be valid TOML with the new source added: {error}") from None
    ProjectConfig.from_mapping(values, str(path))
