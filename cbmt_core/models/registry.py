"""Registry of the models: name, family and module. A new model needs one file and one line in this module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from inspect import signature
from typing import Any, TypeVar

from cbmt_core.errors import ConfigError
from cbmt_core.models.contract import Forecaster

__all__ = [
    "MODELS",
    "ModelEntry",
    "benchmarks",
    "build",
    "networks",
    "options_of",
    "register_model",
    "unregister_model",
]

BENCHMARK_FAMILIES = ("floor", "classical", "probabilistic", "tree")
"""Families that take seconds a firm: no networks are trained."""
NETWORK_FAMILIES = ("neural", "direct")
"""Families with networks: a search and trainings within the budget of a profile."""
FAMILIES = (*BENCHMARK_FAMILIES, *NETWORK_FAMILIES, "plus", "own")
"""`own`: registered by the library's user with `register_model`, for this process only."""


@dataclass(frozen=True)
class ModelEntry:
    """A registered model: its family and where its class is. Its module is imported only when the model is built."""

    name: str
    family: str
    """One of `FAMILIES`."""
    factory: str | Callable[..., Forecaster]
    """`module:Class` below `cbmt_core.models`, or a class; it is called with `options`."""
    options: Mapping[str, Any] = field(default_factory=dict)
    in_paper: bool = True
    version: str = "1"
    """Raised with whatever changes its forecasts, so that stored ones are made again."""
    customers: bool = False
    """Whether it reads the order weeks of single customers."""

    def __post_init__(self) -> None:
        if self.family not in FAMILIES:
            raise ConfigError(
                f"{self.name} is of no known family: {self.family!r} is not among {', '.join(FAMILIES)}"
            )


_ENTRIES: tuple[ModelEntry, ...] = (
    ModelEntry("seasonal_naive", "floor", "seasonal_naive:SeasonalNaive", in_paper=False),
    ModelEntry("cohort_glm", "floor", "cohort_glm:CohortGlm", in_paper=False),
    ModelEntry("gls_v1", "classical", "gls:Gls", {"version": 1}),
    ModelEntry("gls_v2", "classical", "gls:Gls", {"version": 2}),
    ModelEntry("gls_v3", "classical", "gls:Gls", {"version": 3}),
    ModelEntry("lmp_v1", "classical", "lmp:Lmp", {"version": 1}),
    ModelEntry("lmp_v2", "classical", "lmp:Lmp", {"version": 2}),
    ModelEntry("ssw_v1", "classical", "ssw:Ssw", {"version": 1}),
    ModelEntry("ssw_v2", "classical", "ssw:Ssw", {"version": 2}),
    ModelEntry("ssw_v3", "classical", "ssw:Ssw", {"version": 3}),
    ModelEntry("rf", "tree", "trees:TreeForecaster", {"learner": "rf"}),
    ModelEntry("xgb", "tree", "trees:TreeForecaster", {"learner": "xgb"}),
    ModelEntry(
        "wg_pnbd_fp", "probabilistic", "wg_pnbd:WgPnbd", {"pooled": True, "covariates": False}, customers=True
    ),
    ModelEntry(
        "wg_pnbd_pp",
        "probabilistic",
        "wg_pnbd:WgPnbd",
        {"pooled": False, "covariates": False},
        customers=True,
    ),
    ModelEntry(
        "wg_pnbd_e_fp",
        "probabilistic",
        "wg_pnbd:WgPnbd",
        {"pooled": True, "covariates": True},
        customers=True,
    ),
    ModelEntry(
        "wg_pnbd_e_pp",
        "probabilistic",
        "wg_pnbd:WgPnbd",
        {"pooled": False, "covariates": True},
        customers=True,
    ),
    ModelEntry("cbmt", "neural", "neural:NeuralForecaster", {"family": "cbmt"}, version="3"),
    ModelEntry("joint", "neural", "neural:NeuralForecaster", {"family": "joint"}, version="3"),
    ModelEntry("single_task", "neural", "neural:NeuralForecaster", {"family": "single_task"}, version="3"),
    ModelEntry("lstm", "neural", "neural:NeuralForecaster", {"family": "lstm"}, version="3"),
    ModelEntry("direct", "direct", "neural:Direct"),
    ModelEntry("cbmt_plus", "plus", "plus:CbmtPlus", version="2", in_paper=False),
)

MODELS: dict[str, ModelEntry] = {entry.name: entry for entry in _ENTRIES}


