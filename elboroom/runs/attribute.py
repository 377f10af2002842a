"""Attributes: what the codes of a run tell of a label, fitted when it is first asked for and kept with the run."""

from __future__ import annotations

import copy
import hashlib
import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import ArrayLike, NDArray
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from elboroom.core.batch import Batch
from elboroom.core.files import write
from elboroom.core.locks import one_process
from elboroom.core.problem import Problem, unknown
from elboroom.families.mapped import Moved
from elboroom.latent.fgim import STEPS, Descent, fgim
from elboroom.runs.media import real
from elboroom.runs.samplers import check_tensors
from elboroom.terms.labels import CodeClassifier
from elboroom.training.batches import batch_of

if TYPE_CHECKING:
    from elboroom.runs.run import Run

NAME = "attribute-2"  # changes whenever what is fitted would
MOST = 10_000  # training examples that it is fitted to
HELD, TURNS, BATCH, LR, DROPOUT = 10, 1500, 64, 1e-3, 0.5  # a tenth is held out; turns of Adam


@dataclass(frozen=True, eq=False)
class Attribute:
    """A label in the space of codes: the mean code of every value, and a classifier of codes.

    Where codes live on a curved space all is told of its chart.
    """

    label: str
    values: list[str]
    head: CodeClassifier
    means: Tensor  # (values, J)
    counts: Tensor  # examples of each value, (values,)
    variance: float  # of the codes, the mean over dimensions
    accuracy: float  # of the classifier on codes that it did not learn from

    def __repr__(self) -> str:
        return f"Attribute({self.label}: {', '.join(self.values)}; classifier {self.accuracy:.3f} accurate)"

    def index(self, value: str | int) -> int:
        """Which of the values this is."""
        if str(value) not in self.values:
            raise unknown(self.label, str(value), self.values)
        return self.values.index(str(value))

    def offset(self, value: str | int) -> Tensor:
        """The mean code of a value less that of all others, (J,)."""
        which = self.index(value)
        others = self.counts.clone()
        others[which] = 0
        if not self.counts[which] or not others.sum():
            raise Problem(
                f"the training examples have no two values of {self.label}, so there is no difference of class means"
            )
        return self.means[which] - (others / others.sum()) @ self.means

    def probabilities(self, codes: ArrayLike) -> NDArray[np.float32]:
        """How likely the classifier finds each value, (n, values)."""
        with torch.no_grad():
            return np.asarray(self.head(torch.from_numpy(real(codes, "codes")).float()).softmax(-1).numpy())

    def descend(self, codes: Tensor, value: str | int) -> Descent:
        """Codes that the classifier is sure of (FGIM)."""
        which = self.index(value)
        return fgim(
            codes,
            lambda z: torch.log_softmax(self.head(z), -1)[:, which],
            [step * self.variance for step in STEPS],
        )


def source(q: Any) -> Tensor:
    """The mean of q(z|x); of codes that are mapped, before they were."""
    code: Tensor = q.source if isinstance(q, Moved) else q.mean
    return code


def codes_of(run: Run, batch: Batch) -> Tensor:
    """The codes of examples in the chart of their space, not mapped, (n, J)."""
    parts = run.in_parts(lambda b: source(run.model.q(b)).float().cpu(), batch)
    return run.space.flat(torch.cat(parts))


def attribute(run: Run, label: str) -> Attribute:
    """The label in the space of codes of a run; see `Run.attribute`."""
    run.require_codes()
    labels = run.spec.about.labels
    if not labels:
        raise Problem(f"{run.spec.about.name} has no labels, so there are no class means and nothing to classify")
    if not label and len(labels) > 1:
        raise Problem(f"{run.spec.about.name} has the labels {', '.join(labels)}: say which with --label")
    name = label or next(iter(labels))
    if name not in labels:
        raise unknown(f"label of {run.spec.about.name}", name, labels)
    if name not in run.attributes:
        run.attributes[name] = _known(run, name)
    return run.attributes[name]


def _known(run: Run, name: str) -> Attribute:
    """A label as the folder of a run knows it, or fitted now."""
    labels, key, own = run.spec.about.labels, _key(run, name), _own_head(run, name)
    path = run.folder / f"attribute-{hashlib.sha256(name.encode()).hexdigest()[:8]}.safetensors"
    tensors = _kept(path, key, _like(run, name))
    if tensors is None:
        tensors = _fitted(run, name)
        _keep(run, path, tensors, key)
    named = run.spec.data.get("classes", {}).get(name, ())
    values = [str(value) for value in named] or [str(i) for i in range(labels[name])]
    means, counts, told = tensors["means"], tensors["counts"], tensors["told"].tolist()
    return Attribute(name, values, own or _head(run, name, tensors), means, counts, *told)


def _own_head(run: Run, label: str) -> CodeClassifier | None:
    """A copy of the classifier of codes that a run was trained with, none where it has none of this label."""
    heads = (head for head in run.model.heads.values() if isinstance(head, CodeClassifier) and head.field == label)
    own = next(heads, None)
    return None if own is None else copy.deepcopy(own).cpu().eval()


