"""Cost of every benchmark on median-sized firms, and accuracy over simulated firms.

`python bench/models.py` samples the single orders of a few firms of about the paper's median size, makes
their panels as the pipeline does (customers included) and prints processor seconds for fit and forecast, one
thread. `--accuracy 60` forecasts the holdout of 60 firms (cohort-level sampler) with every model instead and
prints mean and median SMAPE; `--validation` scores the validation window, where choices are made.
"""

from __future__ import annotations

import argparse
from time import process_time

import numpy as np
from threadpoolctl import threadpool_limits

from cbmt_core import duck
from cbmt_core.cohorts import make_cohort_week
from cbmt_core.compose import compose
from cbmt_core.metrics import FULL, OUTCOMES, score
from cbmt_core.models import MODELS, build
from cbmt_core.names import Unit
from cbmt_core.panel import FirmPanel
from cbmt_core.simulate import Economy, FirmSpec, sample_cohorts, sample_orders
from cbmt_core.stored_panel import read_panel
from cbmt_core.timeline import week_sql

MEDIAN_ACQUISITION = 775.9
"""New customers a week of the paper's median firm (summary statistics, calibration)."""
BUDGETS = {"probabilistic and classical": (("probabilistic", "classical"), 10.0), "trees": (("tree",), 15.0)}
CHEAP_FAMILIES = ("floor", "classical", "probabilistic", "tree")


def panel_of_orders(economy: Economy, spec: FirmSpec) -> FirmPanel:
    orders = sample_orders(economy, spec)
    with duck.connect() as con:
        con.register("sampled", orders)
        con.execute(f"""
            CREATE TEMP TABLE transactions AS
            SELECT firm, CAST(customer AS VARCHAR) AS customer, CAST(order_id AS VARCHAR) AS order_id,
                order_time AS ordered_at, CAST(amount AS DECIMAL(18,4)) AS amount,
                {week_sql("CAST(order_time AS DATE)")} AS week
            FROM sampled""")
        make_cohort_week(con, Unit(spec.name), "transactions", economy.design)
        return read_panel(con, spec.name, economy.design, orders="transactions")


def median_firms(economy: Economy, count: int) -> list[FirmSpec]:
    """Firms whose weekly acquisition is nearest to the paper's median."""
    specs = economy.specs()[:120]
    sizes = [sample_cohorts(economy, s).panel().A[: len(economy.design.calibration)].mean() for s in specs]
    nearest = np.argsort(np.abs(np.log(np.array(sizes) / MEDIAN_ACQUISITION)))
    return [specs[k] for k in nearest[:count]]


def show_costs(names: list[str], firms: int, seed: int) -> None:
    economy = Economy(seed=seed)
    panels = []
    for spec in median_firms(economy, firms):
        panel = panel_of_orders(economy, spec)
        panels.append(panel.until(panel.design.origin))
    sizes = [(p.A.mean(), p.size.sum(), p.orders.sum()) for p in panels]
    print("{} firms; medians: {:.0f} new customers a week, {:,.0f} customers, {:,.0f} orders".format(
        len(panels), *np.median(sizes, axis=0)))  # fmt: skip
    medians = {}
    for name in names:
        model = build(name)
        model.fit(panels[0], seed=1).forecast(47)  # Imports and caches are not what is measured.
        seconds = []
        for panel in panels:
            start = process_time()
            model.fit(panel, seed=1).forecast(47)
            seconds.append(process_time() - start)
        medians[name] = float(np.median(seconds))
        print(f"{name:16s} {medians[name]:7.3f} s   largest {max(seconds):7.3f} s", flush=True)
    for what, (families, budget) in BUDGETS.items():
        total = sum(s for name, s in medians.items() if MODELS[name].family in families)
        print(f"{what}: {total:.2f} s together, budget {budget:.0f} s")


def show_accuracy(names: list[str], firms: int, seed: int, *, validation: bool) -> None:
    economy = Economy(seed=seed)
    specs = economy.specs()
    panels = [sample_cohorts(economy, s).panel() for s in specs[:: max(len(specs) // firms, 1)][:firms]]
    print(f"{len(panels)} firms; mean SMAPE of {', '.join(OUTCOMES)}; median of the last")
    for name in names:
        errors = []
        for panel in panels:
            full = panel.until(panel.design.origin) if validation else panel
            seen = panel.until(panel.design.training.last if validation else panel.design.origin)
            forecast = build(name).fit(seen, seed=1).forecast(full.n_weeks - seen.n_weeks)
            scores = score(full, compose(seen, forecast), seen.origin)
            errors.append([s.smape for s in scores if s.horizon == FULL])
        means = "  ".join(f"{e:6.2f}" for e in np.mean(errors, axis=0))
        print(f"{name:16s} {means}   ({np.median(errors, axis=0)[-1]:.2f})", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--firms", type=int, default=5, help="firms whose cost is measured")
    parser.add_argument("--accuracy", type=int, metavar="FIRMS", help="score so many firms instead")
    parser.add_argument("--validation", action="store_true", help="score the validation window")
    parser.add_argument("--seed", type=int, default=20260626)
    parser.add_argument(
        "--models", nargs="+", default=[n for n, e in MODELS.items() if e.family in CHEAP_FAMILIES]
    )
    asked = parser.parse_args()
    with threadpool_limits(1):
        if asked.accuracy:
            show_accuracy(asked.models, asked.accuracy, asked.seed, validation=asked.validation)
        else:
            show_costs(asked.models, asked.firms, asked.seed)


if __name__ == "__main__":
    main()
