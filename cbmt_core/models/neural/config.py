"""Settings of the networks and of their training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from cbmt_core.models.sequence import LOOKBACK, OUTCOMES

__all__ = ["LossWeights", "NetworkConfig", "TrainingConfig"]


@dataclass(frozen=True)
class NetworkConfig:
    """Sizes of a network; the defaults are the paper's (Web App. "Implementation Details of the Model")."""

    backbone: str = "transformer"
    """`transformer` or `lstm`."""
    outcomes: tuple[str, ...] = OUTCOMES
    """Outcomes the network sees and forecasts: all of them, or one in a single-task network."""
    lookback: int = LOOKBACK
    width: int = 32
    heads: int = 4
    feed_forward: int = 64
    encoder_layers: int = 2
    decoder_layers: int = 1
    head_width: int = 32
    linear_heads: bool = False
    """Heads of one linear layer on the shared representation alone."""
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if self.backbone not in ("transformer", "lstm"):
            raise ValueError(f"backbone must be transformer or lstm, got {self.backbone!r}")
        if self.width % self.heads:
            raise ValueError(f"width {self.width} cannot be split into {self.heads} heads")

    def values(self) -> dict[str, Any]:
        """JSON-ready; `from_values` reads it back."""
        return {**asdict(self), "outcomes": list(self.outcomes)}

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        return cls(**{**values, "outcomes": tuple(values["outcomes"])})


@dataclass(frozen=True)
class LossWeights:
    """ω of the five losses (Web App. "Overall objective"); C is the revenue alignment."""

    A: float = 1.0
    R: float = 1.0
    V: float = 1.0
    S: float = 0.2
    C: float = 1.0

    def of(self, outcomes: tuple[str, ...]) -> list[float]:
        return [getattr(self, name) for name in outcomes]


@dataclass(frozen=True)
class TrainingConfig:
    """AdamW with a lower rate for the backbone and a stronger decay on the AOV head."""

    steps: int = 300
    """Steps of the whole schedule; early stopping may take the network before its end."""
    batch: int = 64
    rate: float = 4e-3
    backbone_share: float = 0.5
    """Rate of the backbone as a share of the heads'."""
    decay: float = 0.01
    aov_decay: float = 0.1
    clip: float = 1.0
    warm_up: float = 0.1
    """Share of the steps over which the rate rises; it then falls along a cosine."""
    averaged: float = 0.0
    """Share of the steps over which parameters are averaged, with weights that fall exponentially; 0 takes the last
    ones as they are."""
    weights: LossWeights = field(default_factory=LossWeights)
    hidden_share: float = 0.15
    """Share of the windows that carry the id of cohorts not seen in training."""
