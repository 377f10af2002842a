"""Methods in two stages: what the first has learnt is carried over to the second."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

from elboroom.build.parts import Parts
from elboroom.build.registry import NonNegative, Span, by_data, method
from elboroom.core.method import descend
from elboroom.core.objective import logged
from elboroom.core.stages import Stages
from elboroom.terms.evidence import kl, nll
from elboroom.terms.floors import free_bits
from elboroom.weights.schedules import After, Linear


@method(
    "ae-pretrained-free-bits",
    "nll; then, with a new decoder, nll + w(t) sum_j max(target / J, kl_j)",
    paper="Li et al. 2019, Sec. 3",
)
def ae_pretrained_free_bits(
    parts: Parts,
    target: NonNegative = by_data(5.0, tokens=8.0),
    pretraining: Span = 0.3,
    warmup: Span = 0.25,
) -> Stages:
    """A VAE with free bits for each dimension, whose encoder was first trained as that of a stochastic autoencoder.

    The first stage pays for no rate, and its noise falls by itself; its decoder is thrown away.

    target: the floor, in nats, over all dimensions together
    pretraining: how long the first stage lasts: up to 1 a fraction of the run, above it steps
    warmup: how long the weight of the rate then rises from 0 to 1: up to 1 a fraction of the run, above it steps
    """
    until = parts.span(pretraining)
    own = replace(parts, encoder=deepcopy(parts.encoder), decoder=deepcopy(parts.decoder))
    weight = After(until, Linear(0, 1, parts.span(warmup)))
    free = own.vae()
    free.prior.requires_grad_(False)  # nothing would teach it
    first = descend(free, nll() + logged(kl()))
    then = descend(parts.vae(), nll() + weight * free_bits(kl(), target) + logged(kl()))
    return Stages(first, then, until, carry=("posterior",))
