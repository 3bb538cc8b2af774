"""Pareto/NBD models with known parameters: the published ones, and cohort counts drawn from others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from cbmt_core.design import StudyDesign
from cbmt_core.models.pareto_nbd import ParetoNbd
from cbmt_core.panel import LEFT_CENSORED, FirmPanel

CDNOW = ParetoNbd(r=0.553, alpha=10.578, s=0.606, beta=11.669)
"""Fader, Hardie & Lee 2005, table 1: 2,357 customers, 39 weeks."""
MONTH = [-0.1, 0.0, 0.1, -0.1, 0.0, 0.1, 0.0, -0.2, 0.0, 0.0, 0.3, 0.2]


def reference(model: ParetoNbd = CDNOW) -> Any:
    """lifetimes with the model's parameters."""
    from lifetimes import ParetoNBDFitter  # here, because its import warns unless the library went first

    fitter = ParetoNBDFitter()
    fitter.params_ = pd.Series({"r": model.r, "alpha": model.alpha, "s": model.s, "beta": model.beta})
    return fitter


def counts_panel(rate, s, beta, slope=0.0, month=None, weeks=118, size=2000.0, seed=0, censored=False):
    """Poisson cohort-week counts of the expected curve itself."""
    rng = np.random.default_rng(seed)
    design = StudyDesign()
    sundays = design.calibration.dates()[0] + 7 * np.arange(weeks)
    birth = np.arange(LEFT_CENSORED if censored else 0, weeks)
    u = np.arange(weeks) - birth[:, None]
    lo = np.where(birth[:, None] == LEFT_CENSORED, u - 1.0, np.maximum(u - 0.5, 0))
    hi = np.where(birth[:, None] == LEFT_CENSORED, u, u + 0.5)
    effect = np.zeros(12) if month is None else np.asarray(month)
    months = (sundays + 3).astype("datetime64[M]").astype(int) % 12
    # An independent integral of the survival: the mean over a fine grid of the week.
    grid = np.linspace(0, 1, 201)
    grid = (grid[1:] + grid[:-1]) / 2
    t = lo[..., None] + (hi - lo)[..., None] * grid
    survived = ((beta / (beta + np.maximum(t, 0))) ** s).mean(axis=-1) * (hi - lo)
    years = np.where(birth == LEFT_CENSORED, 0.0, (birth - (weeks - 1)) / 52)[:, None]
    mean = size * rate * np.exp(slope * years + effect[months]) * survived
    born = u >= 0
    R = np.where(born, rng.poisson(np.where(born, mean, 0)) / size, np.nan)
    sizes = np.full(len(birth), size)
    V = np.where(born, 40.0, np.nan)
    orders = np.where(born, size * ((u == 0) + np.nan_to_num(R)), np.nan)
    A = np.bincount(birth[birth >= 0], sizes[birth >= 0], weeks)
    return FirmPanel(
        "counts", design, sundays, A, np.nansum(orders * V, axis=0), sizes, birth, R, V, orders * V
    )
