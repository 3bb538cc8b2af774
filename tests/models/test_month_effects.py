"""The spread of month effects is learned from noisy estimates of them."""

import numpy as np
import pytest

from cbmt_core.models.month_effects import BOUNDS, month_spread


def learned(estimates, information, steps=200):
    spread = 0.1
    for _ in range(steps):
        shrunken = estimates * information / (information + 1 / spread**2)
        spread = month_spread(shrunken, information, spread)
    return spread


@pytest.mark.parametrize("truth", [0.08, 0.2, 0.4])
def test_spread_is_recovered_on_average(truth):
    """Many firms' twelve months, measured with noise: the marginal variance is truth² + noise²."""
    rng = np.random.default_rng(0)
    noise = 0.05
    found = [learned(rng.normal(0, np.hypot(truth, noise), 12), np.full(12, noise**-2)) for _ in range(300)]
    assert np.sqrt(np.mean(np.square(found))) == pytest.approx(truth, rel=0.1)


def test_fixed_point_is_the_maximum_of_the_marginal_likelihood():
    """With equal noise it is known in closed form: mean square minus noise variance."""
    estimates = np.linspace(-0.3, 0.3, 12)
    spread = learned(estimates, np.full(12, 100.0))
    assert spread**2 == pytest.approx(np.mean(estimates**2) - 0.01, rel=1e-3)


def test_spread_stays_within_bounds():
    assert month_spread(np.zeros(12), np.full(12, 1e9), 0.03) == BOUNDS[0]
    assert month_spread(np.full(12, 9.0), np.full(12, 1e9), 0.5) == BOUNDS[1]
