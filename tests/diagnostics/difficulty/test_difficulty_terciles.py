"""Parts of equal size, ties, shared wins, and Wilson's interval as printed in the literature."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbmt_core.diagnostics.difficulty.terciles import LEVELS, terciles, terciles_like, win_grid, wins_of


def named(values):
    return pd.Series(values, index=[f"firm {k:03d}" for k in range(len(values))], dtype=float)


@given(st.lists(st.integers(0, 5), min_size=3, max_size=40), st.randoms())
def test_parts_are_equal_in_size_ordered_and_independent_of_row_order(values, random):
    series = named(values)
    part = terciles(series)
    sizes = part.value_counts().reindex(LEVELS)
    assert sizes.max() - sizes.min() <= 1
    for lower, upper in pairwise(LEVELS):
        assert series[part == lower].max() <= series[part == upper].min()
    shuffled = random.sample(list(series.index), len(series))
    assert terciles(series[shuffled])[series.index].equals(part)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=15))
def test_parts_are_those_of_pandas_where_three_divides_the_firms(values):
    series = named(values * 3)
    by_pandas = pd.qcut(series.rank(method="first"), 3, labels=LEVELS)
    assert list(by_pandas) == list(terciles(series))


def test_equal_values_go_by_the_name_of_the_firm():
    part = terciles(pd.Series(1.0, index=["c", "b", "a", "f", "e", "d"]))
    assert part.to_dict() == dict(zip("abcdef", np.repeat(LEVELS, 2), strict=True))


def test_other_firms_fall_where_the_known_ones_stand():
    known = named([1, 2, 3, 4, 5, 6])
    others = pd.Series([-9, 2, 2.5, 4, 4.1, 99], index=list("uvwxyz"))
    assert list(terciles_like(known, others)) == ["low", "low", "medium", "medium", "high", "high"]


def test_a_tie_is_shared():
    wins = wins_of(pd.DataFrame({"a": [1.0, 2.0, 5.0], "b": [1.0, 3.0, 4.0], "c": [1.0, 2.0, 9.0]}))
    np.testing.assert_allclose(wins, [[1 / 3, 1 / 3, 1 / 3], [1 / 2, 0, 1 / 2], [0, 1, 0]])


# Newcombe (1998), Statistics in Medicine 17, table I, method 3.
@pytest.mark.parametrize(
    ("won", "of", "low", "high"), [(0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718), (15, 148, 0.0624, 0.1605)]
)
def test_the_interval_of_a_cell_is_wilsons(won, of, low, high):
    scale = named(np.arange(3 * of))
    errors = pd.DataFrame({"a": 2.0, "b": 1.0}, index=scale.index)
    errors.iloc[:won, 0] = 0.5
    grid = win_grid(scale, scale, errors).set_index(["scale", "volatility", "model"])
    cell = grid.loc[("low", "low", "a")]
    assert (cell["wins"], cell["in_cell"]) == (won, of)
    assert cell["win_rate"] == pytest.approx(won / of)
    assert (cell["low"], cell["high"]) == pytest.approx((low, high), abs=5e-5)
    empty = grid.loc[("low", "high", "a")]
    assert empty["in_cell"] == 0
    assert empty[["win_rate", "low", "high"]].isna().all()
