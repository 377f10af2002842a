"""Methods that only text has: the language model, skip connections into the decoder, and noise on the words."""

from __future__ import annotations

from elboroom.build.parts import Parts
from elboroom.build.registry import Places, Share, Start, Warmup, method
from elboroom.core.method import Method, descend
from elboroom.core.model import LatentModel
from elboroom.core.problem import Problem
from elboroom.families.gaussian import NoLatent, StandardNormal
from elboroom.nets.corruption import Corrupted, Corruption
from elboroom.terms.evidence import kl, nll
from elboroom.weights.schedules import Linear

PURPOSE = "text: for comparison, or against collapse"
SHOWN_ON = "sentences"  # the data of its examples


@method("lm", "nll, without z", paper="Mikolov et al. 2010", on=("tokens",))
def lm(parts: Parts) -> Method:
    """The language model: the decoder of a VAE without its z, against which every use of z is measured."""
    for name in ("posterior", "prior"):
        if parts.option(name) != "auto":
            raise Problem(f"a language model has no z, so --{name} has no effect; remove it")
    return descend(LatentModel(NoLatent(), StandardNormal(0), parts.likelihood(latent=0)), nll())


@method("skip-vae", "nll + w(t) kl, with z at every layer of the decoder", paper="Dieng et al. 2019", on=("tokens",))
def skip_vae(parts: Parts, warmup: Warmup = 0.9, start: Start = 0.1) -> Method:
    """A VAE whose z enters the decoder at every word, at every layer and before the softmax."""
    return descend(parts.vae(skip=True), nll() + Linear(start, 1, parts.span(warmup)) * kl())


@method("dae", "nll of x, encoded from noisy x", paper="Vincent et al. 2008", on=("tokens",), autoencoder=True)
def dae(parts: Parts, drop: Share = 0.3, blank: Share = 0.0, substitute: Share = 0.0, shuffle: Places = 0) -> Method:
    """A deterministic autoencoder that reads sentences with words missing and writes them whole; no prior, no density.

    drop: share of words left out
    blank: share of words hidden
    substitute: share of words replaced by any other
    shuffle: the most places that a word moves
    """
    clean = parts.vae("point", prior="none")
    noisy = Corrupted(clean.posterior, Corruption(drop, blank, substitute, shuffle, parts.about.levels))
    return descend(clean.with_posterior(noisy), nll())
