"""What each part of `cbmt_plus` is worth: total-sales SMAPE of the holdout with and without it.

    python bench/plus_parts.py data/parts                          two economies of 40 firms, no part tuned on them
    python bench/plus_parts.py data/parts --networks 20            ... with cbmt networks for 20 firms of each
    python bench/plus_parts.py data/parts --real orders.parquet    ... and the ten largest firms of a file of orders
    python bench/plus_parts.py data/parts --only-tell              the tables alone

The prior is learned from the calibration weeks of the firms measured, again for each part that it depends on. Results
are one JSON a firm; a second run continues where the first stopped. One process; about a minute of one core a firm.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
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
from cbmt_core.customers import read_panel
from cbmt_core.metrics import smape
from cbmt_core.models.cohort_glm import CohortGlm
from cbmt_core.models.contract import FitRecord, PrimitiveForecast
from cbmt_core.models.neural.forecaster import NeuralForecaster
from cbmt_core.models.plus import model, paths, weekly_series
from cbmt_core.models.plus.paths import FittedPaths, fit_paths, learn_prior
from cbmt_core.models.plus.prior import BEFORE, MOVES, WAVES, PathPrior, regressor_names
from cbmt_core.models.plus.series import GROUPS, WeeklySeries, half_an_order, series_from_frame, series_of
from cbmt_core.panel import FirmPanel
from cbmt_core.simulate import Economy, sample_cohorts
from cbmt_core.transactions import Intake
from cbmt_core.transactions.orders import make_orders

SEEDS = (8101, 8102)
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
FULL, NO_NETWORK, NO_TOPLINE, PATHS = "full", "no network", "no topline", "paths"
WHOLE = {NO_NETWORK: "the network", NO_TOPLINE: "the step towards the path of sales", PATHS: "both"}
"""Left out of the whole model."""


@contextmanager
def fixed(scale: float | None = None, together: float | None = None) -> Iterator[None]:
    """Firms' own scale (log) or co-movement (logit) held at a value, while priors are learned too."""
    made = paths._batches

    def held(series: Sequence[WeeklySeries], prior: PathPrior) -> list[Any]:
        batches = made(series, prior)
        if scale is not None:
            batches = [replace(b, scale=b.scale.detach().clone().fill_(scale)) for b in batches]
        if together is not None:
            batches = [replace(b, together=b.together.detach().clone().fill_(together)) for b in batches]
        return batches

    with patch.object(paths, "_batches", held):
        yield


@contextmanager
def no_regressors(dropped: Callable[[str, bool], bool]) -> Iterator[None]:
    """Regressors for which `dropped(name, is a wave)` holds are zero in every week."""
    made = paths.regressors

    def kept(first_week: Any, weeks: int, country: str) -> Any:
        names = regressor_names(country)
        gone = np.array([dropped(name, k < 2 * WAVES) for k, name in enumerate(names)])
        return np.where(gone, 0.0, made(first_week, weeks, country))

    with patch.object(paths, "regressors", kept):
        yield


@contextmanager
def not_learned(*names: str) -> Iterator[None]:
    with patch.object(paths, "TRUSTED", {k: v for k, v in paths.TRUSTED.items() if k not in names}):
        yield


@contextmanager
def no_move(move: str) -> Iterator[None]:
    usual = PathPrior.usual

    def without(group: str, country: str) -> PathPrior:
        prior = usual(group, country)
        sd = prior.sd.copy()
        sd[MOVES.index(move)] = 1e-7
        return replace(prior, sd=sd)

    with patch.object(PathPrior, "usual", without):
        yield


