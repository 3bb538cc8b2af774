"""Cost (processor seconds a firm) and accuracy of floors and classical models on simulated firms.

`python bench/models_classical.py --firms 20` forecasts the validation window from the training weeks,
which is where choices are made; `--holdout` forecasts the holdout from all of calibration.
"""

from __future__ import annotations

import argparse
from time import process_time

import numpy as np

from cbmt_core.compose import compose
from cbmt_core.metrics import FULL, OUTCOMES, score
from cbmt_core.models import MODELS, build
from cbmt_core.simulate import Economy, sample_cohorts


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--firms", type=int, default=20)
    parser.add_argument("--seed", type=int, default=4711)
    parser.add_argument("--holdout", action="store_true")
    parser.add_argument("--families", nargs="+", default=["floor", "classical"])
    asked = parser.parse_args()
    economy = Economy(seed=asked.seed)
    specs = economy.specs()
    panels = [sample_cohorts(economy, spec).panel() for spec in specs[:: max(len(specs) // asked.firms, 1)]]
    panels = panels[: asked.firms]
    print(
        f"{len(panels)} firms; seconds a firm, then mean SMAPE of {', '.join(OUTCOMES)}; median of the last"
    )
    for name, entry in MODELS.items():
        if entry.family not in asked.families:
            continue
        model, seconds, errors = build(name), [], []
        model.fit(panels[0].until(panels[0].design.origin), seed=1)  # imports and calendar, not measured
        for panel in panels:
            design = panel.design
            full = panel if asked.holdout else panel.until(design.origin)
            seen = panel.until(design.origin if asked.holdout else design.training.last)
            start = process_time()
            drivers = model.fit(seen, seed=1).forecast(full.n_weeks - seen.n_weeks)
            seconds.append(process_time() - start)
            scores = score(full, compose(seen, drivers), seen.origin)
            errors.append([s.smape for s in scores if s.horizon == FULL])
        means = "  ".join(f"{e:6.2f}" for e in np.mean(errors, axis=0))
        print(
            f"{name:16s} {np.median(seconds):7.4f} s  {means}   ({np.median(errors, axis=0)[-1]:.2f})",
            flush=True,
        )


if __name__ == "__main__":
    main()
