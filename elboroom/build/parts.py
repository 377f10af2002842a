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
from elboroom.build.base import Base
from elboroom.build.choices import DEFAULT_TRUNK, GAUSSIAN, default_latent
from elboroom.build.choices import Choices as Choices
from elboroom.build.scaling import (
    FEW,
    Principal,
    begin_decoder,
    begin_encoder,
    principal,
    refuse_outside,
    some,
    standard,
)
from elboroom.build.user_nets import check_net
from elboroom.core.model import LatentModel
from elboroom.core.problem import Problem, unknown
from elboroom.data.dataset import About, DataSet
from elboroom.data.sequences import CONTEXT, TARGET, AboutSequence
from elboroom.families.gaussian import GaussianPosterior
from elboroom.families.pixels import (
    BernoulliLikelihood,
    GaussianLikelihood,
    GaussianPerPixelLikelihood,
    LearnedGaussianLikelihood,
    LogisticLikelihood,
    OptimalGaussianLikelihood,
    PixelLikelihood,
)
from elboroom.families.rescaled import Rescaled, Standardised
from elboroom.families.tokens import TokenLikelihood
from elboroom.geometry.ball import Ball
from elboroom.nets import sentences
from elboroom.nets.context import ContextEncoder
from elboroom.nets.joint import JointCritic
from elboroom.nets.mlp import LinearBeside
from elboroom.nets.recurrent import RecurrentEncoder
from elboroom.nets.switch import SwitchedNet, SwitchedWriter
from elboroom.terms.labels import Classifier

