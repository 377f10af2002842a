"""The posteriors and priors that may be chosen, in tables; which go together is asked of the code."""

from __future__ import annotations

from elboroom.build.axes import POSTERIORS, PRIORS
from elboroom.build.parts import Choices, Parts
from elboroom.core.problem import Problem
from elboroom.data.dataset import About
from elboroom.methods import card

HEAD = """`--posterior` and `--prior` may be chosen with any method that can use them; what cannot be is refused with a reason
when the run begins. `auto` is the method's own; where that is the normal prior and another posterior was chosen, the prior of
the space that this lives on."""


def posteriors() -> list[tuple[str, str, str, str]]:
    """Each with what it is, the priors that it has a rate with, and what an encoder of one's own has to emit."""
    return [
        (f"`{name}`", _cell(q.what), ", ".join(_priors(name)) or "none", q.outputs) for name, q in POSTERIORS.items()
    ]


def priors() -> list[tuple[str, str]]:
    """Each with what it is."""
    return [(f"`{name}`", _cell(p.what)) for name, p in PRIORS.items()]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _priors(posterior: str) -> list[str]:
    """The priors that a VAE with this posterior may have."""
    return [name for name in PRIORS if _legal(posterior, name)]


def _legal(posterior: str, prior: str) -> bool:
    choices = Choices(posterior=posterior, prior=prior, latent=4, pseudo_inputs=2)
    try:
        card("vae").build(Parts(About("any", "vectors", (4,), 2, {}, 0), choices, steps=1), {})
    except Problem:
        return False
    return True
