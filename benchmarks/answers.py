"""What reads a context: training tokens per second, and replies that are decoded together or one at a time."""

from __future__ import annotations

import atexit
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.measure import THREADS, Result, in_turns, measurement, timed
from benchmarks.text import predicted
from elboroom.core.batch import Batch
from elboroom.core.method import adam
from elboroom.core.vocabulary import PAD
from elboroom.data.dataset import DataSet
from elboroom.data.sequences import CONTEXT
from elboroom.data.text import Reading, gather
from elboroom.families.decoding import Greedy
from elboroom.nets.context import Turns
from elboroom.nets.fast.memory import flush_denormals
from elboroom.nets.fast.packing import lengths_of
from elboroom.runs.lifecycle import train
from elboroom.runs.run import Run
from elboroom.training.batches import Batches
from elboroom.training.loop import Loop
from elboroom.training.session import Own, build
from elboroom.training.spec import specify

WORDS, EXAMPLES, BATCH, STEPS, RATE, CLIP = 10_000, 2_000, 64, 10, 1e-3, 5.0
SIZE = 256  # of embeddings and states
REPLIES, EACH = 1_000, 10


@cache
def data(turns: int) -> DataSet:
    """Replies of about a dozen words of 10,000, each to so many turns of as many: as long as those of DailyDialog."""
    rng = np.random.default_rng(0)

    def said() -> str:
        return " ".join(f"w{i}" for i in np.minimum(rng.zipf(1.2, rng.integers(3, 23)), WORDS - 4))

    read = [(said(), (), (tuple(said() for _ in range(turns)),)) for _ in range(EXAMPLES)]
    return gather(f"replies to {turns}", {"train": read}, reading=Reading(), beside=[CONTEXT])


def looped(turns: int) -> tuple[Callable[[], None], list[Batch]]:
    """Some steps of seq2seq by the loop of the project, and their batches."""
    flush_denormals()  # as every run does
    options = {"embed": SIZE, "hidden": SIZE, "batch_size": BATCH, "lr": RATE, "steps": STEPS}
    method = build(specify("seq2seq", data(turns), "array", None, options), Own(data(turns))).train()
    method.prepare(adam(RATE), CLIP)
    batches = Batches(data(turns), "train", BATCH, 0, (), torch.device("cpu"), "buckets")
    loop = Loop(method, batches, 0)

    def steps() -> None:
        for step in range(STEPS):
            loop.step(step)

    return steps, [batches(step) for step in range(STEPS)]


class Plain(nn.Module):
    """The same net as one would write it down: a bidirectional LSTM of turns, one over turns, attention by dot products."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.read, self.write = nn.Embedding(size, SIZE), nn.Embedding(size, SIZE)
        self.words = nn.LSTM(SIZE, SIZE, batch_first=True, bidirectional=True)
        self.vector = nn.Linear(2 * SIZE, SIZE)
        self.before = nn.LSTM(SIZE + 1, SIZE, batch_first=True)
        self.state = nn.Linear(SIZE, SIZE)
        self.decoder = nn.LSTM(2 * SIZE, SIZE, batch_first=True)
        self.keys, self.seen = nn.Linear(2 * SIZE, SIZE, bias=False), nn.Linear(3 * SIZE, SIZE)
        self.logits, self.dropout = nn.Linear(SIZE, size), nn.Dropout(0.5)

    def context(self, ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The vector of contexts of as many turns each, and the states and mask of all their words."""
        turns = Turns.of(ids)
        packed = nn.utils.rnn.pack_padded_sequence(
            self.read(turns.ids), lengths_of(turns.ids), batch_first=True, enforce_sorted=False
        )
        states, (last, _) = self.words(packed)
        states, _ = nn.utils.rnn.pad_packed_sequence(states, batch_first=True)
        v = self.vector(torch.cat([last[0], last[1]], 1)).view(len(ids), -1, SIZE)  # (B, turns, H)
        vector, count = v[:, -1], v.shape[1] - 1
        if count:
            mine = ((count - torch.arange(count)) % 2).to(v).expand(len(ids), -1).unsqueeze(2)
            vector = vector + self.before(torch.cat([v[:, :-1], mine], 2))[1][0][0]
        there = (turns.ids != PAD).view(len(ids), -1)
        return vector, states.reshape(len(ids), -1, 2 * SIZE), there

    def forward(self, x: Tensor, ids: Tensor) -> Tensor:
        """The negative log-likelihood of a reply, (B, L), (B, C) -> ()."""
        vector, memory, there = self.context(ids)
        words = self.dropout(self.write(x[:, :-1]))
        inputs = torch.cat([words, vector.unsqueeze(1).expand(-1, words.shape[1], -1)], 2)
        first = self.state(vector).unsqueeze(0)
        h = self.dropout(self.decoder(inputs, (first, torch.zeros_like(first)))[0])
        scores = h @ self.keys(memory).transpose(1, 2) / SIZE**0.5
        found = torch.softmax(scores.masked_fill(~there.unsqueeze(1), -torch.inf), -1) @ memory
        h = h + torch.tanh(self.seen(torch.cat([h, found], 2)))
        real = x[:, 1:] != PAD
        return F.cross_entropy(self.logits(h[real]), x[:, 1:][real], reduction="sum") / len(x)


