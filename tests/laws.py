"""Every law that can be chosen, by its name on the axes: small, in double precision, with points to integrate it over.

The tables are read off the registry, so that a new posterior or prior is in them as soon as it can be chosen.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from quadrature import around, plane, sphere
from torch import Tensor, nn

from elboroom.build.axes import POSTERIORS, PRIORS
from elboroom.build.parts import Choices, Parts
from elboroom.core.batch import Batch
from elboroom.core.kl import has_density
from elboroom.core.model import LatentModel
from elboroom.core.problem import Problem
from elboroom.data import arrays

WIDTH = 4
CURVATURES = (1e-2, 1.0, 10.0)
SCALE = np.array([1.6, 0.9, 0.4, 0.3])  # of the axes of the data, so that no spectrum is flat
DATA = arrays.dataset((np.random.default_rng(0).normal(size=(40, WIDTH)) * SCALE).astype(np.float32))
ROW = Batch(torch.tensor([[0.7, -0.4, 0.2, 0.5]], dtype=torch.float64))


class Net(nn.Module):
    """A smooth encoder that says little more than it must."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, outputs)

    def forward(self, x: Tensor, u: Tensor | None = None) -> Tensor:
        return 0.7 * torch.tanh(self.linear(x.to(self.linear.weight)))


class Decoder(nn.Module):
    """W z + b."""

    def __init__(self, latent: int) -> None:
        super().__init__()
        self.linear = nn.Linear(latent, WIDTH)

    def forward(self, z: Tensor, u: Tensor | None = None) -> Tensor:
        out: Tensor = self.linear(z.to(self.linear.weight))
        return out


class Small(Parts):
    """Parts with that encoder."""

    def reader(self, outputs: int) -> nn.Module:
        return Net(outputs)


class Pair(NamedTuple):
    """A posterior and a prior by their names, of so many dimensions; on the ball, its c."""

    posterior: str
    prior: str
    latent: int = 2
    c: float | None = None

    def __str__(self) -> str:
        return f"{self.posterior}, {self.prior}" + (f", c = {self.c:g}" if self.c else "")

    def model(self, by: float = 0.25, **more: Any) -> LatentModel:
        """The model, its weights moved from where they start: no flow is the identity, no mixture even."""
        with torch.random.fork_rng():
            torch.manual_seed(4)
            small = {"flow_steps": 2, "flow_layers": 4, "components": 3, "pseudo_inputs": 3, "kappa": 6.0, "sigma": 0.6}
            named = {
                "latent": self.latent,
                "posterior": self.posterior,
                "prior": self.prior,
                "curvature": self.c or 1.0,
            }
            choices = Choices(**{**small, **named, **more})
            model = Small(DATA.about, choices, 8, DATA, decoder=Decoder(self.latent)).vae()
            for parameter in model.parameters():
                parameter.data += by * torch.randn_like(parameter)
            return model.double().eval()


def _pairs() -> list[Pair]:
    """All that Parts makes a model with two densities of; S^2 rather than the circle, the ball at three curvatures."""
    found = []
    for pair in (Pair(q, p) for q in POSTERIORS for p in PRIORS):
        try:
            model = pair.model()
        except Problem:
            continue
        if all(has_density(family) for family in model.families):
            if hasattr(model.posterior, "ball"):
                found += [pair._replace(c=c) for c in CURVATURES]
            else:
                z = model.posterior(ROW).sample((20,))
                found.append(pair._replace(latent=3) if (z.norm(dim=-1) - 1).abs().max() < 1e-4 else pair)
    return found


ALL = _pairs()


def _few() -> dict[str, tuple[Pair, str]]:
    """Each posterior beside its first prior, each prior beside its first posterior, --prior vamp beside every one."""
    found: dict[str, tuple[Pair, str]] = {}
    for pair in ALL:
        at = f" at c = {pair.c:g}" if pair.c else ""
        found.setdefault(f"q {pair.posterior}{at}", (pair, "posterior"))
        found.setdefault(
            f"p {pair.prior}{f' of {pair.posterior}' if pair.prior == 'vamp' else ''}{at}", (pair, "prior")
        )
    return found


LAWS = _few()  # by what a law is called: a pair that has it, and as what
PAIRS = list(dict.fromkeys(pair for pair, _ in LAWS.values()))


def law(model: LatentModel, part: str) -> Any:
    """q(z|x) of one row, or p(z)."""
    return getattr(model, part)(ROW)


def points(pair: Pair, law: Any) -> tuple[Tensor, Tensor]:
    """Points of the space that a law lives in, and their volumes; on the disc about its centre."""
    if pair.c:
        ball = law.ball if hasattr(law, "ball") else law.posterior.ball
        return around(ball, getattr(law, "loc", law.mean).reshape(-1)[: pair.latent].double())
    return sphere() if pair.latent == 3 else plane()
