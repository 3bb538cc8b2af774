"""The four families of networks: what each network sees and forecasts, and what a search may set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from optuna.distributions import CategoricalDistribution, FloatDistribution

from cbmt_core.models.neural.config import LossWeights, NetworkConfig, TrainingConfig
from cbmt_core.models.neural.profiles import Profile
from cbmt_core.models.neural.training import Run, TrainingSet
from cbmt_core.models.sequence import OUTCOMES
from cbmt_core.tuning import Choice

__all__ = ["FAMILY_PARTS", "Part"]

LONG_NAMES = {"A": "acquisition", "R": "ropc", "V": "aov"}
AVERAGED = 0.25
"""Share of the longest training over which a network's parameters are averaged."""


@dataclass(frozen=True)
class Part:
    """Outcomes and backbone of one network, which has its own search."""

    outcomes: tuple[str, ...]
    backbone: str = "transformer"
    aligned: bool = False
    """Whether the loss includes the revenue alignment L_C."""

    @property
    def driver(self) -> str | None:
        """The only outcome of the network, by its long name; None when there are several. Settings of a network of
        one driver are chosen by the error of that driver, others by the error of all five outcomes."""
        return LONG_NAMES[self.outcomes[0]] if len(self.outcomes) == 1 else None

    def space(self) -> dict[str, Any]:
        space: dict[str, Any] = {
            "rate": FloatDistribution(1e-3, 8e-3, log=True),
            "backbone_share": FloatDistribution(0.05, 0.5, log=True),
            "layers": CategoricalDistribution([1, 2]),
            "width": CategoricalDistribution([16, 32]),
            "head_width": CategoricalDistribution([16, 32]),
            "dropout": CategoricalDistribution([0.2, 0.3, 0.4]),
        }
        if self.driver is None:
            space |= {f"weight_{k}": CategoricalDistribution([0.3, 1.0]) for k in "AVS"}
            # In min-max units the repeat orders of all but the youngest cohorts are a few hundredths.
            space["weight_R"] = CategoricalDistribution([1.0, 10.0])
        if self.aligned:
            # On simulated firms L_C pulls the backbone as hard as the other losses together at about 30.
            space["weight_C"] = CategoricalDistribution([0.3, 3.0, 30.0])
        return space

    def default(self) -> dict[str, Any]:
        values: dict[str, Any] = {
            "rate": 4e-3,
            "backbone_share": 0.12,
            "layers": 2,
            "width": 32,
            "head_width": 32,
            "dropout": 0.3,
            "weight_A": 1.0,
            "weight_R": 10.0,
            "weight_V": 1.0,
            "weight_S": 0.3,
            "weight_C": 0.3,
        }
        return {name: values[name] for name in self.space()}

    def run(self, choice: Choice, profile: Profile, data: TrainingSet, seed: int) -> Run:
        """A network of these outcomes to be trained."""
        network = NetworkConfig(
            backbone=self.backbone,
            outcomes=self.outcomes,
            width=choice["width"],
            feed_forward=2 * choice["width"],
            encoder_layers=choice["layers"],
            head_width=choice["head_width"],
            dropout=choice["dropout"],
        )
        weights = {k: choice.get(f"weight_{k}", 1.0) for k in OUTCOMES}
        training = TrainingConfig(
            steps=profile.steps,
            batch=profile.batch,
            rate=choice["rate"],
            backbone_share=choice["backbone_share"],
            averaged=AVERAGED,
            weights=LossWeights(**weights, C=choice.get("weight_C", 0.0)),
        )
        return Run(data, network, training, seed)


FAMILY_PARTS: dict[str, tuple[Part, ...]] = {
    "cbmt": (Part(OUTCOMES, aligned=True),),
    "joint": (Part(OUTCOMES),),
    "single_task": tuple(Part((driver,)) for driver in LONG_NAMES),
    "lstm": tuple(Part((driver,), backbone="lstm") for driver in LONG_NAMES),
}
"""Networks of each family. Every outcome is forecast by exactly one of them."""
