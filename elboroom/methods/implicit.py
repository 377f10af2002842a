"""Implicit VAEs: q(z|x) is a sampler, and the KL is read off a critic in its dual form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from elboroom.build.game import Critic
from elboroom.build.parts import Parts
from elboroom.build.registry import Positive, Start, Warmup, by_data, method
from elboroom.core.kl import has_density
from elboroom.core.method import Group, MakeOptimiser, Method, Player
from elboroom.core.model import LatentModel
from elboroom.core.objective import Objective
from elboroom.core.problem import Problem
from elboroom.nets.dual import Contested, DualCritic
from elboroom.terms.dual import Lesson, dual_critic, dual_rate
from elboroom.terms.evidence import nll
from elboroom.weights.schedules import Linear

PURPOSE = "a q(z|x) that is no Gaussian"
SHOWN_ON = "sentences"  # the data of its examples

Generator = Literal["linear", "mlp"]
CriticLoss = Annotated[
    Literal["auto", "dual", "logistic"],
    Field(
        description="loss of nu: dual (as published), logistic, or auto: dual for a linear generator of text, else "
        "logistic"
    ),
]
CriticTurns = Annotated[int, Field(ge=1, description="steps of nu per step of the model")]
POSTERIOR = {"linear": "implicit-linear", "mlp": "implicit"}


def chosen(parts: Parts, posteriors: dict[str, str], generator: Generator, joint: bool = True) -> str:
    """The posterior of a generator; refuses another where nu reads its features, and one of these by its own name."""
    choice = parts.option("posterior")
    for name, posterior in posteriors.items():
        if choice == posterior:
            raise Problem(
                f"this method chooses the posterior by --generator; use --generator {name}, not --posterior {choice}"
            )
    if joint and choice != "auto":
        raise Problem(
            f"nu(x, z) uses the features of the generator; choose with --generator, and remove --posterior {choice}"
        )
    return posteriors[generator]


def lesson(parts: Parts, model: LatentModel, choice: CriticLoss) -> Lesson:
    """What nu descends: an mlp's q(z|x) is nearly singular at first, and then the dual has no optimum."""
    if choice != "auto":
        return choice
    return "dual" if has_density(model.families[0]) and parts.about.kind == "tokens" else "logistic"


def with_critic(parts: Parts, model: LatentModel, posterior: str, joint: bool = True) -> Contested:
    """The model beside nu(z), or if joint nu(h, z), h all that its posterior makes of x."""
    features = getattr(model.posterior, "features", 0) if joint else 0
    return Contested(model, DualCritic(parts.latent, features, parts.chart(posterior)))


def sampler(parts: Parts, posteriors: dict[str, str], generator: Generator, joint: bool = True) -> Contested:
    """A VAE whose q(z|x) is this generator's, beside its critic."""
    own = chosen(parts, posteriors, generator, joint)
    return with_critic(parts, parts.vae(own, fixed_prior=True), own, joint)


@dataclass(frozen=True)
class Nu:
    """How the critic is taught: by which loss, how fast, and in how many turns before each step of the model."""

    loss: CriticLoss
    lr: float
    turns: int


def against(parts: Parts, model: Contested, loss: Objective, nu: Nu, pseudo: MakeOptimiser | None = None) -> Method:
    """nu in its turns, and after them the model, which descends the loss, on one Draw.

    A prior of pseudo-inputs, with an optimiser of its own, moves with nu; any other with the model.
    """
    taught = dual_critic(model.critic, pseudo is not None, lesson(parts, model, nu.loss))
    critic = Critic(model.critic, taught, nu.lr, turns=nu.turns, clip=0)
    own, rivals = [model.posterior, model.likelihood, *model.conditioners], {"critic": critic.group}
    if pseudo is None:
        own.append(model.prior)
    else:
        rivals["pseudo"] = Group(model.prior, pseudo)
    players = [critic.player(*rivals), Player(loss, moves="vae")]
    return Method(model, players, watches=(), vae=Group(own), **rivals)


@method("implicit-vae", "nll + w(t) (E_q nu(x, z) - E_p e^nu(x, z) + 1), not a bound", paper="Fang et al. 2019")
def implicit_vae(
    parts: Parts,
    generator: Generator = by_data("mlp", tokens="linear"),
    warmup: Warmup = 0.25,
    start: Start = 0.1,
    critic_loss: CriticLoss = "auto",
    critic_lr: Positive = 1e-4,
    critic_turns: CriticTurns = 5,
) -> Method:
    """A VAE whose posterior is a sampler: z is a network of features of x and noise, its KL with the prior in dual form.

    nu is a critic, a net that reads z beside features of x and has its turns before each step of the model. The logistic
    loss has the same optimum as the dual one, and stays bounded where the dual loss diverges, as with an MLP generator.
    nu has Adam with betas (0.5, 0.9), no --clip, and in what is descended e^nu goes on as its tangent above nu = 30, so that
    no single draw ends a run; what is reported has e^nu itself.

    The dual value of a critic is at most the KL, so the loss bounds nothing. Where the generator is linear q(z|x) is a
    Gaussian whose covariance all x share, and its exact rate and likelihood are measured beside the dual one. With that
    exact KL in the loss it is vae --posterior implicit-linear.

    generator: linear, as published for text, or mlp, truly implicit
    critic_lr: learning rate of nu (published: 1e-5, which barely trains it)
    """
    model = sampler(parts, POSTERIOR, generator)
    loss = nll() + Linear(start, 1, parts.span(warmup)) * dual_rate(model.critic)
    return against(parts, model, loss, Nu(critic_loss, critic_lr, critic_turns))


@method("implicit-vae-mi", "nll + w(t) (E_q(z) nu(z) - E_p e^nu(z) + 1), not a bound", paper="Fang et al. 2019")
def implicit_vae_mi(
    parts: Parts,
    generator: Generator = by_data("mlp", tokens="linear"),
    warmup: Warmup = 0.25,
    start: Start = 0.1,
    critic_loss: CriticLoss = "auto",
    critic_lr: Positive = 1e-4,
    critic_turns: CriticTurns = 5,
) -> Method:
    """The implicit VAE that holds q(z) to the prior and not each q(z|x): information about x costs nothing.

    The critic nu, taught as that of implicit-vae is, reads z alone, so that any --posterior may take the place of the
    generator. What it says is reported as `aggregate rate dual`.

    generator: linear, as published for text, or mlp, truly implicit; unless --posterior names another q(z|x)
    critic_lr: learning rate of nu (published: 1e-5, which barely trains it)
    """
    model = sampler(parts, POSTERIOR, generator, joint=False)
    loss = nll() + Linear(start, 1, parts.span(warmup)) * dual_rate(model.critic)
    return against(parts, model, loss, Nu(critic_loss, critic_lr, critic_turns))
