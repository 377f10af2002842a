"""Parts: networks and distributions sized for a data set, from which methods are put together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field
from torch import nn

from elboroom import nets
from elboroom.core.draw import LatentModel
from elboroom.core.problem import Problem, unknown
from elboroom.data.dataset import About
from elboroom.families.gaussian import ConditionalNormal, GaussianPosterior, StandardNormal
from elboroom.families.pixels import (
    BernoulliLikelihood,
    GaussianLikelihood,
    GaussianPerPixelLikelihood,
    LogisticLikelihood,
    PixelLikelihood,
)
from elboroom.families.point import PointPosterior


class Choices(BaseModel):
    """The options of the model that every method has."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    latent: int = Field(10, ge=1, description="latent dimensions")
    net: str = Field("auto", description=f"auto, {', '.join(nets.NETS)}")
    posterior: Literal["auto", "gaussian", "point"] = Field("auto", description="q(z|x); auto is the method's own")
    prior: Literal["normal"] = Field("normal", description="p(z); with --given its mean and variance depend on u")
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

    def vae(self, posterior: str = "gaussian", prior: Literal["given", "fixed"] = "given") -> LatentModel:
        """A model with this posterior, unless the user chose another; a method that reads no prior asks for a fixed one."""
        latent, given = self.choices.latent, self.given
        kind = posterior if self.choices.posterior == "auto" else self.choices.posterior
        make, outputs = {"gaussian": (GaussianPosterior, 2 * latent), "point": (PointPosterior, latent)}[kind]
        encoder = self.encoder or nets.encoder(self.net, self.about.shape, outputs, given, self.choices.init)
        conditional = given and prior == "given"
        p = ConditionalNormal(latent, given) if conditional else StandardNormal(latent)
        return LatentModel(make(encoder), p, self.likelihood())

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

    def critic(self, outputs: int) -> nn.Module:
        """A critic of codes."""
        return nets.critic(self.choices.latent, outputs)