M = TypeVar("M", bound=Callable[..., Any])


def register_model(name: str, model: M | None = None, *, replace: bool = False) -> Any:
    """Add a model of your own to `MODELS`, so that `panel.forecast(name)` finds it. It lasts as long as the process.

    To run a model in the pipeline, add it to the registry instead: docs/add-a-model.md.

    Args:
        name: what to call it.
        model: its class, or a function that returns an unfitted model. The model has `fit(panel, *, seed)`, which
            returns an object with `forecast(horizon)`; that returns a `PrimitiveForecast` and may have a `record`.
            Keyword options of the class can be given to `panel.forecast`. Without `model` this is a decorator.
        replace: whether an own model of that name may be replaced, as when a notebook's cell is run again. The
            product's models cannot be.

    >>> import cbmt_core as cbmt, numpy as np
    >>> @cbmt.register_model("last_quarter")
    ... class LastQuarter:
    ...     "Every week like the mean of the last 13."
    ...     def fit(self, panel, *, seed):
    ...         self.acquired = panel.A[-13:].mean()
    ...         self.rate, self.value = np.nanmean(panel.R[:, -13:]), np.nanmean(panel.V[:, -13:])
    ...         self.cohorts = panel.n_cohorts
    ...         return self
    ...     def forecast(self, horizon):
    ...         born = np.arange(horizon) >= np.arange(-self.cohorts, horizon)[:, None]
    ...         R, V = (np.where(born, x, np.nan) for x in (self.rate, self.value))
    ...         return cbmt.PrimitiveForecast(A=np.full(horizon, self.acquired), R=R, V=V)
    >>> panel = cbmt.panel_from_orders(cbmt.example_orders())
    >>> len(panel.forecast("last_quarter", weeks=13).to_frame())
    13
    >>> cbmt.unregister_model("last_quarter")
    """
    if not isinstance(name, str):
        raise ConfigError('register_model takes a name first: @register_model("my_model")')
    if model is None:
        return lambda made: register_model(name, made, replace=replace)
    if not callable(model):
        raise ConfigError(
            f"the model {name!r} must be a class or a function that returns a model, not {model!r}"
        )
    if name in MODELS and (MODELS[name].family != "own" or not replace):
        own = MODELS[name].family == "own"
        hint = "register it with replace=True" if own else "it is the product's own; choose another name"
        raise ConfigError(f"a model is called {name!r} already; {hint}")
    MODELS[name] = ModelEntry(name, "own", model, in_paper=False, customers=True)
    return model


def unregister_model(name: str) -> None:
    """Remove a model that `register_model` added."""
    if name not in MODELS or MODELS[name].family != "own":
        raise ConfigError(f"no model of your own is called {name!r}")
    del MODELS[name]


def benchmarks() -> list[str]:
    """Names of the models of the benchmark families."""
    return [name for name, entry in MODELS.items() if entry.family in BENCHMARK_FAMILIES]


def networks() -> list[str]:
    """Names of the models that are searched for and trained."""
    return [name for name, entry in MODELS.items() if entry.family in NETWORK_FAMILIES]


def options_of(name: str) -> list[str]:
    """Options of a model's class that the registry leaves open."""
    entry = _entry(name)
    return [option for option in signature(_maker(entry)).parameters if option not in entry.options]


def build(name: str, **options: Any) -> Forecaster:
    """A fresh, unfitted model with those of its `options_of`; networks take `profile`, `storage`, `progress`."""
    entry = _entry(name)
    if options and (unknown := sorted(set(options) - set(taken := options_of(name)))):
        raise ConfigError(
            f"{name} takes no option {', '.join(unknown)}; it takes {', '.join(taken) or 'none'}"
        )
    if "profile" in options:
        from cbmt_core.models.neural.profiles import profile_of

        profile_of(options["profile"])
    return _maker(entry)(**{**entry.options, **options})


def _entry(name: str) -> ModelEntry:
    if name not in MODELS:
        raise KeyError(f"no model is called {name!r}; there are: {', '.join(MODELS)}")
    return MODELS[name]


def _maker(entry: ModelEntry) -> Callable[..., Forecaster]:
    if callable(entry.factory):
        return entry.factory
    module, _, attribute = entry.factory.partition(":")
    return getattr(import_module(f"cbmt_core.models.{module}"), attribute)  # type: ignore[no-any-return]
