"""The results as Markdown: how they were made, the findings beside the paper's, and every table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from panel_results.evidence import Evidence
from panel_results.findings import FINDINGS, Finding
from panel_results.tables import SECTIONS, Shown
from panel_results.verdicts import CANNOT, RULES

__all__ = ["results", "table"]

PANEL = """SELECT count(*) AS "firms", count(DISTINCT industry) AS "industries", sum(customers)::BIGINT AS "customers",
    sum(orders)::BIGINT AS "orders", pct(avg(left_censored_share)) AS "left-censored share of sales" FROM firm
    WHERE segment IS NULL"""
WINDOWS = 'SELECT "window", first_week AS "first week", last_week AS "last week", weeks FROM study_window ORDER BY 2'

# A project may have been run in several goes: what is said of the networks' effort comes from the fits themselves.
FITTED = """SELECT profile, firms, string_agg(named(model), ', ' ORDER BY model) AS "models"
    FROM (SELECT model, coalesce(parameters->>'profile', 'no network') AS profile, count(DISTINCT firm) AS firms
        FROM model_fit WHERE succeeded GROUP BY ALL) GROUP BY profile, firms ORDER BY profile, firms DESC"""

MOVED = """SELECT count(*) FILTER (moved IS NULL) AS before, pct(avg(moved)) AS moved
    FROM (SELECT (parameters->'backbone_moved'->>'cbmt')::DOUBLE AS moved FROM model_fit
        WHERE succeeded AND model = 'cbmt')"""


def results(evidence: Evidence, setting: dict[str, str], command: str) -> str:
    """The whole document. `setting` is shown as it is, `command` is what makes it all again."""
    judged = {name: [_judge(evidence, one) for one in part] for name, part in FINDINGS.items()}
    verdicts = Counter(row[-1] for rows in judged.values() for row in rows)
    parts = [
        "# Results on the big panel",
        f"Made by `{command}`: every figure of ours is a query on the published file of that project. "
        "Names of models are explained in [models.md](models.md), tables in [tables.md](tables.md).",
        _networks(evidence),
        "## How it was made",
        table(["what", "value"], setting.items()),
        _rows(evidence, PANEL) or "The file holds no firms.",
        _rows(evidence, WINDOWS),
        "Firms with a forecast, by the effort their fits recorded:",
        _rows(evidence, FITTED) or "none",
        "What the diagnostics rest on:",
        _rows(
            evidence,
            "SELECT diagnostic, firms, needed, made, note FROM diagnostic.status ORDER BY diagnostic",
        ),
        "## The paper's findings beside ours",
        f"{verdicts.total()} findings: "
        + ", ".join(f"*{what}* {n}" for what, n in verdicts.most_common())
        + ".",
        RULES,
    ]
    head = ["finding", "in the paper", "the paper", "ours", "rule", "verdict"]
    for name, rows in judged.items():
        parts += [f"### {name}, beside the paper's", table(head, rows)]
    for name, shown in SECTIONS.items():
        parts.append(f"## {name}")
        for one in shown:
            parts += _shown(evidence, one)
    return "\n\n".join(part for part in parts if part) + "\n"


def _networks(evidence: Evidence) -> str:
    """What the fits tell: networks before 0.6.0 did not record how far their backbone moved."""
    ((before, moved),) = [tuple(row.values()) for row in evidence.rows(MOVED)]
    if before:
        return (
            "**What the networks are.** The networks of this page are those of before 0.6.0: they forecast shares of "
            "the window's level, with a linear path from the calendar to the heads, and their shared representation "
            "was hardly learned. The present ones are the paper's (min-max levels, no such path), and have not been "
            "run on this panel. So findings about joint learning and alignment are not tests of the paper's mechanism."
        )
    if moved is None:
        return ""
    return (
        "**What the networks are.** `cbmt`, `joint`, `single_task` and `lstm` follow the paper's specification. The "
        f"shared representation of `cbmt` moved by {moved} of its norm on average. What its controls show stands in "
        "[experiments.md](experiments.md#networks)."
    )


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *([_cell(value) for value in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _judge(evidence: Evidence, finding: Finding) -> list[str]:
    rows = evidence.rows(finding.sql)
    row = rows[0] if rows else {}
    verdict = finding.rule.verdict(row)
    ours = finding.rule.words(row) if row else "there are no such forecasts"
    if verdict == CANNOT and finding.diagnostic and (note := evidence.note(finding.diagnostic)):
        ours = f"{ours} ({note})"
    return [finding.claim, finding.place, finding.paper, ours, finding.rule.rule, verdict]


def _shown(evidence: Evidence, shown: Shown) -> list[str]:
    made = _rows(evidence, shown.sql)
    if not made:
        note = evidence.note(shown.diagnostic) if shown.diagnostic else ""
        return [f"### {shown.title}", f"Nothing to show: {note}." if note else "Nothing to show."]
    return [f"### {shown.title}", shown.note, made]


def _rows(evidence: Evidence, sql: str) -> str:
    rows = evidence.rows(sql)
    return table(list(rows[0]), [list(row.values()) for row in rows]) if rows else ""


def _cell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = f"{value:,}" if isinstance(value, int) else str(value)
    return text.replace("|", "\\|").replace("\n", " ")
