"""The graphs of a model, each with what goes in and what comes out: an encoder, and a decoder or the steps of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from elboroom.core.batch import Batch
from elboroom.core.model import LatentModel
from elboroom.core.problem import Problem
from elboroom.core.vocabulary import PAD, START
from elboroom.data.dataset import About
from elboroom.families.ball import Wrapped
from elboroom.families.gaussian import Gaussian
from elboroom.families.pixels import Bernoulli, DiscretisedLogistic, Normal
from elboroom.families.refined import Refined
from elboroom.families.sphere import Spherical
from elboroom.share.plain import plain

if TYPE_CHECKING:
    from elboroom.runs.run import Run

ROWS = "n"  # the axis that is free in every graph
PAST = "past"  # the words that a writer looks back at


@dataclass(frozen=True)
class Port:
    """What goes into a graph or comes out of it; a size is a number, or a name where it is free."""

    name: str
    says: str
    shape: tuple[int | str, ...]
    type: str = "float32"
    range: tuple[float, float] | None = None


@dataclass(frozen=True)
class Graph:
    """A module with its ports, and an example of its inputs with as many rows as is asked for."""

    name: str
    module: nn.Module
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    example: tuple[Tensor, ...]

    def __post_init__(self) -> None:
        self.module.eval()  # or the exporter would leave it in training


def graphs(run: Run) -> list[Graph]:
    """All graphs of a run; refuses a model that has none."""
    if not run.latent:
        raise Problem(f"{run.spec.method} has no z: there is no encoder to export, and no code to decode")
    if run.model.conditioner is not None:
        raise Problem("this model reads a context, which graphs are not made for yet; models of single sentences are")
    if any(isinstance(module, Refined) for module in run.model.posterior.modules()):
        raise Problem(
            f"the codes of {run.spec.method} are found by gradient steps for each example, which no graph can take"
        )
    model, about, given = plain(run.model), run.spec.about, sum(run.spec.about.labels[name] for name in run.given)
    if about.kind == "tokens":
        return [_encoder(model, about, given), *_writer(model, about, run.latent, given)]
    return [_encoder(model, about, given), _decoder(model, about, run.latent, given)]


# -- encoders ----------------------------------------------------------------------------------------------------------


class Encoder(nn.Module):
    """x, as the data has it, and what is given -> the numbers of q(z|x)."""

    def __init__(self, model: LatentModel, about: About, given: int) -> None:
        super().__init__()
        self.model, self.given, self.top = model, bool(given), max(1, about.levels - 1)
        self.tokens = about.kind == "tokens"

    def forward(self, x: Tensor, *beside: Tensor) -> tuple[Tensor, ...]:
        return tuple(self.said(x, *beside).values())

    def said(self, x: Tensor, *beside: Tensor) -> dict[str, Tensor]:
        """The numbers by name; of sentences, `beside` begins with their lengths."""
        u = beside[-1] if self.given else None
        if self.tokens:
            there = torch.arange(x.shape[1]) < beside[0].unsqueeze(1)
            x = torch.where(there, x, PAD)
        elif not x.is_floating_point():
            x = x.float() / self.top
        return _of_code(self.model.q(Batch(x, u=u)))


def _of_code(q: Any) -> dict[str, Tensor]:
    """What is known of a code: its mean, and how far draws lie from it where its law says that for each example."""
    mean = q.mean.as_subclass(Tensor).float()
    if isinstance(q, Gaussian):
        return {"mean": mean, "logvar": q.logvar.float()}
    if isinstance(q, Spherical):
        return {"mean": mean, "kappa": q.kappa.float() + torch.zeros_like(mean[:, 0])}
    if isinstance(q, Wrapped) and isinstance(q.tangent, Gaussian):
        return {"mean": mean, "logvar": q.tangent.logvar.float()}
    return {"mean": mean}


def _encoder(model: LatentModel, about: About, given: int) -> Graph:
    inputs: list[Port]
    example: list[Tensor]
    if about.kind == "tokens":
        says = "token ids <s> words </s>, and <pad> behind them"
        inputs = [
            Port("tokens", says, (ROWS, "length"), "int64", (0, about.levels - 1)),
            Port("lengths", "how many tokens a row has before its <pad>, <s> and </s> among them", (ROWS,), "int64"),
        ]
        example = [torch.tensor([[START, 4, 5, 2], [START, 4, 2, PAD]]), torch.tensor([4, 3])]
    elif about.kind == "pixels" and about.levels:
        top = about.levels - 1
        inputs = [Port("x", f"pixels as whole numbers, {top} is white", (ROWS, *about.shape), "uint8", (0, top))]
        example = [torch.zeros(2, *about.shape, dtype=torch.uint8)]
    else:
        reach = (0, 1) if about.kind == "pixels" else None
        says = "pixels, 1 is white" if reach else "vectors in the units of the data"
        inputs = [Port("x", says, (ROWS, *about.shape), range=reach)]
        example = [torch.zeros(2, *about.shape)]
    beside, labels = _given(given)
    module, handed = Encoder(model, about, given), (*example, *labels)
    outputs = (Port(name, SAYS[name], (ROWS, *found.shape[1:])) for name, found in module.said(*handed).items())
    return Graph("encoder", module, (*inputs, *beside), tuple(outputs), handed)


SAYS = {
    "mean": "the code: the mean of q(z|x), or what stands for it",
    "logvar": "the logarithm of the variance of q(z|x); on the ball that of its tangent vectors",
    "kappa": "the concentration of q(z|x) around its mean direction",
}


def _given(given: int) -> tuple[tuple[Port, ...], tuple[Tensor, ...]]:
    """The port of the labels that a model is given, and an example of them."""
    if not given:
        return (), ()
    hot = torch.zeros(2, given)
    hot[:, 0] = 1
    return (Port("u", "the labels that are given, one-hot, side by side", (ROWS, given), range=(0, 1)),), (hot,)


# -- decoders ----------------------------------------------------------------------------------------------------------


class Decoder(nn.Module):
    """z and what is given -> the numbers of p(x|z)."""

    def __init__(self, model: LatentModel, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.model, self.shape = model, shape

    def law(self, z: Tensor, u: Tensor | None = None) -> Any:
        """p(x|z)."""
        blank = z.new_zeros(1).expand(z.shape[0], *self.shape)
        return self.model.px(z.unsqueeze(0), Batch(blank, u=u))

    def forward(self, z: Tensor, u: Tensor | None = None) -> tuple[Tensor, ...]:
        return tuple(_of_example(self.law(z, u)).values())


def _of_example(px: Any) -> dict[str, Tensor]:
    """What a likelihood says of an example."""
    found = {"mean": px.mean[0]}
    if isinstance(px, Bernoulli):
        found["logits"] = px.logits[0]
    if isinstance(px, Normal):
        found["log_sigma"] = px.log_sigma.expand_as(px.loc)[0]
    if isinstance(px, DiscretisedLogistic):
        found["log_scale"] = px.log_scale[0]
    return found


def _decoder(model: LatentModel, about: About, latent: int, given: int) -> Graph:
    beside, labels = _given(given)
    module, example = Decoder(model, about.shape), (torch.zeros(2, latent), *labels)
    says: Mapping[str, str] = {
        "mean": "the mean of p(x|z)" + (", pixels of which 1 is white" if about.kind == "pixels" else ""),
        "logits": "the logits of p(x|z), whose sigmoid is the mean",
        "log_sigma": "the logarithm of the standard deviation of p(x|z)",
        "log_scale": "the logarithm of the scale of the logistic p(x|z)",
    }
    outputs = (
        Port(
            name, says[name], (ROWS, *about.shape), range=(0, 1) if name == "mean" and about.kind == "pixels" else None
        )
        for name in _of_example(module.law(*example))
    )
    return Graph("decoder", module, (_code(latent), *beside), tuple(outputs), example)


def _code(latent: int) -> Port:
    return Port("z", "codes, as the encoder gives them", (ROWS, latent))


class Start(nn.Module):
    """z and what is given -> what a writer remembers before the first word."""

    def __init__(self, decoder: Decoder) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(self, z: Tensor, u: Tensor | None = None) -> tuple[Tensor, ...]:
        px = self.decoder.law(z, u)
        return tuple(px.decoder.start(px.z[0], px.u))


class Step(nn.Module):
    """A token and what is remembered -> the logits of the next token, and what is remembered then."""

    def __init__(self, writer: nn.Module) -> None:
        super().__init__()
        self.writer: Any = writer

    def forward(self, token: Tensor, *state: Tensor) -> tuple[Tensor, ...]:
        features, after = self.writer.step(token, state)
        return self.writer.head(features), *after


def _writer(model: LatentModel, about: About, latent: int, given: int) -> list[Graph]:
    beside, labels = _given(given)
    decoder, example = Decoder(model, about.shape), (torch.zeros(2, latent), *labels)
    start, step = Start(decoder), Step(decoder.law(*example).decoder)
    token, first = torch.full((2,), START), start(*example)
    second = step(token, *first)[1:]
    third = step(token, *second)[1:]
    states = [_state(i, *both) for i, both in enumerate(zip(second, third, strict=True))]
    logits = Port("logits", "of the next token; those of <pad>, <s> and <unk> are not to be said", (ROWS, about.levels))
    grown = {PAST: f"{PAST}_after"}
    after = [
        replace(port, name=f"{port.name}_after", shape=tuple(grown.get(str(size), size) for size in port.shape))
        for port in states
    ]
    word = Port(
        "token", "the token before: <s> at first, then what was chosen", (ROWS,), "int64", (0, about.levels - 1)
    )
    return [
        Graph("start", start, (_code(latent), *beside), tuple(states), example),
        Graph("step", step, (word, *states), (logits, *after), (token, *second)),
    ]


def _state(number: int, now: Tensor, later: Tensor) -> Port:
    """A tensor that is remembered; its axes that grow from step to step are free."""
    sizes = [PAST if a != b else a for a, b in zip(now.shape[1:], later.shape[1:], strict=True)]
    return Port(f"state{number}", "what is remembered", (ROWS, *sizes), str(now.dtype).removeprefix("torch."))
