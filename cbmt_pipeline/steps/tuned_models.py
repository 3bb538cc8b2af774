"""Networks of one firm: tuned and trained on the study's calibration, and stored."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from cbmt_core import atomic
from cbmt_core.config import PROFILE_NAMES
from cbmt_core.errors import ConfigError
from cbmt_core.fits import UNEXPECTED, ModelFit, commit_markers, fit_model, load_fit, stage_fit
from cbmt_core.models import MODELS, options_of
from cbmt_core.panel import FirmPanel
from cbmt_pipeline.manifest import Manifest
from cbmt_pipeline.plan import Step
from cbmt_pipeline.project import Project
from cbmt_pipeline.work import Made, Picture, Records, Work


def make(work: Work) -> Iterator[Made]:
    """Tune and train the networks. Each is committed as soon as it is trained, so a stopped run resumes after the
    last one."""
    from cbmt_core.tuning import check_storage

    project, week = work.project, work.at.week
    if not work.items:
        raise ConfigError("no network is named, and [networks] models in cbmt.toml is empty")
    profile = work.options.profile or project.config.networks.profile
    panel = work.panel()
    fits: list[ModelFit] = []
    # Two concurrent searches of one firm would each mistake the other's running trial for an abandoned one.
    with atomic.only_one(project.search_lock(week, work.firm)):
        check_storage(project.search_storage(week, work.firm))
        for k, name in enumerate(work.items):
            folder = project.model_folder(week, work.firm, name)
            fit = _tuned(work, panel, name, profile, (k, len(work.items)))
            files = stage_fit(fit, folder)
            work.log(f"{name}: {fit.reason or 'done'} in {fit.seconds:.1f} s")
            fits.append(fit)
            whole = not (fit.reason or "").startswith(UNEXPECTED)
            yield Made(
                files=files,
                gone=commit_markers(folder),
                items={name: _made_with(name, profile)} if whole else {},
                attempted=(name,),
                metadata={"profile": profile, **_metadata(work.firm.name, fits)},
            )


def _made_with(name: str, profile: str) -> str:
    return f"{MODELS[name].version} {profile}"


def _enough(have: str, want: str) -> bool:
    """Whether a fit can be used: one of a larger profile also serves a smaller one."""
    (version, profile), (wanted, least) = have.split(), want.split()
    return version == wanted and PROFILE_NAMES.index(profile) >= PROFILE_NAMES.index(least)


def wanted(project: Project) -> dict[str, str]:
    """The project's networks, each with its version and profile."""
    profile = project.config.networks.profile
    return {name: _made_with(name, profile) for name in project.networks()}


def _tuned(work: Work, panel: FirmPanel, name: str, profile: str, place: tuple[int, int]) -> ModelFit:
    storage: str | Path = work.project.search_storage(work.at.week, work.firm)
    if work.options.fresh:
        from cbmt_core.tuning import forget

        forget(storage, f"{panel.firm}/{name}")
    k, models = place

    def progress(done: int, total: int) -> None:
        doing = f"trial {done + 1} of {total}" if done < total else "training"
        work.tell(f"{name}: {doing}", (k + done / (total + 1)) / models)

    offered = {"profile": profile, "storage": storage, "progress": progress}
    options = {option: value for option, value in offered.items() if option in options_of(name)}
    with threadpool_limits(1):
        return replace(fit_model(name, panel, work.options.seed, **options), profile=profile)


def was_tried(work: Work, tuned: Manifest, name: str) -> bool:
    """Whether this step stored a fit of the network, also a failed one."""
    fit = work.project.model_folder(work.at.week, work.firm, name) / "fit.json"
    return str(fit.relative_to(work.project.data)) in tuned.files


def load_tuned(work: Work, name: str) -> ModelFit:
    """Load a network that this step stored."""
    return load_fit(work.project.model_folder(work.at.week, work.firm, name))


def _metadata(firm: str, fits: list[ModelFit]) -> dict[str, Any]:
    from cbmt_core.report.training_figures import learning_curves, tuning_history

    trials = [(_searched(fit, trial), trial) for fit in fits for trial in fit.trials]
    searches = {name: [trial for other, trial in trials if other == name] for name, _ in trials}
    pictures = {
        "learning_curves": learning_curves(searches, f"{firm}: the chosen trials"),
        "tuning_history": tuning_history(searches, f"{firm}: every trial"),
    }
    errors = {fit.model: fit.fitted.record.validation_error for fit in fits if fit.fitted}
    return {
        "models": len(fits),
        "failed": sum(fit.fitted is None for fit in fits),
        "seconds": sum(fit.seconds for fit in fits),
        "fits": Records(
            [
                {
                    "model": fit.model,
                    "validation error": _number(errors.get(fit.model)),
                    "trials": len(fit.trials),
                    "pruned": sum(t["pruned"] for t in fit.trials),
                    "seconds": round(fit.seconds, 1),
                    "note": fit.reason or (fit.fitted.record.diagnosis if fit.fitted else ""),
                }
                for fit in fits
            ]
        ),
        **{name: Picture(png, name.replace("_", " ")) for name, png in pictures.items() if png},
        **{f"validation_error_{name}": error for name, error in errors.items() if error is not None},
        "trials": Records(
            [
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


STEP = Step(
    name="tuned_models",
    make=make,
    description="Networks found by a search that goes on where it was, trained on the study's calibration: "
    "data/models/origin=.../firm=.../<model>, read by cbmt_core.models.load.",
    group="forecasts",
    needs=("cohort_week",),
    code=("cbmt_core.fits", "cbmt_core.tuning"),
    purposes=("study",),
    kinds=frozenset({"python", "pytorch", "optuna"}),
    options=("models", "profile", "seed", "fresh"),
    items=wanted,
    enough=_enough,
)
