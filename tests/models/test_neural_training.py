"""Loss, optimiser and training keep to their formulas and to their seeds."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from panels import calibration, ordinary

from cbmt_core.models.neural.config import LossWeights, NetworkConfig, TrainingConfig
from cbmt_core.models.neural.loss import Objective
from cbmt_core.models.neural.network import Network
from cbmt_core.models.neural.training import AdamW, TrainingSet, one_thread, train
from cbmt_core.models.sequence import OUTCOMES, Scaling

SCALING = Scaling(
    low={"A": 10.0, "R": 0.0, "V": 20.0, "S": 100.0, "Y": 5.0},
    span={"A": 90.0, "R": 0.5, "V": 60.0, "S": 900.0, "Y": 400.0},
    weeks=10,
    oldest=10,
)


def objective(weights: LossWeights, *, observed_size: bool = False) -> Objective:
    return Objective.of(OUTCOMES, weights, SCALING, observed_size=observed_size)


def test_alignment_multiplies_unscaled_drivers_and_rescales_by_the_span_of_sales() -> None:
    """Two cohort-weeks by hand: one in its birth week, one later."""
    predicted = torch.tensor([[0.5, 0.2, 0.25, 0.0], [0.1, 0.4, 0.5, 0.0]])
    is_birth, sales = torch.tensor([1.0, 0.0]), torch.tensor([1500.0, 200.0])
    a, r, v = np.array([55.0, 19.0]), np.array([0.1, 0.2]), np.array([35.0, 50.0])
    implied = a * (np.array([1.0, 0.0]) + r) * v
    expected = np.mean(((implied - np.array([1500.0, 200.0])) / 400.0) ** 2)
    size = torch.tensor([60.0, 40.0])
    loss = objective(LossWeights(0, 0, 0, 0, C=1.0))
    args = (predicted, predicted, torch.ones(2, 4), is_birth, size, sales)
    assert float(loss(*args)) == pytest.approx(expected, rel=1e-5)
    exact = np.array([a[0] * 1.1 * 35.0, 40.0 * 0.2 * 50.0])
    observed = objective(LossWeights(0, 0, 0, 0, C=1.0), observed_size=True)
    assert observed.implied_sales(predicted, is_birth, size).numpy() == pytest.approx(exact, rel=1e-5)


def test_unknown_aov_carries_no_loss_and_no_gradient() -> None:
    predicted = torch.zeros(3, 4, requires_grad=True)
    target, known = torch.ones(3, 4), torch.ones(3, 4)
    known[1, 2] = 0.0
    nothing = torch.zeros(3)
    loss = objective(LossWeights(1, 1, 1, 1, C=0.0))(predicted, target, known, nothing, nothing, nothing)
    (gradient,) = torch.autograd.grad(loss, predicted)
    assert float(loss.detach()) == pytest.approx(3 + 2 / 3)
    assert float(gradient[1, 2]) == 0.0
    assert (gradient[[0, 2], 2] != 0).all()


def test_adamw_takes_the_steps_of_torch() -> None:
    generator = torch.Generator().manual_seed(1)
    start = torch.randn(6, generator=generator)
    theirs = start.clone().requires_grad_()
    optimiser = torch.optim.AdamW([theirs], lr=0.01, betas=(0.9, 0.98), weight_decay=0.1)
    mine = start.clone()
    ours = AdamW(mine, torch.ones(6), torch.full((6,), 0.1))
    for _ in range(5):
        gradient = torch.randn(6, generator=generator)
        theirs.grad = gradient.clone()
        optimiser.step()
        ours.step(gradient.clone(), 0.01, clip=1e9)
    torch.testing.assert_close(mine, theirs.detach(), rtol=1e-5, atol=1e-6)


def test_gradients_are_clipped_and_a_broken_one_changes_nothing() -> None:
    flat = torch.zeros(4)
    optimiser = AdamW(flat, torch.ones(4), torch.zeros(4))
    optimiser.step(torch.full((4,), float("nan")), 0.1, clip=1.0)
    assert (flat == 0).all()
    gradient = torch.full((4,), 100.0)
    optimiser.step(gradient, 0.1, clip=1.0)
    assert float(gradient.norm()) == pytest.approx(1.0)


def small() -> tuple[TrainingSet, Scaling]:
    panel = calibration(ordinary())
    scaling = Scaling.of(panel)
    return TrainingSet.of(panel, scaling, OUTCOMES), scaling


CONFIG = TrainingConfig(steps=20, batch=64)


def test_training_lowers_the_loss_and_repeats_itself() -> None:
    data, scaling = small()
    with one_thread():
        runs = [list(train(data, scaling, NetworkConfig(), CONFIG, 5, [1, 20])) for _ in range(2)]
        (network, first), (_, last) = runs[0]
        torch.testing.assert_close(last, runs[1][1][1], rtol=0, atol=0)
        other = next(train(data, scaling, NetworkConfig(), CONFIG, 6, [20]))[1]
    assert not torch.equal(last, other)

    def error(flat: torch.Tensor) -> float:
        with torch.inference_mode():
            predicted = network(network.named(flat), data.batch)
        return float((((predicted - data.targets) * data.known) ** 2).mean())

    assert error(last) < error(first)


def test_training_visits_the_id_of_cohorts_it_has_not_seen() -> None:
    data, scaling = small()
    with one_thread():
        ((network, flat),) = train(data, scaling, NetworkConfig(), TrainingConfig(steps=8, batch=64), 5, [8])
    before = network.named(network.initial(torch.Generator().manual_seed(5)))["entity.cohort"][-1]
    moved = (network.named(flat)["entity.cohort"][-1] - before).abs()
    assert float(moved.max()) > 1e-3, "weight decay alone would move it less"


def test_aov_head_decays_more_and_the_backbone_learns_more_slowly() -> None:
    data, _ = small()
    network = Network(NetworkConfig(), data.dimensions())
    decay = network.named(network.by_part(0.01, 0.01, 0.1))
    assert float(decay["head.second"][OUTCOMES.index("V")].min()) == pytest.approx(0.1)
    assert float(decay["head.second"][OUTCOMES.index("R")].max()) == pytest.approx(0.01)
    rate = network.named(network.by_part(0.5, 1.0))
    assert float(rate["encoder0.qkv"].max()) == 0.5
    assert float(rate["head.first"].min()) == 1.0


def test_threads_of_the_caller_are_given_back() -> None:
    before = torch.get_num_threads()

    def breaks() -> None:
        with one_thread():
            assert torch.get_num_threads() == 1
            raise RuntimeError("planted")

    with pytest.raises(RuntimeError, match="planted"):
        breaks()
    assert torch.get_num_threads() == before
