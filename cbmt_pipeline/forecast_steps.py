"""Forecasts of one firm, shared by the steps of live forecasts, backtests and the study."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from cbmt_core.errors import CbmtError
from cbmt_core.fits import UNEXPECTED, fit_model, load_fit
from cbmt_core.forecast_checks import PROMISES, check_forecasts
from cbmt_core.forecasting import FORECAST_TABLES, ModelRun, forecast_fit, forecast_tables
from cbmt_core.models import MODELS, CannotFit, networks, options_of
from cbmt_core.names import Unit
from cbmt_core.panel import FirmPanel
from cbmt_core.schema import TABLES
from cbmt_core.timeline import Origin, Purpose
from cbmt_pipeline.manifest import digest_of
from cbmt_pipeline.plan import Step
from cbmt_pipeline.project import Project
from cbmt_pipeline.work import Made, Records, Work

__all__ = ["forecast_step", "forecasts_made", "model_options", "model_versions", "runs_metadata"]


def forecast_step(
    name: str,
    purpose: Purpose,
    models: Callable[[Project], Sequence[str]],
    description: str,
    *,
    needs: tuple[str, ...],
    batch: int = 1,
    version: str = "1",
    **more: Any,
) -> Step:
    """Make a step that fits models on the weeks up to each origin of a purpose and forecasts its horizon."""

    def make(work: Work) -> Made:
        return _make(work, models(work.project))

    def settings(project: Project, unit: Unit | None, origin: Origin | None) -> dict[str, str]:
        """The digest of each network's tuned settings: live networks use those of the study, once they are tuned."""
        assert unit is not None
        used = [name for name in models(project) if name in networks()]
        return {"tuned": digest_of([_tuned(project, unit, name) for name in used])} if used else {}

    return Step(
        name=name,
        make=make,
        description=description,
        group="forecasts" if purpose == "study" else purpose,
        # Bands rest on forecasts of the same models at other origins, which the study's are not.
        writes=tuple(
            TABLES[t] for t in (*FORECAST_TABLES, *(("forecast_spread",) if purpose != "study" else ()))
        ),
        needs=needs,
        version=version,
        code=("cbmt_core.forecasting", "cbmt_core.compose", "cbmt_core.fits", "cbmt_core.panel"),
        purposes=(purpose,),
        batch=batch,
        options=("models", "seed"),
        settings=settings,
        items=lambda project: model_versions(models(project)),
        promises=PROMISES,
        **more,
    )


def _fit_file(project: Project, unit: Unit, network: str) -> Path | None:
    """The study's fit of a network; forecasts at other origins use its settings."""
    studies = project.origins("study")
    return project.model_folder(studies[0].week, unit, network) / "fit.json" if studies else None


def _tuned(project: Project, unit: Unit, network: str) -> str:
    """The stored note of a network's fit; empty if it was not tuned."""
    fit = _fit_file(project, unit, network)
    return fit.read_text(encoding="utf-8") if fit and fit.exists() else ""


def model_versions(models: Sequence[str]) -> dict[str, str]:
    return {name: MODELS[name].version for name in models}


def _make(work: Work, known: Sequence[str]) -> Made:
    if unknown := [name for name in work.items if name not in known]:
        raise CbmtError(f"{work.step.name} does not run {', '.join(unknown)}; it runs {', '.join(known)}")
    panel = work.panel(customers=any(MODELS[name].customers for name in work.items))
    runs: list[ModelRun] = []
    for k, name in enumerate(work.items):
        work.tell(name, k / len(work.items))
        with threadpool_limits(1):
            try:
                options = model_options(work, name)
            except CannotFit as error:
                runs.append(
                    ModelRun(panel.firm, name, panel.origin, work.options.seed, 0.0, reason=error.reason)
                )
                continue
            fit = fit_model(name, panel, work.options.seed, **options)
            runs.append(forecast_fit(fit, panel, work.at.horizon))
        work.log(f"{name}: {runs[-1].reason or 'done'} in {runs[-1].seconds:.1f} s")
    return forecasts_made(work, panel, runs, model_versions(work.items))


def model_options(work: Work, name: str) -> dict[str, Any]:
    """A model's options from the project: the prior learned from all firms, settings tuned in the study."""
    taken = options_of(name)
    if "priors" in taken:
        from cbmt_core.models.plus import PathPriors

        timeline = work.project.timeline()
        week = timeline.prior_week(work.at)
        frame = work.con.execute(f"FROM {work.project.lake.relation(TABLES['path_prior'], week)}").df()
        known = week is not None and len(frame) > 0
        return {"priors": PathPriors.from_frame(frame, timeline.country) if known else None}
    if name in networks():
        fit = _fit_file(work.project, work.firm, name)
        if fit is None or not fit.exists():
            raise CannotFit(name, work.firm.name, f"it was not tuned yet: cbmt run --model {name}")
        tuned = load_fit(fit.parent)
        if tuned.fitted is None:
            raise CannotFit(name, work.firm.name, f"it could not be tuned: {tuned.reason}")
        offered = {"profile": tuned.profile, "chosen": tuned.fitted.record}
        return {option: value for option, value in offered.items() if option in taken}
    return {}


def forecasts_made(
    work: Work, panel: FirmPanel, runs: Sequence[ModelRun], made_with: Mapping[str, str]
) -> Made:
    """The runs as tables. A model that raised an unexpected exception is run again by the next run. So is a model
    whose forecast fails a check: it is left out, and `model_fit` has the reason.
    """
    tables = forecast_tables(runs, work.at.purpose)
    found = check_forecasts(tables, panel, work.at.horizon)
    errors = {one.model: one.text for one in found if one.fatal}
    if errors:
        runs = [
            replace(run, forecast=None, record=None, reason=f"{UNEXPECTED}: {errors[run.model]}")
            if run.model in errors
            else run
            for run in runs
        ]
        tables = forecast_tables(runs, work.at.purpose)
    finished = {run.model for run in runs if not (run.reason or "").startswith(UNEXPECTED)}
    written = {table.name for table in work.step.writes}
    return Made(
        {name: frame for name, frame in tables.items() if name in written},
        items={name: value for name, value in made_with.items() if name in finished},
        metadata={"report page": work.project.link(work.project.page_of(work.firm)), **runs_metadata(runs)},
        errors=errors,
        warnings={one.model: one.text for one in found if not one.fatal},
    )


def runs_metadata(runs: Sequence[ModelRun]) -> dict[str, Any]:
    return {
        "models": len(runs),
        "failed": sum(run.forecast is None for run in runs),
        "seconds": sum(run.seconds for run in runs),
        "fits": Records(
            [
                {
                    "model": run.model,
                    "seconds": round(run.seconds, 2),
                    "forecast sales": f"{run.forecast.S.sum():,.0f}" if run.forecast else "",
                    "note": run.reason or (run.record.diagnosis if run.record else ""),
                }
                for run in runs
            ]
        ),
    }