LOG_NARROW = -6.0  # log sigma^2 of a posterior that begins narrow: sigma 0.05


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
    listener: ContextEncoder | None = None  # what reads contexts, where it is of the base
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
        """The width of u: of the labels that are given, and of the vector of a context."""
        return self._labels + (0 if self.context is None else self._context_width)

    @property
    def deep(self) -> int:
        """The width of the hidden layer of a prior: a context is no one-hot label, and needs one."""
        return 0 if self.context is None else int(self.option("hidden"))

    @property
    def _context_width(self) -> int:
        """The features of the vector of a context; half of those of a word in its memory."""
        return int(self.option("hidden")) if self.listener is None else self.listener.width

    @property
    def _labels(self) -> int:
        """The width of the labels that are given."""
        self.options("given")
        sequences = self.about.sequences
        names = [name for name in self.choices.given_names if name not in sequences]
        if TARGET in sequences and TARGET in self.choices.given_names:
            raise Problem(f"--given {TARGET}: a target is what is to be reached, and cannot be given")
        for name in names:
            if name == CONTEXT and name not in self.about.labels:
                raise Problem(
                    f"--given {CONTEXT}: {self.about.name} has none; say which column holds it: --context-column"
                )
            if not self.about.labels:
                raise Problem(f"--given {name}: {self.about.name} has no labels")
            if name not in self.about.labels:
                raise unknown("label", name, self.about.labels, self.about.name)
        return sum(self.about.labels[name] for name in names)

    @property
    def context(self) -> AboutSequence | None:
        """The context that is given; None without --given context."""
        return self.about.sequences.get(CONTEXT) if CONTEXT in self.choices.given_names else None

    @property
    def attention(self) -> str:
        """How the decoder looks at the context that is given."""
        kind = "none" if self.context is None else self.option("attention")
        return "none" if kind == "auto" else kind

    def conditioner(self) -> nn.Module | None:
        """What reads the context that is given; None without --given context."""
        if self.context is None:
            return None
        self.used.add(CONTEXT)
        if self.listener is not None:
            return self.listener
        sizes = self._sizes()
        remembers, turns = self.attention != "none", self.context.turns
        return sentences.context(self.net, self.context.size, **sizes, turns=turns, remembers=remembers)

    def require_context(self) -> None:
        """Refuses data without contexts."""
        if CONTEXT not in self.about.sequences:
            raise Problem(f"{self.about.name} has no context to read; say which column holds it: --context-column")

    def answering(self, attention: str = "none") -> Parts:
        """The same parts with the context given, for methods that are made for one; convolutions do not attend to it."""
        self.require_context()
        names, chosen = dict.fromkeys([CONTEXT, *self.choices.given_names]), self.option("attention")
        own = "none" if self.net == "dilated" else attention
        update = {"given": ",".join(names), "attention": own if chosen == "auto" else chosen}
        return replace(self, choices=self.choices.model_copy(update=update))

    def refuse_unread(self, method: str) -> None:
        """Refuses a context that is given and that nothing built here reads."""
        if CONTEXT in self.about.sequences and CONTEXT in self.choices.given_names and CONTEXT not in self.used:
            raise Problem(f"--given {CONTEXT}: {method} does not read a context; remove it")

    @property
    def unconditional(self) -> Parts:
        """The same parts for nets that are not told the labels that are given to others."""
        return replace(self, choices=self.choices.model_copy(update={"given": ""}))

    def require_base(self) -> Base:
        """The run that stands frozen under this one; refuses to be without, or one that has no z."""
        base = self._base()
        if not base.latent:
            raise Problem(f"--base: {base.spec.method} has no z, and so no codes to stand on")
        return base

    def _base(self) -> Base:
        if self.base is None:
            raise Problem("this method stands on a trained run: say which with --base RUN")
        return self.base

    def read_by_base(self) -> Parts:
        """The same parts with contexts read by the encoder of the base; refuses one that has none, or no words to look at."""
        reader = self._base().model.conditioner
        if not isinstance(reader, ContextEncoder) or not reader.remembers:
            raise Problem(
                f"--base: {self._base().spec.method} keeps no states of a context to attend to; it should be a seq2seq that "
                "translates to the language of the data"
            )
        return replace(self, listener=reader)

    def refuse_axes(self, method: str) -> None:
        """Refuses a posterior or prior that was chosen for a method without z."""
        for name in ("posterior", "prior"):
            if self.option(name) != "auto":
                raise Problem(f"{method} has no z, so --{name} has no effect; remove it")

    def require_targets(self) -> None:
        """Refuses data without paired targets, or with targets in other tokens than those of x."""
        if TARGET not in self.about.sequences:
            raise Problem(f"{self.about.name} has no paired targets; say which column holds them: --target-column")
        if not self.about.sequences[TARGET].shared:
            raise Problem(
                "the targets are read in tokens of their own, which this method does not; remove --own-vocabulary"
            )

    def classifier(self, label: str, codes: int) -> Classifier:
        """A linear head that tells a label, the only one where none is named, from so many numbers."""
        name = self.label(label)
        return Classifier(codes, self.about.labels[name], name, list(self.about.labels).index(name))

    def label(self, said: str) -> str:
        """The label that is named, or the only one; refuses one that the data has not."""
        labels = self.about.labels
        if not labels:
            raise Problem(f"{self.about.name} has no labels to be told")
        if not said and len(labels) > 1:
            raise Problem(f"{self.about.name} has the labels {', '.join(labels)}: say which with --label")
        if said and said not in labels:
            raise unknown(f"label of {self.about.name}", said, labels)
        return said or next(iter(labels))

    def having(self, label: str, to: str) -> tuple[int, float]:
        """A value of a label by name: its number, and the share of training examples that have it.

        Without the data nothing is trained, and neither plays a part.
        """
        if self.data is None:
            return 0, 0.5
        known = [str(name) for name in self.data.classes.get(label, ())]
        known = known or [str(i) for i in range(self.about.labels[label])]
        if to not in known:
            raise unknown(label, to, known)
        column = self.data.labels[self.data.splits["train"], list(self.about.labels).index(label)]
        share = float(np.mean(column == known.index(to)))
        if share in (0.0, 1.0):
            raise Problem(f"{'every' if share else 'no'} training example has {label}={to}; a map needs both kinds")
        return known.index(to), share

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
        narrow: bool = False,
        decoders: int = 1,
    ) -> LatentModel:
        """A model with this posterior and prior, unless the user chose others; with `skip`, z enters every layer.

        `blocks` are named parts of z with their sizes, which add up to its dimensions. With `narrow`, a Gaussian of
        sentences begins with a small sigma: one near 1 hides the code, and the decoder learns to do without it. Of several
        `decoders` the label says which one decodes.

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
        if narrow and isinstance(made, GaussianPosterior) and isinstance(made.net, RecurrentEncoder):
            made.net.begin_at(slice(parts.latent, None), LOG_NARROW)
        p_z, p_x = (
            parts._prior(law, made, fixed_prior),
            space.entry(parts, parts.likelihood(skip=skip, decoders=decoders)),
        )
        return LatentModel(made, p_z, p_x, blocks, conditioner=parts.conditioner())

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

    @cached_property
    def scale(self) -> tuple[Tensor, Tensor] | None:
        """Mean and width of the data, where nets are to work in standardised units."""
        return standard(self.about, self.data) if self.option("standardise") else None

    @cached_property
    def principal(self) -> Principal | None:
        """Probabilistic PCA of the data in the units of the nets, where these begin from it and the data is at hand."""
        if self.option("init") != "principal" or self.data is None:
            return None
        if not self.net.endswith(nets.LINEAR) or self.scale is None:
            raise Problem("--init principal needs a net that ends in +linear, and --standardise")
        centre, width = self.scale
        return principal(((some(self.data, FEW) - centre) / width).flatten(1), self.latent)

    def features(self, outputs: int) -> nn.Module:
        """A new net `net(x, u) -> (B, outputs)`."""
        if self.about.kind == "tokens":
            sizes = self._sizes()
            return sentences.encoder(self.net, self.about.levels, outputs, self.given, **sizes)
        net = nets.encoder(self.net, self.about.shape, outputs, self.given, **self.options("init"))
        if self.principal is not None and isinstance(net, LinearBeside):
            begin_encoder(net, self.principal)
        return net if self.scale is None else Standardised(net, *self.scale)

    def _sizes(self) -> dict[str, Any]:
        """The sizes of the nets of text, and how they begin."""
        options = self.options("embed", "hidden", "trunk")
        return options | {"trunk": options["trunk"] or DEFAULT_TRUNK}

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

    def likelihood(self, latent: int | None = None, skip: bool = False, decoders: int = 1) -> nn.Module:
        """p(x|z) on a decoder, or on several of which u says which; of no latent dimensions, p(x) of a language model."""
        if decoders > 1 and self.decoder is not None:
            raise Problem("this method has a decoder for every label, and a decoder of your own is one; remove it")
        if self.about.kind == "tokens":
            size = self.latent if latent is None else latent
            if decoders > 1:
                return TokenLikelihood(SwitchedWriter([self.writer(size, skip) for _ in range(decoders)]))
            return TokenLikelihood(self.decoder or self.writer(size, skip))
        kind, event = self.option("likelihood"), len(self.about.shape)
        if kind == "auto":
            kind = "bernoulli" if self.about.levels else "gaussian"
        if kind == "bernoulli" and self.about.kind == "vectors":
            refuse_outside(self.data, "--likelihood bernoulli")
        if kind == "logistic" and self.about.levels != 256:
            raise Problem(
                "--likelihood logistic is for images of 256 levels; use bernoulli for binary ones, or a Gaussian"
            )
        if self.scale is not None and kind not in GAUSSIAN:
            raise Problem(f"--standardise is for Gaussian likelihoods, not {kind}; use --no-standardise")
        makes: dict[str, type[PixelLikelihood]] = {
            "bernoulli": BernoulliLikelihood,
            "gaussian": GaussianLikelihood,
            "gaussian-learned": LearnedGaussianLikelihood,
            "gaussian-optimal": OptimalGaussianLikelihood,
            "gaussian-per-pixel": GaussianPerPixelLikelihood,
            "logistic": LogisticLikelihood,
        }
        make = makes[kind]
        channels = make.channels * (self.about.shape[0] if event == 3 else 1)
        every = [self._drawer(channels) for _ in range(decoders)]
        options = self.options(*make.options)
        if self.principal is not None and isinstance(every[0], LinearBeside):
            options |= {"sigma": self.principal.rest} if make.learns_sigma and "sigma" in options else {}
        made = make(every[0] if decoders == 1 else SwitchedNet(every), event, **options)
        return made if self.scale is None else Rescaled(made, *self.scale)

    def _drawer(self, channels: int) -> nn.Module:
        """A decoder of images or vectors: ours, which begins at the principal axes where it can, or the user's own."""
        shape = self.about.shape
        if self.decoder is not None:
            drawn = (channels, *shape[1:]) if len(shape) == 3 else (channels, *shape)[channels == 1 :]
            return check_net(self.decoder, "decoder", torch.zeros(2, self.latent), self.given, drawn)
        net = nets.decoder(self.net, shape, self.latent, channels, self.given, **self.options("init"))
        if self.principal is not None and isinstance(net, LinearBeside):
            begin_decoder(net, self.principal)
        return net

    def writer(self, latent: int, skip: bool = False) -> nn.Module:
        """A decoder of sentences."""
        if (kind := self.option("likelihood")) != "auto":
            raise Problem(
                f"--likelihood {kind} is for pixels and vectors; remove it for text, which is made word by word"
            )
        options = self._sizes() | self.options("layers", "dropout", "word_dropout", "inject")
        options |= {"labels": self._labels if self.context is None else 0}
        look: dict[str, Any] = {"attention": self.attention, "memory": sentences.memory_of(self._context_width)}
        return sentences.decoder(self.net, self.about.levels, latent, self.given, skip=skip, **options, **look)

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
