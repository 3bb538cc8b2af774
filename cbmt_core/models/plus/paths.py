"""Paths of weekly series: Gaussian processes whose prior firms have in common and learn together.

A firm adds to the prior how restless each of its series is, and how far they move together: the rest of what is
special about it (its season, its trend, its level) follows from its weeks by Bayes' rule, in closed form.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from cbmt_core.errors import BadFirmData
from cbmt_core.models.neural.training import one_thread
from cbmt_core.models.plus.prior import MOVES, RANDOM, PathPrior, regressors
from cbmt_core.models.plus.series import WeeklySeries

__all__ = ["FittedPaths", "fit_paths", "learn_prior"]

Floats = npt.NDArray[np.float64]

LEVEL_VARIANCE = 4.0
"""Of a series' level around its mean: the weeks alone settle it."""
SCALE_SD, COMOVEMENT_SD = 0.35, 1.5
"""How far firms lie apart in the log of their restlessness, and in the logit of their co-movement."""
TRUSTED = {"sd": 1.0, "shared": 1.0, "memory": 0.5, "weight": 1.0, "mean": 0.5}
"""How far, in logs or the like, firms may move the usual prior; the more there are, the less it weighs."""
MOST_FIRMS = 60
"""Firms that a prior is learned from: more cost time and change little."""
CLEAR = 0.25
"""Variance of the noise, that of about five orders a week, above which a firm's weeks say little of how firms move."""
LEARNING_STEPS, FITTING_STEPS = 100, 40
RATE = 0.06
AT_ONCE = 8
"""Firms whose matrices are factored together: they fit into the processor's cache."""
ARRAYS = ("level", "scale", "told", "bounds", "lift")
REACH = 1.0
"""Log points that a path may leave the range it was seen in."""


@dataclass(frozen=True, eq=False)
class FittedPaths:
    """The paths of one firm, given its weeks."""

    prior: PathPrior
    first_week: date
    level: Floats
    """[D] mean of each series."""
    scale: Floats
    """[D] how restless each series is, relative to other firms'."""
    comovement: float
    """0: the series share nothing; 1: whatever moves one moves all, as far as the prior says."""
    told: Floats
    """[D, T] what each week adds to any other through their covariance."""
    bounds: Floats
    """[2, D]"""
    lift: Floats
    """[D] how far the log of an average week lies above the average log."""

    @property
    def n_weeks(self) -> int:
        return int(self.told.shape[1])

    def forecast(self, horizon: int) -> Floats:
        """[D, horizon] logs of what to expect of the weeks ahead."""
        ahead = self._path(horizon, MOVES)[:, self.n_weeks :] + self.lift[:, None]
        return np.clip(ahead, self.bounds[0][:, None], self.bounds[1][:, None])

    def lasting(self) -> Floats:
        """[D, T] the path of the weeks seen, without what came and went."""
        return self._path(0, MOVES[:-1])

    def _path(self, horizon: int, moves: Sequence[str]) -> Floats:
        T, weeks = self.n_weeks, self.n_weeks + horizon
        time = _Time.of(self.first_week, T, horizon, self.prior.country)
        kept = torch.tensor([float(move in moves) for move in MOVES])
        with torch.no_grad():
            common = _Common.of(self.prior)
            kernels = time.kernels(common)[:, :, :T] * kept[:, None, None]
            scale = torch.from_numpy(self.scale)[None]
            together = torch.tensor([self.comovement], dtype=torch.float64)
            covariance = _covariance(kernels, common, scale, together)
            size = self.told.size
            rest = covariance.reshape(-1, size) @ torch.from_numpy(self.told).reshape(size)
            mean = time.mean(common).T
        return np.asarray(self.level[:, None] + mean.numpy() + rest.reshape(len(self.level), weeks).numpy())

    def values(self) -> dict[str, Any]:
        """JSON-ready; `from_values` reads it back."""
        arrays = {name: getattr(self, name).tolist() for name in ARRAYS}
        plain = {"first_week": self.first_week.isoformat(), "comovement": self.comovement}
        return {"prior": self.prior.values(), **plain, **arrays}

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        return cls(
            prior=PathPrior.from_values(values["prior"]),
            first_week=date.fromisoformat(values["first_week"]),
            comovement=values["comovement"],
            **{name: np.array(values[name], float) for name in ARRAYS},
        )


