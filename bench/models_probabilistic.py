"""Cost (processor seconds a firm, by part) and accuracy of the probabilistic models on simulated firms.

`python bench/models_probabilistic.py --firms 10` samples single orders, so that the versions without
covariates are fitted to customers, and forecasts the validation window from the training weeks;
`--counts` samples cohort-weeks alone, `--full` times fits on all of calibration and scores nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import date
from time import process_time

import numpy as np
import pandas as pd

from cbmt_core.compose import compose
from cbmt_core.metrics import FULL, OUTCOMES, score
from cbmt_core.models import MODELS, build
from cbmt_core.models.aov_regression import AovRegression
from cbmt_core.models.weibull_gamma import WeibullGamma
from cbmt_core.panel import LEFT_CENSORED, CustomerHistory, FirmPanel
from cbmt_core.simulate import Economy, FirmSpec, sample_cohorts, sample_orders


def panel_of_orders(economy: Economy, spec: FirmSpec) -> FirmPanel:
    """The panel of a firm's sampled orders, customers included, without a database."""
    orders = sample_orders(economy, spec)
    design = economy.design
    first, weeks = np.datetime64(design.study.first, "D"), len(design.study)
    day = orders["order_time"].to_numpy("datetime64[D]")
    week = np.floor((day - first).astype(int) / 7).astype(int)
    kept = week < weeks
    customer, week = pd.factorize(orders["customer"].to_numpy()[kept])[0], week[kept]
    amount = orders["amount"].to_numpy(float)[kept]
    arrival = np.full(customer.max() + 1, weeks)
    np.minimum.at(arrival, customer, week)
    birth, cohort = np.unique(np.maximum(arrival, LEFT_CENSORED), return_inverse=True)
    size = np.bincount(cohort).astype(float)
    seen = week >= 0
    customer, week, amount = customer[seen], week[seen], amount[seen]
    cell = cohort[customer] * weeks + week
    shape = len(birth), weeks
    count = np.bincount(cell, minlength=shape[0] * weeks).reshape(shape).astype(float)
    sales = np.bincount(cell, amount, shape[0] * weeks).reshape(shape)
    born = np.arange(weeks) >= birth[:, None]
    initial = size[:, None] * (np.arange(weeks) == birth[:, None])
    order = np.lexsort((week, customer, cohort[customer]))
    _, start = np.unique(cohort[customer[order]] * len(arrival) + customer[order], return_index=True)
    members = customer[order][start]
    return FirmPanel(
        firm=spec.name,
        design=design,
        weeks=design.study.dates(),
        A=np.bincount(birth[birth >= 0], size[birth >= 0], weeks),
        S=sales.sum(axis=0),
        size=size,
        birth=birth.astype(np.int64),
        R=np.where(born, (count - initial) / size[:, None], np.nan),
        V=np.divide(sales, count, out=np.full(shape, np.nan), where=count > 0),
        Y=np.where(born, sales, np.nan),
        customers=CustomerHistory(
            cohort=cohort[members].astype(np.int32),
            start=np.append(start, len(order)).astype(np.int64),
            week=week[order].astype(np.int16),
        ),
    )


def seconds(work: Callable[[], object]) -> float:
    start = process_time()
    work()
    return process_time() - start


def origin_of(panel: FirmPanel, full: bool) -> date:
    return panel.design.origin if full else panel.design.training.last


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--firms", type=int, default=10)
    parser.add_argument("--seed", type=int, default=4711)
    parser.add_argument("--counts", action="store_true")
    parser.add_argument("--full", action="store_true")
    parser.add_argument(
        "--models", nargs="+", default=[n for n, e in MODELS.items() if e.family == "probabilistic"]
    )
    asked = parser.parse_args()
    economy = Economy(seed=asked.seed)
    specs = economy.specs()
    chosen = specs[:: max(len(specs) // asked.firms, 1)][: asked.firms]
    if asked.counts:
        panels = [sample_cohorts(economy, spec).panel() for spec in chosen]
    else:
        panels = [panel_of_orders(economy, spec) for spec in chosen]
    calibrations = [panel.until(panel.design.origin) for panel in panels]
    sizes = np.median(
        [[p.A.mean(), p.size.sum(), np.nansum(p.R[:, -1] * p.size)] for p in calibrations], axis=0
    )
    print("{} firms; medians: {:.0f} new customers a week, {:.0f} customers, {:.0f} repeat orders in the last week"
          .format(len(panels), *sizes))  # fmt: skip
    parts: dict[str, Callable[[FirmPanel], object]] = {
        "acquisition": lambda p: WeibullGamma.fit(p, months=False),
        "acquisition, months": lambda p: WeibullGamma.fit(p, months=True),
        "AOV": AovRegression.fit_cohorts,
    }
    for name, work in parts.items():
        costs = [seconds(lambda p=p, work=work: work(p)) for p in calibrations]
        print(f"{name:20s} median {np.median(costs):6.3f} s, largest {max(costs):6.3f} s")
    print(f"models: median and largest seconds, then mean SMAPE of {', '.join(OUTCOMES)}; median of the last")
    for name in asked.models:
        model, costs, errors = build(name), [], []
        for panel in calibrations:
            seen = panel.until(origin_of(panel, asked.full))
            ahead = panel.n_weeks - seen.n_weeks
            start = process_time()
            drivers = model.fit(seen, seed=1).forecast(ahead or 47)
            costs.append(process_time() - start)
            if ahead:
                scores = score(panel, compose(seen, drivers), seen.origin)
                errors.append([s.smape for s in scores if s.horizon == FULL])
        means = "  ".join(f"{e:6.2f}" for e in np.mean(errors, axis=0)) if errors else ""
        last = f"({np.median(errors, axis=0)[-1]:.2f})" if errors else ""
        print(
            f"{name:20s} median {np.median(costs):6.3f} s, largest {max(costs):6.3f} s  {means} {last}",
            flush=True,
        )


if __name__ == "__main__":
    main()
