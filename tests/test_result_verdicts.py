"""The rules that compare our findings with the paper's: what an interval must exclude to count."""

from __future__ import annotations

import pytest
from panel_results.verdicts import AGREES, CANNOT, DIFFERS, Estimate

NO_WORSE = Estimate(or_equal=True, unit=" %")


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (-8.0, 4.9, AGREES),  # a loss of 5 % is excluded
        (0.5, 3.0, AGREES),  # surely worse, but by less than matters
        (-4.1, 18.8, CANNOT),  # holds zero and a large loss: it shows nothing
        (2.0, 9.0, DIFFERS),
        (None, None, CANNOT),
    ],
)
def test_no_worse_needs_an_interval_that_excludes_a_relevant_loss(
    low: float | None, high: float | None, verdict: str
) -> None:
    assert NO_WORSE.verdict({"low": low, "high": high}) == verdict


def test_side_needs_the_whole_interval_on_the_papers_side() -> None:
    side = Estimate(unit=" %")
    assert side.verdict({"low": -9.0, "high": -0.1}) == AGREES
    assert side.verdict({"low": -9.0, "high": 0.1}) == CANNOT
    assert side.verdict({"low": 0.1, "high": 3.0}) == DIFFERS
    above = Estimate(border=50.0, below=False, or_equal=True)
    assert above.verdict({"low": 46.0, "high": 60.0}) == AGREES
    assert above.verdict({"low": 40.0, "high": 60.0}) == CANNOT
