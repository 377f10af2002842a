"""The posteriors and priors that may be chosen, in tables; which go together is asked of the code."""

from __future__ import annotations

from elboroom.core.problem import Problem
from elboroom.data.dataset import About
from elboroom.methods.axes import FEATURES, POSTERIORS, PRIORS
from elboroom.methods.parts import Choices, Parts
from elboroom.methods.registry import card

HEAD = """`--posterior` and `--prior` may be chosen with any method that can use them; what cannot be is refused with a reason
when the run begins. `auto` is the method's own; where that is the normal prior and another posterior was chosen, the prior of
the space that this lives on."""
Q = {
    "gaussian": ("a Gaussian, independent dimensions", "2 latent"),
    "point": ("one code, f(x): for autoencoders such as `ae` and `wae-d`", "latent"),
    "iaf": ("a Gaussian through affine autoregressive steps (`--flow-steps`)", f"2 latent + {FEATURES}"),
    "nsf": ("a Gaussian through rational-quadratic spline steps (`--flow-steps`)", f"2 latent + {FEATURES}"),
    "vmf": ("von Mises-Fisher on the unit sphere (`--kappa`)", "latent, + 1 with `--kappa-learned`"),
    "power-spherical": ("the same shape by a law without Bessel functions", "latent, + 1 with `--kappa-learned`"),
    "implicit": ("a net of features of x and noise, without a density: of `implicit-vae` and `avb`", str(FEATURES)),
    "implicit-linear": ("linear in noise: a Gaussian whose covariance all x share", str(FEATURES)),
    "wrapped": ("a normal wrapped onto the Poincare ball (`--curvature`)", "2 latent"),
    "wrapped-implicit": (
        "a net of noise wrapped onto the ball, without a density: of `apo-vae`",
        f"latent + {FEATURES}",
    ),
    "wrapped-linear": ("linear in noise, wrapped onto the ball", f"latent + {FEATURES}"),
}
P = {
    "normal": "N(0, I); with `--given`, a Gaussian whose mean and variance depend on the labels",
    "anisotropic": "N(0, diag), its variances those of the data's principal axes (`--variances-learned`)",
    "student": "the same with Student's t of 9 degrees of freedom (`--variances-learned`)",
    "clustered": "four narrow Gaussians, at +-1 on the first two axes",
    "sparse": "each dimension N(0, 0.05^2) with probability `--sparse-share`, else N(0, 1)",
    "wrapped": "a normal wrapped onto the Poincare ball around its origin",
    "sphere": "uniform on the unit sphere",
    "ar1": "autoregressive along the dimensions (`--ar1-alpha`, `--ar1-channels`)",
    "mog": "a mixture of Gaussians (`--components`), learned",
    "vamp": "the mean of q(z\\|s) over learned pseudo-inputs s (`--pseudo-inputs`)",
    "flow": "N(0, I) through affine couplings (`--flow-layers`), learned",
}


def posteriors() -> list[tuple[str, str, str, str]]:
    """Each with what it is, the priors that it has a rate with, and what an encoder of one's own has to emit."""
    return [(f"`{name}`", Q[name][0], ", ".join(_priors(name)) or "none", Q[name][1]) for name in POSTERIORS]


def priors() -> list[tuple[str, str]]:
    """Each with what it is."""
    return [(f"`{name}`", P[name]) for name in PRIORS]


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
