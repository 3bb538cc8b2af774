"""Made-up features of firms, and errors that follow two of them or none."""

from __future__ import annotations

import numpy as np
import pandas as pd

from cbmt_core.diagnostics.difficulty import FEATURES, SCALE, VOLATILITY


def made_up_features(firms: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        rng.normal(size=(firms, len(FEATURES))),
        columns=list(FEATURES),
        index=pd.Index([f"firm {k:03d}" for k in range(firms)], name="firm"),
    )
    frame[SCALE] = rng.lognormal(12, 2, size=firms)
    frame[VOLATILITY] = rng.gamma(4, 0.25, size=firms)
    return frame.mask(rng.random(frame.shape) < 0.02)


def planted(features: pd.DataFrame) -> pd.Series:
    """The error that belongs to the features: small firms are hard, volatile ones harder still."""
    scale = np.log(features[SCALE].fillna(np.exp(12)))
    return 50 - 8 * (scale - 12) + 10 * (features[VOLATILITY].fillna(1) - 1)


def tidy_errors(**models: pd.Series) -> pd.DataFrame:
    frames = [
        pd.DataFrame({"firm": list(e.index), "model": name, "outcome": "cohort_sales", "smape": e.to_numpy()})
        for name, e in models.items()
    ]
    return pd.concat(frames, ignore_index=True)
