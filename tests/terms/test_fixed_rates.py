"""A rate that is one number whatever is learned: what would act on it is refused."""

from __future__ import annotations

from typing import Any

import pytest

from elboroom.build.parts import Choices, Parts
from elboroom.core.problem import Problem
from elboroom.data.dataset import DataSet
from elboroom.methods import card

STEERED: list[tuple[str, dict[str, Any]]] = [
    ("beta-vae", {"beta": 4.0}),
    ("control-vae", {}),
    ("mdr-vae", {}),
    ("beta-vae-capacity", {}),
    ("free-bits", {"unit": "total"}),
    ("vmf-vae", {"free_bits": 3.0}),
]


def build(data: DataSet, name: str, options: dict[str, Any], **choices: Any) -> None:
    card(name).build(Parts(data.about, Choices(latent=3, net="mlp-300", **choices), 8, data), options)


@pytest.mark.parametrize(("name", "options"), STEERED)
@pytest.mark.parametrize("posterior", ["vmf", "power-spherical"])
def test_what_would_move_it_is_refused(pixels: DataSet, name: str, options: dict[str, Any], posterior: str) -> None:
    with pytest.raises(Problem, match="has no effect; use --kappa-learned"):
        build(pixels, name, options, posterior=posterior)
    build(pixels, name, options, posterior=posterior, kappa_learned=True)
    build(pixels, name, options, posterior=posterior, prior="vamp", pseudo_inputs=4)


@pytest.mark.parametrize(
    ("name", "options"),
    [("vae", {}), ("vmf-vae", {}), ("vae-annealed", {}), ("beta-vae", {"beta": 1.0}), ("beta-vae", {"beta": 0.0})],
)
def test_what_leaves_it_alone_is_not(pixels: DataSet, name: str, options: dict[str, Any]) -> None:
    build(pixels, name, options, posterior="vmf")
