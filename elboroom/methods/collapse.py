"""Methods against posterior collapse that put a floor under the rate: in the objective, the posterior or the prior."""

from __future__ import annotations

from elboroom.build.parts import Parts
from elboroom.build.registry import NonNegative, Positive, Share, Warmup, by_data, method
from elboroom.core.method import Method, descend
from elboroom.core.model import LatentModel
from elboroom.core.objective import Objective, Term, logged
from elboroom.core.problem import Problem
from elboroom.families.autoregressive import AR1
from elboroom.families.floor import Floored, Sign
from elboroom.families.gaussian import Gaussian, StandardNormal
from elboroom.families.normalised import EPS, BatchNormed, BatchNormedBoth
from elboroom.terms import floors
from elboroom.terms.evidence import kl, nll
from elboroom.terms.floors import Form, Reduce, Unit
from elboroom.weights.schedules import Linear

PURPOSE = "keeping z in use, as of text (posterior collapse)"
SHOWN_ON = "sentences"  # the data of its examples


def _elbo(parts: Parts, warmup: float) -> Objective:
    """nll + w(t) kl, w rising from 0 to 1."""
    return nll() + Linear(0, 1, parts.span(warmup)) * kl()


def _against_normal(parts: Parts, what: str) -> LatentModel:
    """A Gaussian posterior against N(0, I), whatever labels are given: a prior that can follow proves nothing."""
    model = parts.vae(fixed_prior=True)
    if not isinstance(model.prior, StandardNormal):
        raise Problem(f"{what} needs the prior N(0, I); use --posterior gaussian with --prior normal")
    return model


@method("free-bits", "nll + w(t) sum_j max(target / J, kl_j)", paper="Kingma et al. 2016; Li et al. 2019")
def free_bits(
    parts: Parts,
    target: NonNegative = by_data(5.0, tokens=8.0),
    unit: Unit = "per_dim",
    reduce: Reduce = "sample",
    form: Form = "hinge",
    warmup: Warmup = by_data(0.0, tokens=0.25),
) -> Method:
    """A VAE whose KL is not penalised below a floor.

    The plain rate is logged beside the floored one. Published: per_dim and batch (Kingma et al.), per_dim and sample (Li
    et al., Optimus), total and sample (Li et al., there called FBP).

    target: the floor, in nats, over all dimensions together
    unit: one floor for the whole rate, or one of target / latent for each dimension
    reduce: held against the rate of each example, or against the mean of the batch
    form: max(floor, kl), or kl where it is above the floor and 0 elsewhere, which has the same gradient
    """

    def floored(form: Form) -> Term:
        return floors.free_bits(kl(), target, unit, reduce, form)

    objective = nll() + Linear(0, 1, parts.span(warmup)) * floored(form) + logged(kl())
    return descend(parts.vae(), objective if form == "hinge" else objective + logged(floored("hinge")))


@method("bn-vae", "nll + w(t) kl, mean = gamma (mu - m) / s + b over the batch", paper="Zhu et al. 2020")
def bn_vae(
    parts: Parts, gamma: Positive = 0.6, eps: Positive = EPS, warmup: Warmup = by_data(0.0, tokens=0.25)
) -> Method:
    """A VAE whose posterior means are normalised over the batch, so that each has a rate of at least gamma^2 / 2.

    That is against N(0, I), which the prior stays with labels given too: one that follows the means would undo the bound.
    Outside training running averages stand for the batch; after a few dozen steps they lag behind the encoder, and
    measured rates are too high.

    gamma: standard deviation of the means over the batch, fixed (published: 0.5 to 0.7)
    eps: added to their variance; an encoder that makes it smaller than this is past the bound (published: 1e-5)
    """
    model = parts.vae(fixed_prior=True)
    normed = BatchNormed(model.posterior, parts.latent, gamma, eps)
    return descend(model.with_posterior(normed), _elbo(parts, warmup))


@method(
    "bn-vae-tau",
    "nll + w(t) kl, E[mu^2] = tau + (1 - tau) s(theta) and E[sigma^2] = (1 - tau) s(-theta) over the batch",
    paper="after Zhu et al. 2020, with the variances normalised too",
)
def bn_vae_tau(parts: Parts, tau: Share = 0.5, warmup: Warmup = by_data(0.0, tokens=0.25)) -> Method:
    """A VAE whose means and variances are normalised over the batch to the second moment of the prior, split by theta.

    Its mean rate is -1/2 E[log sigma^2], at least -1/2 log(1 - tau) for each dimension.

    tau: least share of the second moment that is held by the means
    """
    model = _against_normal(parts, "E[mu^2] + E[sigma^2] = 1")
    normed = BatchNormedBoth(model.posterior, parts.latent, tau)
    return descend(model.with_posterior(normed), _elbo(parts, warmup))


@method("delta-vae", "nll + w(t) kl, kl = delta + relu(m) / 2 in each dimension", paper="Razavi et al. 2019")
def delta_vae(
    parts: Parts, delta: Positive = 0.1, sign: Sign = "positive", warmup: Warmup = by_data(0.0, tokens=0.25)
) -> Method:
    """A VAE whose posterior cannot come closer to the prior than delta nats in each dimension.

    A rate at its minimum can be that of one posterior for all x, which carries no information.

    delta: minimum rate of a dimension, in nats (published: 0.1 to 0.2)
    sign: of the posterior means: positive as published, or learned
    """
    model = _against_normal(parts, "the minimum rate")
    return descend(model.with_posterior(Floored(model.posterior, delta, sign)), _elbo(parts, warmup))


@method(
    "delta-vae-ar1",
    "nll + w(t) kl, p(z_t|z_t-1) = N(alpha z_t-1, 1 - alpha^2), q(z|x) independent",
    paper="Razavi et al. 2019",
)
def delta_vae_ar1(parts: Parts, warmup: Warmup = by_data(0.0, tokens=0.25)) -> Method:
    """A VAE whose prior is a chain (--ar1-alpha), which no posterior with independent dimensions can match.

    The dimensions of z are the steps of --ar1-channels chains, the channels of a step side by side. The least rate is
    1/2 [(n - 2) log(1 + alpha^2) - log(1 - alpha^2)] for each channel of n steps: 3.5 nats for 32 steps at alpha 0.5.
    """
    model = parts.vae(prior="ar1")
    if model.families != (Gaussian, AR1):
        raise Problem("the smallest KL is that of a Gaussian to a chain; remove --posterior and --prior")
    return descend(model, _elbo(parts, warmup))
