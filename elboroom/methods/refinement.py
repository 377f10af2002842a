"""Methods that refine q(z|x) for each example by gradient steps: with the encoder, beside it, or without one."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from elboroom.core.draw import LatentModel
from elboroom.core.method import Group, Method, Player, descend
from elboroom.core.objective import Objective, Term, Weight
from elboroom.core.problem import Problem
from elboroom.families.refined import Origin, Refined
from elboroom.methods.parts import Parts
from elboroom.methods.registry import Count, NonNegative, Positive, Share, Span, by_data, method
from elboroom.terms.evidence import kl, nll
from elboroom.terms.refinement import amortised, unrefined
from elboroom.weights.schedules import Linear


@method("sa-vae", "nll + w(t) kl at q after K gradient steps from the encoder's", paper="Kim et al. 2018, Alg. 1")
def sa_vae(
    parts: Parts,
    inner_steps: Annotated[int, Field(ge=0)] = 10,
    inner_lr: Positive = 0.03,
    inner_momentum: Share = 0.5,
    inner_clip: NonNegative = 5.0,
    through: Literal["exact", "difference"] = "exact",
    warmup: Span = by_data(0.0, tokens=0.25),
    start: NonNegative = 0.1,
) -> Method:
    """A VAE whose encoder only begins inference: gradient steps on mu and log sigma^2 of each example end it.

    Encoder and decoder descend the loss at the end of these steps, through all of them. A step costs about 2 K + 2 of
    those of a VAE, and twice as much where recurrent nets are differentiated exactly. Inner gradients are of one
    example, so that no code depends on its batch; the published ones are of the mean over 32, with a learning rate of 1.

    inner_steps: K; 0 is the VAE (published: 20 on long sentences, 10 on short ones)
    inner_lr: how far mu and log sigma^2 move for a gradient in nats
    inner_momentum: share of the last step that is kept
    inner_clip: largest norm of the gradients of an example in mu and in log sigma^2; 0 is no limit
    through: the steps are differentiated exactly, or by a central difference, for speed or where a kernel has none
    warmup: how long the weight of the rate rises to 1: up to 1 a fraction of the run, above it steps
    start: weight of the rate at first
    """
    weight, m = Linear(start, 1, parts.span(warmup)), parts.vae()
    q = Refined(m.posterior, m.prior, m.likelihood, weight, inner_steps, inner_lr, inner_momentum, inner_clip, through)
    return descend(LatentModel(q, m.prior, m.likelihood), nll() + weight * kl())


@method("svi", "nll + w(t) kl at q after K gradient steps from N(0, I)", paper="Hoffman et al. 2013; Kim et al. 2018")
def svi(
    parts: Parts,
    inner_steps: Count = 20,
    inner_lr: Positive = 0.03,
    inner_momentum: Share = 0.5,
    inner_clip: NonNegative = 5.0,
    warmup: Span = by_data(0.0, tokens=0.25),
    start: NonNegative = 0.1,
) -> Method:
    """Stochastic variational inference: no encoder, every q(z|x) is found by gradient steps from the prior's place.

    inner_steps: K
    inner_lr: how far mu and log sigma^2 move for a gradient in nats
    inner_momentum: share of the last step that is kept
    inner_clip: largest norm of the gradients of an example in mu and in log sigma^2; 0 is no limit
    warmup: how long the weight of the rate rises to 1: up to 1 a fraction of the run, above it steps
    start: weight of the rate at first
    """
    if parts.choices.posterior not in ("auto", "gaussian") or parts.encoder is not None:
        raise Problem("without an encoder there is none to choose: leave --posterior and an encoder of your own out")
    weight, first = Linear(start, 1, parts.span(warmup)), Origin(parts.latent)
    prior, px = parts.prior(first), parts.likelihood()
    q = Refined(first, prior, px, weight, inner_steps, inner_lr, inner_momentum, inner_clip, "nothing")
    return descend(LatentModel(q, prior, px), nll() + weight * kl())


@method("vae-svi", "nll + w(t) kl: the decoder at the refined q, the encoder at its own", paper="Kim et al. 2018")
def vae_svi(
    parts: Parts,
    inner_steps: Count = 10,
    inner_lr: Positive = 0.03,
    inner_momentum: Share = 0.5,
    inner_clip: NonNegative = 5.0,
    warmup: Span = by_data(0.0, tokens=0.25),
    start: NonNegative = 0.1,
) -> Method:
    """A VAE whose decoder descends the loss at the refined q(z|x), its encoder the loss at its own.

    inner_steps: K
    inner_lr: how far mu and log sigma^2 move for a gradient in nats
    inner_momentum: share of the last step that is kept
    inner_clip: largest norm of the gradients of an example in mu and in log sigma^2; 0 is no limit
    warmup: how long the weight of the rate rises to 1: up to 1 a fraction of the run, above it steps
    start: weight of the rate at first
    """
    weight, m = Linear(start, 1, parts.span(warmup)), parts.vae()
    q = Refined(
        m.posterior, m.prior, m.likelihood, weight, inner_steps, inner_lr, inner_momentum, inner_clip, "nothing"
    )
    return _taught(LatentModel(q, m.prior, m.likelihood), weight, unrefined(nll()) + weight * unrefined(kl()))


@method(
    "vae-svi-kl",
    "nll + w(t) kl at the refined q for the decoder, KL(q_0 || q_K) for the encoder",
    paper="Kim et al. 2018; Krishnan et al. 2018",
)
def vae_svi_kl(
    parts: Parts,
    inner_steps: Count = 10,
    inner_lr: Positive = 0.03,
    inner_momentum: Share = 0.5,
    inner_clip: NonNegative = 5.0,
    warmup: Span = by_data(0.0, tokens=0.25),
    start: NonNegative = 0.1,
) -> Method:
    """A VAE whose decoder descends the loss at the refined q(z|x), its encoder its own KL from that q.

    inner_steps: K
    inner_lr: how far mu and log sigma^2 move for a gradient in nats
    inner_momentum: share of the last step that is kept
    inner_clip: largest norm of the gradients of an example in mu and in log sigma^2; 0 is no limit
    warmup: how long the weight of the rate rises to 1: up to 1 a fraction of the run, above it steps
    start: weight of the rate at first
    """
    weight, m = Linear(start, 1, parts.span(warmup)), parts.vae()
    q = Refined(
        m.posterior, m.prior, m.likelihood, weight, inner_steps, inner_lr, inner_momentum, inner_clip, "nothing"
    )
    return _taught(LatentModel(q, m.prior, m.likelihood), weight, amortised())


def _taught(model: LatentModel, weight: Weight, teaches: Objective | Term) -> Method:
    """The decoder learns from the refined posterior, which is a constant, and the encoder from something else."""
    return Method(
        model,
        players=[Player(nll() + weight * kl(), moves="decoder"), Player(teaches, moves="encoder")],
        encoder=Group(model.posterior),
        decoder=Group([model.likelihood, model.prior]),
    )
