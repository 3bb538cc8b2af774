"""Pictures of tuning, training and priors: drawn for any number of models, and None where there is nothing to draw."""

from __future__ import annotations

import struct
from datetime import date
from typing import Any

import pytest

from cbmt_core.models.plus import PathPriors
from cbmt_core.report.prior_figures import priors_picture
from cbmt_core.report.training_figures import learning_curves, tuning_history


def trial(error: float | None, *, chosen: bool = False, pruned: bool = False, stage: str = "random") -> Any:
    curve = {"training": [[1, 0.5], [2, 0.3]], "validation": [[2, error]]}
    notes = {} if pruned else {"curve": curve}
    return {"stage": stage, "error": error, "chosen": chosen, "pruned": pruned, "notes": notes}


SEARCH = [
    trial(30.0),
    trial(20.0, chosen=True),
    trial(55.0, pruned=True, stage="grid"),
    trial(None, pruned=True, stage="refined"),
]


def size(png: bytes | None) -> tuple[int, int]:
    assert png is not None
    assert png.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", png[16:24])
    return width, height


@pytest.mark.parametrize("draw", [learning_curves, tuning_history])
def test_models_stand_three_in_a_line(draw: Any) -> None:
    one, three, four = (size(draw({f"m{k}": SEARCH for k in range(n)}, "ACME")) for n in (1, 3, 4))
    assert three[0] == four[0] == pytest.approx(3 * one[0], abs=3)
    assert three[0] < 600, "the UI's dialog is no wider"
    assert one[1] == three[1] < four[1]


@pytest.mark.parametrize("draw", [learning_curves, tuning_history])
def test_models_without_a_search_are_left_out(draw: Any) -> None:
    assert draw({}, "ACME") is None
    assert draw({"too_young": []}, "ACME") is None
    assert size(draw({"a": SEARCH, "too_young": []}, "ACME")) == size(draw({"a": SEARCH}, "ACME"))


def test_a_choice_without_a_curve_has_no_picture() -> None:
    assert learning_curves({"a": [trial(30.0), trial(None, pruned=True, chosen=True)]}, "ACME") is None


def test_priors_fit_the_dialog() -> None:
    default = PathPriors.default("US")
    learned = PathPriors.from_frame(default.frame().assign(firms=3), "US")
    learned.groups["drivers"].mean[1:, 0] = 0.1
    drawn, plain = (priors_picture(p, date(2018, 4, 1), "three firms") for p in (learned, default))
    assert size(drawn)[0] < 600
    assert drawn != plain
