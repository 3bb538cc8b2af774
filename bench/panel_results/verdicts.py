"""When a finding of the paper's and ours agree: the rules, in words and in code."""

from __future__ import annotations

from dataclasses import dataclass

from cbmt_core.evaluation.paired import MIN_FIRMS

__all__ = ["AGREES", "CANNOT", "DIFFERS", "PARTLY", "RULES", "Count", "Estimate"]

COVERED = 0.75
RELEVANT_LOSS = 5.0
"""Percent of the other model's error that "no worse" must rule out."""
AGREES, DIFFERS, PARTLY, CANNOT = "agrees", "does not", "in part", "cannot be said"
RULES = f"""\
- *Side*: our estimate has a 95 % interval over firms. **{AGREES}** where all of it lies on the side the paper
  reports, **{DIFFERS}** where all of it lies on the other, **{CANNOT}** where it holds the border, or where there are
  too few firms for an interval. Whether the paper's own size lies in our interval is told apart from it.
- *No worse*: for differences the paper calls not significant. **{AGREES}** where the interval excludes a loss of
  {RELEVANT_LOSS:.0f} % or more, **{DIFFERS}** where it does not and lies wholly on the worse side, **{CANNOT}**
  between: an interval that merely contains zero shows nothing.
- *Count*: the paper reports something of all, or most, of a set of comparisons. **{AGREES}** where the share of ours
  that goes its way is at least the share in brackets, **{DIFFERS}** where it is below half, **{PARTLY}** between;
  **{CANNOT}** below {MIN_FIRMS} firms, or with fewer than {COVERED:.0%} of the paper's comparisons.
- Firms differ in nature: theirs are real, ours are simulated and fewer. Agreement is of pattern, not of size."""


@dataclass(frozen=True)
class Estimate:
    """A number with a border between what the paper found and its opposite."""

    border: float = 0.0
    below: bool = True
    """Whether the paper's side is the lower one."""
    or_equal: bool = False
    """Whether a difference of either sign will do, as long as a loss of `RELEVANT_LOSS` is excluded."""
    size: float | None = None
    """The paper's figure, if it is of the same kind."""
    unit: str = ""
    digits: int = 1

    @property
    def rule(self) -> str:
        return "no worse" if self.or_equal else "side"

    def verdict(self, row: dict[str, object]) -> str:
        low, high = _number(row.get("low")), _number(row.get("high"))
        if low is None or high is None:
            return CANNOT
        good = high < self.border if self.below else low > self.border
        bad = low > self.border if self.below else high < self.border
        if self.or_equal:
            excluded = high < self.border + RELEVANT_LOSS if self.below else low > self.border - RELEVANT_LOSS
            return AGREES if excluded else DIFFERS if bad else CANNOT
        return AGREES if good else DIFFERS if bad else CANNOT

    def words(self, row: dict[str, object]) -> str:
        value, low, high = (_number(row.get(name)) for name in ("value", "low", "high"))
        if value is None:
            return f"n = {_whole(row)}: {row.get('remark') or 'too few'}"
        said = f"{value:+.{self.digits}f}" if self.border == 0 else f"{value:.{self.digits}f}"
        remark = f" ({row['remark']})" if row.get("remark") else ""
        if low is None or high is None:
            return f"{said}{self.unit}{remark}; n = {_whole(row)}"
        interval = f"[{low:.{self.digits}f}, {high:.{self.digits}f}]"
        size = ""
        if self.size is not None:
            size = f", the paper's size {'inside' if low <= self.size <= high else 'outside'}"
        return f"{said}{self.unit} {interval}{remark}{size}; n = {_whole(row)}"


@dataclass(frozen=True)
class Count:
    """How many of a set of comparisons go the paper's way."""

    of: int
    """Comparisons of the paper."""
    needed: float = 0.9

    @property
    def rule(self) -> str:
        return f"count [{self.needed:.0%}]"

    def verdict(self, row: dict[str, object]) -> str:
        hits, of = _number(row.get("hits")), _number(row.get("of"))
        if hits is None or not of or of < COVERED * self.of or (_number(row.get("n")) or 0) < MIN_FIRMS:
            return CANNOT
        share = hits / of
        return AGREES if share >= self.needed else DIFFERS if share < 0.5 else PARTLY

    def words(self, row: dict[str, object]) -> str:
        if not _number(row.get("of")):
            return f"nothing to count{': ' + str(row['remark']) if row.get('remark') else ''}"
        remark = f" ({row['remark']})" if row.get("remark") else ""
        return f"{_number(row['hits']):.0f} of {_number(row['of']):.0f}{remark}; n = {_whole(row)}"


def _number(value: object) -> float | None:
    return None if value is None or value != value else float(value)  # type: ignore[arg-type]


def _whole(row: dict[str, object]) -> str:
    n = _number(row.get("n"))
    return "0" if n is None else f"{n:.0f}"
