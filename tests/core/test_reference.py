"""References: read here, registered elsewhere, and refused where they are registered nowhere."""

from __future__ import annotations

import pytest
from torch import nn

from elboroom.build.parts import Choices, Parts
from elboroom.core.method import descend
from elboroom.core.reference import Reference
from elboroom.data.dataset import DataSet
from elboroom.methods import card
from elboroom.terms.evidence import kl, nll


class Reader(nn.Module):
    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.read = Reference(module)


def test_what_is_referred_to_is_registered_once() -> None:
    net = nn.Linear(2, 3)
    both = nn.ModuleDict({"net": net, "reader": Reader(net)})
    assert set(both.state_dict()) == {"net.weight", "net.bias"}
    assert not list(both["reader"].parameters())
    assert both.double()["reader"].read.module.weight.dtype == net.weight.dtype


@pytest.mark.parametrize(
    ("name", "choices"),
    [
        ("vae", {"prior": "vamp"}),
        ("sa-vae", {}),
        ("apo-vae", {}),
        ("apo-vae-vamp", {}),
        ("vae", {"posterior": "wrapped"}),
    ],
)
def test_every_reference_of_a_method_is_to_a_part_of_it(name: str, choices: dict[str, str], pixels: DataSet) -> None:
    method = card(name).build(Parts(pixels.about, Choices(latent=3, net="mlp-300", **choices), 8, pixels), {})
    parts = set(method.modules())
    references = [v for part in parts for v in vars(part).values() if isinstance(v, Reference)]
    assert all(reference.module in parts for reference in references)
    assert bool(references) == (choices != {"posterior": "wrapped"})


def test_a_reference_to_what_is_no_part_is_refused(pixels: DataSet) -> None:
    parts = Parts(pixels.about, Choices(latent=3, net="mlp-300", prior="vamp"), 8, pixels)
    model = parts.vae()
    other = Parts(pixels.about, Choices(latent=3, net="mlp-300"), 8, pixels).vae()
    with pytest.raises(ValueError, match="GaussianVampPrior reads a GaussianPosterior that is no part of the method"):
        descend(model.with_posterior(other.posterior), nll() + kl())
