"""Parts: networks and distributions sized for a data set, from which methods are put together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn

from elboroom import nets
from elboroom.core.draw import LatentModel
from elboroom.core.problem import Problem, unknown
from elboroom.data.dataset import About, DataSet
from elboroom.families.flow import FlowPosterior
from elboroom.families.gaussian import ConditionalNormal, GaussianPosterior, NoPrior, StandardNormal
from elboroom.families.implicit import ImplicitPosterior
from elboroom.families.pixels import (
    BernoulliLikelihood,
    GaussianLikelihood,
    GaussianPerPixelLikelihood,
    LogisticLikelihood,
    PixelLikelihood,
)
from elboroom.families.point import PointPosterior
from elboroom.families.structured import AnisotropicNormal, ClusteredPrior, SparsePrior, StudentPrior
from elboroom.nets.joint import JointCritic

Prior = Literal["given", "fixed", "none"]
FEATURES = 64  # of x, for flows, generators and critics


class Choices(BaseModel):
    """The options of the model that every method has."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    latent: int = Field(10, ge=1, description="latent dimensions")
    net: str = Field("auto", description=f"auto, {', '.join(nets.NETS)}")
    posterior: Literal["auto", "gaussian", "point", "iaf", "implicit"] = Field(
        "auto", description="q(z|x); auto is the method's own"
    )
    prior: Literal["normal", "anisotropic", "student", "clustered", "sparse"] = Field(
        "normal", description="p(z); with --given the mean and variance of normal depend on u"
    )
    flow_steps: int = Field(4, ge=1, description="autoregressive steps of --posterior iaf")
    sparse_share: float = Field(0.8, ge=0, lt=1, description="share of dimensions near zero under --prior sparse")
    likelihood: Literal["auto", "bernoulli", "gaussian", "gaussian-learned", "gaussian-per-pixel", "logistic"] = Field(
        "auto", description="p(x|z); auto is bernoulli for images, gaussian for vectors"
    )
    sigma: float = Field(1.0, gt=0, description="standard deviation of the gaussian likelihood (its start, if learned)")
    given: str = Field("", description="labels that encoder, prior and decoder see, e.g. label or shape,scale")
    init: Literal["kaiming", "glorot", "torch"] = Field("kaiming", description="initialisation of the nets")

    @property
    def given_names(self) -> tuple[str, ...]:
        """The names in `given`."""
        return tuple(name.strip() for name in self.given.split(",") if name.strip())