RELEARNED: dict[str, tuple[str, Callable[[], Any]]] = {
    "together": ("joint paths (against each series by itself)", lambda: fixed(together=-40.0)),
    "scale": ("the firm's own scale of its moves", lambda: fixed(scale=0.0)),
    "trend": ("the firm's own trend", lambda: no_move("trend")),
    "slow": ("slow deviations", lambda: no_move("slow")),
    "walk": ("steps that stay", lambda: no_move("walk")),
    "brief": ("brief deviations", lambda: no_move("brief")),
    "holidays": (
        "holidays and the weeks before them",
        lambda: no_regressors(lambda name, wave: not wave),
    ),
    "before": ("weeks before holidays", lambda: no_regressors(lambda name, _: name.startswith(BEFORE))),
    "sizes": ("a size for each holiday (weights learned)", lambda: not_learned("weight")),
    "mean": ("mean effects of the prior", lambda: not_learned("mean")),
}
"""Parts without which the prior is learned again."""
PARTS = {
    "usual": "the prior learned across firms (against the usual one)",
    "one": "the prior learned across firms (against one learned from the firm alone)",
    "lift": "the lift: log of the average instead of the average log",
    **{name: told for name, (told, _) in RELEARNED.items()},
}


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
        design, sources = intake.design(project), {s.name: s for s in project.sources}
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


def error(panel: FirmPanel, forecast: PrimitiveForecast) -> float:
    seen = seen_of(panel)
    return float(smape(panel.S[seen.n_weeks :], compose(seen, forecast).S))


def learned(folder: Path, group: str, part: str, panels: list[FirmPanel]) -> PathPrior:
    """The prior of these firms with a part left out, kept in a file."""
    path, country = folder / f"prior-{group}-{part}.json", panels[0].design.country
    if not path.exists():
        file = folder / "series.parquet"
        if not file.exists():
            made = [weekly_series(seen_of(panel), seed=1) for panel in panels]
            with atomic.replacing(file) as new:
                pd.concat(made).to_parquet(new)
        series = series_from_frame(pd.read_parquet(file), group, country)
        say(f"{folder.name}: learning the prior of {group}, {part}")
        with left_out(part):
            prior = learn_prior(series, PathPrior.usual(group, country))
        atomic.write_text(path, json.dumps(prior.values()))
    return PathPrior.from_values(json.loads(path.read_text()))


@contextmanager
def left_out(part: str) -> Iterator[None]:
    with ExitStack() as stack:
        if part in RELEARNED:
            stack.enter_context(RELEARNED[part][1]())
        yield


class Firm:
    """One firm's panel, cohorts and series, and its results so far."""

    def __init__(self, folder: Path, k: int, panel: FirmPanel) -> None:
        self.path, self.panel, self.seen = folder / f"firm{k:02d}.json", panel, seen_of(panel)
        self.errors: dict[str, float] = json.loads(self.path.read_text()) if self.path.exists() else {}
        self.glm = CohortGlm().fit(self.seen, seed=1)
        self.series = series_of(self.seen, self.glm)

    def fitted(self, fits: dict[str, FittedPaths], network: Any = None) -> model.FittedPlus:
        base = model.CohortBase(self.seen.size, self.seen.birth)
        return model.FittedPlus(base, self.glm, fits, half_an_order(self.seen), network, FitRecord({}))

    @property
    def horizon(self) -> int:
        return self.panel.n_weeks - self.seen.n_weeks

    def keep(self, name: str, forecast: PrimitiveForecast) -> None:
        self.errors[name] = error(self.panel, forecast)
        atomic.write_text(self.path, json.dumps(self.errors))

    def whole(self, priors: dict[str, PathPrior]) -> None:
        """The model as it is, without its network, and without the step towards the path of sales."""
        if FULL in self.errors:
            return
        fits = {group: fit_paths(self.series[group], priors[group]) for group in GROUPS}
        network = NeuralForecaster(model.NETWORK, "quick").fit(self.seen, seed=1)
        fitted = self.fitted(fits, network)
        for name, trust, topline in (
            (NO_NETWORK, 0.0, model.TOPLINE),
            (NO_TOPLINE, model.TRUST, 0.0),
            (PATHS, 0.0, 0.0),
            (FULL, model.TRUST, model.TOPLINE),
        ):
            with patch.multiple(model, TRUST=trust, TOPLINE=topline):
                self.keep(name, fitted.forecast(self.horizon))

    def part(self, name: str, prior: PathPrior) -> None:
        """Paths of the drivers alone, fitted under `prior` with a part left out."""
        if name in self.errors:
            return
        with left_out(name):
            made = fit_paths(self.series["drivers"], prior)
        if name == "lift":
            made = replace(made, lift=np.zeros_like(made.lift))
        with left_out(name):
            self.keep(name, self.fitted({"drivers": made}).own_paths(self.horizon))


