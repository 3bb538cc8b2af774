"""Paths of weekly series: closed-form Bayes, priors learned across firms, and what they must not depend on."""

from __future__ import annotations

import random
from datetime import date

import numpy as np
import pandas as pd
import pytest
import torch
from helpers.panels import calibration, ordinary
from hypothesis import given, settings
from hypothesis import strategies as st

from cbmt_core.arrays import Floats
from cbmt_core.errors import BadFirmData
from cbmt_core.models import build
from cbmt_core.models.plus import PathPriors, learn_priors, weekly_series
from cbmt_core.models.plus import prior as prior_module
from cbmt_core.models.plus.likelihood import (
    COMPONENTS,
    LEVEL_VARIANCE,
    SCALED,
    Weeks,
    _NegativeLogDensity,
)
from cbmt_core.models.plus.likelihood import covariance as covariance_of
from cbmt_core.models.plus.paths import REACH, FittedPaths, fit_paths
from cbmt_core.models.plus.prior import PathPrior
from cbmt_core.models.plus.regressors import regressor_names, regressors
from cbmt_core.models.plus.series import WeeklySeries, _counting_variance, series_from_frame, series_of
from cbmt_core.panel import FirmPanel

FIRST, WEEKS, AHEAD = date(2017, 1, 1), 60, 12
D = 3


@pytest.fixture(scope="module")
def seen() -> FirmPanel:
    return calibration(ordinary())


def covariance(prior: PathPrior, weeks: int, middle: float, scale: Floats, together: float) -> Floats:
    """[D weeks, D weeks] by plain loops over what the prior says."""
    x = regressors(FIRST, weeks, prior.country) * prior.weight

    def kernel(component: str, s: int, t: int) -> float:
        match component:
            case "trend":
                return (s - middle) * (t - middle) / 52**2
            case "calendar":
                return float(x[s] @ x[t])
            case "walk":
                return min(s, t) + 1.0
            case _:
                return float(np.exp(-abs(s - t) / prior.memory[0]))

    D = prior.sd.shape[1]
    made = np.zeros((D, weeks, D, weeks))
    for k, component in enumerate(COMPONENTS):
        between = np.array([[kernel(component, s, t) for t in range(weeks)] for s in range(weeks)])
        sd = prior.sd[k] * (scale if SCALED[k] else 1.0)
        for a in range(D):
            for b in range(D):
                share = 1.0 if a == b else together * prior.shared[k, a] * prior.shared[k, b]
                made[a, :, b, :] += sd[a] * sd[b] * share * between
    for a in range(D):
        made[a, :, a, :] += LEVEL_VARIANCE
    return made.reshape(D * weeks, D * weeks)


def drawn(
    prior: PathPrior, rng: np.random.Generator, firm: str, together: float, weeks: int = WEEKS
) -> WeeklySeries:
    D = prior.sd.shape[1]
    noise = np.full((D, weeks), 1e-5)
    square = covariance(prior, weeks, weeks / 2, np.ones(D), together)
    white = np.repeat(prior.sd[-1] ** 2, weeks) + noise.ravel()
    value = rng.multivariate_normal(np.full(D * weeks, 3.0), square + np.diag(white), method="cholesky")
    return WeeklySeries(firm, FIRST, "US", value.reshape(D, weeks), noise)


def test_a_path_is_the_conditional_expectation_given_the_weeks_seen() -> None:
    prior = PathPrior.default("drivers", "US")
    prior.mean[:] = np.random.default_rng(0).normal(0, 0.01, prior.mean.shape)
    series = drawn(prior, np.random.default_rng(1), "firm", 0.6)
    fitted = fit_paths(series, prior)
    total = WEEKS + AHEAD
    square = covariance(prior, total, WEEKS / 2, fitted.scale, fitted.comovement).reshape(D, total, D, total)
    known = square[:, :WEEKS, :, :WEEKS].reshape(D * WEEKS, D * WEEKS)
    white = ((fitted.scale * prior.sd[-1]) ** 2)[:, None] + series.noise
    year = (np.arange(total) - WEEKS / 2) / 52
    mean = (year[:, None] * prior.mean[0] + regressors(FIRST, total, "US") @ prior.mean[1:]).T
    mean = mean + series.value.mean(axis=1, keepdims=True)
    away = (series.value - mean[:, :WEEKS]).ravel()
    ahead = square[:, WEEKS:, :, :WEEKS].reshape(D * AHEAD, D * WEEKS)
    expected = mean[:, WEEKS:] + (ahead @ np.linalg.solve(known + np.diag(white.ravel()), away)).reshape(
        D, -1
    )
    np.testing.assert_allclose(fitted.forecast(AHEAD), expected, atol=1e-7)
    back = FittedPaths.from_values(fitted.values())
    np.testing.assert_array_equal(back.forecast(AHEAD), fitted.forecast(AHEAD))


