"""Methods that match the aggregate posterior q(z) to the prior: by a kernel, or by a critic."""

from __future__ import annotations

from typing import Literal

from torch import nn

from elboroom.build.game import Critic, game
from elboroom.build.parts import Parts
from elboroom.build.registry import Count, CriticLR, NonNegative, by_data, method
from elboroom.core.method import Group, Method, Player, descend
from elboroom.core.problem import Problem
from elboroom.terms.adversarial import fool, prior_critic
from elboroom.terms.evidence import kl, nll
from elboroom.terms.transport import Kernel, Width, cost, mmd, own_spread

PURPOSE = "q(z) close to the prior: samples like the data"

Cost = Literal["squared", "nll"]


def of_prior(critic: nn.Module, lr: float) -> Critic:
    """The critic that tells codes from draws of the prior."""
    return Critic(critic, prior_critic(critic), lr, betas=(0.5, 0.999))


@method("info-vae", "nll + (1 - alpha) kl + (alpha + lam - 1) mmd", paper="Zhao et al. 2017, Eq. 6")
def info_vae(
    parts: Parts, alpha: float = 0.0, lam: NonNegative = 1000.0, kernel: Kernel = "rbf", width: Width = "j"
) -> Method:
    """A VAE with a price of its own for information and for the distance of q(z) from the prior.

    alpha 0 and lam 1 is the VAE. A negative weight of the MMD, which pushes q(z) away from the prior, is refused. What a
    lam means depends on the width of the kernel: with J^2 for J a small shift of q(z) costs 1.7 times less at J = 10.

    alpha: 1 takes the KL of each example away
    lam: with alpha, weight of the MMD
    kernel: of the MMD; rbf is exp(-r^2 / v), v the prior's variance (or J if unknown), imq is summed over seven scales
    width: of rbf: j is v as said, j-squared is J v, which is the exp(-r^2 / J^2) of the authors' code for N(0, I)
    """
    if alpha + lam < 1:
        raise Problem(f"--alpha {alpha:g} --lam {lam:g} give the MMD a negative weight; alpha + lam must be at least 1")
    model = parts.vae(fixed_prior=alpha == 1)
    return descend(model, nll() + (1 - alpha) * kl() + (alpha + lam - 1) * mmd(kernel, width=width))


@method("mmd-vae", "nll + lam mmd", paper="Zhao et al. 2017, Sec. 4")
def mmd_vae(parts: Parts, lam: NonNegative = 1000.0, kernel: Kernel = "rbf", width: Width = "j") -> Method:
    """InfoVAE without the KL of each example: q(z) as a whole is held to the prior.

    lam: weight of the MMD
    kernel: of the MMD; rbf is exp(-r^2 / v), v the prior's variance (or J if unknown), imq is summed over seven scales
    width: of rbf: j is v as said, j-squared is J v, which is the exp(-r^2 / J^2) of the authors' code for N(0, I)
    """
    return descend(parts.vae(fixed_prior=True), nll() + lam * mmd(kernel, width=width))


@method("wae-mmd", "c(x, g(z)) + lam mmd", paper="Tolstikhin et al. 2018, Alg. 2", autoencoder=True)
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
    return descend(parts.vae("point", fixed_prior=True), objective + spread * own_spread() if stochastic else objective)


@method("wae-gan", "c(x, g(z)) - lam log D(z)", paper="Tolstikhin et al. 2018, Alg. 1", autoencoder=True)
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
    model, critic = parts.vae("point", fixed_prior=True), parts.critic(width=512, depth=4)
    return game(model, cost(reconstruction) + lam * fool(critic), of_prior(critic, critic_lr), moves="ae")


@method(
    "aae",
    "nll, then -log D(z) for the encoder alone; on text nll - lam log D(z)",
    paper="Makhzani et al. 2015, Sec. 2; Shen et al. 2020",
    autoencoder=True,
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
    model = parts.vae("gaussian" if joint else "point", fixed_prior=True, narrow=True)
    critic = parts.critic(width=512, depth=critic_layers)
    rival = of_prior(critic, critic_lr)
    if joint:
        return game(model, cost(reconstruction) + lam * fool(critic), rival, moves="ae")
    return Method(
        model,
        players=[
            Player(cost(reconstruction), moves=("encoder", "decoder")),
            rival.player(),
            Player(lam * fool(critic), moves="encoder", batch="again"),
        ],
        encoder=Group(model.posterior),
        decoder=Group([model.likelihood, model.prior, *model.conditioners]),
        critic=rival.group,
    )