def _head(run: Run, label: str, tensors: dict[str, Tensor] | None = None) -> CodeClassifier:
    column = list(run.spec.about.labels).index(label)
    head = CodeClassifier(run.latent, run.spec.about.labels[label], label, column, dropout=DROPOUT)
    if tensors is not None:
        head.load_state_dict({k.removeprefix("head."): v for k, v in tensors.items() if k.startswith("head.")})
    return head.eval()


def _like(run: Run, label: str) -> dict[str, Tensor]:
    """Tensors of the names, shapes and types that are kept, without numbers."""
    classes, own = run.spec.about.labels[label], _own_head(run, label)
    with torch.device("meta"):
        head = {} if own else _weights(_head(run, label))
        told = torch.empty(2, dtype=torch.float64)
        return head | {"means": torch.empty(classes, run.latent), "counts": torch.empty(classes), "told": told}


def _weights(head: CodeClassifier) -> dict[str, Tensor]:
    return {f"head.{name}": tensor.detach() for name, tensor in head.state_dict().items()}


def _key(run: Run, label: str) -> str:
    """A hash of the weights, of the data and of how it is fitted."""
    base = run.spec.base.hash if run.spec.base else ""
    settings = (NAME, MOST, HELD, TURNS, BATCH, LR, DROPOUT, label, run.spec.data["hash"], base)
    digest = hashlib.sha256(repr(settings).encode())
    for name, tensor in sorted(run.model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _kept(path: Path, key: str, like: dict[str, Tensor]) -> dict[str, Tensor] | None:
    """What was fitted to the same codes before; a file that is of others, forged, or cannot be read, is made anew."""
    try:
        content = path.read_bytes()
        length = int.from_bytes(content[:8], "little")
        if json.loads(content[8 : 8 + length])["__metadata__"]["key"] != key:
            return None
        found: dict[str, Tensor] = load(content)
        check_tensors(found, like)
        return found
    except (OSError, SafetensorError, ValueError, KeyError, TypeError, RecursionError, Problem):
        return None


def _keep(run: Run, path: Path, tensors: dict[str, Tensor], key: str) -> None:
    content = save({name: tensor.contiguous() for name, tensor in tensors.items()}, {"key": key})
    try:
        with one_process(run.folder):
            write(path, content)
    except Problem as problem:
        warnings.warn(f"the classifier of codes is not kept with the run: {problem}", stacklevel=2)


def _fitted(run: Run, label: str) -> dict[str, Tensor]:
    """Means by value, and a classifier where the run has none of its own, of the codes of training examples."""
    codes, y = _labelled(run, label, "train")
    hot = F.one_hot(y, run.spec.about.labels[label]).float()
    counts = hot.sum(0)
    means = hot.T @ codes / counts.clamp_min(1).unsqueeze(1)
    spread = codes.std(0, unbiased=False).clamp_min(1e-6)
    weights = dict[str, Tensor]()
    if own := _own_head(run, label):
        accuracy = _right(own, *_labelled(run, label))
    else:
        weights, accuracy = _taught(run, label, codes, y, spread)
    told = torch.tensor([float(spread.square().mean()), accuracy], dtype=torch.float64)
    return weights | {"means": means, "counts": counts, "told": told}


def _labelled(run: Run, label: str, split: str | None = None) -> tuple[Tensor, Tensor]:
    """Codes (n, J) and the values (n,) of a label, of a split or of what a run is measured on."""
    rows = run.split(split, MOST).rows
    codes = codes_of(run, batch_of(run.data, rows, run.spec.model.given_names))
    return codes, torch.from_numpy(run.data.labels[rows, list(run.data.about.labels).index(label)])


def _taught(run: Run, label: str, codes: Tensor, y: Tensor, spread: Tensor) -> tuple[dict[str, Tensor], float]:
    """A classifier of codes, of which a tenth is held out, as its weights; and its accuracy on these."""
    centre = codes.mean(0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        head = _head(run, label)
        accuracy = _learn(head, (codes - centre) / spread, y)
    with torch.no_grad():  # it was taught codes of one size, and is to read them as they are
        head.hidden.weight.div_(spread)
        head.hidden.bias.sub_(head.hidden.weight @ centre)
    return _weights(head), accuracy


def _learn(head: CodeClassifier, codes: Tensor, y: Tensor) -> float:
    """Teaches a classifier; its accuracy on what was held out."""
    order = torch.randperm(len(codes))
    held = order[: max(1, len(order) // HELD)]
    mine = order[len(held) :] if len(order) > len(held) else order
    adam = torch.optim.Adam(head.parameters(), LR)
    with torch.enable_grad():
        for _ in range(min(TURNS, 20 * (1 + len(mine) // BATCH))):
            some = mine[torch.randint(len(mine), (min(BATCH, len(mine)),))]
            loss = F.cross_entropy(head.train()(codes[some]), y[some])
            adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            adam.step()
    return _right(head.eval(), codes[held], y[held])


@torch.no_grad()
def _right(head: CodeClassifier, codes: Tensor, y: Tensor) -> float:
    """How often a classifier tells the value."""
    return float((head(codes).argmax(-1) == y).float().mean())