def learn_prior(
    series: Sequence[WeeklySeries], usual: PathPrior, progress: Callable[[int, int], None] | None = None
) -> PathPrior:
    """The prior under which the weeks of these firms are likeliest, not too far from the usual one.

    Of many firms a fixed choice of `MOST_FIRMS` is asked, and only firms with enough orders a week to tell moves
    from chance, if there are any. All of them must have the same weeks.
    """
    firms = [one for one in series if one.noise.mean() <= CLEAR] or list(series)
    firms = sorted(firms, key=lambda one: hashlib.sha256(one.firm.encode()).digest())[:MOST_FIRMS]
    if not firms:
        return usual
    for one in firms:
        if (one.first_week, one.n_weeks) != (firms[0].first_week, firms[0].n_weeks):
            raise BadFirmData(
                one.firm,
                f"its series has {one.n_weeks} weeks from {one.first_week}, that of {firms[0].firm!r} has "
                f"{firms[0].n_weeks} from {firms[0].first_week}: make the series of both again",
            )
    with one_thread():
        common = _Common.of(usual)
        _minimise(_batches(firms, usual), common, LEARNING_STEPS, _Common.of(usual), progress)
    return common.prior(usual.group, usual.country, len(firms))


def fit_paths(series: WeeklySeries, prior: PathPrior) -> FittedPaths:
    """The paths of one firm: its restlessness and co-movement at their likeliest, the rest by Bayes' rule."""
    with one_thread():
        common, (batch,) = _Common.of(prior), _batches([series], prior)
        _minimise([batch], common, FITTING_STEPS)
        with torch.no_grad():
            factor, away = batch.factored(common)
            told = torch.cholesky_solve(away, factor).reshape(series.value.shape)
            scale, together = batch.scale.exp()[0], torch.sigmoid(batch.together)[0]
    made = FittedPaths(
        prior=prior,
        first_week=series.first_week,
        level=series.value.mean(axis=1),
        scale=scale.numpy().copy(),
        comovement=float(together),
        told=told.numpy().copy(),
        bounds=np.stack([series.value.min(axis=1) - REACH, series.value.max(axis=1) + REACH]),
        lift=np.zeros(len(series.value)),
    )
    return replace(made, lift=np.log(np.exp(series.value - made.lasting()).mean(axis=1)))


@dataclass(frozen=True, eq=False)
class _Common:
    """The numbers of a prior on scales where any value is allowed."""

    sd: Tensor
    shared: Tensor
    memory: Tensor
    weight: Tensor
    mean: Tensor
    unit: Tensor
    """What one of `mean` is worth: three usual standard deviations of such an effect."""

    @classmethod
    def of(cls, prior: PathPrior) -> _Common:
        usual = PathPrior.usual(prior.group, prior.country).sd
        unit = 3 * np.repeat(usual[[0, 1]], [1, len(prior.weight)], axis=0)
        return cls(
            sd=torch.from_numpy(np.log(prior.sd)),
            shared=torch.from_numpy(np.arctanh(prior.shared)),
            memory=torch.from_numpy(np.log(prior.memory)),
            weight=torch.from_numpy(np.log(prior.weight)),
            mean=torch.from_numpy(prior.mean / unit),
            unit=torch.from_numpy(unit),
        )

    def learned(self) -> dict[str, Tensor]:
        return {name: getattr(self, name) for name in TRUSTED}

    def prior(self, group: str, country: str, firms: int) -> PathPrior:
        with torch.no_grad():
            arrays = {
                "sd": self.sd.exp(),
                "shared": self.shared.tanh(),
                "memory": self.memory.exp(),
                "weight": self.weight.exp(),
                "mean": self.mean * self.unit,
            }
        return PathPrior(group, country, **{k: x.numpy().copy() for k, x in arrays.items()}, firms=firms)


@dataclass(frozen=True, eq=False)
class _Time:
    """What is known of the weeks."""

    years: Tensor
    """[T + H] around the middle of the T weeks seen."""
    regressors: Tensor
    """[T + H, Q]"""

    @classmethod
    def of(cls, first_week: date, weeks: int, horizon: int, country: str) -> _Time:
        years = (np.arange(weeks + horizon) - weeks / 2) / 52
        known = regressors(first_week, weeks + horizon, country)
        return cls(torch.from_numpy(years), torch.from_numpy(known))

    def mean(self, common: _Common) -> Tensor:
        """[T + H, D] the average firm's path around its level."""
        mean = common.mean * common.unit
        return self.years[:, None] * mean[0] + self.regressors @ mean[1:]

    def kernels(self, common: _Common) -> Tensor:
        """[5, T + H, T + H] covariance of each move between weeks, for a standard deviation of one."""
        week = torch.arange(len(self.years), dtype=torch.float64)
        apart = (week[:, None] - week).abs()
        memory, weighed = common.memory.exp(), self.regressors * common.weight.exp()
        return torch.stack(
            [
                torch.outer(self.years, self.years),
                weighed @ weighed.T,
                torch.exp(-apart / memory[0]),
                torch.minimum(week[:, None], week) + 1.0,
                torch.exp(-apart / memory[1]),
            ]
        )


