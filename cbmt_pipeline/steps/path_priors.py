"""The prior of `cbmt_plus`, learned from the weekly series of all firms."""

import hashlib
from datetime import timedelta

import pandas as pd
from threadpoolctl import threadpool_limits

from cbmt_core.names import Unit
from cbmt_core.schema import TABLES
from cbmt_core.timeline import Origin, Purpose
from cbmt_pipeline.plan import Step
from cbmt_pipeline.project import Project
from cbmt_pipeline.work import Made, Picture, Work

MODEL = "cbmt_plus"


def make(work: Work) -> Made:
    # Imported late: Torch takes seconds, and listing the steps does not need it.
    from cbmt_core.models.plus import learn_priors
    from cbmt_core.report.prior_figures import priors_picture

    project, week = work.project, work.at.week
    country = project.timeline().country

    def progress(step: int, steps: int) -> None:
        work.tell(f"step {step} of {steps}", 0.2 + 0.8 * step / steps)

    with threadpool_limits(1):
        series = _series(work)
        if series["firm"].nunique() < 2:
            # With one firm, each forecast learns its own prior.
            note = "a prior is learned from two firms on; a firm by itself teaches its own"
            return Made({"path_prior": TABLES["path_prior"].empty()}, metadata={"firms": 0, "note": note})
        priors = learn_priors(series, country, progress)
    title = f"what {priors.firms} firms have in common"
    shown = Picture(priors_picture(priors, week - timedelta(weeks=51), title), title)
    return Made(
        {"path_prior": priors.frame().assign(origin=week)}, metadata={"firms": priors.firms, "priors": shown}
    )


def _series(work: Work) -> pd.DataFrame:
    """Weekly series of the firms that the prior is learned from: a fixed choice that does not depend on their
    order."""
    from cbmt_core.models.plus import MOST_FIRMS, SERIES_COLUMNS, is_clear, weekly_series

    tables = work.state.of_firms(work.plan["firm_data"], None)
    # A firm whose newer orders were refused is used as far as its last good tables reach.
    known = [unit for unit, manifest in tables.items() if manifest.covers(work.at.week)]
    frames = [pd.DataFrame({name: [] for name in SERIES_COLUMNS})]
    clear = 0
    for k, unit in enumerate(sorted(known, key=teaching_order)):
        work.tell(f"weekly series of {unit.name}", 0.2 * k / len(known))
        frames.append(weekly_series(work.panel(unit), seed=work.options.seed))
        clear += is_clear(frames[-1])
        if clear == MOST_FIRMS:
            break
    return pd.concat([frame for frame in frames if len(frame)] or frames, ignore_index=True)


def teaching_order(unit: Unit) -> bytes:
    """A pseudo-random sort key of firms, which does not depend on the order they come in."""
    return hashlib.sha256(unit.name.encode()).digest()


def _origins(project: Project) -> list[Origin]:
    """One origin for each week that forecasts take their prior from, with the first purpose that needs it."""
    timeline = project.timeline()
    found: dict[object, Origin] = {}
    purposes: tuple[Purpose, ...] = ("live", "study", "backtest")
    for purpose in purposes if MODEL in project.live_models() else ("study",):
        for origin in project.origins(purpose):
            week = timeline.prior_week(origin)
            if week is not None:
                found.setdefault(week, Origin(week, 0, origin.purpose))
    return sorted(found.values())


def _serves(project: Project, origin: Origin) -> list[Origin]:
    week = project.timeline().prior_week(origin)
    return [own for own in _origins(project) if own.week == week]


STEP = Step(
    name="path_priors",
    make=make,
    description="How weekly series of firms move, learned from all of them four times a year: the prior of cbmt_plus.",
    group="forecasts",
    writes=(TABLES["path_prior"],),
    needs=("cohort_week",),
    code=("cbmt_core.models.plus",),
    by_firm=False,
    kinds=frozenset({"python", "torch", "duckdb"}),
    options=("seed",),
    only_for=(MODEL,),
    origins=_origins,
    serves=_serves,
)
