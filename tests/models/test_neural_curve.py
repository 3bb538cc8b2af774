"""Learning curves: few points that tell the whole training."""

from __future__ import annotations

import numpy as np
import pytest

from cbmt_core.models.neural.curve import POINTS, curve


@pytest.mark.parametrize("steps", [1, 7, POINTS, 137, 600])
def test_points_cover_every_step_once(steps: int) -> None:
    """A point is the mean since the one before, so the weighted mean of the points is that of the losses."""
    losses = np.random.default_rng(3).gamma(2.0, size=steps)
    training = curve(losses.tolist(), [(steps, 12.0)])["training"]
    ends = np.array([0, *(step for step, _ in training)])
    assert ends[-1] == steps
    assert len(training) == min(steps, POINTS)
    assert (np.diff(ends) > 0).all()
    mean = np.dot(np.diff(ends), [loss for _, loss in training]) / steps
    assert mean == pytest.approx(losses.mean(), rel=1e-3)


def test_validation_is_kept_as_it_is() -> None:
    assert curve([1.0, 2.0], [(1, 30.5), (2, 20.25)])["validation"] == [[1, 30.5], [2, 20.25]]
