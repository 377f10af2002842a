"""Methods in two stages: what the first has learnt is carried over to the second."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Literal

from elboroom.build.parts import Parts
from elboroom.build.registry import NonNegative, Span, by_data, method
from elboroom.core.method import descend
from elboroom.core.objective import logged
from elboroom.core.stages import Stages
from elboroom.terms.evidence import kl, nll, nll_of_mean
from elboroom.terms.floors import free_bits
from elboroom.weights.schedules import After, Linear

PURPOSE = "keeping z in use, as of text (posterior collapse)"
SHOWN_ON = "sentences"  # the data of its examples


@method(
    "ae-pretrained-free-bits",
    "nll; then, with a new decoder, nll + w(t) sum_j max(target / J, kl_j)",
    paper="Li et al. 2019, Sec. 3",
)
def ae_pretrained_free_bits(
    parts: Parts,
    target: NonNegative = by_data(5.0, tokens=8.0),
    pretraining: Span = by_data(0.3, tokens=0.4),
    warmup: Span = by_data(0.25, tokens=0.4),
    first: Literal["point", "draw"] = by_data("draw", tokens="point"),
) -> Stages:
    """A VAE with free bits for each dimension, whose encoder was first trained as that of an autoencoder.

    The first stage pays for no rate; its decoder is thrown away. As published it decodes draws, whose noise falls by itself
    but hides the code until then: the mean teaches the encoder sooner.

    target: the floor, in nats, over all dimensions together
    pretraining: how long the first stage lasts: up to 1 a fraction of the run, above it steps
    warmup: how long the weight of the rate then rises from 0 to 1: up to 1 a fraction of the run, above it steps
    first: what the first stage decodes: the mean of a Gaussian q(z|x), a point, or a draw of it (published)
    """
    until = parts.span(pretraining)
    own = replace(parts, encoder=deepcopy(parts.encoder), decoder=deepcopy(parts.decoder))
    weight = After(until, Linear(0, 1, parts.span(warmup)))
    free = own.vae()
    free.prior.requires_grad_(False)  # nothing would teach it
    autoencoder = descend(free, (nll_of_mean() if first == "point" else nll()) + logged(kl()))
    then = descend(parts.vae(), nll() + weight * free_bits(kl(), target) + logged(kl()))
    return Stages(autoencoder, then, until, carry=("posterior",))
