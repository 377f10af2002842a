"""What is measured of text: a VAE of the sizes of PTB, trained by the loop and by a plain one, and its matrix products."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from elboroom.core.batch import Batch
from elboroom.core.method import adam, descend
from elboroom.core.model import LatentModel
from elboroom.core.problem import Problem
from elboroom.core.vocabulary import PAD
from elboroom.data import registry
from elboroom.data.dataset import About, DataSet, Ragged
from elboroom.families.gaussian import GaussianPosterior, StandardNormal
from elboroom.families.tokens import TokenLikelihood
from elboroom.nets import sentences
from elboroom.nets.fast.memory import flush_denormals
from elboroom.terms.evidence import kl, nll
from elboroom.training.batches import Batches
from elboroom.training.loop import Loop

VOCABULARY, EMBED, HIDDEN, LATENT = 10_002, 256, 256, 32
BATCH, STEPS, RATE, CLIP = 64, 20, 1e-3, 5.0


@cache
def data() -> DataSet:
    """PTB where it is at hand, else sentences of its number, its lengths (roughly) and its vocabulary."""
    try:
        return registry.load("ptb")
    except Problem:
        rng = np.random.default_rng(0)
        lengths = rng.gamma(4.4, 4.8, 42_068 + 3_761).round().clip(1, 82).astype(np.int64)
        ids = 3 + np.minimum(rng.zipf(1.2, lengths.sum()), VOCABULARY - 3) - 1
        splits = {"train": np.arange(42_068), "test": 42_068 + np.arange(3_761)}
        about = About("as ptb", "tokens", (83,), 42_068, {}, levels=VOCABULARY)
        return DataSet(about, Ragged(ids.astype(np.int32), np.append(0, lengths.cumsum())), splits)


def model() -> LatentModel:
    """The VAE of trunk a."""
    size = data().about.levels
    posterior = GaussianPosterior(sentences.encoder("lstm", size, 2 * LATENT, embed=EMBED, hidden=HIDDEN))
    writer = sentences.decoder("lstm", size, LATENT, embed=EMBED, hidden=HIDDEN)
    return LatentModel(posterior, StandardNormal(LATENT), TokenLikelihood(writer))


def predicted(x: Tensor) -> int:
    """The words and ends of sentences in a padded batch."""
    return int((x != PAD).sum()) - len(x)


def looped() -> tuple[Callable[[], None], int]:
    """Some steps of the loop of the project on buckets of 64 sentences, and how many tokens that are."""
    flush_denormals()  # as every run does
    method = descend(model(), nll() + kl()).train()
    method.prepare(adam(RATE), CLIP)
    batches = Batches(data(), "train", BATCH, 0, (), torch.device("cpu"), "buckets")
    loop = Loop(method, batches, 0)

    def steps() -> None:
        for step in range(STEPS):
            loop.step(step)

    return steps, sum(predicted(batches(step).x) for step in range(STEPS))


class Plain(nn.Module):
    """The same net as one would write it down."""

    def __init__(self) -> None:
        super().__init__()
        size = data().about.levels
        self.read, self.write = nn.Embedding(size, EMBED), nn.Embedding(size, EMBED)
        self.encoder = nn.LSTM(EMBED, HIDDEN, batch_first=True)
        self.decoder = nn.LSTM(EMBED + LATENT, HIDDEN, batch_first=True)
        self.code = nn.Linear(HIDDEN, 2 * LATENT, bias=False)
        self.state = nn.Linear(LATENT, HIDDEN, bias=False)
        self.logits = nn.Linear(HIDDEN, size, bias=False)
        self.dropout = nn.Dropout(0.5)

    def forward(self, x: Tensor) -> Tensor:
        """The negative ELBO of sentences of one length, (B, L) -> ()."""
        mean, logvar = self.code(self.encoder(self.read(x))[1][0][0]).chunk(2, 1)
        z = mean + torch.exp(logvar / 2) * torch.randn_like(mean)
        words = self.dropout(self.write(x[:, :-1]))
        cell = self.state(z)
        inputs = torch.cat([words, z.unsqueeze(1).expand(-1, words.shape[1], -1)], 2)
        h, _ = self.decoder(inputs, (torch.tanh(cell).unsqueeze(0), cell.unsqueeze(0)))
        logits = self.logits(self.dropout(h))
        nll = F.cross_entropy(logits.flatten(0, 1), x[:, 1:].flatten(), reduction="sum")
        kl = 0.5 * (mean.square() + logvar.exp() - logvar - 1).sum()
        loss: Tensor = (nll + kl) / len(x)
        return loss


def plain() -> tuple[Callable[[], None], int]:
    """About as many tokens by a plain loop on batches of up to 32 sentences of one length."""
    net = Plain()
    optimiser = torch.optim.Adam(net.parameters(), RATE)
    batches = Batches(data(), "train", BATCH // 2, 0, (), torch.device("cpu"), "constant")
    ready = [batches(step).x for step in range(2 * STEPS)]

    def steps() -> None:
        for x in ready:
            optimiser.zero_grad()
            net(x).backward()
            nn.utils.clip_grad_norm_(net.parameters(), CLIP)
            optimiser.step()

    return steps, sum(predicted(x) for x in ready)


class Products(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the matrix products of what runs inside, and runs them again by themselves."""

    kinds = (torch.ops.aten.mm, torch.ops.aten.addmm, torch.ops.aten.addmm_, torch.ops.aten.bmm)
    even = (torch.ops.aten.mkldnn_rnn_layer, torch.ops.aten.mkldnn_rnn_layer_backward)

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.noted: list[tuple[tuple[Any, ...], tuple[Any, ...]]] = []

    def __torch_dispatch__(self, f: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if f.overloadpacket in self.kinds:
            self.note(*args[-2:])
        elif f.overloadpacket in self.even:
            self.note_layer(args[0], args[1], args[2], f.overloadpacket is self.even[0])
        return f(*args, **(kwargs or {}))

    def note(self, a: Tensor, b: Tensor) -> None:
        """One product."""
        self.noted.append(((a.shape, a.stride()), (b.shape, b.stride())))

    def note_layer(self, x: Tensor, weight: Tensor, inner: Tensor, forth: bool) -> None:
        """Those of a recurrent layer in one kernel, (T, B, I): the inputs of all steps at once, the states step by step."""
        words = x.flatten(0, 1)
        gates, state = x.new_empty(len(words), len(weight)), x.new_empty(len(words), inner.shape[1])
        for _ in range(len(x)):
            self.note(state[: x.shape[1]], inner.T) if forth else self.note(gates[: x.shape[1]], inner)
        if forth:
            self.note(words, weight.T)
        else:
            self.note(gates, weight)
            self.note(gates.T, words)
            self.note(gates.T, state)

    def again(self) -> Callable[[], None]:
        """The same products, of random numbers in the same layouts, and nothing else."""
        largest = max(sum((n - 1) * s for n, s in zip(*side, strict=True)) + 1 for pair in self.noted for side in pair)
        made = max(prod(a[0][:-1]) * b[0][-1] for a, b in self.noted)
        left, right, out = torch.randn(largest), torch.randn(largest), torch.empty(made)

        def run() -> None:
            with torch.no_grad():
                for a, b in self.noted:
                    shape = (*a[0][:-1], b[0][-1])
                    torch.matmul(left.as_strided(*a), right.as_strided(*b), out=out[: prod(shape)].view(shape))

        return run


def products(work: Callable[[], None]) -> Callable[[], None]:
    """The matrix products of some work, by themselves."""
    noted = Products()
    with noted:
        work()
    return noted.again()


def rows(count: int) -> Iterator[Batch]:
    """Sentences of the test split, a few at a time, as evaluation takes them."""
    held = data().splits["test"][:count]
    for start in range(0, count, 10):
        yield Batch(data().x(held[start : start + 10]))
