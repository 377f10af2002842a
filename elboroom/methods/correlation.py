"""Methods that ask for independent dimensions of the aggregate posterior through its total correlation."""

from __future__ import annotations

from elboroom.build.game import Critic, game
from elboroom.build.parts import Parts
from elboroom.build.registry import Count, NonNegative, Positive, by_data, method
from elboroom.core.method import Method, descend
from elboroom.terms.adversarial import critic_nll, density_ratio
from elboroom.terms.aggregate import Estimator, dimwise_kl, index_code_mi, total_correlation
from elboroom.terms.evidence import kl, nll

PURPOSE = "disentangled codes: one factor a dimension"


@method("beta-tcvae", "nll + alpha mi + beta tc + gamma dwkl", paper="Chen et al. 2018, Eq. 4")
def beta_tcvae(
    parts: Parts,
    alpha: NonNegative = 1.0,
    beta: NonNegative = by_data(6.0, tokens=1.0),
    gamma: NonNegative = 1.0,
    estimator: Estimator = "mss-sym",
) -> Method:
    """The KL of the ELBO in its three parts, each with a weight of its own.

    With alpha = gamma = 1 this is nll + kl + (beta - 1) tc. log q(z) is estimated from the batch; the weights of mss and
    mss-sym sum to one, with 1/N for the example itself, and are unbiased for q(z); mws is biased low.

    alpha: weight of the index-code mutual information
    beta: weight of the total correlation
    gamma: weight of the dimension-wise KL
    estimator: of log q(z): stratified with equal weights, stratified as published, or weighted
    """
    n, e = parts.n, estimator
    objective = nll() + alpha * index_code_mi(n, e) + beta * total_correlation(n, e) + gamma * dimwise_kl(n, e)
    return descend(parts.vae(fixed_prior=True), objective)  # q(z) is split against one prior for all labels


@method("factor-vae", "nll + kl + gamma tc, tc by a critic", paper="Kim & Mnih 2018, Eq. 2 and Alg. 2")
def factor_vae(parts: Parts, gamma: NonNegative = 10.0, critic_lr: Positive = 1e-4, critic_layers: Count = 6) -> Method:
    """The ELBO minus gamma TC, with TC estimated by a critic that tells q(z) from the product of its marginals.

    Both players see a full batch; the permuted codes come from a second one.

    gamma: weight of the total correlation
    critic_lr: learning rate of the critic's Adam, whose betas are (0.5, 0.9)
    critic_layers: of 1,000 units
    """
    model, critic = parts.vae(), parts.critic(outputs=2, depth=critic_layers)
    return game(model, nll() + kl() + gamma * density_ratio(critic), Critic(critic, critic_nll(critic), critic_lr))
