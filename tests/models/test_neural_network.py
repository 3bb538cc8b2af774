"""The network is what it says: the same function and gradients as torch's own layers."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from panels import calibration, ordinary
from torch import nn

from cbmt_core.models.neural.batch import Batch
from cbmt_core.models.neural.config import NetworkConfig
from cbmt_core.models.neural.encoder import encoder_layer, norm
from cbmt_core.models.neural.network import Dimensions, Network, _Dropout, positions
from cbmt_core.models.sequence import LOOKBACK, OUTCOMES, History, Scaling, Sequences, Windows

B, L, D, H, F = 5, 7, 16, 4, 24


def torch_layer(generator: torch.Generator) -> tuple[nn.TransformerEncoderLayer, dict[str, torch.Tensor]]:
    layer = nn.TransformerEncoderLayer(D, H, F, dropout=0.0, batch_first=True, norm_first=True)
    weights = {
        "qkv": layer.self_attn.in_proj_weight,
        "qkv_bias": layer.self_attn.in_proj_bias,
        "out": layer.self_attn.out_proj.weight,
        "out_bias": layer.self_attn.out_proj.bias,
        "up": layer.linear1.weight,
        "up_bias": layer.linear1.bias,
        "down": layer.linear2.weight,
        "down_bias": layer.linear2.bias,
    }
    with torch.no_grad():
        for weight in weights.values():
            weight.copy_(0.4 * torch.randn(weight.shape, generator=generator))
    return layer, weights


def test_encoder_layer_and_its_gradients_are_those_of_torch() -> None:
    generator = torch.Generator().manual_seed(3)
    with torch.random.fork_rng():
        layer, weights = torch_layer(generator)
    x = torch.randn(B, L, D, generator=generator)
    direction = torch.randn(B, L, D, generator=generator)
    theirs_x = x.clone().requires_grad_()
    theirs = layer(theirs_x)
    expected = torch.autograd.grad((theirs * direction).sum(), [theirs_x, *weights.values()])
    ours_x = x.clone().requires_grad_()
    flat = ours_x.permute(2, 0, 1).reshape(D, B * L)
    ours = encoder_layer(flat, weights, B, H).view(D, B, L).permute(1, 2, 0)
    got = torch.autograd.grad((ours * direction).sum(), [ours_x, *weights.values()])
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    for mine, torchs in zip(got, expected, strict=True):
        torch.testing.assert_close(mine, torchs, rtol=1e-3, atol=1e-4)


def test_encoder_layer_keeps_huge_scores_finite() -> None:
    generator = torch.Generator().manual_seed(3)
    with torch.random.fork_rng():
        _, weights = torch_layer(generator)
    big = {k: 300 * v.detach() if k == "qkv" else v.detach() for k, v in weights.items()}
    x = torch.randn(D, B * L, generator=generator).requires_grad_()
    out = encoder_layer(x, big, B, H)
    (gradient,) = torch.autograd.grad(out.sum(), x)
    assert torch.isfinite(out).all()
    assert torch.isfinite(gradient).all()


def test_norm_has_the_gradient_of_layer_norm() -> None:
    x = torch.randn(D, 9, generator=torch.Generator().manual_seed(1), dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(norm, (x,))
    torch.testing.assert_close(norm(x), nn.functional.layer_norm(x.t(), (D,)).t())


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


def network(config: NetworkConfig, batch: Batch, n_ids: int) -> Network:
    return Network(config, Dimensions(batch.numeric.shape[-1], batch.week_covariates.shape[-1], n_ids))


@pytest.mark.parametrize("backbone", ["transformer", "lstm"])
def test_fresh_network_forecasts_the_mean_of_the_last_quarter(backbone: str) -> None:
    """Every head begins as its shortcut, so training starts from a forecast that does not drift."""
    w, n_ids = windows()
    batch = Batch.of(w, OUTCOMES)
    net = network(NetworkConfig(backbone=backbone), batch, n_ids)
    flat = net.initial(torch.Generator().manual_seed(0))
    expected = w.outcomes[:, -13:].mean(axis=1)
    np.testing.assert_allclose(net(net.named(flat), batch).numpy(), expected, rtol=1e-4, atol=1e-5)


def test_decoder_is_attention_of_the_last_week_over_the_encoder_output() -> None:
    """Keys and values are never made in the network; here they are, in torch's own attention."""
    w, n_ids = windows()
    batch = Batch.of(w, OUTCOMES)
    net = network(NetworkConfig(encoder_layers=0), batch, n_ids)
    generator = torch.Generator().manual_seed(0)
    p = net.named(0.3 * torch.randn(sum(net.sizes), generator=generator))
    tokens = net._tokens(p, batch)
    d, heads = 32, 4
    with torch.random.fork_rng():
        cross = nn.MultiheadAttention(d, heads, batch_first=True)
    value = p["decoder0.value"].view(heads, d, d // heads).permute(0, 2, 1).reshape(d, d)
    query_key_value = torch.cat([p["decoder0.query"].t(), p["decoder0.key"], value])
    with torch.no_grad():
        cross.in_proj_weight.copy_(query_key_value)
        cross.in_proj_bias.copy_(torch.cat([p["decoder0.query_bias"], torch.zeros(2 * d)]))
        cross.out_proj.weight.copy_(p["decoder0.out"].t())
        cross.out_proj.bias.copy_(p["decoder0.out_bias"])

        def normed(x: torch.Tensor) -> torch.Tensor:
            return nn.functional.layer_norm(x, (d,))

        memory, last = normed(tokens), tokens[:, -1]
        last = last + normed(last) @ p["decoder0.self"] + p["decoder0.self_bias"]
        last = last + cross(normed(last)[:, None], memory, memory)[0][:, 0]
        up = torch.relu(normed(last) @ p["decoder0.up"] + p["decoder0.up_bias"])
        expected = normed(last + up @ p["decoder0.down"] + p["decoder0.down_bias"])
        got = net._attentive(p, tokens, _Dropout(0.0, None))
    torch.testing.assert_close(got, expected, rtol=1e-3, atol=1e-4)


def test_entity_widths_are_roots_of_the_numbers_of_levels() -> None:
    w, n_ids = windows()
    net = network(NetworkConfig(), Batch.of(w, OUTCOMES), n_ids)
    assert net.shapes["entity.week"] == (52, 7)
    assert net.shapes["entity.month"] == (13, 4)
    assert net.shapes["entity.cohort"] == (n_ids, round(math.sqrt(n_ids)))


def test_a_trend_beyond_training_is_taken_as_the_longest_seen() -> None:
    w, _ = windows()
    later = replace(w, covariates=w.covariates + np.float32(5.0))
    assert float(Batch.of(later, OUTCOMES).week_covariates.max()) == 1.0
