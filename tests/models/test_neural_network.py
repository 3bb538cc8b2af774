"""The network is what it says: the same function and gradients as torch's own layers."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from helpers.panels import calibration, ordinary
from torch import Tensor, nn

from cbmt_core.models.neural.batch import Batch
from cbmt_core.models.neural.config import NetworkConfig
from cbmt_core.models.neural.decoder import decoder
from cbmt_core.models.neural.dropout import Dropout
from cbmt_core.models.neural.encoder import encoder_layer
from cbmt_core.models.neural.lstm import lstm
from cbmt_core.models.neural.network import RECENT, Dimensions, Network, positions
from cbmt_core.models.neural.parts import Gradients, normalise, through_norm
from cbmt_core.models.neural.tokens import tokens
from cbmt_core.models.sequence import LOOKBACK, OUTCOMES, History, Scaling, Sequences, Windows

G, B, L, D, H, F = 2, 5, 7, 16, 4, 24


def generator(seed: int = 3) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def keep_all(_: torch.Size) -> None:
    return None


def side_by_side(each: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Parameters of modules as the parts take them: stacked, biases as columns."""
    stacked = {name: torch.stack([p[name].detach() for p in each]) for name in each[0]}
    return {name: x[..., None] if name.endswith("bias") else x for name, x in stacked.items()}


def features_first(x: Tensor) -> Tensor:
    """[G, B, L, d] -> [G, d, B·L]"""
    return x.permute(0, 3, 1, 2).reshape(x.shape[0], x.shape[3], -1)


def torch_layers(spread: float = 0.4) -> tuple[list[nn.Module], list[dict[str, Tensor]]]:
    draw, layers, weights = generator(), [], []
    with torch.random.fork_rng():
        for _ in range(G):
            layer = nn.TransformerEncoderLayer(D, H, F, dropout=0.0, batch_first=True, norm_first=True)
            weights.append(
                {
                    "e.qkv": layer.self_attn.in_proj_weight,
                    "e.qkv_bias": layer.self_attn.in_proj_bias,
                    "e.out": layer.self_attn.out_proj.weight,
                    "e.out_bias": layer.self_attn.out_proj.bias,
                    "e.up": layer.linear1.weight,
                    "e.up_bias": layer.linear1.bias,
                    "e.down": layer.linear2.weight,
                    "e.down_bias": layer.linear2.bias,
                }
            )
            layers.append(layer)
    with torch.no_grad():
        for own in weights:
            for weight in own.values():
                weight.copy_(spread * torch.randn(weight.shape, generator=draw))
    return layers, weights