@settings(max_examples=30, deadline=None)
@given(
    together=st.floats(0, 1),
    shared=st.lists(st.floats(-0.999, 0.999), min_size=12, max_size=12),
    scale=st.lists(st.floats(0.1, 10), min_size=3, max_size=3),
)
def test_any_prior_is_a_covariance(together: float, shared: list[float], scale: list[float]) -> None:
    prior = PathPrior.default("drivers", "US")
    prior.shared[:] = np.reshape(shared, (4, 3))
    common, weeks = prior.hyperparameters(), Weeks.of(FIRST, 8, 0, "US")
    given_firm = torch.tensor([scale], dtype=torch.float64), torch.tensor([together], dtype=torch.float64)
    square = covariance_of(weeks.kernels(common), common, *given_firm).reshape(24, 24).numpy()
    np.testing.assert_allclose(square, covariance(prior, 8, 4.0, np.array(scale), together), rtol=1e-9)
    assert np.linalg.eigvalsh(square).min() > -1e-9 * np.trace(square)


@pytest.mark.slow
def test_spread_and_season_are_learned_from_firms() -> None:
    default = PathPrior.default("sales", "US")
    truth = PathPrior.default("sales", "US")
    truth.sd[:] *= np.array([1.0, 2.5, 0.4, 0.4, 1.0])[:, None]
    rng = np.random.default_rng(3)
    firms = [drawn(truth, rng, f"firm {k}", 0.0, weeks=110) for k in range(24)]
    learned = PathPrior.learned(firms, "sales", "US")
    ratio = learned.sd[:, 0] / default.sd[:, 0]
    calendar = ratio[1] * np.exp(np.log(learned.weight / default.weight).mean())
    assert calendar > 1.5
    assert ratio[2] < 0.7
    assert ratio[3] < 0.6
    assert learned.firms == 24


@pytest.mark.slow
def test_learned_priors_forecast_better_than_the_default() -> None:
    """Firms that all have a strong holiday the default does not know, too few weeks each to learn it alone."""
    default = PathPrior.default("sales", "US")
    holiday = regressor_names("US").index("Christmas Day")
    rng = np.random.default_rng(5)
    weeks, seen_weeks = 104, 80
    firms = []
    for k in range(20):
        one = drawn(default, rng, f"firm {k}", 0.0, weeks=weeks)
        lift = 0.8 * regressors(FIRST, weeks, "US")[:, holiday]
        firms.append(WeeklySeries(one.firm, FIRST, "US", one.value + lift, one.noise))
    past = [
        WeeklySeries(f.firm, FIRST, "US", f.value[:, :seen_weeks], f.noise[:, :seen_weeks]) for f in firms
    ]
    learned = PathPrior.learned(past, "sales", "US")

    def error(prior: PathPrior) -> float:
        """In the week of the next holiday, the last one."""
        said = [fit_paths(one, prior).forecast(weeks - seen_weeks)[:, -1] for one in past]
        return float(np.mean([abs(s - f.value[:, -1]) for s, f in zip(said, firms, strict=True)]))

    assert error(learned) < 0.7 * error(default)
    christmas = regressors(FIRST, 53, "US")[51] @ learned.mean[1:]
    assert christmas.min() > 0.2


