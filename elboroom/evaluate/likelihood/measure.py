"""What every model is measured by: the ELBO and its parts, IW-K, rate per dimension, active units, mutual information.

All in nats per example at weight one, whatever weights trained the model.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from elboroom.core.batch import Batch
from elboroom.core.draw import Draw
from elboroom.core.kl import per_example, require_density
from elboroom.core.law import capabilities
from elboroom.core.model import LatentModel
from elboroom.divergences.samples import at_least
from elboroom.evaluate.likelihood.dealt import Weigh
from elboroom.evaluate.likelihood.dual import dual_values
from elboroom.evaluate.likelihood.posthoc import posthoc
from elboroom.evaluate.likelihood.proposal import Kind, fitted
from elboroom.evaluate.likelihood.weighted import CHUNK, Weighted
from elboroom.evaluate.registry import Quantity, family, named
from elboroom.evaluate.result import Result, mean
from elboroom.evaluate.split import Split
from elboroom.evaluate.text.ngrams import per_word
from elboroom.families.fitted import is_sampled
from elboroom.families.gaussian import NoLatent
from elboroom.terms.evidence import log_weights
from elboroom.terms.information import information

if TYPE_CHECKING:
    from elboroom.evaluate.subject import Subject

NO_BOUND = "not a bound: "
ENOUGH = 30  # rows of which a mean and its error tell whether a rate can be
GIVES = {
    "distortion": Quantity("Distortion", "low"),
    "squared_error": Quantity("Squared error", "low"),
    "error_per_pixel": Quantity("Squared error per pixel", "low"),
    "rate": Quantity("Rate", "neither"),
    "elbo": Quantity("ELBO", "high"),
    "rate_per_dim": Quantity("Rate, summed over dimensions", "neither"),
    "bits_per_dim": Quantity("Bits per dimension", "low"),
    "log_likelihood": Quantity("Log-likelihood", "high"),
    "log_likelihood_posthoc": Quantity("Log-likelihood, post hoc", "high"),
    "rate_dual": Quantity("Rate, by the critic", "neither"),
    "elbo_dual": Quantity("ELBO, by the critic", "neither"),
    "aggregate_rate_dual": Quantity("KL of q(z) to the prior, by the critic", "neither"),
    "perplexity": Quantity("Perplexity", "low"),
    "perplexity_posthoc": Quantity("Perplexity, post hoc", "low"),
    "mutual_information": Quantity("Mutual information", "neither"),
    "aggregate_rate": Quantity("KL of q(z) to the prior", "neither"),
    "active_units": Quantity("Active units", "neither"),
}
PAIRS = 10_000  # rows of which all pairs are looked at, where that takes more than a matrix product


def _refused(split: Split, name: str, what: str = "") -> Result:
    return Result(None, name, "nats", reason=what + split.lacking)


@torch.no_grad()
def evidence(split: Split, samples: int = 1) -> dict[str, Result]:
    """ELBO, distortion and rate with their standard errors over the examples, and the rate of each dimension."""
    at_least(samples, 1, "the number of samples")
    nll, rate, per_dim, error, levels = [], [], [], [], None
    for batch in split.batches(max(1, min(256, CHUNK // samples))):
        draw = Draw(split.model, batch, samples)
        nll.append(draw.nll.mean(0).double().cpu())
        levels = capabilities(draw.px).levels
        if not split.is_text:
            error.append((draw.px.mean - batch.x).square().mean(0).flatten(1).sum(1).double().cpu())
        if split.has_density:
            kl = draw.rate.double().cpu()
            rate.append(per_example(kl))
            per_dim += [kl] if kl.dim() == 2 else []
    settings = split.settings | {"samples": samples}
    found = {"distortion": mean(torch.cat(nll), "E_q -log p(x|z)", "nats", settings)}
    if error:
        squares = torch.cat(error)
        found["squared_error"] = mean(squares, "E_q |x - E[x|z]|^2", "per example", settings)
        if split.data.about.kind == "pixels":
            each = squares / math.prod(split.data.about.shape)
            found["error_per_pixel"] = mean(each, "E_q |x - E[x|z]|^2", "per pixel and channel", settings)
    if not split.has_density:
        return named(found | {"rate": _refused(split, "rate"), "elbo": _refused(split, "elbo", NO_BOUND)})
    rates = mean(torch.cat(rate), "KL(q(z|x) || p(z))", "nats", settings)
    assert rates.value is not None
    if len(split.rows) >= ENOUGH and rates.value < -0.1 - 8 * rates.errors["sampling"]:
        lost = f"the mean KL is {rates.value:.4g} nats, and a KL is never below 0"
        reason = f"{lost}: the densities of this model are lost to rounding errors"
        return named(found | {name: Result(None, name, "nats", reason=reason) for name in ("rate", "elbo")})
    found["rate"], found["elbo"] = rates, mean(-(torch.cat(nll) + torch.cat(rate)), "elbo", "nats", settings)
    if per_dim:
        dims = torch.cat(per_dim).mean(0).tolist()
        found["rate_per_dim"] = Result(sum(dims), "KL per dimension", "nats", settings, parts={"dims": dims})
    if levels == split.data.about.levels:
        bits = -found["elbo"].value / math.log(2) / math.prod(split.data.about.shape)  # type: ignore[operator]
        found["bits_per_dim"] = Result(bits, "elbo", "bits per pixel and channel", settings)
    return named(found)


def log_likelihood(split: Split, samples: int = 100, proposal: Kind = "gaussian", until: float | None = None) -> Result:
    """log (1/K) sum_k w_k, averaged over the split: a lower bound of log p(x) in expectation that tightens with K.

    A posterior that is sampled without a density has weights of a fitted proposal, and the estimator says so.

    until: nats; K is doubled until that raises the bound by less
    """
    at_least(samples, 1, "the number of samples")
    name = f"iw-{samples}"
    if not split.has_density:
        return fitted(split, samples, proposal, until) if is_sampled(split.model) else _refused(split, name, NO_BOUND)

    def weights_of(batch: Batch) -> Weigh:
        if isinstance(split.model.posterior, NoLatent):  # all weights are p(x)
            one = log_weights(Draw(split.model, batch))
            return lambda count: one.expand(count, -1)
        return lambda count: log_weights(Draw(split.model, batch, count))

    found = Weighted(split, samples, weights_of, until)
    return found.number(f"iw-{found.samples}", {"elbo_of_these_rows": found.elbo})


@torch.no_grad()
def bound(model: LatentModel, batch: Batch, samples: int = 100) -> Tensor:
    """log (1/K) sum_k w_k of every example of a batch, (B,); refuses a model without densities."""
    at_least(samples, 1, "the number of samples")
    for law in model.families:
        require_density(law, "a bound of log p(x)")
    if isinstance(model.posterior, NoLatent):  # all weights are p(x)
        samples = 1
    log_w = log_weights(Draw(model, batch, samples)).double().cpu()  # (K, B)
    return torch.logsumexp(log_w, 0) - math.log(samples)


MOST_NATS = 300  # of a word: what is beyond cannot be written as a number


def perplexity(split: Split, bound: Result) -> Result:
    """exp(nats of the split / its words), the end of each sentence counted as a word, whatever the tokeniser.

    Its error is that of a ratio: long sentences have more nats and more words.
    """
    if bound.value is None or bound.each is None:
        return Result(None, bound.estimator, "per word", reason=bound.reason)
    words = split.data.words[split.rows]
    nats, spread = per_word(-bound.each, words)
    if nats > MOST_NATS:
        reason = f"it is above e^{MOST_NATS} per word: this model has hardly been trained"
        return Result(None, bound.estimator, "per word", reason=reason)
    errors, per_nat = {"sampling": math.exp(nats) * spread}, math.exp(nats) / float(words.mean())
    if "importance_noise" in bound.errors:
        errors["importance_noise"] = per_nat * bound.errors["importance_noise"]
    parts = {name: bound.parts[name] for name in ("effective_samples",) if name in bound.parts}
    parts["unknown_words"] = split.unknown_words
    note = f"too high by {per_nat * bound.parts['gain_of_doubling']:.2g} or more" if bound.note else ""
    settings = bound.settings | {"words": int(words.sum())}
    return Result(math.exp(nats), bound.estimator, "per word", settings, errors, parts=parts, note=note)


@torch.no_grad()
def mutual_information(split: Split) -> Result:
    """I(x; z) = E log q(z|x) - log q(z), q(z) the mixture over all rows of the split: it cannot exceed log M."""
    q = capabilities(split.model.families[0])
    if not q.has_density:
        return _refused(split, "split")
    if q.slow_density:
        return Result(
            None, "split", "nats", reason="the density of z under q(z|x) of all other rows would take too long"
        )
    if q.diagonal:
        loc, logvar = split.codes
        assert logvar is not None
        torch.manual_seed(split.seed)
        each = information(loc, logvar, torch.randn(loc.shape, dtype=torch.float64))
    else:
        each = _of_pairs(split)
    settings, ceiling = split.settings | {"M": len(each)}, math.log(len(each))
    return mean(each, "split", "nats", settings, {"ceiling": ceiling})


def _of_pairs(split: Split, size: int = 256) -> Tensor:
    """log q(z_i|x_i) - log 1/M sum_m q(z_i|x_m), z_i ~ q(z|x_i), for any q with a density, (M,)."""
    drawn = [split.model.q(batch).sample((1,))[0] for batch in split.batches(size)]
    own, sums = [], torch.full((len(split.rows), len(drawn)), -torch.inf, dtype=torch.float64)
    for number, batch in enumerate(split.batches(size)):
        q = split.model.q(batch)
        for part, z in enumerate(drawn):
            pairs = q.log_prob(z.unsqueeze(-2)).double().cpu()  # (chunk, B)
            sums[part * size : part * size + len(z), number] = torch.logsumexp(pairs, 1)
            own += [pairs.diagonal()] if part == number else []
    return torch.cat(own) - torch.logsumexp(sums, 1) + math.log(len(sums))


def active_units(split: Split, threshold: float = 0.01) -> Result:
    """How many dimensions have Var_x(E[z_j|x]) >= threshold."""
    codes = split.codes[0].double()
    variance = codes.var(0) if len(codes) > 1 and codes.numel() else codes.new_zeros(codes.shape[1])
    settings = split.settings | {"threshold": threshold}
    count = int((variance >= threshold).sum())
    return Result(count, "au-var", f"of {len(variance)}", settings, parts={"variances": variance.tolist()})


def aggregate_rate(rate: Result, information: Result, many: bool = False) -> Result:
    """KL(q(z) || p) = E KL(q(z|x) || p) - I(x; z), both over the same rows."""
    how = "rate - mutual information"
    if rate.value is None or information.value is None:
        return Result(None, how, "nats", reason=rate.reason or information.reason)
    if many:
        return Result(None, how, "nats", reason="the prior p(z|u) differs between labels")
    assert rate.each is not None
    assert information.each is not None
    return mean(torch.from_numpy(rate.each - information.each), how, "nats", information.settings)


def evaluate(
    split: Split, samples: int = 100, iw_most: int | None = 1000, proposal: Kind = "gaussian",
    iw_until: float | None = None,
) -> dict[str, Result]:  # fmt: skip
    """All of the above. IW-K, which decodes K times, looks at no more than `iw_most` rows.

    proposal: what is fitted to a q(z|x) that can only be sampled
    iw_until: nats; K is doubled until that raises the bound by less

    A deterministic encoder has no bound of its own; a post-hoc one stands beside it, under a name of its own. So does
    what a critic says of the KL, which is no bound.
    """
    found, few = evidence(split), split.few(iw_most)
    lost = split.has_density and found["rate"].value is None
    found["log_likelihood"] = found["elbo"] if lost else log_likelihood(few, samples, proposal, iw_until)
    found |= dual_values(few)
    if not (split.has_density or is_sampled(split.model)) and split.tuning is not None:
        found["log_likelihood_posthoc"] = posthoc(few, samples, iw_until)
    if split.is_text:
        for name in ("log_likelihood", "log_likelihood_posthoc"):
            if name in found:
                found[name.replace("log_likelihood", "perplexity")] = perplexity(few, found[name])
    part = split if capabilities(split.model.families[0]).diagonal else split.few(PAIRS)
    found["mutual_information"] = mutual_information(part)
    rate = found["rate"] if part is split else evidence(part)["rate"]
    found["aggregate_rate"] = aggregate_rate(rate, found["mutual_information"], split.has_many_priors)
    found["active_units"] = active_units(split)
    return named(found)


@family("likelihood", "split", GIVES)
def of_run(
    subject: Subject, split: str | None = None, samples: int = 100, most: int = 10_000, iw_most: int | None = 1000,
    seed: int = 0, proposal: Kind = "gaussian", iw_until: float | None = None,
) -> dict[str, Result]:  # fmt: skip
    """ELBO and its parts, IW-K, rate per dimension, active units and mutual information."""
    return evaluate(subject.run.split(split, most, seed), samples, iw_most, proposal, iw_until)