def assert_same_function(
    modules: list[nn.Module],
    weights: list[dict[str, Tensor]],
    x: Tensor,
    direction: Tensor,
    theirs: list[Tensor],
    ours: Tensor,
    gradients: Gradients,
    dx: Tensor,
) -> None:
    """Values, gradients of parameters and of inputs against autograd through torch's own modules."""
    for k in range(len(modules)):
        expected = torch.autograd.grad((theirs[k] * direction[k]).sum(), [x, *weights[k].values()])
        torch.testing.assert_close(ours[k], theirs[k].detach(), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(dx[k], expected[0][k], rtol=1e-3, atol=1e-4)
        for name, torchs in zip(weights[k], expected[1:], strict=True):
            mine = gradients[name][k].reshape(torchs.shape)
            torch.testing.assert_close(mine, torchs, rtol=1e-3, atol=2e-4, msg=lambda m, n=name: f"{n}: {m}")


def test_encoder_layer_and_its_gradients_are_those_of_torch() -> None:
    layers, weights = torch_layers()
    x = torch.randn(G, B, L, D, generator=generator()).requires_grad_()
    direction = torch.randn(G, B, L, D, generator=generator(4))
    theirs = [layer(own) for layer, own in zip(layers, x, strict=True)]
    value, pull = encoder_layer(features_first(x.detach()), side_by_side(weights), "e", L, H, keep_all)
    gradients: Gradients = {}
    dx = pull(features_first(direction), gradients)
    assert_same_function(
        layers,
        weights,
        x,
        direction,
        theirs,
        value.view(G, D, B, L).permute(0, 2, 3, 1),
        gradients,
        dx.view(G, D, B, L).permute(0, 2, 3, 1),
    )


def test_encoder_layer_keeps_huge_scores_finite() -> None:
    _, weights = torch_layers()
    p = side_by_side(weights)
    p["e.qkv"] *= 300
    out, pull = encoder_layer(torch.randn(G, D, B * L, generator=generator()), p, "e", L, H, keep_all)
    assert torch.isfinite(out).all()
    assert torch.isfinite(pull(torch.ones_like(out), {})).all()


def test_lstm_and_its_gradients_are_those_of_torch() -> None:
    draw = generator()
    with torch.random.fork_rng():
        modules = [nn.LSTM(D, D, 2, batch_first=True) for _ in range(G)]
    for parameter in (q for module in modules for q in module.parameters()):
        parameter.data.copy_(0.4 * torch.randn(parameter.shape, generator=draw))
    x = torch.randn(G, B, L, D, generator=draw).requires_grad_()
    direction = torch.randn(G, B, D, generator=draw)
    theirs = [module(own)[0][:, -1] for module, own in zip(modules, x, strict=True)]
    # Torch's gates come as input, forget, candidate, output, and with two biases that are only ever added.
    order = [0, 1, 3, 2]

    def ordered(t: Tensor) -> Tensor:
        return t.detach().unflatten(0, (4, D))[order].flatten(0, 1)

    each = [
        {
            key: value
            for k in range(2)
            for key, value in {
                f"lstm{k}.input": ordered(getattr(m, f"weight_ih_l{k}")),
                f"lstm{k}.state": ordered(getattr(m, f"weight_hh_l{k}")),
                f"lstm{k}.input_bias": ordered(getattr(m, f"bias_ih_l{k}") + getattr(m, f"bias_hh_l{k}")),
            }.items()
        }
        for m in modules
    ]
    value, pull = lstm(features_first(x.detach()), side_by_side(each), 2, L)
    gradients: Gradients = {}
    dx = pull(direction.transpose(1, 2), gradients).view(G, D, B, L).permute(0, 2, 3, 1)
    for k, module in enumerate(modules):
        names = ("weight_ih", "weight_hh", "bias_ih")
        sought = [getattr(module, f"{name}_l{j}") for j in range(2) for name in names]
        expected = torch.autograd.grad((theirs[k] * direction[k]).sum(), [x, *sought])
        torch.testing.assert_close(value[k].t(), theirs[k].detach(), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(dx[k], expected[0][k], rtol=1e-3, atol=1e-5)
        mine = [
            gradients[f"lstm{j}.{name}"][k] for j in range(2) for name in ("input", "state", "input_bias")
        ]
        for got, torchs in zip(mine, expected[1:], strict=True):
            torch.testing.assert_close(got.reshape(torchs.shape), ordered(torchs), rtol=1e-3, atol=1e-5)


def test_norm_and_its_gradient_are_those_of_layer_norm() -> None:
    x = torch.randn(G, D, 9, generator=generator(), dtype=torch.float64).requires_grad_()
    direction = torch.randn(x.shape, generator=generator(4), dtype=torch.float64)
    expected = nn.functional.layer_norm(x.transpose(1, 2), (D,)).transpose(1, 2)
    y, inverse = normalise(x.detach())
    torch.testing.assert_close(y, expected.detach())
    (gradient,) = torch.autograd.grad((expected * direction).sum(), x)
    torch.testing.assert_close(through_norm(direction, y, inverse), gradient)


def test_positions_follow_the_sinusoids_of_attention_is_all_you_need() -> None:
    table = positions(LOOKBACK, 32)
    for t, k in ((0, 0), (3, 5), (19, 15)):
        angle = t / 10_000 ** (2 * k / 32)
        assert float(table[t, 2 * k]) == pytest.approx(math.sin(angle), abs=1e-5)
        assert float(table[t, 2 * k + 1]) == pytest.approx(math.cos(angle), abs=1e-5)


def windows() -> tuple[Windows, int]:
    panel = calibration(ordinary())
    sequences = Sequences.of(History.of(panel), Scaling.of(panel))
    row, week = sequences.pairs(range(30, 40))
    return sequences.windows(row, week), sequences.n_ids


def batch_of(w: Windows) -> Batch:
    return Batch.of(w, OUTCOMES)


def network(config: NetworkConfig, batch: Batch, n_ids: int) -> Network:
    return Network(config, Dimensions(batch.numeric.shape[0], batch.week_covariates.shape[-1], n_ids))


@pytest.mark.parametrize("backbone", ["transformer", "lstm"])
def test_fresh_network_forecasts_the_mean_of_the_last_weeks(backbone: str) -> None:
    """Every head begins at a forecast that does not drift."""
    w, n_ids = windows()
    batch = batch_of(w)
    net = network(NetworkConfig(backbone=backbone), batch, n_ids)
    scaled = net(net.initial(generator(0)), batch).numpy()
    np.testing.assert_allclose(scaled, w.outcomes[:, -RECENT:].mean(axis=1), rtol=1e-4, atol=1e-5)


def test_a_head_sees_the_shared_representation_and_its_own_weeks_alone() -> None:
    """With the backbone's way to the heads cut, other outcomes and the calendar do not matter."""
    w, n_ids = windows()
    batch = batch_of(w)
    net = network(NetworkConfig(), batch, n_ids)
    flat = 0.3 * torch.randn(sum(net.sizes), generator=generator(0))
    net.named(flat)["head.first"].zero_()
    before = net(flat, batch)
    numeric = batch.numeric.clone()
    numeric[1:] += torch.randn(numeric[1:].shape, generator=generator(1))
    after = net(flat, replace(batch, numeric=numeric, week_of_year=(batch.week_of_year + 9) % 52))
    torch.testing.assert_close(before[:, 0], after[:, 0], rtol=0, atol=0)
    assert not torch.allclose(before[:, 1:], after[:, 1:])


def test_how_far_a_backbone_moved_does_not_count_its_heads() -> None:
    net = Network(NetworkConfig(), Dimensions(numeric=10, week_covariates=3, n_ids=4))
    start = net.initial(generator(0))
    assert net.moved(start + net.by_part(0.0, 1.0), start) == 0.0
    assert net.moved(start * (1 + 0.25 * net.by_part(1.0, 0.0)), start) == pytest.approx(0.25)


def test_tokens_are_the_projection_of_numbers_and_embeddings_put_side_by_side() -> None:
    w, n_ids = windows()
    batch = batch_of(w)
    net = network(NetworkConfig(), batch, n_ids)
    p = net.named(0.3 * torch.randn(G, sum(net.sizes), generator=generator(0)))
    got = tokens(p, batch, net.positions)[0].view(G, 32, len(w), LOOKBACK).permute(0, 2, 3, 1)
    covariates = np.minimum(w.covariates[:, 1:], 1.0)
    for k in range(G):
        q = {name: value[k] for name, value in p.items()}
        parts = [
            torch.from_numpy(np.concatenate([w.outcomes, w.flags, covariates], -1)),
            q["entity.week"][torch.from_numpy(w.week_of_year[:, 1:])],
            q["entity.cohort"][torch.from_numpy(w.cohort)][:, None].expand(-1, LOOKBACK, -1),
            q["entity.month"][torch.from_numpy(w.month)][:, None].expand(-1, LOOKBACK, -1),
        ]
        names = ("covariates", "week", "cohort", "month")
        weight = torch.cat([q["input.numeric"].t(), *(q[f"input.{name}"] for name in names)])
        expected = torch.cat(parts, -1) @ weight + q["input.bias"] + net.positions
        torch.testing.assert_close(got[k], expected, rtol=1e-4, atol=1e-4)


def test_decoder_is_attention_of_the_last_week_over_the_encoder_output() -> None:
    """Keys and values are never made in the network; here they are, in torch's own attention."""
    config = NetworkConfig()
    net = Network(config, Dimensions(numeric=3, week_covariates=2, n_ids=4))
    d, heads = config.width, config.heads
    p = net.named(0.3 * torch.randn(sum(net.sizes), generator=generator(0)))
    x = torch.randn(B, LOOKBACK, d, generator=generator(1))
    with torch.random.fork_rng():
        cross = nn.MultiheadAttention(d, heads, batch_first=True)

    def normed(t: Tensor) -> Tensor:
        return nn.functional.layer_norm(t, (d,))

    def affine(t: Tensor, name: str) -> Tensor:
        return t @ p[f"decoder0.{name}"][0].t() + p[f"decoder0.{name}_bias"][0, :, 0]

    with torch.no_grad():
        cross.in_proj_weight.copy_(torch.cat([p[f"decoder0.{n}"][0] for n in ("query", "key", "value")]))
        cross.in_proj_bias.copy_(torch.cat([p["decoder0.query_bias"][0, :, 0], torch.zeros(2 * d)]))
        cross.out_proj.weight.copy_(p["decoder0.out"][0])
        cross.out_proj.bias.copy_(p["decoder0.out_bias"][0, :, 0])
        memory, last = normed(x), x[:, -1]
        last = last + affine(normed(last), "self")
        last = last + cross(normed(last)[:, None], memory, memory)[0][:, 0]
        expected = normed(last + affine(torch.relu(affine(normed(last), "up")), "down"))
    got, _ = decoder(features_first(x[None]), p, 1, LOOKBACK, heads, keep_all)
    torch.testing.assert_close(got[0].t(), expected, rtol=1e-3, atol=1e-4)


CONFIGS = {
    "transformer": NetworkConfig(width=16, feed_forward=24, head_width=8),
    "two decoders, linear heads": NetworkConfig(
        width=16, feed_forward=24, decoder_layers=2, linear_heads=True
    ),
    "lstm": NetworkConfig(width=16, head_width=8, backbone="lstm"),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_gradient_of_every_parameter_is_the_slope_of_the_forecasts(name: str) -> None:
    """Central differences in double precision, with dropout, two networks side by side."""
    w, n_ids = windows()
    batch = batch_of(w)
    rows = torch.randint(len(batch), (G, 6), generator=generator())
    batch = batch.take(rows, batch.cohort[0][rows])
    batch = replace(
        batch,
        numeric=batch.numeric.double(),
        week_covariates=batch.week_covariates.double(),
    )
    net = network(CONFIGS[name], batch, n_ids)
    flat = 0.3 * torch.randn(G, sum(net.sizes), generator=generator(1), dtype=torch.float64)
    strips = Dropout([0.3] * G, [generator(2), generator(3)], 6 * LOOKBACK * 16).strips.double()

    def forward(at: Tensor) -> tuple[Tensor, Gradients]:
        dropout = Dropout([0.0], [generator()], 16)
        dropout.on, dropout.strips = True, strips
        value, pull = net.forward(net.named(at), batch, dropout.mask)
        return value, pull

    value, pull = forward(flat)
    weight = torch.randn(value.shape, generator=generator(5), dtype=torch.float64)
    gradient = pull(weight)
    edges = np.cumsum([0, *net.sizes])
    for parameter, start, end in zip(net.shapes, edges[:-1], edges[1:], strict=True):
        way = torch.zeros_like(flat)
        way[:, start:end] = torch.randn(G, end - start, generator=generator(6), dtype=torch.float64)
        ahead, behind = (forward(flat + e * way)[0] for e in (1e-6, -1e-6))
        slope = float(((ahead - behind) * weight).sum()) / 2e-6
        assert float((gradient * way).sum()) == pytest.approx(slope, rel=1e-5, abs=1e-5), parameter


@pytest.mark.parametrize("name", CONFIGS)
def test_networks_side_by_side_forecast_what_each_does_alone(name: str) -> None:
    w, n_ids = windows()
    batch = batch_of(w)
    net = network(CONFIGS[name], batch, n_ids)
    flat = 0.3 * torch.randn(3, sum(net.sizes), generator=generator(1))
    together = net(flat, batch)
    for k in range(3):
        torch.testing.assert_close(together[k], net(flat[k], batch), rtol=1e-4, atol=1e-5)


def test_dropout_keeps_the_mean_drops_its_share_and_is_each_networks_own() -> None:
    rates = [0.3, 0.0, 0.3]
    masks = Dropout(rates, [generator(k) for k in (1, 2, 3)], 32 * 1280)
    mask = masks.mask(torch.Size((3, 32, 1280)))
    assert mask is not None
    for k, rate in enumerate(rates):
        assert float((mask[k] == 0).float().mean()) == pytest.approx(rate, abs=0.01)
        assert float(mask[k].mean()) == pytest.approx(1.0, abs=0.02)
    assert not torch.equal(mask[0], mask[2])
    later = masks.mask(torch.Size((3, 32, 1280)))
    assert later is not None
    both = float(((mask[0] == 0) & (later[0] == 0)).float().mean())
    assert both == pytest.approx(0.3**2, abs=0.01), "masks of different steps fall together by chance alone"
    alone = Dropout([0.3], [generator(3)], 32 * 1280).mask(torch.Size((1, 32, 1280)))
    assert alone is not None
    assert torch.equal(alone[0], mask[2])
    assert Dropout([0.0, 0.0], [generator(1), generator(2)], 64).mask(torch.Size((2, 4, 16))) is None


def test_entity_widths_are_roots_of_the_numbers_of_levels() -> None:
    w, n_ids = windows()
    net = network(NetworkConfig(), batch_of(w), n_ids)
    assert net.shapes["entity.week"] == (52, 7)
    assert net.shapes["entity.month"] == (13, 4)
    assert net.shapes["entity.cohort"] == (n_ids, round(math.sqrt(n_ids)))


def test_a_trend_beyond_training_is_taken_as_the_longest_seen() -> None:
    w, _ = windows()
    later = replace(w, covariates=w.covariates + np.float32(5.0))
    assert float(batch_of(later).week_covariates.max()) == 1.0