def test_series_that_move_together_are_told_from_those_that_do_not() -> None:
    prior, rng = PathPrior.default("drivers", "US"), np.random.default_rng(7)

    def comovement(together: float) -> float:
        return float(
            np.mean([fit_paths(drawn(prior, rng, "firm", together), prior).comovement for _ in range(6)])
        )

    assert comovement(0.95) > comovement(0.05) + 0.2


def test_a_prior_does_not_depend_on_the_order_of_firms_or_rows(
    seen: FirmPanel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prior_module, "LEARNING_STEPS", 3)
    one = weekly_series(seen, seed=1)
    frame = pd.concat(
        [one.assign(firm=name, value=one["value"] + 0.1 * k) for k, name in enumerate("abcdefghij")]
    )
    learned = learn_priors(frame, "US")
    shuffled = learn_priors(frame.sample(frac=1.0, random_state=0), "US")
    pd.testing.assert_frame_equal(learned.frame(), shuffled.frame())
    series = series_from_frame(frame, "drivers", "US")
    random.Random(1).shuffle(series)
    np.testing.assert_array_equal(PathPrior.learned(series, "drivers", "US").sd, learned.groups["drivers"].sd)
    assert learned.firms == 10


def test_priors_survive_a_table() -> None:
    default = PathPriors.default("US")
    back = PathPriors.from_frame(default.frame().sample(frac=1.0, random_state=2), "US")
    for group, prior in default.groups.items():
        for field in ("sd", "shared", "memory", "weight", "mean"):
            np.testing.assert_array_equal(getattr(back.groups[group], field), getattr(prior, field))
    assert back.firms == 0
    empty = learn_priors(pd.DataFrame(columns=["firm", "series", "week", "value", "noise"]), "US")
    np.testing.assert_array_equal(empty.groups["drivers"].sd, default.groups["drivers"].sd)


