"""The registry: every model has one kind, and takes the options of its class and no others."""

from __future__ import annotations

import pytest

from cbmt_core.config import PROFILE_NAMES
from cbmt_core.errors import ConfigError
from cbmt_core.models import MODELS, benchmarks, build, networks, options_of
from cbmt_core.models.neural import Direct, NeuralForecaster
from cbmt_core.models.neural.profiles import PROFILES
from cbmt_core.models.registry import ModelEntry


def test_every_model_is_a_benchmark_or_a_network_or_made_of_both() -> None:
    assert not set(benchmarks()) & set(networks())
    assert set(MODELS) - {*benchmarks(), *networks()} <= {"cbmt_plus"}


def test_a_model_of_no_known_family_is_refused() -> None:
    """It would be neither a benchmark nor a network, and so never run."""
    with pytest.raises(ConfigError, match="'smoothing' is not among floor, classical"):
        ModelEntry("mine", "smoothing", "mine:Mine")


def test_profiles_have_the_names_that_a_project_may_state_in_order_of_work() -> None:
    assert tuple(PROFILES) == PROFILE_NAMES
    work = [p.stages.total * p.steps * p.batch for p in PROFILES.values()]
    assert work == sorted(work)


def test_options_reach_the_model() -> None:
    model = build("lstm", profile="smoke", storage="here.journal")
    assert isinstance(model, NeuralForecaster)
    assert (model.family, model.profile, model.storage) == ("lstm", "smoke", "here.journal")
    assert build("direct", profile="paper") == Direct(profile="paper")


@pytest.mark.parametrize("name", networks())
def test_networks_take_what_the_pipeline_offers(name: str) -> None:
    assert {"profile", "storage", "progress"} <= set(options_of(name))


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("cohort_glm", {"profile": "quick"}, "cohort_glm takes no option profile"),
        ("cbmt", {"depth": 3}, "takes no option depth; it takes profile"),
        ("cbmt", {"family": "joint"}, "takes no option family"),
        (
            "cbmt",
            {"profile": "fast"},
            "no profile is called 'fast'; there are smoke, demo, quick, standard, paper",
        ),
    ],
)
def test_other_options_are_refused(name: str, options: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        build(name, **options)
