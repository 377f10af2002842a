"""Autoencoders whose codes match the prior as a whole, and what keeps their posteriors from shrinking to points."""

from __future__ import annotations

from elboroom.build.game import game
from elboroom.build.parts import Parts
from elboroom.build.registry import Count, CriticLR, NonNegative, Places, Positive, Share, by_data, method
from elboroom.core.method import Method, descend
from elboroom.methods.matching import of_prior
from elboroom.nets.corruption import Corrupted, Corruption
from elboroom.terms.adversarial import fool
from elboroom.terms.evidence import nll
from elboroom.terms.transport import log_variance, mmd, own_spread

PURPOSE = "q(z) close to the prior: samples like the data"
SHOWN_ON = "sentences"  # the data of its examples


@method("wae-d", "nll + lam mmd, z = f(x)", paper="Tolstikhin et al. 2018; Bahuleyan et al. 2019", autoencoder=True)
def wae_d(parts: Parts, lam: NonNegative = by_data(10.0, tokens=100.0), constant: Positive = 2.0) -> Method:
    """The Wasserstein autoencoder with a deterministic encoder and -log p(x|z) as its cost.

    Published weights, 3 and 10, stand beside a mean over the tokens of a sentence, so here they are times its length.

    lam: weight of the MMD
    constant: C of the kernel sC / (sC + r^2) over its latent dimensions: 2 (Tolstikhin et al.) or 4 (Bahuleyan et al.)
    """
    return descend(parts.vae("point", fixed_prior=True), nll() + lam * mmd("imq", unbiased=True, constant=constant))


@method(
    "wae-s", "nll + lam mmd + spread KL(N(mu, sigma^2) || N(mu, I))", paper="Bahuleyan et al. 2019", autoencoder=True
)
def wae_s(
    parts: Parts,
    lam: NonNegative = by_data(10.0, tokens=100.0),
    spread: NonNegative = by_data(1.0, tokens=0.1),
    constant: Positive = 2.0,
) -> Method:
    """The Wasserstein autoencoder with a stochastic encoder, whose sigma a KL to N(mu, I) keeps from vanishing.

    Published weights stand beside a mean over the tokens of a sentence, so here they are times its length.

    lam: weight of the MMD (published: 3 and 10)
    spread: weight of the KL; at 0 sigma vanishes (published: 0.01 and 0.1)
    constant: C of the kernel sC / (sC + r^2) over its latent dimensions: 2 (Tolstikhin et al.) or 4 (Bahuleyan et al.)
    """
    objective = nll() + lam * mmd("imq", unbiased=True, constant=constant) + spread * own_spread()
    return descend(parts.vae(fixed_prior=True, narrow=True), objective)


@method(
    "laae",
    "nll - lam log D(z) + penalty sum_j |log sigma_j^2|",
    paper="Shen et al. 2020; Rubenstein et al. 2018",
    autoencoder=True,
)
def laae(
    parts: Parts,
    lam: NonNegative = 10.0,
    penalty: NonNegative = 0.01,
    critic_layers: Count = by_data(4, tokens=1),
    critic_lr: CriticLR = by_data(1e-4, tokens=5e-4),
) -> Method:
    """The adversarial autoencoder with a stochastic encoder, whose log sigma^2 an L1 penalty keeps from minus infinity.

    lam: weight of the adversarial term
    penalty: weight of sum_j |log sigma_j^2|; 0 is `aae --joint`
    critic_layers: of 512 units
    """
    model, critic = parts.vae(fixed_prior=True, narrow=True), parts.critic(width=512, depth=critic_layers)
    loss = nll() + lam * fool(critic) + penalty * log_variance()
    return game(model, loss, of_prior(critic, critic_lr), moves="ae")


@method(
    "daae",
    "nll of x - lam log D(z), z encoded from noisy x",
    paper="Shen et al. 2020, Sec. 3",
    on=("tokens",),
    autoencoder=True,
)
def daae(
    parts: Parts,
    lam: NonNegative = 10.0,
    drop: Share = 0.3,
    blank: Share = 0.0,
    substitute: Share = 0.0,
    shuffle: Places = 0,
    critic_lr: CriticLR = 5e-4,
) -> Method:
    """The denoising adversarial autoencoder: it reads sentences with words missing, so that similar ones have near codes.

    lam: weight of the adversarial term
    drop: share of words left out; with no noise it is `aae`
    blank: share of words hidden
    substitute: share of words replaced by any other
    shuffle: the most places that a word moves
    """
    clean, critic = parts.vae(fixed_prior=True, narrow=True), parts.critic(width=512, depth=1)
    noisy = Corrupted(clean.posterior, Corruption(drop, blank, substitute, shuffle, parts.about.levels))
    return game(clean.with_posterior(noisy), nll() + lam * fool(critic), of_prior(critic, critic_lr), moves="ae")
