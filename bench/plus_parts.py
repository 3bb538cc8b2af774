"""What each part of `cbmt_plus` is worth: total-sales SMAPE of the holdout with and without it.

    python bench/plus_parts.py data/parts                          five economies of 40 firms, no part tuned on them
    python bench/plus_parts.py data/parts --networks 10            ... with cbmt networks for 10 firms of each
    python bench/plus_parts.py data/parts --real orders.parquet    ... and the ten largest firms of a file of orders
    python bench/plus_parts.py data/parts --only-tell              the table alone

The priors are learned from the calibration weeks of the first economy's firms, again without each part that they
depend on; those of a real file from its own firms. Results are one JSON a firm; a second run continues where the first
stopped. One process; ten core-minutes, then three for each further economy; a network takes ten core-seconds.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb
import numpy as np
import pandas as pd
from panel_results.document import table
from threadpoolctl import threadpool_limits

from cbmt_core import atomic
from cbmt_core.cohorts import make_cohort_week
from cbmt_core.compose import compose
from cbmt_core.config import ProjectConfig
from cbmt_core.metrics import smape
from cbmt_core.models import build
from cbmt_core.models.cohort_glm import CohortGlm
from cbmt_core.models.contract import FitRecord, PrimitiveForecast
from cbmt_core.models.plus import PathPriors, learn_priors, likelihood, model, paths, prior, weekly_series
from cbmt_core.models.plus.likelihood import COMPONENTS, FirmBatch
from cbmt_core.models.plus.paths import FittedPaths, fit_paths
from cbmt_core.models.plus.prior import PathPrior
from cbmt_core.models.plus.regressors import WAVES, regressors
from cbmt_core.models.plus.series import GROUPS, WeeklySeries, half_an_order, series_of
from cbmt_core.panel import LEFT_CENSORED, FirmPanel
from cbmt_core.simulate import Economy, sample_cohorts
from cbmt_core.stored_panel import read_panel
from cbmt_core.transactions import Intake, project_timeline
from cbmt_core.transactions.orders import make_orders

SEEDS = (8101, 8103, 8104, 8105, 8106)
FIRMS = 40
LARGEST = 10
"""Firms of a real file."""
COLUMNS = {
    "firm": "firm_id",
    "customer": "customer_id",
    "order_id": "order_id",
    "order_time": "order_ts",
    "amount": "amount",
}
FULL = "full"
TRUST = 0.2
"""Share of the way, in logs, from the model's drivers to those of a network."""


@contextmanager
def fixed(scale: float | None = None, comovement: float | None = None) -> Iterator[None]:
    """Hold firms' own scale (log) or co-movement (logit) at a value, also while priors are learned."""
    made = likelihood.batches

    def held(series: Sequence[WeeklySeries], step_variance: Any) -> list[FirmBatch]:
        batches = made(series, step_variance)
        if scale is not None:
            batches = [replace(b, scale=b.scale.detach().clone().fill_(scale)) for b in batches]
        if comovement is not None:
            batches = [
                replace(b, comovement=b.comovement.detach().clone().fill_(comovement)) for b in batches
            ]
        return batches

    with patch.object(prior, "batches", held), patch.object(paths, "batches", held):
        yield


@contextmanager
def no_holidays() -> Iterator[None]:
    """Set all regressors but the waves of the year to zero in every week."""

    def kept(first_week: Any, weeks: int, country: str) -> Any:
        made = regressors(first_week, weeks, country)
        return np.where(np.arange(made.shape[1]) < 2 * WAVES, made, 0.0)

    with patch.object(likelihood, "regressors", kept):
        yield


def not_learned(name: str) -> AbstractContextManager[Any]:
    return patch.object(likelihood, "PRIOR_SD", {k: sd for k, sd in likelihood.PRIOR_SD.items() if k != name})


@contextmanager
def no_component(name: str) -> Iterator[None]:
    default = PathPrior.default

    def without(group: str, country: str) -> PathPrior:
        made = default(group, country)
        sd = made.sd.copy()
        sd[COMPONENTS.index(name)] = 1e-7
        return replace(made, sd=sd)

    with patch.object(PathPrior, "default", without):
        yield


RELEARNED: dict[str, tuple[str, Callable[[], AbstractContextManager[Any]]]] = {
    "together": ("joint paths (without: each series by itself)", lambda: fixed(comovement=-40.0)),
    "scale": ("the firm's own scale", lambda: fixed(scale=0.0)),
    "trend": ("the firm's own trend", lambda: no_component("trend")),
    "walk": ("the random walk", lambda: no_component("walk")),
    "brief": ("brief deviations", lambda: no_component("brief")),
    "holidays": ("holidays", no_holidays),
    "sizes": ("a learned size for each regressor's effects", lambda: not_learned("weight")),
    "mean": ("mean effects over firms", lambda: not_learned("mean")),
}
"""Parts without which the priors are learned again."""
PARTS = {
    "network": "(not in the model) a fifth of the way to the cbmt network",
    "topline": "the step towards the path of sales",
    "default": "priors learned across firms (without: the default ones)",
    "one": "priors learned across firms (without: learned from the firm alone)",
    **{name: words for name, (words, _) in RELEARNED.items()},
}


