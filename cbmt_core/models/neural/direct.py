"""`direct`: a Transformer on weekly sales alone (Web App. "Direct Aggregate-Sales Benchmark")."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from optuna.distributions import CategoricalDistribution
from torch import Tensor

from cbmt_core.arrays import Floats, Ints
from cbmt_core.calendar import calendar_of
from cbmt_core.metrics import smape
from cbmt_core.models.contract import CannotFit, FitRecord, ModelState, SalesForecast
from cbmt_core.models.neural.batch import Batch
from cbmt_core.models.neural.config import NetworkConfig, TrainingConfig
from cbmt_core.models.neural.curve import curve
from cbmt_core.models.neural.network import Dimensions, Network
from cbmt_core.models.neural.parts import Mask, Parameters
from cbmt_core.models.neural.profiles import PROFILES
from cbmt_core.models.neural.training import minimise, one_thread
from cbmt_core.panel import FirmPanel
from cbmt_core.tuning import Choice, Found, Progress, Report, Stages, search

__all__ = ["CANDIDATES", "Candidate", "Direct", "FittedDirect"]


NAME = "direct"
VALIDATION_WEEKS = 13
MIN_WEEKS = 40
BATCH = 64
CHECKS = (0.4, 0.7, 1.0)
CEILING = 2.0
"""Largest scaled forecast: twice the range seen in calibration."""


@dataclass(frozen=True)
class Candidate:
    """A row of Web App. Table "Direct Aggregate-Sales Transformer Candidate Grid"."""

    weeks: int
    rate: float
    width: int
    feed_forward: int
    encoder: int
    decoder: int
    dropout: float

    def network(self) -> NetworkConfig:
        return NetworkConfig(
            outcomes=("S",),
            lookback=self.weeks,
            width=self.width,
            feed_forward=self.feed_forward,
            encoder_layers=self.encoder,
            decoder_layers=self.decoder,
            dropout=self.dropout,
            linear_heads=True,
        )


CANDIDATES: dict[str, Candidate] = {
    "C01": Candidate(20, 0.0005, 32, 64, 2, 2, 0.00),
    "C02": Candidate(20, 0.0001, 32, 64, 2, 2, 0.10),
    "C03": Candidate(20, 0.0010, 32, 64, 2, 2, 0.05),
    "C04": Candidate(20, 0.0005, 16, 32, 1, 1, 0.10),
    "C05": Candidate(20, 0.0005, 64, 128, 2, 2, 0.10),
    "C06": Candidate(20, 0.0003, 32, 128, 3, 2, 0.10),
    "C07": Candidate(12, 0.0005, 32, 64, 2, 2, 0.05),
    "C08": Candidate(24, 0.0003, 32, 64, 2, 2, 0.10),
}


@dataclass(frozen=True)
class SalesCalendar:
    """Covariates of a firm's weeks: a holiday indicator, trends, and the week of the year."""

    first_week: date
    country: str
    scale: int
    """Weeks over which the trend runs from 0 to 1."""

    def batch(self, sales: Floats, target: Ints, lookback: int) -> Batch:
        """Windows before the target weeks; each week carries the covariates of the week after it."""
        weeks = len(sales) + 1
        calendar = calendar_of(self.first_week, weeks, self.country)
        trend = np.arange(weeks) / self.scale
        known = np.column_stack([calendar.holiday.any(axis=1), trend, trend**2]).astype(np.float32)
        after = target[:, None] + np.arange(1 - lookback, 1)
        seen = sales[after - 1].astype(np.float32)
        nothing = torch.zeros(1, len(target), dtype=torch.int64)
        return Batch(
            numeric=torch.from_numpy(seen[None, None]),
            first_week=torch.from_numpy(after[None, :, 0]),
            week_covariates=torch.from_numpy(known),
            week_of_year=torch.from_numpy(calendar.week_of_year.copy()),
            month=nothing,
            cohort=nothing,
        )


def _network(candidate: Candidate) -> Network:
    return Network(candidate.network(), Dimensions(numeric=1, week_covariates=3, n_ids=1))


def _train(
    candidate: Candidate,
    calendar: SalesCalendar,
    sales: Floats,
    steps: int,
    seed: int,
    stops: list[int],
    losses: list[float] | None = None,
) -> Iterator[tuple[Network, Tensor]]:
    network = _network(candidate)
    batch = calendar.batch(sales, np.arange(candidate.weeks, len(sales)), candidate.weeks)
    targets = torch.from_numpy(sales[candidate.weeks :].astype(np.float32))
    rows = torch.from_numpy(np.random.default_rng(seed).integers(len(batch), size=(steps, 1, BATCH)))
    config = TrainingConfig(
        steps=steps, batch=BATCH, rate=candidate.rate, backbone_share=1.0, clip=1.0, warm_up=0.05
    )

    def descend(p: Parameters, mask: Mask, step: int) -> tuple[Tensor, Tensor]:
        predicted, pull = network.forward(p, batch.take(rows[step], batch.cohort[0][rows[step]]), mask)
        error = predicted - targets[rows[step]]
        return (error * error).mean((1, 2)), pull(error * (2.0 / BATCH))

    for (flat,) in minimise(descend, [network], [config], [seed], stops, [] if losses is None else [losses]):
        yield network, flat


