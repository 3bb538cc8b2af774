"""Which priors `cbmt_plus` should use for a firm with few weeks: total-sales SMAPE of the holdout.

    python bench/plus_young.py data/young                          two economies of 40 firms, nothing tuned on them
    python bench/plus_young.py data/young --real orders.parquet    ... and the ten largest firms of a file of orders
    python bench/plus_young.py data/young --only-tell              the tables alone

Firms are cut to the last weeks before the origin in two ways. `founded`: cohorts born earlier are taken out, with
their sales, as if the firm had been founded then. `cut`: customers acquired earlier become one left-censored cohort.
`learned` are the priors that bench/plus_parts.py learned from another economy (in `--priors`), of firms with 118 weeks.
"""

from __future__ import annotations

import argparse
import json
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from panel_results.document import table
from plus_parts import FIRMS, FULL, add_real, real, say, simulated
from plus_parts import SEEDS as PARTS_SEEDS
from threadpoolctl import threadpool_limits

from cbmt_core import atomic
from cbmt_core.compose import compose
from cbmt_core.metrics import smape
from cbmt_core.models.cohort_glm import CohortGlm
from cbmt_core.models.contract import FitRecord
from cbmt_core.models.plus import PathPriors
from cbmt_core.models.plus.model import TOPLINE, FittedPlus
from cbmt_core.models.plus.paths import fit_paths
from cbmt_core.models.plus.series import half_an_order, series_of
from cbmt_core.panel import LEFT_CENSORED, FirmPanel

SEEDS = (8103, 8104)
TAUGHT = PARTS_SEEDS[0]
LENGTHS = (26, 39, 52, 65, 85)
KINDS = ("founded", "cut")


def young(panel: FirmPanel, weeks: int, kind: str) -> FirmPanel:
    """The panel with `weeks` weeks before its origin."""
    first = panel.until(panel.design.origin).n_weeks - weeks
    old = panel.birth < first
    own = {name: getattr(panel, name)[~old, first:] for name in ("R", "V", "Y")}
    size, birth = panel.size[~old], panel.birth[~old] - first
    if kind == "cut" and old.any():
        orders, sales = (x[old, first:].sum(axis=0) for x in (panel.orders, np.nan_to_num(panel.Y)))
        value = np.divide(sales, orders, out=np.full_like(sales, np.nan), where=orders > 0)
        total = panel.size[old].sum()
        merged = {"R": orders / total, "V": value, "Y": sales}
        own = {name: np.vstack([merged[name], rows]) for name, rows in own.items()}
        size, birth = np.r_[total, size], np.r_[LEFT_CENSORED, birth]
    return replace(
        panel,
        weeks=panel.weeks[first:],
        A=panel.A[first:],
        S=np.nansum(own["Y"], axis=0),
        size=size,
        birth=birth,
        **own,
        customers=None,
    )


def errors(panel: FirmPanel, learned: PathPriors | None) -> dict[str, float]:
    seen = panel.until(panel.design.origin)
    glm = CohortGlm().fit(seen, seed=1)
    series, country, half = series_of(seen, glm), panel.design.country, half_an_order(seen)
    horizon, actual = panel.n_weeks - seen.n_weeks, panel.S[seen.n_weeks :]
    priors = {"default": PathPriors.default(country), "one": PathPriors.of_one(series, country)}
    if learned is not None:
        priors["learned"] = learned
    made = {"cohort_glm": float(smape(actual, compose(seen, glm.forecast(horizon)).S))}
    for name, prior in priors.items():
        drivers, sales = (fit_paths(series[group], prior.groups[group]) for group in ("drivers", "sales"))
        forecast = FittedPlus(seen.size, glm, drivers, sales, half, TOPLINE, 0, FitRecord({})).forecast(
            horizon
        )
        made[name] = float(smape(actual, compose(seen, forecast).S))
    return made


def measure(folder: Path, panels: list[FirmPanel], learned: PathPriors | None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for k, panel in enumerate(panels):
        path = folder / f"firm{k:02d}.json"
        done = json.loads(path.read_text()) if path.exists() else {}
        longest = panel.until(panel.design.origin).n_weeks
        for kind in KINDS:
            for weeks in LENGTHS:
                if weeks <= longest and f"{kind} {weeks}" not in done:
                    done[f"{kind} {weeks}"] = errors(young(panel, weeks, kind), learned)
        atomic.write_text(path, json.dumps(done))
        say(f"{folder.name}: firm {k + 1} of {len(panels)}")


def tell(folder: Path) -> None:
    for group in sorted(path for path in folder.iterdir() if any(path.glob("firm*.json"))):
        rows = [
            {"case": case, **one}
            for file in sorted(group.glob("firm*.json"))
            for case, one in json.loads(file.read_text()).items()
        ]
        means = pd.DataFrame(rows).groupby("case", sort=False).mean()
        firms = pd.DataFrame(rows).groupby("case", sort=False).size()
        print(f"\n{group.name}\n")
        lines = [[case, str(firms[case]), *(f"{x:.2f}" for x in row)] for case, row in means.iterrows()]
        print(table(["weeks", "firms", *means.columns], lines))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where results are kept")
    parser.add_argument("--firms", type=int, default=FIRMS, help="so many of each economy [%(default)s]")
    parser.add_argument("--priors", type=Path, default=Path("data/parts"), help="[%(default)s]")
    add_real(parser)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    if not asked.only_tell:
        with threadpool_limits(1):
            for file in asked.real:
                panels = real(file, asked.country, asked.timezone, asked.currency)
                measure(asked.folder / file.stem, panels, None)
            kept = pd.read_parquet(asked.priors / f"economy {TAUGHT}" / f"priors-{FULL}.parquet")
            for seed in SEEDS:
                panels = simulated(seed, asked.firms)
                learned = PathPriors.from_frame(kept, panels[0].design.country)
                measure(asked.folder / f"economy {seed}", panels, learned)
    tell(asked.folder)


if __name__ == "__main__":
    main()