def without(part: str) -> AbstractContextManager[Any]:
    return RELEARNED[part][1]() if part in RELEARNED else nullcontext()


def simulated(seed: int, firms: int) -> list[FirmPanel]:
    economy = Economy(firms=FIRMS, seed=seed)
    # An order of no meaning, so that a part of the firms is a fair sample.
    order = np.random.default_rng(0).permutation(FIRMS)[:firms]
    return [sample_cohorts(economy, economy.specs()[int(k)]).panel() for k in order]


def real(file: Path, country: str, timezone: str, currency: str) -> list[FirmPanel]:
    """Panels of the firms with the most orders in a file with the columns `COLUMNS`."""
    source = {"name": "real", "path": str(file.resolve()), "currency": currency, "timezone": timezone}
    project = ProjectConfig.from_mapping(
        {"sources": [{**source, "columns": COLUMNS}], "design": {"country": country}}, str(file)
    )
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as con:
        intake = Intake(Path(folder) / "intake")
        intake.update(project, Path(folder))
        design, sources = (
            project.study_design(project_timeline(intake, project)),
            {s.name: s for s in project.sources},
        )
        largest = con.execute(
            f"SELECT firm_id FROM read_parquet('{file}') GROUP BY firm_id ORDER BY count(*) DESC LIMIT {LARGEST}"
        ).fetchall()
        names = {firm for (firm,) in largest}
        panels = []
        for unit in intake.units():
            if unit.firm in names:
                make_orders(con, unit, intake, sources, design)
                make_cohort_week(con, unit, "transactions", design)
                panels.append(read_panel(con, unit.firm, design))
    return panels


def seen_of(panel: FirmPanel) -> FirmPanel:
    return panel.until(panel.design.origin)


def learned(folder: Path, part: str, panels: list[FirmPanel]) -> PathPriors:
    """The priors of these firms with a part left out, kept in a file."""
    path, country = folder / f"priors-{part}.parquet", panels[0].design.country
    if not path.exists():
        file = folder / "series.parquet"
        if not file.exists():
            made = [weekly_series(seen_of(panel), seed=1) for panel in panels]
            with atomic.replacing(file) as new:
                pd.concat(made).to_parquet(new)
        say(f"{folder.name}: learning the priors, {part}")
        with without(part):
            priors = learn_priors(pd.read_parquet(file), country)
        with atomic.replacing(path) as new:
            priors.frame().to_parquet(new)
    return PathPriors.from_frame(pd.read_parquet(path), country)


def towards(seen: FirmPanel, own: PrimitiveForecast, other: PrimitiveForecast) -> PrimitiveForecast:
    """`own` with acquisition, repeat orders and order value `TRUST` of the way to those of `other`."""
    N, H = seen.n_cohorts, own.horizon
    base = seen.birth == LEFT_CENSORED

    def totals(forecast: PrimitiveForecast) -> tuple[Any, ...]:
        repeats = seen.size[:, None] * np.nan_to_num(forecast.R[:N])
        sales = compose(seen, forecast)
        orders = np.nansum(np.concatenate([seen.size, forecast.A])[:, None] * forecast.R, axis=0) + forecast.A
        return forecast.A, repeats[base].sum(axis=0), repeats[~base].sum(axis=0), sales.S / orders

    floors = (0.5, 0.5, 0.5, 1e-3)
    acquired, old, new, value = (
        np.exp(TRUST * np.clip(np.log(np.maximum(b, floor) / np.maximum(a, floor)), -1, 1))
        for a, b, floor in zip(totals(own), totals(other), floors, strict=True)
    )
    rows = np.r_[base, np.zeros(H, bool)][:, None]
    return PrimitiveForecast(A=own.A * acquired, R=own.R * np.where(rows, old, new), V=own.V * value)


class Firm:
    """One firm's panel, cohorts and series, and its errors so far."""

    def __init__(self, folder: Path, k: int, panel: FirmPanel) -> None:
        self.path, self.panel, self.seen = folder / f"firm{k:02d}.json", panel, seen_of(panel)
        self.errors: dict[str, float] = json.loads(self.path.read_text()) if self.path.exists() else {}
        self.glm = CohortGlm().fit(self.seen, seed=1)
        self.series = series_of(self.seen, self.glm)

    def fitted(self, fits: dict[str, FittedPaths]) -> model.FittedPlus:
        half = half_an_order(self.seen)
        return model.FittedPlus(
            self.seen.size, self.glm, fits["drivers"], fits["sales"], half, model.TOPLINE, 0, FitRecord({})
        )

    @property
    def horizon(self) -> int:
        return self.panel.n_weeks - self.seen.n_weeks

    def keep(self, name: str, forecast: PrimitiveForecast) -> None:
        actual = self.panel.S[self.seen.n_weeks :]
        self.errors[name] = float(smape(actual, compose(self.seen, forecast).S))
        atomic.write_text(self.path, json.dumps(self.errors))

    def measure(self, part: str, priors: PathPriors) -> None:
        """The model under `priors` with a part left out."""
        if part in self.errors:
            return
        with without(part):
            fits = {group: fit_paths(self.series[group], priors.groups[group]) for group in GROUPS}
            self.keep(part, self.fitted(fits).forecast(self.horizon))
        if part == FULL:
            self.keep("topline", self.fitted(fits).from_drivers(self.horizon))

    def measure_network(self, priors: PathPriors) -> None:
        if "network" in self.errors:
            return
        fits = {group: fit_paths(self.series[group], priors.groups[group]) for group in GROUPS}
        own = self.fitted(fits).forecast(self.horizon)
        network = build("cbmt", profile="quick").fit(self.seen, seed=1).forecast(self.horizon)
        self.keep("network", towards(self.seen, own, network))


