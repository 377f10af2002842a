"""Methods that read a context c before they write: a turn of a dialogue, a sentence of another language, a complex one."""

from __future__ import annotations

from typing import Literal

from elboroom.build.maps import Start, end_to_end
from elboroom.build.parts import Parts
from elboroom.build.registry import NonNegative, Positive, Warmup, method, refuse_idle
from elboroom.core.method import Method, descend
from elboroom.core.model import LatentModel
from elboroom.core.objective import Objective
from elboroom.core.problem import Problem
from elboroom.families.gaussian import ConditionalNormal, NoLatent, StandardNormal
from elboroom.families.normalised import EPS, BatchNormed, Capped, DifferenceNormed
from elboroom.nets.mapping import Mapping
from elboroom.terms.evidence import kl, nll
from elboroom.terms.given import Told, bow_nll, told_nll
from elboroom.weights.schedules import Linear

PURPOSE = "text given a context: replies, translations"
SHOWN_ON = "dailydialog-replies"  # the data of its examples
GAMMA_PRIOR = 0.2  # ours: less than gamma, as the mean of p is E[mu_q | c] where p fits


def _elbo(parts: Parts, warmup: float) -> Objective:
    """nll + w(t) kl, w rising from 0 to 1."""
    return nll() + Linear(0, 1, parts.span(warmup)) * kl()


@method(
    "seq2seq",
    "nll of x given c, without z",
    paper="Sutskever et al. 2014; Luong et al. 2015",
    on=("tokens",),
    needs_context=True,
    takes_base=True,
)
def seq2seq(parts: Parts, start: Start = "auto", mapping: Mapping = "mlp") -> Method:
    """Reads a context and writes, without z: translation, and what every use of z in a dialogue is measured against.

    The decoder attends to the words of the context (--attention). With --base, an autoencoder of text, it does not: it is the
    encoder and the decoder of that run, with one code between them, trained end to end; what emb2emb is measured against.

    start: with --base: scratch, as that run but with new weights; pretrained, with its weights (auto); mapped,
    with its weights and a map between encoder and decoder; frozen, the same and only the map learns
    mapping: of mapped and frozen: offset, resnet or mlp
    """
    if parts.base is not None:
        return descend(end_to_end(parts, start, mapping), nll())
    parts.refuse_axes("seq2seq")
    refuse_idle(
        "without a trained run under seq2seq: name one with --base, or remove it",
        start=(start, "auto"),
        mapping=(mapping, "mlp"),
    )
    parts = parts.answering("dot")
    model = LatentModel(NoLatent(), StandardNormal(0), parts.likelihood(latent=0), conditioner=parts.conditioner())
    return descend(model, nll())


@method(
    "cvae",
    "nll + w(t) kl(q(z|x,c) || p(z|c))",
    paper="Sohn et al. 2015; Zhao et al. 2017",
    on=("tokens",),
    needs_context=True,
)
def cvae(parts: Parts, warmup: Warmup = 0.0) -> Method:
    """A VAE of replies given their context, which posterior, prior and decoder all read.

    Its rate falls to nearly zero, with annealing too: the decoder writes a likely reply and needs no z.
    """
    return descend(parts.answering().vae(), _elbo(parts, warmup))


@method(
    "cvae-bow",
    "nll + w(t) kl(q(z|x,c) || p(z|c)) + bow sum_t -log p(x_t|z,c) [+ -log p(act|z,c)]",
    paper="Zhao et al. 2017",
    on=("tokens",),
    needs_context=True,
)
def cvae_bow(parts: Parts, warmup: Warmup = 0.25, bow: NonNegative = 1.0, act: bool = False) -> Method:
    """A conditional VAE whose z also tells the words of the reply, in no order, so that it cannot be left unused.

    bow: weight of that bag of words, drawn one by one from one softmax (published: 1)
    act: whether z also tells the label `act` of the reply, as in kgCVAE
    """
    parts = parts.answering()
    codes, hidden = parts.latent + parts.given, parts.option("hidden")
    words = Told(codes, hidden, parts.about.levels)
    model = parts.vae().with_heads(words=words)
    objective = _elbo(parts, warmup) + bow * bow_nll(words)
    if act:
        label = parts.classifier("act", codes)
        told = Told(codes, hidden, label.out_features)
        model, objective = model.with_heads(act=told), objective + told_nll(told, label.column, "act_nll")
    return descend(model, objective)


@method(
    "bn-cvae",
    "nll + w(t) kl(q(z|x,c) || p(z|c)), mean of q = mean of p + gamma (d - m) / s, d the difference of the two means",
    paper="after Zhu et al. 2020",
    on=("tokens",),
    needs_context=True,
)
def bn_cvae(
    parts: Parts,
    gamma: Positive = 0.6,
    on: Literal["difference", "both", "posterior"] = "difference",
    gamma_prior: Positive = GAMMA_PRIOR,
    warmup: Warmup = 0.25,
) -> Method:
    """A conditional VAE with a least rate: the difference of the means of q and p is normalised over the batch.

    So E[(mu_q - mu_p)^2] = gamma^2 in each dimension, and with the deviation of p capped at 1 the mean rate is at least
    latent gamma^2 / 2. The published design was not released. Where both means are normalised, each by itself and without a
    shift (--on both), E[(mu_q - mu_p)^2] >= (gamma - gamma_prior)^2, since their correlation is at most 1, and the mean rate
    is at least latent (gamma - gamma_prior)^2 / 2. To normalise the mean of q alone (--on posterior) bounds nothing: the
    mean of p, which is learned, can follow it.

    gamma: standard deviation over the batch of that difference, or of the mean of q, fixed
    on: what is normalised: the difference of the means, both means, or that of q alone
    gamma_prior: of both: standard deviation over the batch of the mean of p, fixed
    """
    if on != "both":
        refuse_idle(
            "where the mean of p is not normalised: say --on both, or remove it", gamma_prior=(gamma_prior, GAMMA_PRIOR)
        )
    elif gamma == gamma_prior:
        raise Problem(
            "--gamma and --gamma-prior are equal, so that nothing holds the means of q and p apart; change one"
        )
    model = parts.answering().vae()
    if not isinstance(model.prior, ConditionalNormal):
        raise Problem("the least rate is that of a Gaussian p(z|c); remove --prior")
    if on == "both":
        normal = BatchNormed(model.posterior, parts.latent, gamma, EPS, shifted=False)
        apart = Capped(BatchNormed(model.prior.spread(), parts.latent, gamma_prior, EPS, shifted=False))
        return descend(model.with_prior(apart).with_posterior(normal), _elbo(parts, warmup))
    if on == "posterior":
        return descend(
            model.with_posterior(BatchNormed(model.posterior, parts.latent, gamma, EPS)), _elbo(parts, warmup)
        )
    prior = Capped(model.prior)
    normed = DifferenceNormed(model.posterior, prior, parts.latent, gamma, EPS)
    return descend(model.with_prior(prior).with_posterior(normed), _elbo(parts, warmup))
