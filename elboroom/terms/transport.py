"""Terms that hold the aggregate posterior to the prior without a critic: MMD and KL over the batch; and transport costs."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from elboroom.core import distributed
from elboroom.core.draw import Draw
from elboroom.core.kl import require_one_prior, require_variance, variances
from elboroom.core.law import capabilities, law_of
from elboroom.core.model import LatentModel
from elboroom.core.objective import Term
from elboroom.core.problem import Problem
from elboroom.divergences.kernels import imq_scales, mmd2_u, mmd2_v, rbf
from elboroom.terms.adversarial import prior_draws
from elboroom.terms.evidence import nll

Kernel = Literal["rbf", "imq"]
Width = Literal["j", "j-squared"]


def kernel_matrix(kernel: Kernel, x: Tensor, y: Tensor, spread: float | Tensor, constant: float = 2.0) -> Tensor:
    """k(x_i, y_j), sized for a prior of this total variance, v: RBF with h^2 = v / 2, IMQ over seven scales of 2 v."""
    return rbf(x, y, (spread / 2) ** 0.5) if kernel == "rbf" else imq_scales(x, y, constant * spread)


def total_variance(draw: Draw) -> Tensor:
    """The variance of the prior, summed over dimensions; that of N(0, I) where it is not known, ()."""
    return variances(draw.p, draw.first).detach().sum(-1).mean()


def _both(draw: Draw) -> tuple[Tensor, Tensor]:
    """Codes, and a draw of the prior for each, over the global batch; points of the ball by log_0, which tells them apart."""
    codes, prior = (law_of(type(draw.q)).flat(draw.q, z) for z in (draw.first, prior_draws(draw, moves=True)))
    return distributed.gather(codes), distributed.gather(prior)


def mmd(kernel: Kernel, unbiased: bool = False, constant: float = 2.0, width: Width = "j") -> Term:
    """MMD^2 of q(z) and the prior over the global batch; a U-statistic within where unbiased, and then at times negative.

    width: of the RBF, exp(-r^2 / v) with v the variance of the prior, J for N(0, I); or J times that
    """
    if width != "j" and kernel != "rbf":
        raise Problem(f"--width {width} is of the kernel rbf; {kernel} is summed over seven scales")

    def value(draw: Draw) -> Tensor:
        codes, prior = _both(draw)
        pairs = ((codes, codes), (prior, prior), (codes, prior))
        spread = total_variance(draw) * (codes.shape[-1] if width == "j-squared" else 1)
        matrices = (kernel_matrix(kernel, a, b, spread, constant) for a, b in pairs)
        return (mmd2_u if unbiased else mmd2_v)(*matrices)

    return Term("mmd", value, couples=True)


def mmd_per_dim() -> Term:
    """MMD^2 of each dimension of q(z) and the prior, summed; IMQ with C = 2 {.1, .2, .5, 1, 2, 5}."""

    def value(draw: Draw) -> Tensor:
        codes, prior = _both(draw)
        a, b = (t.T.unsqueeze(-1) for t in (codes, prior))  # (D, B, 1)
        matrices = (imq_scales(x, y, 2.0, (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)) for x, y in ((a, a), (b, b), (a, b)))
        return mmd2_v(*matrices).sum()

    return Term("mmd", value, couples=True)


def inclusive_kl() -> Term:
    """KL(p || q(z)) = E_p [log p(z) - log 1/B sum_b q(z|x_b)], q(z) over the global batch."""

    def value(draw: Draw) -> Tensor:
        q = draw.q.gathered()
        z = prior_draws(draw, moves=True)  # (B, J), reparametrised where the prior is learned
        log_q = q.log_prob_per_dim(z.unsqueeze(1)).sum(-1)  # (B, M)
        return draw.p.log_prob(z) - torch.logsumexp(log_q, 1) + math.log(log_q.shape[1])  # type: ignore[no-any-return]

    def check(model: LatentModel) -> None:
        require_one_prior(model, "KL(p || q(z))")
        if not capabilities(model.families[0]).diagonal:
            raise Problem("KL(p || q(z)) needs a Gaussian posterior; use --posterior gaussian or another divergence")

    return Term("kl_inclusive", value, check=check, couples=True)


def cost(kind: Literal["squared", "nll"]) -> Term:
    """c(x, g(z)): squared error summed over pixels (no 1/2), or -log p(x|z)."""
    if kind == "nll":
        return nll()

    def value(draw: Draw) -> Tensor:
        error: Tensor = (draw.px.mean - draw.batch.x).square()
        return error.flatten(2).sum(-1).mean(0)

    def check(model: LatentModel) -> None:
        if not capabilities(model.likelihood.family).has_mean:
            raise Problem("a squared error needs images or vectors, and the data is text; use --reconstruction nll")
        if getattr(model.likelihood, "learns_sigma", False):
            raise Problem("a squared error cannot learn sigma; use --likelihood gaussian, or --reconstruction nll")

    return Term("cost", value, check=check)


def own_spread() -> Term:
    """KL(N(mu, sigma^2) || N(mu, I)) = 1/2 sum_j (sigma_j^2 - log sigma_j^2 - 1): keeps a Gaussian encoder stochastic."""

    def value(draw: Draw) -> Tensor:
        return 0.5 * (draw.q.variance - draw.q.logvar - 1)  # type: ignore[no-any-return]

    return Term("spread", value, check=lambda model: require_variance(model.families[0], "--spread"))


def log_variance() -> Term:
    """sum_j |log sigma_j^2|: zero where a Gaussian encoder has the spread of the prior."""
    return Term(
        "log_variance",
        lambda draw: draw.q.logvar.abs(),
        check=lambda model: require_variance(model.families[0], "a penalty of log sigma^2"),
    )
