"""Lagging inference: the encoder is trained to a standstill before each step of the decoder, until that stops paying."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from elboroom.build.parts import Parts
from elboroom.build.registry import Count, Span, Start, Warmup, by_data, method
from elboroom.core import distributed
from elboroom.core.method import Group, Method, Player, Turns, Watch, once, until_flat
from elboroom.core.objective import Objective
from elboroom.families.gaussian import require_gaussian
from elboroom.terms.evidence import kl, nll
from elboroom.terms.information import information
from elboroom.weights.schedules import Linear

PURPOSE = "keeping z in use, as of text (posterior collapse)"
SHOWN_ON = "sentences"  # the data of its examples


class InformationStop(Watch):
    """On until I(x; z) over the validation split falls from one look to the next, then off for good."""

    on: Tensor
    last: Tensor

    def __init__(self, every: int) -> None:
        super().__init__()
        self.every = every
        self.register_buffer("on", torch.tensor(True))
        self.register_buffer("last", torch.tensor(-torch.inf, dtype=torch.float64))

    def look(self, method: Method, step: int) -> bool:
        method.model.eval()
        with torch.no_grad():
            codes = [(q.loc, q.logvar) for q in map(method.model.q, self.valid())]
        method.model.train()
        loc, logvar = (torch.cat(parts) for parts in zip(*codes, strict=True))
        noise = torch.randn(loc.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        now = distributed.mean(information(loc, logvar, noise.to(loc.device)).mean())
        self.on.logical_and_(now >= self.last)
        self.last.copy_(now)
        return False

    def told(self) -> dict[str, float]:
        return {"mi_valid": self.last.item(), "aggressive": float(self.on)}

    def before(self, turns: Turns) -> Turns:
        """These turns as long as it is on."""

        def left(step: int, costs: Sequence[Tensor]) -> Iterator[int]:
            yield from turns(step, costs) if self.on else ()

        return left

    def after(self, turns: Turns) -> Turns:
        """These turns once it is off."""

        def left(step: int, costs: Sequence[Tensor]) -> Iterator[int]:
            yield from () if self.on else turns(step, costs)

        return left


@method(
    "lagging-vae",
    "nll + w(t) kl, several steps of the encoder for one of the decoder until I(x; z) falls",
    paper="He et al. 2019, Alg. 1",
    looks=True,
)
def lagging_vae(
    parts: Parts,
    window: Count = 15,
    at_most: Count = 99,
    look: Span = 0.0,
    warmup: Warmup = by_data(0.0, tokens=0.25),
    start: Start = 0.1,
) -> Method:
    """A VAE whose encoder first catches up with the true posterior, so that the decoder learns to listen to it.

    While aggressive, each step trains the encoder alone, on the batch of the step and then on others, until the mean
    loss of a window of turns (per token, for text) is above that of the window before, and then the decoder alone.
    I(x; z) over the whole validation split ends this for good when it falls; from then on this is a VAE.

    window: turns of the encoder whose mean loss is compared
    at_most: turns of the encoder in a step
    look: how often I(x; z) is looked at: up to 1 a fraction of the run, above it steps; 0 is every epoch
    """
    model, stop = parts.vae(), InformationStop(parts.span(look))
    require_gaussian(model.posterior, "the look at I(x; z)")

    def loss() -> Objective:
        return nll() + Linear(start, 1, parts.span(warmup)) * kl()

    return Method(
        model,
        players=[
            Player(loss(), moves=("encoder", "decoder"), turns=stop.after(once)),
            Player(loss(), moves="encoder", turns=stop.before(until_flat(window, at_most)), batch="onward"),
            Player(loss(), moves="decoder", turns=stop.before(once), batch="again"),
        ],
        watches=[stop],
        encoder=Group(model.posterior),
        decoder=Group([model.likelihood, model.prior, *model.conditioners]),
    )