def _walk(network: Network, flat: Tensor, calendar: SalesCalendar, sales: Floats, horizon: int) -> Floats:
    """The scaled sales of the next weeks, each forecast fed back."""
    path = sales.copy()
    with torch.inference_mode():
        for _ in range(horizon):
            batch = calendar.batch(path, np.array([len(path)]), network.config.lookback)
            path = np.append(path, np.clip(float(network(flat, batch)), -CEILING, CEILING))
    return path[len(sales) :]


@dataclass(frozen=True, eq=False)
class FittedDirect:
    network: Network
    flat: Tensor
    calendar: SalesCalendar
    low: float
    span: float
    sales: Floats
    """[T] observed, scaled."""
    record: FitRecord

    def forecast(self, horizon: int) -> SalesForecast:
        with one_thread():
            path = _walk(self.network, self.flat, self.calendar, self.sales, horizon)
        return SalesForecast(np.maximum(path * self.span + self.low, 0.0))

    def state(self) -> ModelState:
        values: dict[str, Any] = {
            "candidate": self.record.parameters["candidate"],
            "first_week": self.calendar.first_week.isoformat(),
            "country": self.calendar.country,
            "scale": self.calendar.scale,
            "low": self.low,
            "span": self.span,
            **self.record.values(),
        }
        return ModelState(values, {"network": self.flat.numpy(), "sales": self.sales})

    @classmethod
    def from_state(cls, state: ModelState) -> Self:
        v = state.values
        return cls(
            network=_network(CANDIDATES[v["candidate"]]),
            flat=torch.from_numpy(np.array(state.arrays["network"])),
            calendar=SalesCalendar(date.fromisoformat(v["first_week"]), v["country"], v["scale"]),
            low=v["low"],
            span=v["span"],
            sales=state.arrays["sales"],
            record=FitRecord.from_values(v),
        )


@dataclass(frozen=True)
class Direct:
    """All eight candidates, the best on the last 13 weeks, then a fit on everything."""

    profile: str = "quick"
    storage: str | Path | None = None
    progress: Progress | None = field(default=None, compare=False)

    def fit(self, panel: FirmPanel, *, seed: int) -> FittedDirect:
        if panel.n_weeks < MIN_WEEKS:
            raise CannotFit(
                NAME, panel.firm, f"it has {panel.n_weeks} weeks; at least {MIN_WEEKS} are needed"
            )
        steps = PROFILES[self.profile].direct_steps
        calendar = SalesCalendar(panel.first_week, panel.design.country, panel.n_weeks)
        with one_thread():
            found = self._search(panel, calendar, steps, seed)
            name, share = found.choice["candidate"], found.notes["share"]
            low, span = float(panel.S.min()), float(np.ptp(panel.S)) or 1.0
            sales = (panel.S - low) / span
            stop = max(1, round(share * steps))
            ((network, flat),) = _train(CANDIDATES[name], calendar, sales, steps, seed, [stop])
        record = FitRecord(
            {"candidate": name, "share_of_steps": share, "steps": steps},
            validation_error=found.error,
            trials=found.history,
        )
        return FittedDirect(network, flat, calendar, low, span, sales, record)

    def _search(self, panel: FirmPanel, calendar: SalesCalendar, steps: int, seed: int) -> Found:
        seen = panel.S[:-VALIDATION_WEEKS]
        low, span = float(seen.min()), float(np.ptp(seen)) or 1.0
        sales = (seen - low) / span
        stops = [max(1, round(share * steps)) for share in CHECKS]

        def objective(choice: Choice, report: Report) -> tuple[float, dict[str, Any]]:
            best, losses, checks = (np.inf, CHECKS[0]), list[float](), list[tuple[int, float]]()
            trained = _train(CANDIDATES[choice["candidate"]], calendar, sales, steps, seed, stops, losses)
            for share, (network, flat) in zip(CHECKS, trained, strict=True):
                path = _walk(network, flat, calendar, sales, VALIDATION_WEEKS)
                error = smape(panel.S[-VALIDATION_WEEKS:], np.maximum(path * span + low, 0.0))
                best = min(best, (error, share))
                checks.append((len(losses), error))
            return best[0], {"share": best[1], "curve": curve(losses, checks)}

        return search(
            objective,
            {"candidate": CategoricalDistribution(list(CANDIDATES))},
            [{"candidate": name} for name in CANDIDATES],
            Stages(random=len(CANDIDATES)),
            seed=seed,
            storage=self.storage,
            study=f"{panel.firm}/{NAME}",
            depends=(panel.digest, steps, CHECKS),
            progress=self.progress,
        )
