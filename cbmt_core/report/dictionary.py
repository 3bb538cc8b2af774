"""The pages that are made from code: the table dictionary and the list of exhibits."""

from __future__ import annotations

import sys

from cbmt_core.exhibits import EXHIBITS
from cbmt_core.exhibits.figures import FIGURES
from cbmt_core.schema import DIAGNOSTIC_TABLES, FILE_TABLES, TABLES, VIEWS

__all__ = ["exhibit_list", "table_dictionary"]

HEADING = """\
# Tables

Made by `make docs` from `cbmt_core/schema/`; a test keeps it current.
The published `data/cbmt.duckdb` holds them in three schemas: `main` is what analysts ask for, `diagnostic` what models
learned and how they compare, `exhibit` the paper's tables ([exhibits.md](exhibits.md)). Views come first below.
In the lake every table is Parquet under its own name (`data/lake/<table>/`, by firm where it is not made across firms;
`snapshot`, `firm_state`, `timeline`, `study` and `study_window` are in the published file alone;
`diagnostic.status` is called `diagnostic` and
exhibits `exhibit_<name>` there). The descriptions are also comments in the file:
[sql.md](sql.md) begins with the query.
"""


def table_dictionary() -> str:
    """docs/tables.md as text."""
    parts = [HEADING]
    for view in VIEWS:
        parts.append(f"\n## {view.name}\n\n{view.meaning} A view.\n\n| column | meaning |\n| --- | --- |\n")
        parts += [f"| `{name}` | {_cell(meaning)} |\n" for name, meaning in view.columns.items()]
    tables = (*TABLES.values(), *FILE_TABLES, *DIAGNOSTIC_TABLES.values())
    for table in sorted(tables, key=lambda table: table.schema != "main"):
        kept = "" if table.native else " In the published file a view of the lake."
        kept += "" if table.partitioned else " Made across firms."
        key = ", ".join(f"`{name}`" for name in table.key)
        parts.append(f"\n## {table.relation}\n\n{table.meaning}{kept} Key: {key}.\n")
        parts.append("\n| column | type | meaning |\n| --- | --- | --- |\n")
        for column in table.columns:
            kind = f"{column.type}, may be NULL" if column.nullable else column.type
            parts.append(f"| `{column.name}` | {kind} | {_cell(column.meaning)} |\n")
    return "".join(parts)


def _cell(text: str) -> str:
    """Text within a table."""
    return text.replace("|", "\\|")


def exhibit_list() -> str:
    """docs/exhibits.md as text."""
    parts = [
        "# Exhibits\n\nMade by `make docs` from the registry `cbmt_core/exhibits/`; a test keeps it current. Each is a "
        "table of the published file, written by the asset `exhibits`. Those whose models have not run are empty.\n"
        "\n| relation | what | in the paper | note |\n| --- | --- | --- | --- |\n"
    ]
    for exhibit in EXHIBITS.values():
        cells = map(_cell, (exhibit.table.meaning, exhibit.paper, exhibit.note))
        parts.append(f"| `{exhibit.table.relation}` | {' | '.join(cells)} |\n")
    captioned = [e for e in EXHIBITS.values() if e.paper.startswith("Table: ") and "(tab:" in e.paper]
    parts.append(
        f"\n## Count\n\n{len(captioned)} captioned tables, {len(FIGURES)} figures and one algorithm, each "
        "present. The data of six figures are relations too.\n\n"
        "| figure | in the paper | page | drawn from |\n| --- | --- | --- | --- |\n"
    )
    parts += [f"| {f.title} | {f.label} | `{f.page}` | {f.drawn_from} |\n" for f in FIGURES]
    return "".join(parts)


if __name__ == "__main__":
    pages = {"tables": table_dictionary, "exhibits": exhibit_list}
    print(pages[sys.argv[1]](), end="")