def plain(turns: int, batches: list[Batch]) -> Callable[[], None]:
    """The same batches by a plain loop."""
    net = Plain(data(turns).about.levels)
    optimiser = torch.optim.Adam(net.parameters(), RATE)

    def steps() -> None:
        for batch in batches:
            assert batch.context is not None
            optimiser.zero_grad()
            net(batch.x, batch.context).backward()
            nn.utils.clip_grad_norm_(net.parameters(), CLIP)
            optimiser.step()

    return steps


def _trained(turns: int) -> Result:
    ours, batches = looped(turns)
    theirs, tokens = plain(turns, batches), sum(predicted(batch.x) for batch in batches)
    seconds = in_turns({"ours": timed(ours), "plain": timed(theirs)}, repetitions=7)
    value, reference = tokens / seconds["ours"], tokens / seconds["plain"]
    return Result(value, "tokens/s", reference, value / reference, target=1.0)


@measurement("train-seq2seq")
def train_seq2seq() -> Result:
    """seq2seq on pairs of sentences of 10,000 words, 256/256, by the loop; against a plain PyTorch loop of the same net."""
    return _trained(1)


@measurement("train-dialogue")
def train_dialogue() -> Result:
    """seq2seq on replies to five turns, the hierarchical context, by the loop; against a plain PyTorch loop of the same net."""
    return _trained(5)


@cache
def speaker() -> Run:
    """A cvae of replies after a moment of training, in a folder that lasts as long as this process."""
    folder = TemporaryDirectory()
    atexit.register(folder.cleanup)
    options: dict[str, Any] = {"embed": SIZE, "hidden": SIZE, "batch_size": BATCH, "lr": RATE, "threads": THREADS}
    return train("cvae", data(5), Path(folder.name) / "run", steps=5, **options)


def replies(run: Run, contexts: list[list[str]], at_once: bool) -> int:
    """Ten replies to each context, greedy from a z each, all together or one by one; how many that are."""
    how = Greedy(unknown=False)
    if at_once:
        return sum(len(found) for found in run.generate(contexts, EACH, how))
    return sum(len(run.generate([turns], 1, how, seed=n)) for turns in contexts for n in range(EACH))


@measurement("replies")
def decoded() -> Result:
    """1,000 replies of a cvae, ten to each context, greedy from a z each, 256/256; against one reply at a time."""
    run = speaker()
    contexts = run.data.turns(CONTEXT, run.rows("train")[1][: REPLIES // EACH])
    few = contexts[: max(1, len(contexts) // 10)]  # one at a time takes long: a tenth of them tells how long
    seconds = in_turns(
        {
            "together": timed(lambda: replies(run, contexts, True)),
            "alone": timed(lambda: replies(run, few, False)),
        },
        repetitions=3,
    )
    value, reference = REPLIES / seconds["together"], len(few) * EACH / seconds["alone"]
    return Result(value, "replies/s", reference, value / reference, target=10.0)