def measure_whole(folder: Path, panels: list[FirmPanel], networks: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    priors = {group: learned(folder, group, FULL, panels) for group in GROUPS}
    for k, panel in enumerate(panels[:networks]):
        Firm(folder, k, panel).whole(priors)
        say(f"{folder.name}: firm {k + 1} of {networks}, with a network")


def measure_parts(folder: Path, panels: list[FirmPanel]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    firms = [Firm(folder, k, panel) for k, panel in enumerate(panels)]
    usual = PathPrior.usual("drivers", panels[0].design.country)
    full = learned(folder, "drivers", FULL, panels)
    for firm in firms:
        firm.part(PATHS, full)
        firm.part("lift", full)
        firm.part("usual", usual)
        if "one" not in firm.errors:
            firm.part("one", learn_prior([firm.series["drivers"]], usual))
    for name in RELEARNED:
        prior = learned(folder, "drivers", name, panels)
        for firm in firms:
            firm.part(name, prior)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def tell(folder: Path) -> None:
    for group in sorted(path for path in folder.iterdir() if path.is_dir()):
        files = sorted(group.glob("firm*.json"))
        errors = pd.DataFrame([json.loads(path.read_text()) for path in files])
        for reference, parts in ((FULL, WHOLE), (PATHS, PARTS)):
            if reference not in errors:
                continue
            lines = [_line(errors, name, told, reference) for name, told in parts.items() if name in errors]
            own = errors[reference].dropna()
            print(f"\n{group.name}, {reference}: {own.mean():.2f} ({own.median():.2f}), {len(own)} firms\n")
            print(table(["left out", "firms", "mean (median) without it", "it gains", "firms won"], lines))


def _line(errors: pd.DataFrame, name: str, told: str, reference: str) -> list[str]:
    both = errors[[reference, name]].dropna()
    own, other = both[reference], both[name]
    gain = 100 * (other.mean() - own.mean()) / other.mean()
    won = 100 * (own < other).mean()
    return [
        told,
        str(len(both)),
        f"{other.mean():.2f} ({other.median():.2f})",
        f"{gain:+.1f} %",
        f"{won:.0f} %",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where results are kept")
    parser.add_argument("--seeds", type=int, nargs="*", default=SEEDS, help="of the economies [%(default)s]")
    parser.add_argument("--firms", type=int, default=FIRMS, help="so many of each economy [%(default)s]")
    parser.add_argument("--networks", type=int, default=0, help="firms of each with a network [%(default)s]")
    parser.add_argument("--real", type=Path, nargs="*", default=[], help="files of orders, Parquet")
    parser.add_argument("--country", default="GB", help="of the real files [%(default)s]")
    parser.add_argument("--timezone", default="Europe/London", help="of the real files [%(default)s]")
    parser.add_argument("--currency", default="GBP", help="of the real files [%(default)s]")
    parser.add_argument("--only-tell", action="store_true", help="run nothing")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    if not asked.only_tell:
        with threadpool_limits(1):
            groups = {f"economy {seed}": simulated(seed, asked.firms) for seed in asked.seeds}
            if asked.networks:
                for name, panels in groups.items():
                    measure_whole(asked.folder / name, panels, asked.networks)
            for file in asked.real:
                groups[file.stem] = real(file, asked.country, asked.timezone, asked.currency)
            for name, panels in groups.items():
                measure_parts(asked.folder / name, panels)
    tell(asked.folder)


if __name__ == "__main__":
    main()
