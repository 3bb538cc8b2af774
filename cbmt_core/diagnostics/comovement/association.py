"""Regressions of joint-model wins on co-movement, used by every test."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
import statsmodels.api as sm
from statsmodels.tools.sm_exceptions import PerfectSeparationError

from cbmt_core.arrays import Floats
from cbmt_core.diagnostics.comovement.controls import CONTROLS
from cbmt_core.evaluation.comparison import NO_INDUSTRY

__all__ = ["Estimate", "NotEstimable", "Sample", "linear_probability", "logit", "sample_of"]


SPARE = 20
"""Number of firms needed in addition to the number of coefficients."""
EACH = 10
"""Minimum number of wins, and of losses, for a logit."""


class NotEstimable(Exception):
    """Too few firms for the regression, or no variation; the message says what is missing."""

    def __init__(self, n: int, reason: str):
        super().__init__(reason)
        self.n = n


@dataclass(frozen=True, eq=False)
class Sample:
    """Firms of one regression. `X` holds the score first, then the intercept, controls and industries."""

    y: Floats
    X: Floats
    firms: pd.Index

    @property
    def n(self) -> int:
        return len(self.y)

    def with_score(self, score: Floats) -> Sample:
        return Sample(self.y, np.column_stack([score, self.X[:, 1:]]), self.firms)


@dataclass(frozen=True)
class Estimate:
    n: int
    coefficient: float
    se: float
    p: float

    @property
    def interval(self) -> tuple[float, float]:
        """95 %, by the normal law, as the robust standard error is."""
        return self.coefficient - 1.959964 * self.se, self.coefficient + 1.959964 * self.se


def sample_of(
    score: pd.Series,
    wins: pd.Series,
    controls: pd.DataFrame | None = None,
    industry: pd.Series | None = None,
    *,
    both_outcomes: bool = False,
) -> Sample:
    """The firms without missing values, matched and sorted by their index.

    With `both_outcomes`, industries in which every firm wins or every firm loses are left out: their
    effect would be infinite in a logit (note to the paper's table).
    """
    frame = pd.DataFrame({"score": score, "wins": wins.astype(float)}).dropna().sort_index()
    if controls is not None:
        frame = frame.join(controls[list(CONTROLS)], how="inner").dropna()
    if industry is not None:
        frame["industry"] = industry.reindex(frame.index).fillna(NO_INDUSTRY)
        if both_outcomes:
            rate = frame.groupby("industry")["wins"].transform("mean")
            frame = frame[(rate > 0) & (rate < 1)]
    columns = [frame["score"].to_numpy(float), np.ones(len(frame))]
    if controls is not None:
        # Standardised for numerical stability only; the score's coefficient does not depend on it.
        columns += [_unit(frame[name].to_numpy(float)) for name in CONTROLS]
    if industry is not None and len(frame):
        columns += list(pd.get_dummies(frame["industry"], drop_first=True).to_numpy(float).T)
    return Sample(frame["wins"].to_numpy(float), np.column_stack(columns), frame.index)


def _unit(x: Floats) -> Floats:
    spread = x.std() if len(x) else 0.0
    return np.asarray((x - x.mean()) / spread) if spread > 0 else np.zeros_like(x)


def _require(sample: Sample, each: int) -> None:
    need = sample.X.shape[1] + SPARE
    if sample.n < need:
        raise NotEstimable(sample.n, f"{sample.n} firms; {need} needed for {sample.X.shape[1]} coefficients")
    fewer = int(min(sample.y.sum(), sample.n - sample.y.sum()))
    if fewer < each:
        raise NotEstimable(sample.n, f"{fewer} firms of the rarer outcome; {each} needed")
    if np.ptp(sample.X[:, 0]) == 0:
        raise NotEstimable(sample.n, "the score is the same for every firm")


def linear_probability(sample: Sample) -> Estimate:
    """Least squares with HC1 standard errors."""
    _require(sample, each=1)
    fit = sm.OLS(sample.y, sample.X).fit(cov_type="HC1")
    return Estimate(sample.n, float(fit.params[0]), float(fit.bse[0]), float(fit.pvalues[0]))


def logit(sample: Sample) -> Estimate:
    """Maximum likelihood with HC1 standard errors; the coefficient is the log of the odds ratio."""
    _require(sample, each=EACH)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            fit = sm.Logit(sample.y, sample.X).fit(disp=0, maxiter=100, cov_type="HC1")
        except (PerfectSeparationError, np.linalg.LinAlgError):
            raise NotEstimable(sample.n, "score and controls separate wins from losses perfectly") from None
    if not fit.mle_retvals["converged"] or not np.isfinite(fit.bse[0]):
        raise NotEstimable(sample.n, "the logit does not converge on these firms")
    return Estimate(sample.n, float(fit.params[0]), float(fit.bse[0]), float(fit.pvalues[0]))
