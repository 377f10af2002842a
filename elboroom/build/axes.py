"""The axes along which a model may be chosen: posteriors and priors by name, each made from Parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from torch import nn

from elboroom.build.pseudo import pseudo_inputs as pseudo_inputs_of
from elboroom.core.kl import has_density
from elboroom.core.problem import Problem
from elboroom.families.autoregressive import AutoregressivePrior
from elboroom.families.ball import ConditionalWrapped, WrappedImplicitPosterior, WrappedPosterior, WrappedPrior
from elboroom.families.flow import FlowPosterior, SplinePosterior
from elboroom.families.flow_prior import FlowPrior
from elboroom.families.gaussian import ConditionalNormal, GaussianPosterior, NoPrior, ScaledNormal, StandardNormal
from elboroom.families.implicit import ImplicitPosterior, LinearImplicitPosterior
from elboroom.families.mixture import GaussianVampPrior, MixturePrior
from elboroom.families.point import PointPosterior
from elboroom.families.pseudo import VampPrior
from elboroom.families.sphere import PowerSpherical, SpherePrior, Spherical, SphericalPosterior, VonMisesFisher
from elboroom.families.structured import AnisotropicNormal, ClusteredPrior, SparsePrior, StudentPrior
from elboroom.nets.gyroplane import Flat, Gyroplanes

if TYPE_CHECKING:
    from elboroom.build.choices import Choices
    from elboroom.build.parts import Parts

FEATURES = 64  # of x, for flows, generators and critics


def _as_it_is(parts: Parts, likelihood: nn.Module) -> nn.Module:
    return likelihood


def _no_chart(parts: Parts) -> None:
    return None


@dataclass(frozen=True)
class Space:
    """Where z lives: the prior that it has by itself there, and how a decoder and a critic read it."""

    prior: str
    entry: Callable[[Parts, nn.Module], nn.Module] = _as_it_is
    chart: Callable[[Parts], nn.Module | None] = _no_chart


FLAT = Space("normal")
SPHERE = Space("sphere")
BALL = Space(
    "wrapped",
    entry=lambda parts, likelihood: Gyroplanes(likelihood, parts.latent, parts.ball),
    chart=lambda parts: Flat(parts.ball),
)


@dataclass(frozen=True)
class Posterior:
    """A family of q(z|x)."""

    make: Callable[..., nn.Module]  # (parts, and its options by name)
    what: str
    outputs: str  # of an encoder of one's own
    space: Space = FLAT
    options: tuple[str, ...] = ()  # those of Choices that it uses


def _never(choices: Choices) -> bool:
    return False


def _always(choices: Choices) -> bool:
    return True


@dataclass(frozen=True)
class Prior:
    """A family of p(z)."""

    make: Callable[..., nn.Module]  # (parts, the posterior beside it, and its options by name)
    what: str
    space: Space | None = FLAT  # None is that of the posterior, of which it is made
    learned: Callable[[Choices], bool] = _never  # by a rate, and by nothing else
    conditional: Callable[[Parts], nn.Module] | None = None  # on labels, where these are given
    options: tuple[str, ...] = ()  # those of Choices that it uses


def _flowed(parts: Parts, make: type[FlowPosterior], flow_steps: int) -> nn.Module:
    latent = parts.latent
    return make(parts.reader(2 * latent + FEATURES), latent, FEATURES, flow_steps, 8 * latent)


def _spherical(parts: Parts, family: type[Spherical], kappa: float, kappa_learned: bool) -> nn.Module:
    if parts.latent < 2:
        raise Problem("a sphere needs at least two dimensions; use --latent 2 or more")
    return SphericalPosterior(parts.reader(parts.latent + kappa_learned), family, kappa, kappa_learned)


def _vamp(parts: Parts, posterior: nn.Module, pseudo_inputs: int | None) -> nn.Module:
    if not hasattr(posterior, "law") or not has_density(cast(Any, posterior.family)):
        raise Problem(
            "--prior vamp is a mixture of q(z|x) at pseudo-inputs, which this posterior does not support; "
            "use --posterior gaussian, implicit-linear, vmf, power-spherical, wrapped or wrapped-linear"
        )
    pseudo = pseudo_inputs_of(parts, cast(nn.Module, posterior.net), pseudo_inputs)
    if type(posterior) is GaussianPosterior:
        return GaussianVampPrior(posterior, pseudo)
    return VampPrior(posterior, pseudo, parts.latent)


def _implicit(parts: Parts) -> nn.Module:
    return ImplicitPosterior(parts.reader(FEATURES), FEATURES, 2 * parts.latent, parts.latent)


def _implicit_linear(parts: Parts) -> nn.Module:
    return LinearImplicitPosterior(parts.reader(FEATURES), FEATURES, 2 * parts.latent, parts.latent)


def _wrapped_implicit(parts: Parts, linear: bool) -> nn.Module:
    latent, net = parts.latent, parts.reader(parts.latent + FEATURES)
    return WrappedImplicitPosterior(net, parts.ball, FEATURES, 2 * latent, latent, linear)


POSTERIORS = {
    "gaussian": Posterior(
        lambda parts: GaussianPosterior(parts.reader(2 * parts.latent)),
        "a Gaussian, independent dimensions",
        "2 latent",
    ),
    "point": Posterior(
        lambda parts: PointPosterior(parts.reader(parts.latent)),
        "one code, f(x): for autoencoders such as `ae` and `wae-d`",
        "latent",
    ),
    "iaf": Posterior(
        lambda parts, **options: _flowed(parts, FlowPosterior, **options),
        "a Gaussian through affine autoregressive steps (`--flow-steps`)",
        f"2 latent + {FEATURES}",
        options=("flow_steps",),
    ),
    "nsf": Posterior(
        lambda parts, **options: _flowed(parts, SplinePosterior, **options),
        "a Gaussian through rational-quadratic spline steps (`--flow-steps`)",
        f"2 latent + {FEATURES}",
        options=("flow_steps",),
    ),
    "vmf": Posterior(
        lambda parts, **options: _spherical(parts, VonMisesFisher, **options),
        "von Mises-Fisher on the unit sphere (`--kappa`)",
        "latent, + 1 with `--kappa-learned`",
        SPHERE,
        options=("kappa", "kappa_learned"),
    ),
    "power-spherical": Posterior(
        lambda parts, **options: _spherical(parts, PowerSpherical, **options),
        "the same shape by a law without Bessel functions",
        "latent, + 1 with `--kappa-learned`",
        SPHERE,
        options=("kappa", "kappa_learned"),
    ),
    "implicit": Posterior(
        _implicit,
        "a net of features of x and noise, without a density: of `implicit-vae` and `avb`",
        f"{FEATURES}",
    ),
    "implicit-linear": Posterior(
        _implicit_linear,
        "linear in noise: a Gaussian whose covariance all x share",
        f"{FEATURES}",
    ),
    "wrapped": Posterior(
        lambda parts: WrappedPosterior(parts.reader(2 * parts.latent), parts.ball),
        "a normal wrapped onto the Poincare ball (`--curvature`)",
        "2 latent",
        BALL,
    ),
    "wrapped-implicit": Posterior(
        lambda parts: _wrapped_implicit(parts, linear=False),
        "a net of noise wrapped onto the ball, without a density: of `apo-vae`",
        f"latent + {FEATURES}",
        BALL,
    ),
    "wrapped-linear": Posterior(
        lambda parts: _wrapped_implicit(parts, linear=True),
        "linear in noise, wrapped onto the ball",
        f"latent + {FEATURES}",
        BALL,
    ),
}
PRIORS = {
    "normal": Prior(
        lambda parts, q, prior_sigma: (
            StandardNormal(parts.latent) if prior_sigma == 1 else ScaledNormal(parts.latent, prior_sigma)
        ),
        "N(0, I), or N(0, s^2 I) with `--prior-sigma`; with `--given`, a Gaussian whose mean and variance depend on the labels "
        "or the context",
        conditional=lambda parts: ConditionalNormal(parts.latent, parts.given, parts.deep),
        options=("prior_sigma",),
    ),
    "anisotropic": Prior(
        lambda parts, q, variances_learned: AnisotropicNormal(parts.spectrum(), variances_learned),
        "N(0, diag), its variances those of the data's principal axes (`--variances-learned`); not for text",
        learned=lambda choices: choices.variances_learned,
        options=("variances_learned",),
    ),
    "student": Prior(
        lambda parts, q, variances_learned: StudentPrior(parts.spectrum(), variances_learned),
        "the same with Student's t of 9 degrees of freedom (`--variances-learned`); not for text",
        learned=lambda choices: choices.variances_learned,
        options=("variances_learned",),
    ),
    "clustered": Prior(
        lambda parts, q, clusters, cluster_variance: ClusteredPrior(parts.latent, cluster_variance, clusters),
        "four narrow Gaussians, at +-1 on the first two axes (`--cluster-variance`), or so many on a circle (`--clusters`)",
        options=("clusters", "cluster_variance"),
    ),
    "sparse": Prior(
        lambda parts, q, sparse_share, sparse_sigma: SparsePrior(parts.latent, sparse_share, sparse_sigma),
        "each dimension N(0, 0.05^2) (`--sparse-sigma`) with probability `--sparse-share`, else N(0, 1)",
        options=("sparse_share", "sparse_sigma"),
    ),
    "wrapped": Prior(
        lambda parts, q: WrappedPrior(parts.latent, parts.ball),
        "a normal wrapped onto the Poincare ball around its origin",
        BALL,
        conditional=lambda parts: ConditionalWrapped(parts.latent, parts.given, parts.ball),
    ),
    "sphere": Prior(lambda parts, q: SpherePrior(parts.latent), "uniform on the unit sphere", SPHERE),
    "ar1": Prior(
        lambda parts, q, ar1_channels, ar1_alpha: AutoregressivePrior(parts.latent, ar1_channels, ar1_alpha),
        "autoregressive along the dimensions (`--ar1-alpha`, `--ar1-channels`)",
        options=("ar1_alpha", "ar1_channels"),
    ),
    "mog": Prior(
        lambda parts, q, components: MixturePrior(parts.latent, components),
        "a mixture of Gaussians (`--components`), learned",
        learned=_always,
        options=("components",),
    ),
    "vamp": Prior(
        _vamp,
        "the mean of q(z|s) over learned pseudo-inputs s (`--pseudo-inputs`)",
        space=None,
        learned=_always,
        options=("pseudo_inputs",),
    ),
    "flow": Prior(
        lambda parts, q, flow_layers: FlowPrior(parts.latent, flow_layers, 4 * parts.latent),
        "N(0, I) through affine couplings (`--flow-layers`), learned",
        learned=_always,
        options=("flow_layers",),
    ),
}
NONE = Prior(lambda parts, q: NoPrior(parts.latent), "none, of methods that have no use for one")
