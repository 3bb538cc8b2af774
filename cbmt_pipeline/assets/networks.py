"""Networks of one firm: tuned, trained and kept; then their forecasts. One firm a run."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import Field
from threadpoolctl import threadpool_limits

from cbmt_core import atomic, duck
from cbmt_core.errors import BadFirmData, ConfigError
from cbmt_core.fits import UNEXPECTED, ModelFit, fit_model, load_fit, made_from, save_fit
from cbmt_core.forecasting import forecast_fit
from cbmt_core.models import options_of
from cbmt_core.names import Unit
from cbmt_core.panel import FirmPanel
from cbmt_core.report.training_figures import learning_curves, tuning_history
from cbmt_core.tuning import check_storage, forget
from cbmt_pipeline.assets.forecasts import panel_of, runs_metadata, store_runs
from cbmt_pipeline.lake import Stamp
from cbmt_pipeline.metadata import picture
from cbmt_pipeline.partitions import firm_partitions
from cbmt_pipeline.progress import tell
from cbmt_pipeline.project import NETWORKS, SEED, Project
from cbmt_pipeline.resources import ProjectResource

__all__ = ["neural_forecasts", "tuned_models"]


class TuningConfig(dg.Config):
    """Which networks to tune and train; what is not stated here is stated in cbmt.toml, or the default."""

    models: list[str] | None = Field(default=None, description="Names of networks.")
    profile: str | None = Field(default=None, description="smoke, quick, standard or paper: how much work.")
    seed: int = Field(default=SEED, description="Of searches and trainings.")
    fresh: bool = Field(
        default=False,
        description="Search and train anew what is up to date, and forget the trials of earlier searches.",
    )


class NetworkForecastConfig(dg.Config):
    """Which networks forecast: those named, or all that were trained on the firm's present data."""

    models: list[str] | None = Field(default=None, description="Names of networks.")
    seed: int = Field(default=SEED, description="That of their training.")


@dg.asset(
    deps=["cohort_week"],
    partitions_def=firm_partitions,
    group_name="forecasts",
    kinds={"python", "pytorch", "optuna"},
    description="Networks found by a search that goes on where it was, trained on the calibration: "
    "data/models/firm=.../<model>, read by cbmt_core.models.load.",
)
def tuned_models(
    context: dg.AssetExecutionContext, config: TuningConfig, project: ProjectResource
) -> dg.MaterializeResult:
    here = project.open()
    unit = Unit.from_slug(context.partition_key)
    models = here.networks(config.models)
    if not models:
        raise ConfigError("no network is named, and [networks] models in cbmt.toml is empty")
    profile = config.profile or here.config.networks.profile
    stamp = here.network_stamp(unit, config.seed, profile)
    with duck.connect(here.spill, threads=1) as con:
        panel = panel_of(con, here, unit, customers=False).until(here.design().origin)
    fits, kept = [], 0
    # Two searches of one firm at a time would each take the other's trial for a dead one.
    with atomic.only_one(here.searching(unit)):
        check_storage(here.search_storage(unit))
        for k, name in enumerate(models):
            fit = None if config.fresh else _up_to_date(here, unit, name, stamp)
            kept += fit is not None
            if fit is None:
                fit = _tuned(here, unit, panel, name, profile, config, (k, len(models)))
                save_fit(fit, here.model_folder(unit, name), asdict(stamp))
            context.log.info(f"{name}: {fit.reason or 'done'} in {fit.seconds:.1f} s")
            fits.append(fit)
    return dg.MaterializeResult(metadata={"profile": profile, "kept": kept, **_fits_metadata(unit, fits)})


