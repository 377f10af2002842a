"""Methods that ask for a structure of q(z): a prior that has it, a divergence that holds to it, penalties of one's own."""

from __future__ import annotations

from typing import Literal

from elboroom.build.game import Critic, game
from elboroom.build.parts import Parts
from elboroom.build.registry import CriticLR, NonNegative, method
from elboroom.core.method import Method, descend
from elboroom.core.objective import Term
from elboroom.divergences.variational import divergence as f_divergence
from elboroom.terms.adversarial import f_critic, f_penalty
from elboroom.terms.evidence import kl, nll
from elboroom.terms.penalties import penalty
from elboroom.terms.transport import inclusive_kl, mmd, mmd_per_dim

PURPOSE = "a structure of q(z) that you choose"


@method(
    "alpha-beta-vae",
    "nll + beta kl + alpha D(q(z), p(z))",
    paper="Mathieu et al. 2019, Disentangling Disentanglement, Eq. 5",
)
def alpha_beta_vae(
    parts: Parts,
    alpha: NonNegative = 100.0,
    beta: NonNegative = 1.0,
    divergence: Literal["mmd", "mmd-per-dim", "inclusive-kl"] = "mmd-per-dim",
) -> Method:
    """beta sets how much codes overlap, alpha how closely q(z) takes the structure that the prior has (--prior).

    Published: --prior sparse with mmd-per-dim, --prior clustered with inclusive-kl, --prior anisotropic with alpha 0.

    alpha: weight of the divergence of q(z) from the prior
    beta: weight of the rate, sampled where the prior has no closed form
    divergence: MMD, MMD of each dimension summed, or KL(p, q(z)) over the batch
    """
    terms: dict[str, Term] = {"mmd": mmd("imq"), "mmd-per-dim": mmd_per_dim(), "inclusive-kl": inclusive_kl()}
    model = parts.vae(fixed_prior=beta == 0 or divergence == "inclusive-kl")
    return descend(model, nll() + beta * kl() + alpha * terms[divergence])


@method("f-vae", "nll + beta kl + lam D_f(q(z), p(z)), D_f by a critic", paper="Nowozin et al. 2016, Eq. 6")
def f_vae(
    parts: Parts,
    f: Literal["kl", "reverse-kl", "jsd", "gan", "total-variation", "pearson", "neyman", "hellinger"] = "jsd",
    lam: NonNegative = 10.0,
    beta: NonNegative = 1.0,
    critic_lr: CriticLR = 1e-4,
) -> Method:
    """A VAE with any f-divergence of q(z) from the prior as penalty, by its variational bound.

    f: kl is KL(q(z), p), reverse-kl is KL(p, q(z))
    lam: weight of the divergence
    beta: weight of the rate
    """
    model, critic, row = parts.vae(fixed_prior=beta == 0), parts.critic(width=512, depth=4), f_divergence(f)
    loss = nll() + beta * kl() + lam * f_penalty(critic, row)
    return game(model, loss, Critic(critic, f_critic(critic, row), critic_lr))


@method(
    "regularised-vae",
    "nll + kl + lam1 R1(q(z|x)) + lam2 R2(q(z))",
    paper="Mushom 2020, Sec. 4.3, with signs for a minimised loss",
)
def regularised_vae(parts: Parts, r1: str = "kl", lam1: float = 1.0, r2: str = "mmd", lam2: float = 1.0) -> Method:
    """The general form: a VAE with a penalty of each posterior and a penalty of the aggregate, also of your own.

    `elboroom.penalty("name")` registers a function of a Draw. A negative lam1 takes from the rate: -1 removes it.

    r1: a penalty per example, by name
    lam1: its weight
    r2: a penalty of the batch, by name
    lam2: its weight
    """
    model = parts.vae(fixed_prior=(r1, lam1) == ("kl", -1.0))
    return descend(model, nll() + kl() + lam1 * penalty(r1, "example") + lam2 * penalty(r2, "aggregate"))