def test_the_gradient_of_the_density_is_that_of_differences() -> None:
    rng = np.random.default_rng(0)
    root = rng.normal(size=(2, 5, 5))
    square = torch.from_numpy(root @ root.transpose(0, 2, 1) + np.eye(5)).requires_grad_()
    residual = torch.from_numpy(rng.normal(size=(2, 5, 1))).requires_grad_()

    def density(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        symmetric = 0.5 * (a + a.mT)
        return _NegativeLogDensity.apply(symmetric, b)  # type: ignore[no-any-return, no-untyped-call]

    assert torch.autograd.gradcheck(density, (square, residual))
    expected = -torch.distributions.MultivariateNormal(torch.zeros(5).double(), square).log_prob(
        residual[..., 0]
    )
    constant = 2 * 0.5 * 5 * np.log(2 * np.pi)
    assert float(density(square, residual).detach()) == pytest.approx(
        float(expected.sum().detach()) - constant
    )


def test_one_firm_teaches_no_mean_over_firms(seen: FirmPanel) -> None:
    series = series_of(seen, build("cohort_glm").fit(seen, seed=1))
    one = PathPriors.of_one(series, "US").groups["drivers"]
    assert one.firms == 1
    assert (one.mean == 0).all()
    assert not np.allclose(one.sd, PathPrior.default("drivers", "US").sd)


def test_firms_with_hardly_an_order_a_week_do_not_teach(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prior_module, "LEARNING_STEPS", 2)
    prior, rng = PathPrior.default("drivers", "US"), np.random.default_rng(0)
    clear = [drawn(prior, rng, f"clear {k}", 0.0) for k in range(3)]
    noisy = [
        WeeklySeries(f"noisy {k}", FIRST, "US", rng.normal(size=(D, WEEKS)), np.full((D, WEEKS), 0.6))
        for k in range(3)
    ]
    assert PathPrior.learned([*clear, *noisy], "drivers", "US").firms == 3
    mixed, expected = (PathPrior.learned(some, "drivers", "US").sd for some in ([*noisy, *clear], clear))
    np.testing.assert_array_equal(mixed, expected)
    assert PathPrior.learned(noisy, "drivers", "US").firms == 3


def test_noise_of_a_count_is_that_of_drawn_counts() -> None:
    rng = np.random.default_rng(1)
    for mean in (0.2, 1.0, 4.0, 60.0):
        logs = np.log(rng.poisson(mean, 400_000) + 0.5)
        assert _counting_variance(mean) == pytest.approx(logs.var(), rel=0.02)


def test_firms_of_different_weeks_are_refused() -> None:
    prior, rng = PathPrior.default("drivers", "US"), np.random.default_rng(0)
    some = [drawn(prior, rng, "a", 0.0), drawn(prior, rng, "b", 0.0, weeks=WEEKS - 1)]
    with pytest.raises(BadFirmData, match=f"{WEEKS - 1} weeks from 2017-01-01|{WEEKS} weeks from 2017-01-01"):
        PathPrior.learned(some, "drivers", "US")


def test_series_are_what_is_left_of_the_drivers(seen: FirmPanel) -> None:
    glm = build("cohort_glm").fit(seen, seed=1)
    series = series_of(seen, glm)
    R, V = glm.cohorts_alone()
    acquired, repeat, aov = series["drivers"].value
    customers = np.where(seen.born, seen.size[:, None], 0.0)
    np.testing.assert_allclose(np.exp(acquired), seen.A + 0.5)
    expected = np.nansum(customers * R, axis=0)
    np.testing.assert_allclose(np.exp(repeat) * (expected + 0.5), np.nansum(customers * seen.R, axis=0) + 0.5)
    half = 0.5 * seen.S.sum() / seen.orders.sum()
    np.testing.assert_allclose(np.exp(aov) * (np.nansum(seen.orders * V, axis=0) + half), seen.S + half)
    np.testing.assert_allclose(np.exp(series["sales"].value[0]), seen.S + half)
    assert abs(repeat.mean()) < 0.3
    assert abs(aov.mean()) < 0.3
    frame = weekly_series(seen, seed=1)
    (back,) = series_from_frame(frame.sample(frac=1.0, random_state=1), "drivers", seen.design.country)
    np.testing.assert_array_equal(back.value, series["drivers"].value)
    np.testing.assert_array_equal(back.noise, series["drivers"].noise)


def test_cohorts_alone_are_the_forecast_without_its_weeks(seen: FirmPanel) -> None:
    """In each week the forecast is the cohorts' own value times one factor for all of them."""
    glm = build("cohort_glm").fit(seen, seed=1)
    forecast = glm.forecast(10)
    for alone, whole in zip(glm.cohorts_alone(10), (forecast.R, forecast.V), strict=True):
        np.testing.assert_array_equal(np.isnan(alone), np.isnan(whole))
        spread = np.nanmax(whole / alone, axis=0) / np.nanmin(whole / alone, axis=0)
        np.testing.assert_allclose(spread, 1.0)
    fitted = glm.in_sample()
    for alone, whole in zip(glm.cohorts_alone(), (fitted.R, fitted.V), strict=True):
        ratio = whole / alone
        np.testing.assert_allclose(np.nanmax(ratio, axis=0), np.nanmin(ratio, axis=0))


@pytest.mark.parametrize("value", [-0.7, 3.0])
def test_a_series_that_never_moved_stays_where_it_is(value: float) -> None:
    still = WeeklySeries("firm", FIRST, "US", np.full((D, WEEKS), value), np.full((D, WEEKS), 0.01))
    np.testing.assert_allclose(
        fit_paths(still, PathPrior.default("drivers", "US")).forecast(40), value, atol=1e-6
    )


def test_a_path_stays_within_reach_of_what_was_seen() -> None:
    value = np.tile(np.linspace(0, 9, WEEKS), (D, 1))
    steep = WeeklySeries("firm", FIRST, "US", value, np.full((D, WEEKS), 1e-4))
    ahead = fit_paths(steep, PathPrior.default("drivers", "US")).forecast(400)
    assert ahead.max() <= 9 + REACH
    assert np.isfinite(ahead).all()


def test_a_firm_too_young_has_no_series(seen: FirmPanel) -> None:
    young = seen.until(seen.weeks[5].astype(object))
    frame = weekly_series(young, seed=1)
    assert frame.empty
    assert learn_priors(frame, "US").firms == 0