@dataclass(frozen=True)
class Parts:
    """What a builder is handed: the data it is for, the choices, and the length of the run."""

    about: About
    choices: Choices = field(default_factory=Choices)
    steps: int = 20_000
    data: DataSet | None = None  # for what is read off the data at the start
    encoder: nn.Module | None = None  # the user's own, if handed in
    decoder: nn.Module | None = None

    @property
    def n(self) -> int:
        """The number of training examples."""
        return self.about.n

    @property
    def given(self) -> int:
        """The width of u."""
        for name in self.choices.given_names:
            if name not in self.about.labels:
                raise unknown(f"label of {self.about.name}", name, self.about.labels)
        return sum(self.about.labels[name] for name in self.choices.given_names)

    def span(self, amount: float) -> int:
        """Steps for an amount that is a fraction of the run (up to 1) or a number of steps (above)."""
        return round(amount * self.steps) if amount <= 1 else round(amount)

    def vae(self, posterior: str = "gaussian", prior: Prior = "given") -> LatentModel:
        """A model with this posterior, unless the user chose another.

        A prior that nothing would teach to depend on u is fixed; a method that has no prior says none.
        """
        kind = posterior if self.choices.posterior == "auto" else self.choices.posterior
        return LatentModel(self.posterior(kind), self.prior(prior), self.likelihood())

    def posterior(self, kind: str) -> nn.Module:
        """q(z|x,u) on an encoder."""
        latent, steps = self.choices.latent, self.choices.flow_steps
        outputs, make = {
            "gaussian": (2 * latent, GaussianPosterior),
            "point": (latent, PointPosterior),
            "iaf": (2 * latent + FEATURES, lambda net: FlowPosterior(net, latent, FEATURES, steps, 8 * latent)),
            "implicit": (FEATURES, lambda net: ImplicitPosterior(net, FEATURES, 2 * latent, latent)),
        }[kind]
        net = self.encoder or nets.encoder(self.net, self.about.shape, outputs, self.given, self.choices.init)
        return make(net)

    def prior(self, of: Prior = "given") -> nn.Module:
        """p(z|u)."""
        latent, kind = self.choices.latent, self.choices.prior
        if of == "none":
            if kind != "normal":
                raise Problem(f"this method has no prior, so --prior {kind} means nothing here")
            return NoPrior(latent)
        if self.given and of == "given":
            if kind != "normal":
                raise Problem(f"--prior {kind} does not depend on labels: leave --given out, or use --prior normal")
            return ConditionalNormal(latent, self.given)
        makes: dict[str, Callable[[], nn.Module]] = {
            "normal": lambda: StandardNormal(latent),
            "anisotropic": lambda: AnisotropicNormal(self.spectrum()),
            "student": lambda: StudentPrior(self.spectrum()),
            "clustered": lambda: ClusteredPrior(latent),
            "sparse": lambda: SparsePrior(latent, self.choices.sparse_share),
        }
        return makes[kind]()

    def spectrum(self, most: int = 2000) -> Tensor:
        """The leading variances of the data's principal axes; ones where the data is not at hand (a checkpoint has them)."""
        if self.data is None:
            return torch.ones(self.choices.latent)
        rows = self.data.splits["train"]
        few = self.data.x(np.sort(np.random.default_rng(0).choice(rows, min(most, len(rows)), replace=False)))
        flat = few.flatten(1).double()
        found = torch.linalg.svdvals(flat - flat.mean(0)).square()[: self.choices.latent] / len(flat)
        return torch.nn.functional.pad(found, (0, self.choices.latent - len(found)), value=1e-3).clamp_min(1e-3).float()

    @property
    def net(self) -> str:
        """The name of the nets."""
        auto = "burgess" if self.about.kind == "pixels" else "mlp-300"
        return auto if self.choices.net == "auto" else self.choices.net

    def likelihood(self) -> PixelLikelihood:
        """p(x|z) on a decoder."""
        kind, event = self.choices.likelihood, len(self.about.shape)
        if kind == "auto":
            kind = "bernoulli" if self.about.levels else "gaussian"
        if kind == "bernoulli" and not self.about.levels:
            raise Problem("--likelihood bernoulli needs values in [0, 1]: use --likelihood gaussian for real values")
        if kind == "logistic" and self.about.levels != 256:
            raise Problem(
                "--likelihood logistic is for 8-bit images: use bernoulli for binary ones, gaussian for real values"
            )
        makes: dict[str, type[PixelLikelihood]] = {
            "bernoulli": BernoulliLikelihood,
            "gaussian": GaussianLikelihood,
            "gaussian-learned": GaussianLikelihood,
            "gaussian-per-pixel": GaussianPerPixelLikelihood,
            "logistic": LogisticLikelihood,
        }
        make = makes[kind]
        channels = make.channels * (self.about.shape[0] if event == 3 else 1)
        net = self.decoder or nets.decoder(
            self.net, self.about.shape, self.choices.latent, channels, self.given, self.choices.init
        )
        if make is GaussianLikelihood:
            return GaussianLikelihood(net, event, self.choices.sigma, learned=kind == "gaussian-learned")
        return make(net, event)

    def critic(self, outputs: int = 1, width: int = 1000, depth: int = 6) -> nn.Module:
        """A critic of codes."""
        return nets.critic(self.choices.latent, outputs, width, depth)

    def joint_critic(self) -> nn.Module:
        """A critic of pairs (x, z)."""
        features = nets.encoder(self.net, self.about.shape, FEATURES, self.given, self.choices.init)
        return JointCritic(features, FEATURES, self.choices.latent)
