"""Implicit VAEs: q(z|x) is a sampler, and the KL is read off a critic in its dual form."""

from __future__ import annotations

from typing import Literal

from elboroom.core.draw import LatentModel
from elboroom.core.method import Group, MakeOptimiser, Method, Player, adam, times
from elboroom.core.objective import Objective
from elboroom.core.pairs import has_density
from elboroom.core.problem import Problem
from elboroom.methods.parts import Parts
from elboroom.methods.registry import Count, NonNegative, Positive, Span, by_data, method
from elboroom.nets.dual import Contested, contested
from elboroom.terms.dual import BETAS, Lesson, dual_critic, dual_rate
from elboroom.terms.evidence import nll
from elboroom.weights.schedules import Linear

Generator = Literal["linear", "mlp"]
CriticLoss = Literal["auto", "dual", "logistic"]
POSTERIOR = {"linear": "implicit-linear", "mlp": "implicit"}


def chosen(parts: Parts, posteriors: dict[str, str], generator: Generator, joint: bool = True) -> str:
    """The posterior of a generator; refuses another where nu reads its features, and one of these by its own name."""
    told = parts.choices.posterior
    for name, posterior in posteriors.items():
        if told == posterior:
            raise Problem(f"the posterior is chosen by its generator: --generator {name}, not --posterior {told}")
    if joint and told != "auto":
        raise Problem(
            f"nu(x, z) reads the features of the generator: choose by --generator, and leave --posterior {told} out"
        )
    return posteriors[generator]


def lesson(parts: Parts, model: LatentModel, told: CriticLoss) -> Lesson:
    """What nu descends: an mlp's q(z|x) is nearly singular at first, and then the dual has no optimum."""
    if told != "auto":
        return told
    return "dual" if has_density(model.families[0]) and parts.about.kind == "tokens" else "logistic"


def contest(
    model: Contested, loss: Objective, by: Lesson, critic_lr: float, turns: int, pseudo: MakeOptimiser | None = None
) -> Method:
    """nu in its turns, and after them the model, which descends the loss, on one Draw.

    A prior of pseudo-inputs, with an optimiser of its own, moves with nu; any other with the model.
    """
    own, rivals = [model.posterior, model.likelihood], {"critic": Group(model.critic, adam(critic_lr, BETAS), clip=0)}
    if pseudo is None:
        own.append(model.prior)
    else:
        rivals["pseudo"] = Group(model.prior, pseudo)
    nu = Player(dual_critic(model.critic, pseudo is not None, by), tuple(rivals), times(turns), rival=True)
    return Method(model, [nu, Player(loss, moves="vae")], watches=(), vae=Group(own), **rivals)


@method("implicit-vae", "nll + w(t) (E_q nu(x, z) - E_p e^nu(x, z) + 1), not a bound", paper="Fang et al. 2019")
def implicit_vae(
    parts: Parts,
    generator: Generator = by_data("mlp", tokens="linear"),
    warmup: Span = 0.25,
    start: NonNegative = 0.1,
    critic_loss: CriticLoss = "auto",
    critic_lr: Positive = 1e-4,
    critic_turns: Count = 5,
) -> Method:
    """A VAE whose posterior is a sampler of features of x and noise, its KL with the prior in the dual form.

    nu is a critic, a net that reads z beside features of x and has its turns before each step of the model. By the logistic
    loss it has the same optimum as by the dual, and stays in bounds where that runs away: with an mlp.

    The dual value of a critic is at most the KL, so the loss bounds nothing. Where the generator is linear q(z|x) is a
    Gaussian whose covariance all x share, and its exact rate and likelihood are measured beside the dual one. With that
    exact KL in the loss it is vae --posterior implicit-linear.

    generator: linear, as published for text, or mlp, truly implicit
    warmup: how long the weight rises: up to 1 a fraction of the run, above it steps
    start: weight at first
    critic_loss: what nu descends: dual, as published, logistic, or auto, dual for a linear generator of text and else logistic
    critic_lr: learning rate of nu (published: 1e-5, which barely trains it)
    critic_turns: steps of nu for one of the model
    """
    own = chosen(parts, POSTERIOR, generator)
    model = contested(parts.vae(own, u="unseen"), parts.latent, parts.chart(own), joint=True)
    loss = nll() + Linear(start, 1, parts.span(warmup)) * dual_rate(model.critic)
    return contest(model, loss, lesson(parts, model, critic_loss), critic_lr, critic_turns)


@method("implicit-vae-mi", "nll + w(t) (E_q(z) nu(z) - E_p e^nu(z) + 1), not a bound", paper="Fang et al. 2019")
def implicit_vae_mi(
    parts: Parts,
    generator: Generator = by_data("mlp", tokens="linear"),
    warmup: Span = 0.25,
    start: NonNegative = 0.1,
    critic_loss: CriticLoss = "auto",
    critic_lr: Positive = 1e-4,
    critic_turns: Count = 5,
) -> Method:
    """The implicit VAE that holds q(z) to the prior and not each q(z|x): information about x costs nothing.

    The critic nu reads z alone, so that any --posterior may take the place of the generator. What it says is reported as
    `aggregate rate dual`.

    generator: linear, as published for text, or mlp, truly implicit; unless --posterior names another q(z|x)
    warmup: how long the weight rises: up to 1 a fraction of the run, above it steps
    start: weight at first
    critic_loss: what nu descends: dual, as published, logistic, or auto, dual for a linear generator of text and else logistic
    critic_lr: learning rate of nu (published: 1e-5, which barely trains it)
    critic_turns: steps of nu for one of the model
    """
    own = chosen(parts, POSTERIOR, generator, joint=False)
    model = contested(parts.vae(own, u="unseen"), parts.latent, parts.chart(own), joint=False)
    loss = nll() + Linear(start, 1, parts.span(warmup)) * dual_rate(model.critic)
    return contest(model, loss, lesson(parts, model, critic_loss), critic_lr, critic_turns)