def _covariance(kernels: Tensor, common: _Common, scale: Tensor, together: Tensor) -> Tensor:
    """[n, D, S, D, T] of n firms' series in S weeks with those in T weeks.

    A move of series a and b covaries by `together` times both their shared parts; with itself, wholly.
    """
    n, D = scale.shape
    moves, S, T = kernels.shape
    restless = torch.where(torch.from_numpy(RANDOM)[:, None], scale[:, None], torch.ones(()).double())
    sd = common.sd[:moves].exp() * restless
    part = sd * common.shared.tanh()
    both = together[:, None, None, None] * part[..., :, None] * part[..., None, :]
    alone = torch.diag_embed(sd**2 - together[:, None, None] * part**2)
    between = (both + alone).permute(0, 2, 3, 1).reshape(n * D * D, moves)
    made = (between @ kernels.reshape(moves, S * T)).reshape(n, D, D, S, T)
    level = LEVEL_VARIANCE * torch.eye(D, dtype=torch.float64)[:, :, None, None]
    return (made + level).permute(0, 1, 3, 2, 4)


@dataclass(frozen=True, eq=False)
class _Batch:
    """Firms with the same weeks, and what is looked for of each."""

    time: _Time
    value: Tensor
    """[n, D, T] around each series' mean."""
    noise: Tensor
    """[n, D, T]"""
    scale: Tensor
    """[n, D] logs."""
    together: Tensor
    """[n] logits."""

    def factored(self, common: _Common) -> tuple[Tensor, Tensor]:
        """Cholesky factors of the firms' covariances, and how far the firms are from the average path."""
        n, D, T = self.value.shape
        scale = self.scale.exp()
        covariance = _covariance(self.time.kernels(common), common, scale, torch.sigmoid(self.together))
        white = (scale * common.sd[-1].exp())[..., None] ** 2 + self.noise
        square = covariance.reshape(n, D * T, D * T) + torch.diag_embed(white.reshape(n, D * T))
        away = self.value - self.time.mean(common).T
        return torch.linalg.cholesky(square), away.reshape(n, D * T, 1)

    def unlikelihood(self, common: _Common) -> Tensor:
        factor, away = self.factored(common)
        whitened = torch.linalg.solve_triangular(factor, away, upper=False)
        weeks: Tensor = 0.5 * whitened.square().sum() + factor.diagonal(dim1=1, dim2=2).log().sum()
        firm = (self.scale / SCALE_SD).square().sum() + (self.together / COMOVEMENT_SD).square().sum()
        return weeks + 0.5 * firm


def _batches(series: Sequence[WeeklySeries], prior: PathPrior) -> list[_Batch]:
    first = series[0]
    time = _Time.of(first.first_week, first.n_weeks, 0, first.country)
    made = []
    for at in range(0, len(series), AT_ONCE):
        some = series[at : at + AT_ONCE]
        value = np.stack([one.value for one in some])
        noise = np.stack([one.noise for one in some])
        steps = np.diff(value, axis=2).var(axis=2)
        start = 0.5 * np.log((steps + 1e-6) / (_expected_steps(prior) + 2 * noise.mean(axis=2)))
        made.append(
            _Batch(
                time=time,
                value=torch.from_numpy(value - value.mean(axis=2, keepdims=True)),
                noise=torch.from_numpy(noise),
                scale=torch.from_numpy(np.clip(start, -1.0, 1.0)).requires_grad_(),
                together=torch.zeros(len(some), dtype=torch.float64, requires_grad=True),
            )
        )
    return made


def _expected_steps(prior: PathPrior) -> Floats:
    """[D] variance of a week's random step."""
    _, _, slow, walk, brief, white = prior.sd**2
    kept = np.exp(-1 / prior.memory)
    return np.asarray(walk + 2 * (slow * (1 - kept[0]) + brief * (1 - kept[1]) + white))


def _minimise(
    batches: Sequence[_Batch],
    common: _Common,
    steps: int,
    usual: _Common | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Adam with a falling rate on what is special about the firms and, away from `usual`, what they share."""
    parameters = [x for batch in batches for x in (batch.scale, batch.together)]
    if usual is not None:
        parameters += [x.requires_grad_() for x in common.learned().values()]
    optimiser = torch.optim.Adam(parameters, lr=RATE)
    falling = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.05, total_iters=steps)
    for step in range(steps):
        optimiser.zero_grad()
        for batch in batches:
            batch.unlikelihood(common).backward()  # type: ignore[no-untyped-call]
        if usual is not None:
            moved = [
                ((x - usual.learned()[name]) / TRUSTED[name]).square().sum()
                for name, x in common.learned().items()
            ]
            (0.5 * torch.stack(moved).sum()).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        falling.step()
        if progress is not None:
            progress(step + 1, steps)
