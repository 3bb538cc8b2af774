"""Loss, optimiser and training keep to their formulas and to their seeds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from helpers.panels import calibration, ordinary

from cbmt_core.models.neural.config import LossWeights, NetworkConfig, TrainingConfig
from cbmt_core.models.neural.loss import Objective, Truth
from cbmt_core.models.neural.network import Network
from cbmt_core.models.neural.optimiser import AdamW
from cbmt_core.models.neural.training import Run, TrainingSet, one_thread, train
from cbmt_core.models.sequence import OUTCOMES, Scaling

SCALING = Scaling(
    low={"A": 10.0, "R": 0.0, "V": 20.0, "S": 100.0, "Y": 5.0},
    span={"A": 90.0, "R": 0.5, "V": 60.0, "S": 900.0, "Y": 400.0},
    weeks=10,
    oldest=10,
)


def objective(weights: LossWeights) -> Objective:
    return Objective.of([OUTCOMES], [weights], SCALING)


def truth(n: int, **given: torch.Tensor) -> Truth:
    """Of one network's n windows: nothing where nothing is given."""
    nothing = {"targets": torch.zeros(4, 1, n), "known": torch.ones(4, 1, n)}
    nothing |= {name: torch.zeros(1, n) for name in ("is_birth", "sales")}
    return Truth(**(nothing | given))


def test_alignment_multiplies_drivers_in_original_units_and_rescales_by_the_span_of_sales() -> None:
    """Two cohort-weeks by hand, one in its birth week, one later: both with the week's forecast acquisition."""
    predicted = torch.tensor([[0.5, 0.2, 0.25, 0.0], [0.4, 0.4, 0.5, 0.0]]).t()[:, None]
    acquired, r, v = np.array([55.0, 46.0]), np.array([0.1, 0.2]), np.array([35.0, 50.0])
    implied = acquired * (np.array([1.0, 0.0]) + r) * v
    expected = np.mean(((implied - np.array([1500.0, 200.0])) / 400.0) ** 2)
    known = truth(
        2,
        targets=predicted,
        is_birth=torch.tensor([[1.0, 0.0]]),
        sales=torch.tensor([[1500.0, 200.0]]),
    )
    own = objective(LossWeights(0, 0, 0, 0, C=1.0))
    assert float(own(predicted, known)[0]) == pytest.approx(expected, rel=1e-5)
    assert own.implied_sales(predicted, known).numpy() == pytest.approx(implied[None], rel=1e-5)


def test_gradient_of_the_objective_is_that_of_autograd() -> None:
    generator = torch.Generator().manual_seed(2)
    G, n = 2, 6
    predicted = torch.rand(4, G, n, generator=generator).requires_grad_()
    known = Truth(
        targets=torch.rand(4, G, n, generator=generator),
        known=(torch.rand(4, G, n, generator=generator) > 0.3).float(),
        is_birth=(torch.rand(G, n, generator=generator) > 0.5).float(),
        sales=900 * torch.rand(G, n, generator=generator),
    )
    weights = [LossWeights(1.0, 0.3, 0.5, 0.2, C=0.4), LossWeights(0.3, 1.0, 1.0, 0.0, C=0.0)]
    own = Objective.of([OUTCOMES] * G, weights, SCALING)
    loss, gradient = own(predicted.detach(), known)
    # The objective once more, as the paper writes it.
    squared = ((predicted - known.targets) * known.known) ** 2
    implied = own.implied_sales(predicted, known)
    missed = ((implied - known.sales) / SCALING.span["Y"]) ** 2
    plain = torch.stack(
        [
            sum(w.of(OUTCOMES)[k] * squared[k, g].mean() for k in range(4)) + w.C * missed[g].mean()
            for g, w in enumerate(weights)
        ]
    )
    torch.testing.assert_close(loss, plain.detach())
    (expected,) = torch.autograd.grad(plain.sum(), predicted)
    torch.testing.assert_close(gradient, expected, rtol=1e-4, atol=1e-6)


def test_unknown_aov_carries_no_loss_and_no_gradient() -> None:
    known = torch.ones(4, 1, 3)
    known[2, 0, 1] = 0.0
    own = objective(LossWeights(1, 1, 1, 1, C=0.0))
    loss, gradient = own(torch.zeros(4, 1, 3), truth(3, targets=torch.ones(4, 1, 3), known=known))
    assert float(loss) == pytest.approx(3 + 2 / 3)
    assert float(gradient[2, 0, 1]) == 0.0
    assert (gradient[2, 0, [0, 2]] != 0).all()


def test_adamw_takes_the_steps_of_torch() -> None:
    generator = torch.Generator().manual_seed(1)
    start = torch.randn(6, generator=generator)
    theirs = start.clone().requires_grad_()
    optimiser = torch.optim.AdamW([theirs], lr=0.01, betas=(0.9, 0.98), weight_decay=0.1)
    mine = start.clone()[None]
    ours = AdamW(mine, torch.full((1, 6), 0.01), torch.full((1, 6), 0.1))
    for _ in range(5):
        gradient = torch.randn(6, generator=generator)
        theirs.grad = gradient.clone()
        optimiser.step()
        ours.step(gradient.clone()[None], 1.0, clip=1e9)
    torch.testing.assert_close(mine[0], theirs.detach(), rtol=1e-5, atol=1e-6)


