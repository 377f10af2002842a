"""The doctor: looks at a run and says what is wrong with it, each with its numbers and a command to try."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch.distributions import Independent
from torch.distributions import Normal as Gauss

from elboroom.build.registry import card
from elboroom.core.draw import Draw
from elboroom.core.law import capabilities
from elboroom.core.problem import Problem
from elboroom.evaluate import likelihood, verdicts
from elboroom.evaluate.likelihood.measure import active_units, aggregate_rate, mutual_information
from elboroom.evaluate.likelihood.posthoc import gaussian_of
from elboroom.evaluate.linear import beside_pca
from elboroom.evaluate.matching import draws
from elboroom.evaluate.split import Split
from elboroom.evaluate.text.bleu import bleu
from elboroom.evaluate.verdicts import Verdict
from elboroom.families.gaussian import NoPrior
from elboroom.families.pixels import Normal
from elboroom.runs.edit import maps_in_the_end
from elboroom.runs.run import Run
from elboroom.training.batches import batch_of
from elboroom.training.spec import Spec, flag

ROWS = 2_000  # examples that are looked at
PAIRS = 20  # the fewest of which a correlation tells
SENTENCES = 100  # that are reconstructed
DRAWS = 10  # for each dimension, from which a covariance is none of noise
REMEDIES = {  # against a z that is not used, the first that the run is not itself, by what it models
    "parts": ("style-ae",),
    "context": ("bn-cvae", "cvae-bow"),
    "tokens": ("bn-vae", "free-bits"),
    "": ("free-bits", "bn-vae"),
}
NETS = (  # options of the model that are not of the laws of z, and of use to every method
    "latent", "net", "likelihood", "sigma", "standardise", "trunk", "embed", "hidden", "layers", "dropout", "word_dropout",
    "inject", "attention", "given", "init",
)  # fmt: skip
THRESHOLD = 0.01  # variance of the mean of a dimension from which it is active


class Patient:
    """A run, and what several looks at it share."""

    def __init__(self, run: Run, rows: int) -> None:
        self.run, self.rows = run, rows

    @cached_property
    def held_out(self) -> Split:
        return self.run.split(most=self.rows)

    @cached_property
    def evidence(self) -> dict[str, Any]:
        return likelihood.evidence(self.held_out)

    @cached_property
    def variances(self) -> list[float]:
        return list(active_units(self.held_out, THRESHOLD).parts["variances"]) if self.run.latent else []

    @property
    def active(self) -> int:
        return sum(variance >= THRESHOLD for variance in self.variances)

    @property
    def rate(self) -> float | None:
        found: float | None = self.evidence["rate"].value
        return found

    @property
    def collapsed(self) -> str:
        return verdicts.unused(self.active, self.rate, self.run.tokeniser is not None) if self.variances else ""

    @cached_property
    def costs(self) -> tuple[float, float, float]:
        """Nats of examples that were trained on and of held-out ones, with the error of the difference."""
        if self.held_out.name == "train":
            raise Problem("there is no held-out data")
        trained = likelihood.evidence(self.run.split("train", len(self.held_out.rows)))
        name = "elbo" if self.evidence["elbo"].value is not None else "distortion"
        sign = -1.0 if name == "elbo" else 1.0
        seen, new = (sign * (found[name].value or 0.0) for found in (trained, self.evidence))
        one, other = (found[name].errors.get("sampling", 0.0) for found in (trained, self.evidence))
        return seen, new, math.hypot(one, other)

    @property
    def by_heart(self) -> str:
        return verdicts.overfit(*self.costs)

    @property
    def source(self) -> str:
        """The data as a command line has it."""
        said = str(self.run.spec.data["source"])
        return "FILE.npy" if said == "array" else said

    def again(self, name: str, **changes: Any) -> str:
        """The command of the run with other options, beside the run; what was chosen for the data is chosen anew."""
        return self.typed(self.run.spec, name, **changes)

    def typed(self, spec: Spec, name: str, **changes: Any) -> str:
        """The same of another spec."""
        head, *flags = spec.command.split(" --")
        gone = {word.replace("_", "-") for word in (*spec.suited, *changes, "data", "threads", "out")}
        kept = [said for said in flags if said.split()[0].removeprefix("no-") not in gone]
        told = [flag(word, value) for word, value in changes.items()]
        return " ".join([head, flag("data", self.source), *(f"--{said}" for said in kept), *told, self.beside(name)])

    def smaller(self, dimensions: int) -> str:
        """The command of the run with fewer dimensions of z; where z has named parts, of its content."""
        sizes = self.run.model.sizes
        if len(sizes) < 2:
            return self.again("smaller", latent=dimensions)
        spare = sum(sizes.values()) - dimensions
        return self.again("smaller", content_size=sizes["content"] - spare) if sizes.get("content", 0) > spare else ""

    @property
    def remedies(self) -> tuple[str, ...]:
        """Methods that keep z in use, of what this one models."""
        parted = len(self.run.model.sizes) > 1
        text = "tokens" if self.run.tokeniser is not None else ""
        return REMEDIES["parts" if parted else "context" if self.run.spec.card.needs_context else text]

    def remedy(self, name: str) -> str:
        """The command of a method that keeps z in use, on the same data and with the same nets; none on another run."""
        spec = self.run.spec
        other = next((method for method in self.remedies if method != spec.method), "")
        if not other or spec.base is not None:
            return ""
        near = card(other).builder.__module__ == spec.card.builder.__module__  # where a name means the same
        options = card(other).validate({}, spec.about.kind)
        options |= {key: value for key, value in spec.options.items() if near and key in options}
        model = type(spec.model)(**spec.model.model_dump(include={*NETS}))
        fit = spec.fit.model_copy(update={"accumulate": 1})  # which statistics of a batch refuse
        told = {"method": other, "options": options, "model": model, "fit": fit, "warm": "", "recipe": ""}
        return self.typed(spec.model_copy(update=told), name)

    def beside(self, name: str) -> str:
        return flag("out", f"{self.run.folder}-{name}")


def examine(run: Run, rows: int = ROWS) -> list[Verdict]:
    """What every look found, in order; a look that this model has no numbers for says nothing."""
    patient, found = Patient(run, rows), list[Verdict]()
    for look in OF_MAPS if maps_in_the_end(run) else LOOKS:
        with suppress(Problem):
            found += look(patient)
    return found


def _collapse(p: Patient) -> Iterator[Verdict]:
    if not p.variances:
        return
    numbers: dict[str, float | str] = {"active dimensions": p.active, "latent dimensions": len(p.variances)}
    numbers |= {} if p.rate is None else {"mean KL in nats": p.rate}
    if told := p.collapsed:
        yield Verdict("collapse", "problem", told, numbers, p.remedy("in-use"))
        return
    if idle := verdicts.passive(p.active, len(p.variances)):
        yield Verdict("dead dimensions", "note", idle, numbers, p.smaller(p.active))
    else:
        yield Verdict("dead dimensions", "well", verdicts.alive(p.active, len(p.variances)), numbers)


def _doubled(p: Patient) -> Iterator[Verdict]:
    if len(p.held_out.rows) < PAIRS or p.active < 2:
        return
    used = [j for j, variance in enumerate(p.variances) if variance >= THRESHOLD]
    r = np.corrcoef(p.held_out.codes[0].double().numpy()[:, used].T)
    above = [(i, j) for i, j in zip(*np.triu_indices(len(used), 1), strict=True) if abs(r[i, j]) >= verdicts.TWINS]
    pairs = [(used[i], used[j], float(r[i, j])) for i, j in above]
    most = {"largest correlation": float(np.abs(r - np.eye(len(r))).max()), "doubled pairs": len(pairs)}
    if told := verdicts.doubled(pairs):
        spare = len({j for _, j, _ in pairs})
        yield Verdict("doubled dimensions", "problem", told, {**most}, p.smaller(len(p.variances) - spare))
    else:
        yield Verdict("doubled dimensions", "well", "No two dimensions say the same.", {**most})


def _far(p: Patient) -> Iterator[Verdict]:
    if not p.active or p.collapsed:
        return
    try_it = f"elbo sample {shlex.quote(str(p.run.folder))} --sampler gmm"
    if isinstance(p.run.model.prior, NoPrior):
        told = "The model has no prior: samples are drawn from a Gaussian that is fitted to its codes, which may be too simple."
        yield Verdict("prior", "note", told, {}, try_it)
        return
    information = mutual_information(p.held_out)
    found = aggregate_rate(p.evidence["rate"], information, p.held_out.has_many_priors).value
    how, ceiling = "KL of q(z) to the prior in nats", information.parts.get("ceiling", 0.0)
    if found is None or (information.value or 0.0) > ceiling - verdicts.MARGIN:
        found, how = _by_moments(p), "KL of q(z) to the prior in nats, by means and covariances"
    numbers: dict[str, float | str] = {how: found, "active dimensions": p.active}
    if told := verdicts.far(found, p.active):
        yield Verdict("prior", "problem", told, numbers, try_it)
    else:
        near = f"q(z) is {verdicts.nats(found)} nats from the prior, over {p.active} dimensions"
        told = f"{near}: draws of the prior fall among the codes."
        yield Verdict("prior", "well", told, numbers)


def _by_moments(p: Patient) -> float:
    """KL between the Gaussians of draws of q(z) and of p(z), at most the rate: what is told where I(x; z) is not.

    Of few draws covariances are noise, and variances alone are compared.
    """
    some = draws(p.held_out)
    few = min(map(len, some)) < DRAWS * some[0].shape[1]
    q, prior = (Independent(Gauss(d.mean(0), d.std(0).clamp_min(1e-6)), 1) if few else gaussian_of(d) for d in some)
    found = float(torch.distributions.kl_divergence(q, prior))
    return found if p.rate is None else min(found, p.rate)


def _overfit(p: Patient) -> Iterator[Verdict]:
    seen, new, error = p.costs
    numbers: dict[str, float | str] = {f"nats, {p.held_out.name}": new, "nats, train": seen, "error of both": error}
    if told := p.by_heart:
        yield Verdict("overfit", "problem", told, numbers, p.again("early", patience=3))
    else:
        state, told = verdicts.beside_training(seen, new, error)
        yield Verdict("overfit", state, told, numbers)


def _learning(p: Patient) -> Iterator[Verdict]:
    values = losses(p.run)
    told, slope = verdicts.learning(values), verdicts.slope(values)
    with suppress(Problem):
        told = "" if p.by_heart else told  # what it learns by now is of no use
    if not told:
        return
    numbers: dict[str, float | str] = {"steps": p.run.step, "lines of the log": len(values)}
    if slope is None or not slope.falls:
        yield Verdict("learning", "well" if slope else "note", told, numbers)
        return
    more = f"elbo resume {shlex.quote(str(p.run.folder))} --steps {p.run.step}"
    if p.run.spec.fit.decay in ("cosine", "linear"):  # whose steps are small by now
        more = p.again("longer", steps=2 * p.run.spec.fit.steps)
    numbers |= {"nats of the last quarter": slope.fall} | ({"noise in nats": slope.noise} if slope.noise else {})
    yield Verdict("learning", "problem", told, numbers, more)


@torch.no_grad()
def _likelihood(p: Patient) -> Iterator[Verdict]:
    about = p.run.spec.about
    if about.kind == "tokens":
        return
    batch = next(p.held_out.few(256).batches())
    px = Draw(p.run.model, batch).px
    levels, name = capabilities(px).levels, "likelihood"
    if about.kind == "pixels" and about.levels != 2 and levels == 2:
        grey = float(((batch.x > 0.05) & (batch.x < 0.95)).float().mean())
        if told := verdicts.bits_of_grey(grey):
            state: verdicts.State = "problem" if grey >= verdicts.GREY else "note"
            better = p.again("likelihood", likelihood="gaussian-optimal")
            yield Verdict(name, state, told, {"share of grey pixels": grey}, better)
    elif about.kind == "pixels" and about.levels == 2:
        if told := verdicts.black_and_white(levels):
            yield Verdict(name, "note", told, {"levels": 2}, p.again("likelihood", likelihood="bernoulli"))
    elif isinstance(px, Normal) and not getattr(p.run.model.likelihood, "learns_sigma", True):
        sigma = float(px.log_sigma.exp().square().mean().sqrt())
        error = float((px.mean - batch.x).square().mean().sqrt())
        if told := verdicts.wide(sigma, error):
            better = p.again("likelihood", likelihood="gaussian-optimal")
            yield Verdict(name, "problem", told, {"sigma": sigma, "error": error}, better)


def _pca(p: Patient) -> Iterator[Verdict]:
    if p.collapsed:  # which is all that there is to say
        return
    kept = beside_pca(p.run)
    told = verdicts.against_pca(*kept, p.run.latent)
    numbers: dict[str, float | str] = {"variance kept": kept.run, "variance kept by PCA": kept.pca}
    if kept.run < kept.pca - verdicts.LINEAR:
        with suppress(Problem):
            if p.by_heart:  # to train longer would not help
                return
        yield Verdict("pca", "problem", told, numbers, p.again("longer", steps=2 * p.run.spec.fit.steps))
    else:
        yield Verdict("pca", "well", told, numbers)


def _words(p: Patient) -> Iterator[Verdict]:
    if p.run.tokeniser is None:
        return
    share = p.held_out.unknown_words
    if told := verdicts.strange(share):
        yield Verdict("unknown words", "note", told, {"share of unknown words": share}, p.again("bpe", tokens="bpe"))


def _reconstructions(p: Patient) -> Iterator[Verdict]:
    if p.run.tokeniser is None or not p.run.latent or p.collapsed:
        return
    rows = p.held_out.rows[:: max(1, len(p.held_out.rows) // SENTENCES)][:SENTENCES]
    made = p.run.reconstruct(batch_of(p.run.data, rows, p.run.given))
    score = bleu(made, p.run.data.sentences(rows)).value or 0.0
    if told := verdicts.apart(score):
        yield Verdict("reconstructions", "note", told, {"BLEU of reconstructions": score})


def losses(run: Run) -> list[float]:
    """nll + kl at weight one along the run, that of all parts of z; the loss where its log has no nll."""

    def rate(line: dict[str, float]) -> float:
        parts = (value for name, value in line.items() if name.startswith("kl_") and "." not in name)
        return line["kl"] if "kl" in line else sum(parts)

    return [line["nll"] + rate(line) if "nll" in line else line["loss"] for line in run.log if "loss" in line]


LOOKS: tuple[Callable[[Patient], Iterator[Verdict]], ...] = (
    _collapse, _doubled, _far, _overfit, _learning, _likelihood, _pca, _reconstructions, _words,
)  # fmt: skip
OF_MAPS = (_learning, _words)  # what a run writes whose codes are mapped is meant to differ from what it reads
