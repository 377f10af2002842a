"""Parts: networks and distributions sized for a data set, from which methods are put together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from elboroom import nets
from elboroom.build.axes import FEATURES, FLAT, NONE, POSTERIORS, PRIORS, Prior
from elboroom.build.choices import Choices as Choices
from elboroom.build.choices import default_latent
from elboroom.build.user_nets import check_net
from elboroom.core.model import LatentModel
from elboroom.core.problem import Problem, unknown
from elboroom.data.dataset import About, DataSet
from elboroom.data.tokens import Tokeniser
from elboroom.families.pixels import (
    BernoulliLikelihood,
    GaussianLikelihood,
    GaussianPerPixelLikelihood,
    LearnedGaussianLikelihood,
    LogisticLikelihood,
    PixelLikelihood,
)
from elboroom.families.recalled import Recalled
from elboroom.families.tokens import TokenLikelihood
from elboroom.geometry.ball import Ball
from elboroom.nets import sentences
from elboroom.nets.joint import JointCritic
from elboroom.terms.labels import Classifier


@dataclass(frozen=True)
class Base:
    """A trained run that stands frozen under another: its model, and its posterior with codes worked out once.

    `model.with_posterior(codes)` reads the codes of training examples off a table; `spec` is that of the run.
    """

    model: LatentModel
    codes: Recalled
    latent: int
    tokeniser: Tokeniser | None
    spec: Any


@dataclass(frozen=True)
class Parts:
    """What a builder works with: the data it is for, the choices, and the length of the run."""

    about: About
    choices: Choices = field(default_factory=Choices)
    steps: int = 20_000
    data: DataSet | None = None  # for what is read off the data at the start
    encoder: nn.Module | None = None  # the user's own, if there is one
    decoder: nn.Module | None = None
    base: Base | None = None  # the run that stands frozen under this one
    used: set[str] = field(default_factory=set, repr=False, compare=False)  # the options that something built here uses

    def options(self, *names: str) -> dict[str, Any]:
        """These options by name, for what uses them; those that nothing uses are refused when a run begins."""
        self.used.update(names)
        return {name: getattr(self.choices, name) for name in names}

    def option(self, name: str) -> Any:
        """One option, for what uses it."""
        return self.options(name)[name]

    @property
    def n(self) -> int:
        """The number of training examples."""
        return self.about.n

    @property
    def given(self) -> int:
        """The width of u."""
        self.options("given")
        for name in self.choices.given_names:
            if not self.about.labels:
                raise Problem(f"--given {name}: {self.about.name} has no labels")
            if name not in self.about.labels:
                raise unknown("label", name, self.about.labels, self.about.name)
        return sum(self.about.labels[name] for name in self.choices.given_names)

    def require_base(self) -> Base:
        """The run that stands frozen under this one; refuses to be without, or one that has no z."""
        if self.base is None:
            raise Problem("this method stands on a trained run: say which with --base RUN")
        if not self.base.latent:
            raise Problem(f"--base: {self.base.spec.method} has no z, and so no codes to stand on")
        return self.base

    def classifier(self, label: str, codes: int) -> Classifier:
        """A linear head that tells a label, the only one where none is named, from so many numbers."""
        labels = self.about.labels
        if not labels:
            raise Problem(f"{self.about.name} has no labels to be told")
        if not label and len(labels) > 1:
            raise Problem(f"{self.about.name} has the labels {', '.join(labels)}: say which with --label")
        name = label or next(iter(labels))
        if name not in labels:
            raise unknown(f"label of {self.about.name}", name, labels)
        return Classifier(codes, labels[name], name, list(labels).index(name))

    def span(self, amount: float) -> int:
        """Steps for an amount that is a fraction of the run (up to 1) or a number of steps (above)."""
        return round(amount * self.steps) if amount <= 1 else round(amount)

    @property
    def latent(self) -> int:
        """The dimensions of z."""
        return self.option("latent") or default_latent(self.about.kind)

    def vae(
        self,
        posterior: str = "gaussian",
        prior: str = "normal",
        fixed_prior: bool = False,
        skip: bool = False,
        blocks: Mapping[str, int] | None = None,
    ) -> LatentModel:
        """A model with this posterior and prior, unless the user chose others; with `skip`, z enters every layer.

        `blocks` are named parts of z with their sizes, which add up to its dimensions.

        A fixed prior neither depends on labels that are given nor is learned: for a loss without the KL(q || p) that
        would teach it, or a floor under that KL, which a prior that follows would undo. Prior "none" is for methods that
        have none.
        """
        q = self._chosen("posterior", posterior)
        family = POSTERIORS[q]
        space = family.space
        if prior == "none" and space is not FLAT:
            raise Problem(f"this method has no prior, which --posterior {q} needs; use --posterior gaussian")
        p = self._chosen("prior", space.prior if prior == "normal" else prior)
        law = NONE if p == "none" else PRIORS[p]
        if law.space not in (None, space):
            raise Problem(f"--posterior {q} and --prior {p} are on different spaces; use --prior {space.prior}")
        if prior == "none" and law is not NONE:
            raise Problem(f"this method has no prior, so --prior {p} has no effect; remove it")
        if fixed_prior and law.learned(self.choices):
            raise Problem(
                f"--prior {p} is learned, which needs the full KL in the loss; remove it, or use vae --prior {p}"
            )
        parts = self if blocks is None else self._sized(sum(blocks.values()))
        made = family.make(parts, **self.options(*family.options))
        p_z, p_x = parts._prior(law, made, fixed_prior), space.entry(parts, parts.likelihood(skip=skip))
        return LatentModel(made, p_z, p_x, blocks)

    def _sized(self, latent: int) -> Parts:
        """The same parts for so many dimensions of z, which are not the user's to choose."""
        if self.choices.latent not in (None, default_latent(self.about.kind), latent):
            raise Problem(f"--latent {self.choices.latent} has no effect here; z is its blocks, of {latent} dimensions")
        return replace(self, choices=self.choices.model_copy(update={"latent": latent}))

    def prior(self, posterior: nn.Module) -> nn.Module:
        """p(z|u) beside a posterior on R^d that nobody chose."""
        name = self._chosen("prior", "normal")
        if PRIORS[name].space not in (None, FLAT):
            raise Problem(f"--prior {name} needs a posterior on the same space; use --prior normal")
        return self._prior(PRIORS[name], posterior)

    def _chosen(self, axis: Literal["posterior", "prior"], own: str) -> str:
        """What the user chose along an axis, or else the method's own."""
        name: str = self.option(axis)
        return own if name == "auto" else name

    def _prior(self, prior: Prior, posterior: nn.Module, fixed: bool = False) -> nn.Module:
        """The prior beside a posterior, conditional on labels that are given."""
        if self.given and not fixed and prior.conditional is not None:
            return prior.conditional(self)
        return prior.make(self, posterior, **self.options(*prior.options))

    @cached_property
    def ball(self) -> Ball:
        """The Poincare ball, one for all that lives on it."""
        return Ball(self.option("curvature"), self.option("curvature_learned"))

    def reader(self, outputs: int) -> nn.Module:
        """The encoder, `net(x, u) -> (B, outputs)`: the user's own, or a new one."""
        if self.encoder is None:
            return self.features(outputs)
        if self.about.kind == "tokens":
            return self.encoder
        return check_net(self.encoder, "encoder", torch.zeros(2, *self.about.shape), self.given, (outputs,))

    def features(self, outputs: int) -> nn.Module:
        """A new net `net(x, u) -> (B, outputs)`."""
        if self.about.kind == "tokens":
            sizes = self.options("embed", "hidden", "trunk")
            return sentences.encoder(self.net, self.about.levels, outputs, self.given, **sizes)
        return nets.encoder(self.net, self.about.shape, outputs, self.given, **self.options("init"))

    def spectrum(self, most: int = 2000) -> Tensor:
        """The leading variances of the data's principal axes; ones where the data is not at hand (a checkpoint has them)."""
        if self.about.kind == "tokens":
            raise Problem(
                f"--prior {self.choices.prior} is computed from pixels or vectors; for text use --prior normal"
            )
        if self.data is None:
            return torch.ones(self.latent)
        rows = self.data.splits["train"]
        few = self.data.x(np.sort(np.random.default_rng(0).choice(rows, min(most, len(rows)), replace=False)))
        flat = few.flatten(1).double()
        variances = torch.linalg.svdvals(flat - flat.mean(0)).square()[: self.latent] / len(flat)
        if len(variances) < self.latent:
            raise Problem(
                f"--prior {self.choices.prior} needs a principal axis of the data per dimension, and there are "
                f"{len(variances)}; use --latent {len(variances)} or fewer"
            )
        spectrum: Tensor = variances.clamp_min(1e-3 * variances.max().item() or 1.0).float()
        return spectrum

    @property
    def net(self) -> str:
        """The name of the nets."""
        auto = {"pixels": "burgess", "vectors": "mlp-300", "tokens": "lstm"}[self.about.kind]
        name: str = self.option("net")
        return auto if name == "auto" else name

    def likelihood(self, latent: int | None = None, skip: bool = False) -> nn.Module:
        """p(x|z) on a decoder; of no latent dimensions, p(x) of a language model."""
        if self.about.kind == "tokens":
            return TokenLikelihood(self.decoder or self.writer(self.latent if latent is None else latent, skip))
        kind, event = self.option("likelihood"), len(self.about.shape)
        if kind == "auto":
            kind = "bernoulli" if self.about.levels else "gaussian"
        if kind == "bernoulli" and not self.about.levels:
            raise Problem("--likelihood bernoulli needs values in [0, 1]; use --likelihood gaussian for real values")
        if kind == "logistic" and self.about.levels != 256:
            raise Problem(
                "--likelihood logistic is for 8-bit images; use bernoulli for binary ones, gaussian for real values"
            )
        makes: dict[str, type[PixelLikelihood]] = {
            "bernoulli": BernoulliLikelihood,
            "gaussian": GaussianLikelihood,
            "gaussian-learned": LearnedGaussianLikelihood,
            "gaussian-per-pixel": GaussianPerPixelLikelihood,
            "logistic": LogisticLikelihood,
        }
        make = makes[kind]
        channels = make.channels * (self.about.shape[0] if event == 3 else 1)
        if self.decoder is not None:
            shape = (channels, *self.about.shape[1:]) if event == 3 else (channels, *self.about.shape)[channels == 1 :]
            net = check_net(self.decoder, "decoder", torch.zeros(2, self.latent), self.given, shape)
        else:
            net = nets.decoder(self.net, self.about.shape, self.latent, channels, self.given, **self.options("init"))
        return make(net, event, **self.options(*make.options))

    def writer(self, latent: int, skip: bool = False) -> nn.Module:
        """A decoder of sentences."""
        if (kind := self.option("likelihood")) != "auto":
            raise Problem(
                f"--likelihood {kind} is for pixels and vectors; remove it for text, which is made word by word"
            )
        options = self.options("embed", "hidden", "layers", "trunk", "dropout", "word_dropout", "inject")
        return sentences.decoder(self.net, self.about.levels, latent, self.given, skip=skip, **options)

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
