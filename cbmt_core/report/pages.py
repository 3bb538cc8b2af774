"""The report: a page for the panel, one for the diagnostics and one a firm, each a file that needs no other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from cbmt_core.atomic import write_text
from cbmt_core.report.changed import Pages, page_digests
from cbmt_core.report.diagnostic_page import diagnostic_context
from cbmt_core.report.firm_data import gather_layers
from cbmt_core.report.firm_page import firm_context
from cbmt_core.report.panel_page import panel_context
from cbmt_core.report.paper_page import paper_context
from cbmt_core.report.rows import query, records
from cbmt_core.report.story import read_stories
from cbmt_core.report.track import gather_track

__all__ = ["write_report"]


def write_report(
    con: duckdb.DuckDBPyConnection, folder: Path, on_page: Callable[[Path], None] | None = None
) -> list[Path]:
    """Write `index.html`, `diagnostics.html`, `paper.html` and `firms/<slug>.html` below `folder` from the published
    tables on `con`.

    The report of a single firm is `index.html` alone.

    Pages are replaced one by one; `on_page` is called with each. A firm's page whose content has not changed stays as
    it is. Pages of firms that are gone are deleted.
    """
    templates = Environment(
        loader=PackageLoader("cbmt_core.report"), autoescape=select_autoescape(["html"]), undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    firms = query(con, "SELECT * FROM firm ORDER BY firm")
    stories = read_stories(con)
    gather_layers(con, stories.live.values())
    gather_track(con)
    (folder / "firms").mkdir(parents=True, exist_ok=True)
    written = []

    def write(path: Path, template: str, context: dict[str, object]) -> None:
        write_text(path, templates.get_template(template).render(context))
        written.append(path)
        if on_page is not None:
            on_page(path)

    if len(firms) == 1:
        # With one firm, a list of firms and a comparison of models would only delay its page.
        write(folder / "index.html", "firm.html", firm_context(con, records(firms)[0], stories, alone=True))
    else:
        digests, before = page_digests(con, stories), Pages(folder)
        made = {}
        before.forget()
        for firm in records(firms):
            page = folder / "firms" / f"{firm['slug']}.html"
            made[page.name] = digests[firm["firm"]]
            if before.is_current(page, made[page.name]):
                written.append(page)
                if on_page is not None:
                    on_page(page)
            else:
                write(page, "firm.html", firm_context(con, firm, stories))
        Pages(folder).keep(made)
        write(folder / "diagnostics.html", "diagnostics.html", diagnostic_context(con))
        write(folder / "paper.html", "paper.html", paper_context(con))
        write(folder / "index.html", "panel.html", panel_context(con, firms, stories))
    for old in {*(folder / "firms").glob("*.html"), *folder.glob("*.html")} - set(written):
        old.unlink()
    return written
