"""Parts: networks and distributions sized for a data set, from which methods are put together."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator
from torch import Tensor, nn

from elboroom import nets
from elboroom.build.axes import FEATURES, FLAT, NONE, POSTERIORS, PRIORS, Prior
from elboroom.build.supplied import tried
from elboroom.core.model import LatentModel
from elboroom.core.problem import Problem, unknown
from elboroom.data.dataset import About, DataSet, Kind
from elboroom.families.pixels import (
    BernoulliLikelihood,
    GaussianLikelihood,
    GaussianPerPixelLikelihood,
    LogisticLikelihood,
    PixelLikelihood,
)
from elboroom.families.tokens import TokenLikelihood
from elboroom.geometry.ball import Ball
from elboroom.nets import sentences
from elboroom.nets.joint import JointCritic

Given = Literal["seen", "unseen"]


def _latent(kind: Kind) -> int:
    return 32 if kind == "tokens" else 10


class Choices(BaseModel):
    """The options of the model that every method has."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    latent: int | None = Field(None, ge=1, description="latent dimensions; 10 for images and vectors, 32 for text")
    net: str = Field("auto", description=f"auto, {', '.join(nets.NETS)}; for text {', '.join(sentences.NETS)}")
    posterior: str = Field("auto", description=f"q(z|x): auto, the method's own, or {', '.join(POSTERIORS)}")
    prior: str = Field("auto", description=f"p(z): auto, the method's own, or {', '.join(PRIORS)}", examples=["sparse"])
    flow_steps: int = Field(4, ge=1, description="autoregressive steps of --posterior iaf and nsf")
    flow_layers: int = Field(6, ge=1, description="couplings of --prior flow")
    components: int = Field(10, ge=1, description="Gaussians of --prior mog")
    pseudo_inputs: int | None = Field(
        None,
        ge=1,
        description="components of --prior vamp; 500 for images and vectors, 100 for text, and 500 for apo-vae-vamp",
        examples=[200],
    )
    ar1_alpha: float = Field(
        0.5, ge=0, lt=1, description="correlation of a step of --prior ar1 with the one before", examples=[0.9]
    )
    ar1_channels: int = Field(1, ge=1, description="chains of --prior ar1, side by side")
    kappa: float = Field(
        35.0, gt=0, le=1e6, description="concentration of --posterior vmf and power-spherical", examples=[13.0]
    )
    kappa_learned: bool = Field(False, description="whether kappa is read off x, starting near that number")
    sparse_share: float = Field(0.8, ge=0, lt=1, description="share of dimensions near zero under --prior sparse")
    variances_learned: bool = Field(False, description="whether those of --prior anisotropic and student are learned")
    curvature: float = Field(
        1.0, gt=0, description="c of the ball of --posterior wrapped and the like: curvature -c, radius 1/sqrt(c)"
    )
    curvature_learned: bool = Field(False, description="whether c is learned")
    likelihood: Literal["auto", "bernoulli", "gaussian", "gaussian-learned", "gaussian-per-pixel", "logistic"] = Field(
        "auto", description="p(x|z); auto is bernoulli for images, gaussian for vectors"
    )
    sigma: float = Field(1.0, gt=0, description="standard deviation of the gaussian likelihood (its start, if learned)")
    trunk: Literal["a", "b"] = Field("a", description="which published LSTM pair the nets of text follow")
    embed: int = Field(256, ge=1, description="size of the word embeddings, for text")
    hidden: int = Field(256, ge=1, description="size of the recurrent states, for text")
    layers: int | None = Field(None, ge=1, description="layers of the decoder of text; 1, of a transformer 3")
    dropout: float | None = Field(
        None, ge=0, lt=1, description="on inputs and outputs of the decoder of text; 0.5, in a transformer 0.2"
    )
    word_dropout: float = Field(0.0, ge=0, lt=1, description="share of the decoder's input words hidden, for text")
    inject: str = Field(
        "auto", description=f"how z enters the decoder of text: auto, {', '.join(sentences.INJECTIONS)}"
    )
    given: str = Field(
        "",
        description="labels that encoder and decoder see, and p(z) if normal or wrapped with a kl, e.g. shape,scale",
    )
    init: Literal["kaiming", "glorot", "torch"] = Field("kaiming", description="initialisation of the nets")

    @field_validator("posterior", "prior")
    @classmethod
    def _known(cls, name: str, info: ValidationInfo) -> str:
        names = ("auto", *(POSTERIORS if info.field_name == "posterior" else PRIORS))
        if name not in names:
            raise ValueError(f"is none of {', '.join(names)}")
        return name

    def for_kind(self, kind: Kind) -> Choices:
        """The same with the defaults that depend on the kind of data."""
        return self.model_copy(update={"latent": self.latent or _latent(kind)})

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
            if not self.about.labels:
                raise Problem(f"--given {name}: {self.about.name} has no labels")
            if name not in self.about.labels:
                raise unknown(f"label of {self.about.name}", name, self.about.labels)
        return sum(self.about.labels[name] for name in self.choices.given_names)

    def span(self, amount: float) -> int:
        """Steps for an amount that is a fraction of the run (up to 1) or a number of steps (above)."""
        return round(amount * self.steps) if amount <= 1 else round(amount)

    @property
    def latent(self) -> int:
        """The dimensions of z."""
        return self.choices.latent or _latent(self.about.kind)

    def vae(
        self, posterior: str = "gaussian", prior: str = "normal", u: Given = "seen", skip: bool = False
    ) -> LatentModel:
        """A model with this posterior and prior, unless the user chose others; with `skip`, z enters every layer.

        The prior depends on labels that are given, unless nothing would teach it to (`unseen`); prior "none" is for
        methods that have none.
        """
        q = self._chosen("posterior", posterior)
        family = POSTERIORS[q]
        space = family.space
        if prior == "none" and space is not FLAT:
            raise Problem(
                f"this method has no prior, which --posterior {q} cannot be without: use --posterior gaussian"
            )
        p = self._chosen("prior", space.prior if prior == "normal" else prior)
        law = NONE if p == "none" else PRIORS[p]
        if law.space not in (None, space):
            raise Problem(f"--posterior {q} and --prior {p} live on different spaces: use --prior {space.prior}")
        if prior == "none" and law is not NONE:
            raise Problem(f"this method has no prior, so --prior {p} means nothing here")
        if u == "unseen" and law.learned(self.choices):
            raise Problem(
                f"--prior {p} is learned, for which a loss needs its whole kl: leave it out, or use vae --prior {p}"
            )
        made = family.make(self)
        return LatentModel(made, self._made(law, made, u), space.entry(self, self.likelihood(skip=skip)))

    def prior(self, posterior: nn.Module) -> nn.Module:
        """p(z|u) beside a posterior on R^d that nobody chose."""
        name = self._chosen("prior", "normal")
        if PRIORS[name].space not in (None, FLAT):
            raise Problem(f"--prior {name} is for a posterior that lives where it does: use --prior normal")
        return self._made(PRIORS[name], posterior, "seen")

    def _chosen(self, axis: Literal["posterior", "prior"], own: str) -> str:
        """What the user chose along an axis, or else the method's own."""
        told: str = getattr(self.choices, axis)
        return own if told == "auto" else told

    def _made(self, prior: Prior, posterior: nn.Module, u: Given) -> nn.Module:
        """The prior beside a posterior, conditional on labels that are given and seen."""
        if self.given and u == "seen" and prior.conditional is not None:
            return prior.conditional(self)
        return prior.make(self, posterior)

    @cached_property
    def ball(self) -> Ball:
        """The Poincare ball, one for all that lives on it."""
        return Ball(self.choices.curvature, self.choices.curvature_learned)

    def reader(self, outputs: int) -> nn.Module:
        """The encoder, `net(x, u) -> (B, outputs)`: the user's own, or a new one."""
        if self.encoder is None:
            return self.features(outputs)
        if self.about.kind == "tokens":
            return self.encoder
        return tried(self.encoder, "encoder", torch.zeros(2, *self.about.shape), self.given, (outputs,))

    def features(self, outputs: int) -> nn.Module:
        """A new net `net(x, u) -> (B, outputs)`."""
        if self.about.kind == "tokens":
            c = self.choices
            return sentences.encoder(self.net, self.about.levels, outputs, self.given, c.embed, c.hidden, c.trunk)
        return nets.encoder(self.net, self.about.shape, outputs, self.given, self.choices.init)

    def spectrum(self, most: int = 2000) -> Tensor:
        """The leading variances of the data's principal axes; ones where the data is not at hand (a checkpoint has them)."""
        if self.about.kind == "tokens":
            raise Problem(f"--prior {self.choices.prior} is read off pixels or vectors: for text use --prior normal")
        if self.data is None:
            return torch.ones(self.latent)
        rows = self.data.splits["train"]
        few = self.data.x(np.sort(np.random.default_rng(0).choice(rows, min(most, len(rows)), replace=False)))
        flat = few.flatten(1).double()
        found = torch.linalg.svdvals(flat - flat.mean(0)).square()[: self.latent] / len(flat)
        if len(found) < self.latent:
            raise Problem(
                f"--prior {self.choices.prior} has a principal axis of the data for each dimension, and there are "
                f"{len(found)}: use --latent {len(found)} or fewer"
            )
        spectrum: Tensor = found.clamp_min(1e-3 * found.max().item() or 1.0).float()
        return spectrum

    @property
    def net(self) -> str:
        """The name of the nets."""
        auto = {"pixels": "burgess", "vectors": "mlp-300", "tokens": "lstm"}[self.about.kind]
        return auto if self.choices.net == "auto" else self.choices.net

    def likelihood(self, latent: int | None = None, skip: bool = False) -> nn.Module:
        """p(x|z) on a decoder; of no latent dimensions, p(x) of a language model."""
        if self.about.kind == "tokens":
            return TokenLikelihood(self.decoder or self.writer(self.latent if latent is None else latent, skip))
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
        if self.decoder is not None:
            shape = (channels, *self.about.shape[1:]) if event == 3 else (channels, *self.about.shape)[channels == 1 :]
            net = tried(self.decoder, "decoder", torch.zeros(2, self.latent), self.given, shape)
        else:
            net = nets.decoder(self.net, self.about.shape, self.latent, channels, self.given, self.choices.init)
        if make is GaussianLikelihood:
            return GaussianLikelihood(net, event, self.choices.sigma, learned=kind == "gaussian-learned")
        return make(net, event)

    def writer(self, latent: int, skip: bool = False) -> nn.Module:
        """A decoder of sentences."""
        c = self.choices
        if c.likelihood != "auto":
            raise Problem(f"--likelihood {c.likelihood} is for pixels and vectors; text is made word by word")
        return sentences.decoder(
            self.net,
            self.about.levels,
            latent,
            self.given,
            embed=c.embed,
            hidden=c.hidden,
            layers=c.layers,
            trunk=c.trunk,
            dropout=c.dropout,
            word_dropout=c.word_dropout,
            inject=c.inject,
            skip=skip,
        )

    def critic(self, outputs: int = 1, width: int = 1000, depth: int = 6) -> nn.Module:
        """A critic of codes."""
        critic, chart = nets.critic(self.latent, outputs, width, depth), self.chart()
        return critic if chart is None else nn.Sequential(chart, critic)

    def chart(self, posterior: str = "gaussian") -> nn.Module | None:
        """How a critic reads z, where that does not live on R^d."""
        return POSTERIORS[self._chosen("posterior", posterior)].space.chart(self)

    def joint_critic(self) -> nn.Module:
        """A critic of pairs (x, z)."""
        return JointCritic(self.features(FEATURES), FEATURES, self.latent, chart=self.chart())
