"""Methods that refine q(z|x) for each example by gradient steps: with the encoder, beside it, or without one."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Literal

from pydantic import Field

from elboroom.build.parts import Parts
from elboroom.build.registry import Count, Start, Warmup, by_data, method
from elboroom.core.method import Group, Method, Player, descend
from elboroom.core.model import LatentModel
from elboroom.core.objective import Objective, Term, Weight
from elboroom.core.problem import Problem
from elboroom.families.refined import Origin, Refined, Through
from elboroom.terms.evidence import kl, nll
from elboroom.terms.refinement import amortised, unrefined
from elboroom.weights.schedules import Linear

PURPOSE = "a q(z|x) fitted to each example"
SHOWN_ON = "sentences"  # the data of its examples

InnerLR = Annotated[float, Field(gt=0, description="step size of mu and log sigma^2")]
InnerMomentum = Annotated[float, Field(ge=0, lt=1, description="momentum: share of the last step that is kept")]
InnerClip = Annotated[
    float,
    Field(ge=0, description="largest norm of the gradients of an example in mu and in log sigma^2; 0 is no limit"),
]


@dataclass(frozen=True)
class Inner:
    """The gradient steps of each example on its own (mu, log sigma^2)."""

    steps: int
    lr: float
    momentum: float
    clip: float


def _refined(model: LatentModel, weight: Weight, inner: Inner, through: Through = "nothing") -> LatentModel:
    """The model at q after these steps on nll + w kl."""
    q = Refined(model.posterior, model.prior, model.likelihood, weight, **asdict(inner), through=through)
    return model.with_posterior(q)


@method("sa-vae", "nll + w(t) kl at q after K gradient steps from the encoder's", paper="Kim et al. 2018, Alg. 1")
def sa_vae(
    parts: Parts,
    inner_steps: Annotated[int, Field(ge=0)] = 10,
    inner_lr: InnerLR = 0.03,
    inner_momentum: InnerMomentum = 0.5,
    inner_clip: InnerClip = 5.0,
    through: Literal["exact", "difference"] = "exact",
    warmup: Warmup = by_data(0.0, tokens=0.25),
    start: Start = 0.1,
) -> Method:
    """A VAE whose encoder only begins inference: gradient steps on mu and log sigma^2 of each example end it.

    Encoder and decoder descend the loss at the end of these steps, through all of them. A step costs about 2 K + 2 of
    those of a VAE, and twice as much where recurrent nets are differentiated exactly. Inner gradients are of one
    example, so that no code depends on its batch; the published ones are of the mean over 32, with a learning rate of 1.

    inner_steps: K; 0 is the VAE (published: 20 on long sentences, 10 on short ones)
    through: the steps are differentiated exactly, or by a central difference, for speed or where a kernel has none
    """
    weight, inner = Linear(start, 1, parts.span(warmup)), Inner(inner_steps, inner_lr, inner_momentum, inner_clip)
    return descend(_refined(parts.vae(), weight, inner, through), nll() + weight * kl())


@method("svi", "nll + w(t) kl at q after K gradient steps from N(0, I)", paper="Hoffman et al. 2013; Kim et al. 2018")
def svi(
    parts: Parts,
    inner_steps: Count = 20,
    inner_lr: InnerLR = 0.03,
    inner_momentum: InnerMomentum = 0.5,
    inner_clip: InnerClip = 5.0,
    warmup: Warmup = by_data(0.0, tokens=0.25),
    start: Start = 0.1,
) -> Method:
    """Stochastic variational inference: no encoder, every q(z|x) is found by gradient steps from the prior's place.

    inner_steps: K
    """
    if parts.option("posterior") not in ("auto", "gaussian") or parts.encoder is not None:
        raise Problem("this method has no encoder; remove --posterior and your own encoder")
    weight, inner = Linear(start, 1, parts.span(warmup)), Inner(inner_steps, inner_lr, inner_momentum, inner_clip)
    origin = Origin(parts.latent)
    model = LatentModel(origin, parts.prior(origin), parts.likelihood())
    return descend(_refined(model, weight, inner), nll() + weight * kl())


@method("vae-svi", "nll + w(t) kl: the decoder at the refined q, the encoder at its own", paper="Kim et al. 2018")
def vae_svi(
    parts: Parts,
    inner_steps: Count = 10,
    inner_lr: InnerLR = 0.03,
    inner_momentum: InnerMomentum = 0.5,
    inner_clip: InnerClip = 5.0,
    warmup: Warmup = by_data(0.0, tokens=0.25),
    start: Start = 0.1,
) -> Method:
    """A VAE whose decoder descends the loss at the refined q(z|x), its encoder the loss at its own.

    inner_steps: K
    """
    weight, inner = Linear(start, 1, parts.span(warmup)), Inner(inner_steps, inner_lr, inner_momentum, inner_clip)
    return _taught(_refined(parts.vae(), weight, inner), weight, unrefined(nll()) + weight * unrefined(kl()))


@method(
    "vae-svi-kl",
    "nll + w(t) kl at the refined q for the decoder, KL(q_0 || q_K) for the encoder",
    paper="Kim et al. 2018; Krishnan et al. 2018",
)
def vae_svi_kl(
    parts: Parts,
    inner_steps: Count = 10,
    inner_lr: InnerLR = 0.03,
    inner_momentum: InnerMomentum = 0.5,
    inner_clip: InnerClip = 5.0,
    warmup: Warmup = by_data(0.0, tokens=0.25),
    start: Start = 0.1,
) -> Method:
    """A VAE whose decoder descends the loss at the refined q(z|x), its encoder its own KL from that q.

    inner_steps: K
    """
    weight, inner = Linear(start, 1, parts.span(warmup)), Inner(inner_steps, inner_lr, inner_momentum, inner_clip)
    return _taught(_refined(parts.vae(), weight, inner), weight, amortised())


def _taught(model: LatentModel, weight: Weight, teaches: Objective | Term) -> Method:
    """The decoder learns from the refined posterior, which is a constant, and the encoder from something else."""
    return Method(
        model,
        players=[Player(nll() + weight * kl(), moves="decoder"), Player(teaches, moves="encoder")],
        encoder=Group(model.posterior),
        decoder=Group([model.likelihood, model.prior, *model.conditioners]),
    )