def measure(
    folder: Path, panels: list[FirmPanel], teaching: Path, teachers: list[FirmPanel], networks: int = 0
) -> None:
    """Every part on `panels`, under priors learned from `teachers` and kept in the folder `teaching`."""
    folder.mkdir(parents=True, exist_ok=True)
    firms = [Firm(folder, k, panel) for k, panel in enumerate(panels)]
    country = panels[0].design.country
    full = learned(teaching, FULL, teachers)
    for k, firm in enumerate(firms):
        firm.measure(FULL, full)
        firm.measure("default", PathPriors.default(country))
        if "one" not in firm.errors:
            firm.measure("one", PathPriors.of_one(firm.series, country))
        if k < networks:
            firm.measure_network(full)
    for part in RELEARNED:
        priors = learned(teaching, part, teachers)
        for firm in firms:
            firm.measure(part, priors)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def tell(folder: Path) -> None:
    """A row for each part: mean (median) without it in each group of firms, and by how much it lowers the mean."""
    groups = {
        path.name: pd.DataFrame([json.loads(file.read_text()) for file in sorted(path.glob("firm*.json"))])
        for path in sorted(folder.iterdir())
        if any(path.glob("firm*.json"))
    }
    simulated = [name for name in groups if name.startswith("economy")]
    full = [f"{errors[FULL].mean():.2f} ({errors[FULL].median():.2f})" for errors in groups.values()]
    lines = [["nothing", *full, "", "", ""]]
    for part, words in PARTS.items():
        pairs = {
            name: errors[[FULL, part]].dropna() if part in errors else pd.DataFrame(columns=[FULL, part])
            for name, errors in groups.items()
        }
        cells = [_gain(pair[FULL], pair[part]) for pair in pairs.values()]
        pooled = pd.concat([pairs[name] for name in simulated if len(pairs[name])] or [pd.DataFrame()])
        if pooled.empty:
            continue
        gain = (pooled[part] - pooled[FULL]) / pooled[part].mean() * 100
        won = 100 * (pooled[FULL] < pooled[part]).mean()
        mean = f"{gain.mean():+.1f} ± {gain.std() / np.sqrt(len(gain)):.1f} %"
        lines.append([words, *cells, mean, f"{won:.0f} %", str(len(pooled))])
    header = ["left out", *groups, "it gains on economies (± standard error)", "firms won", "firms"]
    print(table(header, lines))


def _gain(full: pd.Series, part: pd.Series) -> str:
    if full.empty:
        return ""
    gain = 100 * (part.mean() - full.mean()) / part.mean()
    return f"{part.mean():.2f} ({part.median():.2f}), {gain:+.1f} %"


def add_real(parser: argparse.ArgumentParser) -> None:
    """Add the options that name files of real orders, and the one that only prints earlier results."""
    parser.add_argument("--real", type=Path, nargs="*", default=[], help="files of orders, Parquet")
    parser.add_argument("--country", default="GB", help="of the real files [%(default)s]")
    parser.add_argument("--timezone", default="Europe/London", help="of the real files [%(default)s]")
    parser.add_argument("--currency", default="GBP", help="of the real files [%(default)s]")
    parser.add_argument("--only-tell", action="store_true", help="run nothing, print earlier results")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where results are kept")
    parser.add_argument("--seeds", type=int, nargs="*", default=SEEDS, help="of the economies [%(default)s]")
    parser.add_argument("--firms", type=int, default=FIRMS, help="so many of each economy [%(default)s]")
    parser.add_argument("--networks", type=int, default=0, help="firms of each with a network [%(default)s]")
    add_real(parser)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    if not asked.only_tell:
        with threadpool_limits(1):
            for file in asked.real:
                panels = real(file, asked.country, asked.timezone, asked.currency)
                measure(asked.folder / file.stem, panels, asked.folder / file.stem, panels)
            teachers = simulated(asked.seeds[0], FIRMS) if asked.seeds else []
            for seed in asked.seeds:
                teaching = asked.folder / f"economy {asked.seeds[0]}"
                panels = simulated(seed, asked.firms)
                measure(asked.folder / f"economy {seed}", panels, teaching, teachers, asked.networks)
    tell(asked.folder)


if __name__ == "__main__":
    main()
