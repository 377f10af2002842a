"""Methods in two stages: what the first has learnt is carried over to the second."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor, nn

from elboroom.build.parts import Parts
from elboroom.build.registry import NonNegative, Places, Span, by_data, method
from elboroom.core import distributed
from elboroom.core.average import Weights
from elboroom.core.draw import Draw
from elboroom.core.method import Method, Watch, descend
from elboroom.core.objective import logged
from elboroom.core.stages import Stages
from elboroom.terms.evidence import kl, nll, nll_of_mean
from elboroom.terms.floors import free_bits
from elboroom.weights.schedules import After, Linear

PURPOSE = "keeping z in use, as of text (posterior collapse)"
SHOWN_ON = "sentences"  # the data of its examples
LOOKS = 10  # at the validation split, in a first stage that is not ended early


class Standstill(Watch):
    """Ends a stage after `patience` looks without a better nll, decoded from the means of the validation split.

    `kept`, a part of the model, goes back to how it was at the best look.
    """

    best: Tensor
    waited: Tensor
    at: Tensor  # the step after which it ended the stage
    last: float  # what the last look saw, nats

    def __init__(self, kept: nn.Module, patience: int, every: int) -> None:
        super().__init__()
        self.patience, self.every = patience, every
        self.register_buffer("best", torch.tensor(torch.inf, dtype=torch.float64))
        for name in ("waited", "at"):
            self.register_buffer(name, torch.tensor(0))
        self.part = (kept,)  # in a tuple, which makes it no part of the watch
        self.weights = Weights(kept)

    @torch.no_grad()
    def look(self, method: Method, step: int) -> bool:
        method.model.eval()
        nats, rows = torch.zeros_like(self.best), 0
        with distributed.alone():
            for batch in self.valid():
                nats += nll_of_mean().mean(Draw(method.model, batch)).double() * len(batch.x)
                rows += len(batch.x)
        method.model.train()
        value = distributed.mean(nats / rows)
        self.last = value.item()
        better = self.last < self.best.item()
        if better:
            self.best.copy_(value)
            self.weights.take(*self.part)
        self.waited.copy_(torch.zeros_like(self.waited) if better else self.waited + 1)
        if int(self.waited) < self.patience:
            return False
        self.weights.give(*self.part)
        self.at.fill_(step)
        return True

    def told(self) -> dict[str, float]:
        return {"nll_valid": self.last}

    @property
    def over(self) -> int:
        return int(self.at)


@method(
    "ae-pretrained-free-bits",
    "nll; then, with a new decoder, nll + w(t) sum_j max(target / J, kl_j)",
    paper="Li et al. 2019, Sec. 3",
    looks=True,
)
def ae_pretrained_free_bits(
    parts: Parts,
    target: NonNegative = by_data(5.0, tokens=8.0),
    pretraining: Span = by_data(0.3, tokens=0.4),
    pretraining_patience: Places = 2,
    warmup: Span = by_data(0.25, tokens=0.4),
    first: Literal["point", "draw"] = by_data("draw", tokens="point"),
) -> Stages:
    """A VAE with free bits for each dimension, whose encoder was first trained as that of an autoencoder.

    The first stage pays for no rate; its decoder is thrown away. As published it decodes draws, whose noise falls by itself
    but hides the code until then: the mean teaches the encoder sooner. It ends once it learns nothing more of the
    validation split, and the encoder that did best there is carried over; the second stage then has the more steps.

    target: the floor, in nats, over all dimensions together
    pretraining: how long the first stage lasts at most: up to 1 a fraction of the run, above it steps
    pretraining_patience: tenths of the first stage without a better nll of the validation split that end it; 0: none do
    warmup: how long the weight of the rate then rises from 0 to 1: up to 1 a fraction of the run, above it steps
    first: what the first stage decodes: the mean of a Gaussian q(z|x), a point, or a draw of it (published)
    """
    until = parts.span(pretraining)
    own = replace(parts, encoder=deepcopy(parts.encoder), decoder=deepcopy(parts.decoder))
    weight = After(until, Linear(0, 1, parts.span(warmup)))
    free = own.vae()
    free.prior.requires_grad_(False)  # nothing would teach it
    autoencoder = descend(free, (nll_of_mean() if first == "point" else nll()) + logged(kl()))
    if pretraining_patience:
        autoencoder.watch(Standstill(free.posterior, pretraining_patience, max(1, until // LOOKS)))
    then = descend(parts.vae(), nll() + weight * free_bits(kl(), target) + logged(kl()))
    return Stages(autoencoder, then, until, carry=("posterior",))
