"""The posterior that draws come from is Bayes' rule, and its spread is that of its draws."""

import numpy as np
import pytest
import torch
from helpers.panels import calibration, ordinary

from cbmt_core.models import build
from cbmt_core.models.plus.likelihood import Weeks, covariance

H = 10


@pytest.fixture(scope="module")
def paths():
    return build("cbmt_plus").fit(calibration(ordinary()), seed=1).drivers


def test_it_is_the_conditional_covariance_of_the_gaussian_process(paths):
    T, D = paths.n_weeks, 3
    common = paths.prior.hyperparameters()
    with torch.no_grad():
        kernels = Weeks.of(paths.first_week, T, H, paths.prior.country).kernels(common)
        scale = torch.from_numpy(paths.scale)[None]
        full = covariance(kernels, common, scale, torch.tensor([paths.comovement]).double())[0].numpy()
        white = paths.scale * common.sd[-1].exp().numpy()
    flat = full.transpose(0, 1, 2, 3).reshape(D * (T + H), D * (T + H))
    ahead = (np.arange(D * (T + H)) % (T + H)) >= T
    seen = flat[np.ix_(~ahead, ~ahead)] + np.diag((white[:, None] ** 2 + paths.noise).ravel())
    cross = flat[np.ix_(ahead, ~ahead)]
    expected = flat[np.ix_(ahead, ahead)] - cross @ np.linalg.inv(seen) @ cross.T
    found = paths.uncertainty(H)
    both = np.concatenate([np.eye(D * H)] * 2, axis=1)
    np.testing.assert_allclose(both @ found.covariance @ both.T, expected, atol=1e-6)
    np.testing.assert_allclose(found.white, white)


def test_its_spread_is_that_of_its_draws(paths):
    found = paths.uncertainty(H)
    spread, drawn = found.spread(), found.draw(20_000, np.random.default_rng(1))
    running = np.arange(1, H + 1)
    for name, values in drawn._asdict().items():
        np.testing.assert_allclose(getattr(spread, name), values.std(axis=0), rtol=0.03)
        means = np.cumsum(values, axis=2) / running
        np.testing.assert_allclose(getattr(spread, f"{name}_mean"), means.std(axis=0), rtol=0.03)


def test_more_weeks_ahead_are_less_certain(paths):
    lasting = paths.uncertainty(H).spread().lasting
    assert (lasting[:, -1] > lasting[:, 0]).all()
    assert (lasting > 0).all()
