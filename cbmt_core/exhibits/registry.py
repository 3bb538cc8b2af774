"""Every exhibit by name."""

from __future__ import annotations

import pandas as pd

from cbmt_core.exhibits import accuracy, bridge, comovement, deployment, difficulty, ranges, static, summary
from cbmt_core.exhibits.evidence import Evidence
from cbmt_core.exhibits.exhibit import Exhibit

__all__ = ["EXHIBITS", "exhibits"]

EXHIBITS: dict[str, Exhibit] = {
    exhibit.table.name: exhibit
    for module in (summary, static, accuracy, bridge, comovement, difficulty, deployment, ranges)
    for exhibit in module.EXHIBITS
}


def exhibits(evidence: Evidence) -> dict[str, pd.DataFrame]:
    """The rows of every exhibit, by the name of its table. Exhibits whose models are missing are empty."""
    return {name: exhibit.rows(evidence) for name, exhibit in EXHIBITS.items()}
