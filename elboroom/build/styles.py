"""Styles: which labels a method changes, what its words of content are, and how long its sentences are."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from elboroom.build.parts import Parts
from elboroom.core.model import LatentModel
from elboroom.core.problem import Problem, unknown
from elboroom.data.words import content_tokens
from elboroom.families.styled import ClassMeans, Remembered
from elboroom.terms.labels import Classifier, DeepClassifier
from elboroom.terms.words import Bag

STYLE, CONTENT = "style", "content"
TOKENS = 10.0  # an image counts as so many tokens: the nll of an MNIST digit is about that of so many words
HIDDEN = 128  # units of an adversary


class Styles:
    """The blocks of style of a model, one a label, and the heads that read them."""

    def __init__(self, parts: Parts, label: str) -> None:
        self.parts, known = parts, parts.about.labels
        if not known:
            raise Problem(f"{parts.about.name} has no labels, so there is no style to tell from content")
        names = list(dict.fromkeys(name.strip() for name in label.split(",") if name.strip()))
        if not names and len(known) > 1:
            raise Problem(f"{parts.about.name} has the labels {', '.join(known)}: say which is the style with --label")
        for name in names or known:
            if name not in known:
                raise unknown(f"label of {parts.about.name}", name, known)
            if known[name] < 2:
                raise Problem(f"'{name}' has a single value, so there is no other style to give")
        fields = names or list(known)
        self.fields = {STYLE if len(fields) == 1 else f"{STYLE}_{name}": name for name in fields}  # by block

    def blocks(self, style_size: int, content_size: int) -> dict[str, int]:
        """The blocks of z with their sizes."""
        return dict.fromkeys(self.fields, style_size) | {CONTENT: content_size}

    def remembered(self, model: LatentModel) -> LatentModel:
        """The same model, which remembers the mean style of every class."""
        labels = self.parts.about.labels
        means = {
            block: ClassMeans(name, list(labels).index(name), labels[name], model.block(block))
            for block, name in self.fields.items()
        }
        return model.with_posterior(Remembered(model.posterior, means))

    def teller(self, block: str, codes: int) -> Classifier:
        """A head that must tell the label of a block."""
        return self.parts.classifier(self.fields[block], codes)

    def spy(self, block: str, codes: int) -> DeepClassifier:
        """An adversary that is after that label."""
        labels, name = self.parts.about.labels, self.fields[block]
        return DeepClassifier(codes, labels[name], name, list(labels).index(name), HIDDEN)

    def bag(self, codes: int, hidden: int = 0, leaky: bool = False) -> Bag:
        """A head of the words of content."""
        return Bag(codes, self.content, hidden, leaky)

    @property
    def content(self) -> Tensor:
        """Which tokens are words of content, (V,); all, where the data is not at hand (a checkpoint has them)."""
        data = self.parts.data
        if data is None:
            return torch.ones(self.parts.about.levels, dtype=torch.bool)
        found = content_tokens(data, list(self.fields.values()))
        if not found.any():
            raise Problem(
                f"{self.parts.about.name} has no words of content: all tell the style or say little; "
                "leave those terms out: --mul-content 0 --adv-content 0"
            )
        return torch.from_numpy(found)


def per_example(parts: Parts, published: float, said: float | None) -> float:
    """A weight in nats an example: what was said, or one published beside nats a token times the mean length.

    Without the data nothing is trained, and the weight plays no part.
    """
    if said is not None:
        return said
    if parts.about.kind != "tokens":
        return published * TOKENS
    if parts.data is None:
        return published
    return published * float(np.mean(parts.data.lengths(parts.data.splits["train"]).numpy()))


def the_label(parts: Parts) -> tuple[str, int]:
    """The one label that is given, and how many values it has."""
    names = parts.choices.given_names
    if len(names) != 1 or not parts.given:
        raise Problem(f"this method changes one label, and --given names {len(names)}; name one")
    if names[0] not in parts.about.labels:
        raise Problem(f"this method changes a label, and --given {names[0]} is none; name a label")
    return names[0], parts.about.labels[names[0]]
