"""Processor seconds and accuracy of the tree models: `python bench/models_trees.py [firms]`."""

from __future__ import annotations

import sys
from time import process_time

import numpy as np

from cbmt_core.compose import compose
from cbmt_core.metrics import score
from cbmt_core.models import build
from cbmt_core.models.sequence import History, Scaling, Sequences, Windows, walk_forward
from cbmt_core.simulate import Economy, sample_cohorts

HORIZON = 47


class Free:
    """A model that costs nothing: what remains is the walk itself."""

    def predict(self, windows: Windows) -> np.ndarray:
        return windows.outcomes[:, -1]


def main(firms: int) -> None:
    economy = Economy(firms=firms)
    for spec in economy.specs():
        panel = sample_cohorts(economy, spec).panel()
        seen = panel.until(panel.design.origin)
        start = process_time()
        history, scaling = History.of(seen), Scaling.of(seen)
        sequences = Sequences.of(history, scaling)
        samples = sequences.samples(*sequences.pairs(range(1, seen.n_weeks)))
        gathered = process_time()
        walk_forward(Free(), history, scaling, HORIZON)
        walked = process_time()
        print(
            f"{spec.name}: {seen.n_cohorts} cohorts, {seen.n_weeks} weeks, {len(samples)} windows; "
            f"gather {gathered - start:.2f} s, walk of {HORIZON} weeks {walked - gathered:.2f} s"
        )
        for name in ("rf", "xgb", "seasonal_naive"):
            start = process_time()
            fitted = build(name).fit(seen, seed=1)
            grown = process_time()
            drivers = fitted.forecast(HORIZON)
            forecast = process_time()
            errors = {
                s.outcome: round(s.smape, 1)
                for s in score(panel, compose(seen, drivers), seen.origin)
                if s.weeks == HORIZON
            }
            megabytes = sum(array.nbytes for array in fitted.state().arrays.values()) / 1e6
            print(
                f"  {name:14s} fit {grown - start:5.2f} s  forecast {forecast - grown:4.2f} s  "
                f"stored {megabytes:4.1f} MB  SMAPE {errors}"
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