@dg.asset(
    deps=[tuned_models],
    partitions_def=firm_partitions,
    group_name="forecasts",
    kinds={"python", "pytorch", "parquet"},
    description="Holdout forecasts by the trained networks: model_fit, forecast_week, forecast_cohort_week.",
)
def neural_forecasts(
    context: dg.AssetExecutionContext, config: NetworkForecastConfig, project: ProjectResource
) -> dg.MaterializeResult:
    here = project.open()
    unit = Unit.from_slug(context.partition_key)
    design = here.design()
    present = here.forecast_stamp(unit, config.seed)
    folders = {name: here.model_folder(unit, name) for name in here.networks(config.models)}
    trained = [name for name, folder in folders.items() if _made_from(folder, present)]
    if not trained or (config.models and trained != config.models):
        absent = ", ".join(name for name in folders if name not in trained)
        raise BadFirmData(unit.name, f"no {absent} was trained on its present data; materialise tuned_models")
    with duck.connect(here.spill, threads=1) as con, threadpool_limits(1):
        panel = panel_of(con, here, unit, customers=False).until(design.origin)
        runs = [forecast_fit(load_fit(folders[name]), panel, design.holdout_weeks) for name in trained]
        store_runs(con, here, unit, runs, NETWORKS)
    return dg.MaterializeResult(metadata=runs_metadata(runs))


def _up_to_date(here: Project, unit: Unit, name: str, stamp: Stamp) -> ModelFit | None:
    folder = here.model_folder(unit, name)
    if made_from(folder) != asdict(stamp):
        return None
    fit = load_fit(folder)
    return None if (fit.reason or "").startswith(UNEXPECTED) else fit


def _made_from(folder: Path, stamp: Stamp) -> bool:
    """Whether a fit was made from the data, code and seed of `stamp`, within whatever profile."""
    found = made_from(folder)
    return found is not None and {**found, "config": stamp.config} == asdict(stamp)


def _tuned(
    here: Project,
    unit: Unit,
    panel: FirmPanel,
    name: str,
    profile: str,
    config: TuningConfig,
    place: tuple[int, int],
) -> ModelFit:
    storage = here.search_storage(unit)
    if config.fresh:
        forget(storage, f"{panel.firm}/{name}")
    k, models = place

    def progress(done: int, total: int) -> None:
        doing = f"trial {done + 1} of {total}" if done < total else "training"
        tell(unit.slug, f"{name}: {doing}", (k + done / (total + 1)) / models)

    offered = {"profile": profile, "storage": storage, "progress": progress}
    options = {option: value for option, value in offered.items() if option in options_of(name)}
    with threadpool_limits(1):
        return replace(fit_model(name, panel, config.seed, **options), profile=profile)


def _fits_metadata(unit: Unit, fits: list[ModelFit]) -> dict[str, object]:
    trials = [(_searched(fit, trial), trial) for fit in fits for trial in fit.trials]
    searches = {name: [trial for other, trial in trials if other == name] for name, _ in trials}
    pictures = {
        "learning_curves": learning_curves(searches, f"{unit.name}: the chosen trials"),
        "tuning_history": tuning_history(searches, f"{unit.name}: every trial"),
    }
    errors = {fit.model: fit.fitted.record.validation_error for fit in fits if fit.fitted}
    return {
        "models": len(fits),
        "failed": sum(fit.fitted is None for fit in fits),
        "seconds": sum(fit.seconds for fit in fits),
        "fits": dg.MetadataValue.table(
            records=[
                dg.TableRecord(
                    {
                        "model": fit.model,
                        "validation error": _number(errors.get(fit.model)),
                        "trials": len(fit.trials),
                        "pruned": sum(t["pruned"] for t in fit.trials),
                        "seconds": round(fit.seconds, 1),
                        "note": fit.reason or (fit.fitted.record.diagnosis if fit.fitted else ""),
                    }
                )
                for fit in fits
            ]
        ),
        **{name: picture(png, name.replace("_", " ")) for name, png in pictures.items() if png},
        **{f"validation_error_{name}": error for name, error in errors.items() if error is not None},
        "trials": dg.MetadataValue.table(
            records=[
                dg.TableRecord(
                    {
                        "search": name,
                        "trial": number,
                        "stage": trial["stage"],
                        "validation error": _number(trial["error"]),
                        "pruned": trial["pruned"],
                        "chosen": trial["chosen"],
                        "seconds": _number(trial["seconds"]),
                        "setting": ", ".join(f"{k} {_number(v)}" for k, v in trial["choice"].items()),
                    }
                )
                for name, search in searches.items()
                for number, trial in enumerate(search, start=1)
            ]
        ),
    }


def _searched(fit: ModelFit, trial: Mapping[str, Any]) -> str:
    """The search a trial belongs to: its model's, or that of one of the model's drivers."""
    return f"{fit.model} {trial['driver']}" if "driver" in trial else fit.model


def _number(value: object) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
