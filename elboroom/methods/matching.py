"""Methods that match the aggregate posterior q(z) to the prior: by a kernel, or by a critic."""

from __future__ import annotations

from typing import Literal

from torch import nn

from elboroom.build.parts import Parts
from elboroom.build.registry import Count, CriticLR, NonNegative, by_data, method
from elboroom.core.method import Group, Method, Player, adam, descend
from elboroom.core.model import LatentModel
from elboroom.core.objective import Objective
from elboroom.core.problem import Problem
from elboroom.terms.adversarial import fool, prior_critic
from elboroom.terms.evidence import kl, nll
from elboroom.terms.transport import Kernel, cost, mmd, own_spread

Cost = Literal["squared", "nll"]


@method("info-vae", "nll + (1 - alpha) kl + (alpha + lam - 1) mmd", paper="Zhao et al. 2017, Eq. 6")
def info_vae(parts: Parts, alpha: float = 0.0, lam: NonNegative = 1000.0, kernel: Kernel = "rbf") -> Method:
    """A VAE with a price of its own for information and for the distance of q(z) from the prior.

    alpha 0 and lam 1 is the VAE. A negative weight of the MMD, which pushes q(z) away from the prior, is refused.

    alpha: 1 takes the KL of each example away
    lam: with alpha, weight of the MMD
    kernel: of the MMD; rbf is exp(-r^2 / v), v the prior's variance (or J if unknown), imq is summed over seven scales
    """
    if alpha + lam < 1:
        raise Problem(f"--alpha {alpha:g} --lam {lam:g} give the MMD a negative weight: alpha + lam must be at least 1")
    model = parts.vae(u="unseen" if alpha == 1 else "seen")
    return descend(model, nll() + (1 - alpha) * kl() + (alpha + lam - 1) * mmd(kernel))


@method("mmd-vae", "nll + lam mmd", paper="Zhao et al. 2017, Sec. 4")
def mmd_vae(parts: Parts, lam: NonNegative = 1000.0, kernel: Kernel = "rbf") -> Method:
    """InfoVAE without the KL of each example: q(z) as a whole is held to the prior.

    lam: weight of the MMD
    kernel: of the MMD; rbf is exp(-r^2 / v), v the prior's variance (or J if unknown), imq is summed over seven scales
    """
    return descend(parts.vae(u="unseen"), nll() + lam * mmd(kernel))


@method("wae-mmd", "c(x, g(z)) + lam mmd", paper="Tolstikhin et al. 2018, Alg. 2")
def wae_mmd(
    parts: Parts,
    lam: NonNegative = 10.0,
    kernel: Kernel = "imq",
    reconstruction: Cost = by_data("squared", tokens="nll"),
    spread: NonNegative = 0.0,
) -> Method:
    """The Wasserstein autoencoder: a transport cost, with q(z) held to the prior by an MMD.

    Encoders are deterministic unless --posterior gaussian; then sigma falls to zero unless --spread holds it.

    lam: weight of the MMD, a U-statistic within each sample and so at times negative
    kernel: imq is summed over seven scales, rbf is exp(-r^2 / v), v the prior's variance (or J if unknown)
    reconstruction: squared error summed over pixels, or -log p(x|z)
    spread: weight of KL(N(mu, sigma^2) || N(mu, I)), for gaussian encoders
    """
    objective = cost(reconstruction) + lam * mmd(kernel, unbiased=True)
    stochastic = spread > 0 or parts.option("posterior") == "gaussian"  # then its spread is worth a line in the log
    return descend(parts.vae("point", u="unseen"), objective + spread * own_spread() if stochastic else objective)


@method("wae-gan", "c(x, g(z)) - lam log D(z)", paper="Tolstikhin et al. 2018, Alg. 1")
def wae_gan(
    parts: Parts,
    lam: NonNegative = 10.0,
    reconstruction: Cost = by_data("squared", tokens="nll"),
    critic_lr: CriticLR = 5e-4,
) -> Method:
    """The Wasserstein autoencoder with a critic that tells q(z) from the prior.

    lam: weight of the adversarial term
    reconstruction: squared error summed over pixels, or -log p(x|z)
    """
    model, critic = parts.vae("point", u="unseen"), parts.critic(width=512, depth=4)
    return game(model, critic, cost(reconstruction) + lam * fool(critic), critic_lr)


@method(
    "aae",
    "nll, then -log D(z) for the encoder alone; on text nll - lam log D(z)",
    paper="Makhzani et al. 2015, Sec. 2; Shen et al. 2020",
)
def aae(
    parts: Parts,
    lam: NonNegative = by_data(1.0, tokens=10.0),
    reconstruction: Cost = "nll",
    joint: bool = by_data(False, tokens=True),
    critic_layers: Count = by_data(4, tokens=1),
    critic_lr: CriticLR = by_data(1e-4, tokens=5e-4),
) -> Method:
    """The adversarial autoencoder: reconstruct, teach the critic, then let the encoder fool it; no KL anywhere.

    lam: weight of the adversarial term
    reconstruction: -log p(x|z), or squared error summed over pixels
    joint: whether a stochastic encoder fools the critic while it reconstructs (Shen et al.), not a point in a turn of its own
    critic_layers: of 512 units
    """
    model = parts.vae("gaussian" if joint else "point", u="unseen")
    critic = parts.critic(width=512, depth=critic_layers)
    if joint:
        return game(model, critic, cost(reconstruction) + lam * fool(critic), critic_lr)
    return Method(
        model,
        players=[
            Player(cost(reconstruction), moves=("encoder", "decoder")),
            Player(prior_critic(critic), moves="critic", rival=True),
            Player(lam * fool(critic), moves="encoder", batch="again"),
        ],
        encoder=Group(model.posterior),
        decoder=Group([model.likelihood, model.prior]),
        critic=Group(critic, adam(critic_lr, betas=(0.5, 0.999))),
    )


def game(model: LatentModel, critic: nn.Module, objective: Objective, critic_lr: float) -> Method:
    """The model descends its objective, the critic tells its codes from the prior."""
    return Method(
        model,
        players=[Player(objective, moves="ae"), Player(prior_critic(critic), moves="critic", rival=True)],
        ae=Group(model),
        critic=Group(critic, adam(critic_lr, betas=(0.5, 0.999))),
    )
