"""The axes along which a model may be chosen: posteriors and priors by name, each made from Parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from torch import nn

from elboroom.core.pairs import has_density
from elboroom.core.problem import Problem
from elboroom.families.autoregressive import AutoregressivePrior
from elboroom.families.ball import ConditionalWrapped, WrappedImplicitPosterior, WrappedPosterior, WrappedPrior
from elboroom.families.flow import FlowPosterior, SplinePosterior
from elboroom.families.flow_prior import FlowPrior
from elboroom.families.gaussian import ConditionalNormal, GaussianPosterior, StandardNormal
from elboroom.families.implicit import ImplicitPosterior, LinearImplicitPosterior
from elboroom.families.mixture import GaussianVampPrior, MixturePrior
from elboroom.families.point import PointPosterior
from elboroom.families.pseudo import VampPrior
from elboroom.families.sphere import PowerSpherical, SpherePrior, Spherical, SphericalPosterior, VonMisesFisher
from elboroom.families.structured import AnisotropicNormal, ClusteredPrior, SparsePrior, StudentPrior
from elboroom.methods.pseudo import pseudo_inputs
from elboroom.nets.gyroplane import Flat, Gyroplanes

if TYPE_CHECKING:
    from elboroom.methods.parts import Parts

FEATURES = 64  # of x, for flows, generators and critics


def _flowed(parts: Parts, make: type[FlowPosterior]) -> nn.Module:
    latent = parts.latent
    return make(parts.reader(2 * latent + FEATURES), latent, FEATURES, parts.choices.flow_steps, 8 * latent)


def _spherical(parts: Parts, family: type[Spherical]) -> nn.Module:
    if parts.latent < 2:
        raise Problem("a sphere has directions only in two dimensions or more: use --latent 2 or more")
    learned = parts.choices.kappa_learned
    return SphericalPosterior(parts.reader(parts.latent + learned), family, parts.choices.kappa, learned)


def _vamp(parts: Parts, posterior: nn.Module | None = None) -> nn.Module:
    if posterior is None or not hasattr(posterior, "law") or not has_density(cast(Any, posterior.family)):
        raise Problem(
            "--prior vamp is a mixture of what the encoder says of pseudo-inputs, each by itself: "
            "use --posterior gaussian, implicit-linear, vmf, power-spherical, wrapped or wrapped-linear"
        )
    pseudo = pseudo_inputs(parts, cast(nn.Module, posterior.net), parts.choices.pseudo_inputs)
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


POSTERIORS: dict[str, Callable[[Parts], nn.Module]] = {
    "gaussian": lambda parts: GaussianPosterior(parts.reader(2 * parts.latent)),
    "point": lambda parts: PointPosterior(parts.reader(parts.latent)),
    "iaf": lambda parts: _flowed(parts, FlowPosterior),
    "nsf": lambda parts: _flowed(parts, SplinePosterior),
    "vmf": lambda parts: _spherical(parts, VonMisesFisher),
    "power-spherical": lambda parts: _spherical(parts, PowerSpherical),
    "implicit": _implicit,
    "implicit-linear": _implicit_linear,
    "wrapped": lambda parts: WrappedPosterior(parts.reader(2 * parts.latent), parts.ball),
    "wrapped-implicit": lambda parts: _wrapped_implicit(parts, linear=False),
    "wrapped-linear": lambda parts: _wrapped_implicit(parts, linear=True),
}
PRIORS: dict[str, Callable[[Parts], nn.Module]] = {
    "normal": lambda parts: StandardNormal(parts.latent),
    "anisotropic": lambda parts: AnisotropicNormal(parts.spectrum(), parts.choices.variances_learned),
    "student": lambda parts: StudentPrior(parts.spectrum(), parts.choices.variances_learned),
    "clustered": lambda parts: ClusteredPrior(parts.latent),
    "sparse": lambda parts: SparsePrior(parts.latent, parts.choices.sparse_share),
    "wrapped": lambda parts: WrappedPrior(parts.latent, parts.ball),
    "sphere": lambda parts: SpherePrior(parts.latent),
    "ar1": lambda parts: AutoregressivePrior(parts.latent, parts.choices.ar1_channels, parts.choices.ar1_alpha),
    "mog": lambda parts: MixturePrior(parts.latent, parts.choices.components),
    "vamp": _vamp,
    "flow": lambda parts: FlowPrior(parts.latent, parts.choices.flow_layers, 4 * parts.latent),
}
WITH_VARIANCES = ("anisotropic", "student")  # that may be learned
LEARNED = ("mog", "vamp", "flow")  # which nothing but a rate would teach
OF_POSTERIOR: dict[str, Callable[[Parts, nn.Module], nn.Module]] = {"vamp": _vamp}  # made of the posterior beside them
NATURAL: dict[str, str] = {
    "wrapped": "wrapped",
    "wrapped-implicit": "wrapped",
    "wrapped-linear": "wrapped",
    "vmf": "sphere",
    "power-spherical": "sphere",
}  # the prior of a posterior that does not live on R^d
CONDITIONAL: dict[str, Callable[[Parts], nn.Module]] = {  # the priors that depend on labels where these are given
    "normal": lambda parts: ConditionalNormal(parts.latent, parts.given),
    "wrapped": lambda parts: ConditionalWrapped(parts.latent, parts.given, parts.ball),
}
_ON_BALL = [name for name, prior in NATURAL.items() if prior == "wrapped"]
# How decoders and critics read a z that does not live on R^d.
ENTRIES: dict[str, Callable[[Parts, nn.Module], nn.Module]] = dict.fromkeys(
    _ON_BALL, lambda parts, likelihood: Gyroplanes(likelihood, parts.latent, parts.ball)
)
CHARTS: dict[str, Callable[[Parts], nn.Module]] = dict.fromkeys(_ON_BALL, lambda parts: Flat(parts.ball))