def test_gradients_are_clipped_network_by_network_and_a_broken_one_changes_nothing() -> None:
    flat = torch.zeros(3, 4)
    optimiser = AdamW(flat, torch.ones(3, 4), torch.zeros(3, 4))
    gradient = torch.stack([torch.full((4,), x) for x in (float("nan"), 100.0, 0.1)])
    optimiser.step(gradient, 0.1, clip=1.0)
    assert (flat[0] == 0).all()
    assert float(gradient[1].norm()) == pytest.approx(1.0)
    assert (gradient[2] == 0.1).all()
    assert torch.isfinite(flat).all()
    assert (flat[1:] != 0).all()


def small() -> tuple[TrainingSet, Scaling]:
    panel = calibration(ordinary())
    scaling = Scaling.of(panel)
    return TrainingSet.of(panel, scaling, OUTCOMES), scaling


CONFIG = TrainingConfig(steps=20, batch=64)


def run(data: TrainingSet, seed: int, config: TrainingConfig = CONFIG, **sizes: Any) -> Run:
    return Run(data, NetworkConfig(**sizes), config, seed)


def test_training_lowers_the_loss_and_repeats_itself() -> None:
    data, scaling = small()
    with one_thread():
        runs = [list(train([run(data, 5, dropout=0.2)], scaling, [1, 20])) for _ in range(2)]
        ((network, first),), ((_, last),) = runs[0]
        torch.testing.assert_close(last, runs[1][1][0][1], rtol=0, atol=0)
        (((_, other),),) = train([run(data, 6, dropout=0.2)], scaling, [20])
    assert not torch.equal(last, other)

    def error(flat: torch.Tensor) -> float:
        with torch.inference_mode():
            predicted = network(flat, data.batch).t()
        return float((((predicted - data.truth.targets) * data.truth.known) ** 2).mean())

    assert error(last) < error(first)


def test_parameters_are_averaged_over_the_latest_steps() -> None:
    """Against the same average of the parameters after every single step."""
    data, scaling = small()
    stops = list(range(1, 13))
    with one_thread():
        steps = [flat for ((_, flat),) in train([run(data, 5)], scaling, stops)]
        config = replace(CONFIG, averaged=0.25)
        (*_, ((network, averaged),)) = train([run(data, 5, config)], scaling, stops)
    expected = network.initial(torch.Generator().manual_seed(5))
    for k, flat in enumerate(steps):
        share = max(1 / 5, 9 / (k + 10))  # a quarter of twenty steps, a shorter time at first
        expected = (1 - share) * expected + share * flat
    torch.testing.assert_close(averaged, expected)
    assert not torch.allclose(averaged, steps[-1], atol=1e-4)


@pytest.mark.parametrize("backbone", ["transformer", "lstm"])
def test_a_network_learns_the_same_alone_and_among_others(backbone: str) -> None:
    """Other seeds, rates, dropout, weights and data beside it: only the rounding may differ."""
    panel = calibration(ordinary())
    scaling = Scaling.of(panel)
    sets = [TrainingSet.of(panel, scaling, (name,)) for name in "AR"]
    config = replace(CONFIG, rate=1e-3, weights=LossWeights(R=0.5))
    runs = [
        run(sets[0], 5, outcomes=("A",), dropout=0.1, backbone=backbone),
        run(sets[1], 5, outcomes=("R",), dropout=0.3, backbone=backbone),
        run(sets[1], 6, config, outcomes=("R",), backbone=backbone),
    ]
    losses: list[list[float]] = [[] for _ in runs]
    with one_thread():
        (together,) = train(runs, scaling, [6], losses)
        for k, own in enumerate(runs):
            alone: list[list[float]] = [[]]
            (((network, flat),),) = train([own], scaling, [6], alone)
            assert network.config == together[k][0].config
            torch.testing.assert_close(together[k][1], flat, rtol=1e-3, atol=1e-4)
            assert losses[k] == pytest.approx(alone[0], rel=1e-3)


def test_training_visits_the_id_of_cohorts_it_has_not_seen() -> None:
    data, scaling = small()
    with one_thread():
        (((network, flat),),) = train(
            [run(data, 5, TrainingConfig(steps=8, batch=64, rate=4e-3))], scaling, [8]
        )
    before = network.named(network.initial(torch.Generator().manual_seed(5)))["entity.cohort"][0, -1]
    moved = (network.named(flat)["entity.cohort"][0, -1] - before).abs()
    assert float(moved.max()) > 1e-3, "weight decay alone would move it less"


def test_aov_head_decays_more_and_the_backbone_learns_more_slowly() -> None:
    data, _ = small()
    network = Network(NetworkConfig(), data.dimensions())
    decay = network.named(network.by_part(0.01, 0.01, aov_head=0.1))
    assert float(decay["head.second"][0, OUTCOMES.index("V")].min()) == pytest.approx(0.1)
    assert float(decay["head.second"][0, OUTCOMES.index("R")].max()) == pytest.approx(0.01)
    rate = network.named(network.by_part(0.5, 1.0))
    assert float(rate["encoder0.qkv"].max()) == 0.5
    assert float(rate["head.first"].min()) == float(rate["head.first"].max()) == 1.0


def test_threads_of_the_caller_are_given_back() -> None:
    before = torch.get_num_threads()

    def breaks() -> None:
        with one_thread():
            assert torch.get_num_threads() == 1
            raise RuntimeError("planted")

    with pytest.raises(RuntimeError, match="planted"):
        breaks()
    assert torch.get_num_threads() == before
