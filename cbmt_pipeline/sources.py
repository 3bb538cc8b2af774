"""Source sections of `cbmt.toml`, as the command line writes them."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import tomlkit

from cbmt_core import atomic
from cbmt_core.calendar import has_holidays
from cbmt_core.config import ProjectConfig
from cbmt_core.errors import ConfigError
from cbmt_pipeline.project import CONFIG_FILE

__all__ = ["SourceExists", "add_source", "country_of", "remove_source", "section_text"]


class SourceExists(ConfigError):
    """The project has another source of the same name."""


HEADING = """\
# Project file of the CBMT pipeline. Every [[sources]] section is one data set; see docs/operate.md.
"""


def add_source(
    root: Path,
    source: dict[str, object],
    columns: dict[str, str],
    country: str | None = None,
    *,
    replace: bool = False,
) -> bool:
    """Add a source to the project file, made if missing; False if it is there already.

    A new project has the holiday calendar of `country`, or of the source's time zone.

    Args:
        replace: whether it replaces another source of the same name.
    """
    path = root / CONFIG_FILE
    source = {key: value for key, value in source.items() if value not in (None, {})}
    section = {**source, "columns": columns}
    wanted = ProjectConfig.from_mapping({"sources": [section]}, f"source {source['name']!r}").sources[0]
    document = tomlkit.parse(HEADING)
    if path.exists():
        project = ProjectConfig.load(path)
        document = tomlkit.parse(path.read_text(encoding="utf-8"))
        if country and country != project.design.country:
            raise ConfigError(
                f"{path} has the holiday calendar of {project.design.country!r}, not of {country!r}: "
                "all firms of a project share one; change country under [design] there"
            )
        known = {entry.name: entry for entry in project.sources}
        if wanted == known.get(wanted.name):
            return False
        if wanted.name in known:
            if not replace:
                raise SourceExists(
                    f"{path} has another source called {wanted.name!r}: put this one in its place with --replace, "
                    "or choose another --name"
                )
            _drop(document, list(known).index(wanted.name))
    text = tomlkit.dumps(document)
    if not path.exists() and (country := country or country_of(str(source["timezone"]))):
        text += f"\n[design]\ncountry = {_toml(country)}\n"
    text = text.rstrip("\n") + "\n\n" + section_text(source, columns)
    _checked(text, path)
    atomic.write_text(path, text)
    return True


def section_text(source: Mapping[str, object], columns: Mapping[str, str]) -> str:
    """The source as a section of the project file."""
    lines = ["[[sources]]"]
    lines += [f"{key} = {_toml(value)}" for key, value in source.items()]
    lines.append(f"columns = {_toml(dict(columns))}")
    return "\n".join(lines) + "\n"


def remove_source(root: Path, name: str) -> None:
    """Take a source out of the project file; the next run forgets its rows."""
    path = root / CONFIG_FILE
    names = [entry.name for entry in ProjectConfig.load(path).sources]
    if name not in names:
        raise ConfigError(f"{path} has no source called {name!r}; it has {', '.join(names) or 'none'}")
    document = tomlkit.parse(path.read_text(encoding="utf-8"))
    _drop(document, names.index(name))
    text = tomlkit.dumps(document)
    _checked(text, path)
    atomic.write_text(path, text)


def _drop(document: Any, place: int) -> None:
    del document["sources"][place]
    if not document["sources"]:
        del document["sources"]


def country_of(zone: str) -> str | None:
    """ISO code of the country of a time zone; None for UTC and the like, or if no holidays are known."""
    table = files("tzdata").joinpath("zoneinfo", "zone.tab").read_text(encoding="utf-8")
    rows = [line.split("\t") for line in table.splitlines() if not line.startswith("#")]
    country = {name: code for code, _, name, *_ in rows}.get(zone)
    return country if country and has_holidays(country) else None


def _toml(value: object) -> str:
    """A JSON string is a TOML basic string, as long as it has no surrogates."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if re.fullmatch("[A-Za-z0-9_-]+", name) else _toml(name)


def _checked(text: str, path: Path) -> None:
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} would not be valid TOML with the new source added: {error}") from None
    ProjectConfig.from_mapping(values, str(path))
