"""A plain PyTorch loop on PTB, without this library: what a language model and a sentence VAE reach with Adam in a few epochs.

Batches hold 32 sentences of one length, parameters start uniform in ±0.1, the weight of the rate
grows from 0.1 to 1 over five epochs.

    python -m benchmarks.ptb_plain --kind lm
    python -m benchmarks.ptb_plain --kind vae
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from collections import defaultdict
from pathlib import Path

import torch
from torch import Tensor, nn

START, END = 1, 2


def read(folder: Path) -> tuple[list[list[int]], list[list[int]], int]:
    """Sentences of train and test as ids, and the size of the vocabulary; ids 0, 1 and 2 are padding, start and end."""
    vocabulary: dict[str, int] = {}
    splits = []
    for split in ("train", "test"):
        lines = (folder / f"ptb.{split}.txt").read_text().splitlines()
        words = [[vocabulary.setdefault(word, len(vocabulary) + 3) for word in line.split()] for line in lines]
        splits.append([[START, *sentence, END] for sentence in words])
    return splits[0], splits[1], len(vocabulary) + 3


def batches(sentences: list[list[int]], size: int) -> list[Tensor]:
    """Batches of sentences of equal length: no padding and no mask."""
    by_length = defaultdict(list)
    for sentence in random.sample(sentences, len(sentences)):
        by_length[len(sentence)].append(sentence)
    return [torch.tensor(same[i : i + size]) for same in by_length.values() for i in range(0, len(same), size)]


class Plain(nn.Module):
    """LSTM decoder; with `latent` above 0 also an LSTM encoder whose code enters the first state and every input."""

    def __init__(self, vocabulary: int, embed: int, hidden: int, latent: int) -> None:
        super().__init__()
        self.latent = latent
        self.words = nn.Embedding(vocabulary, embed)
        self.decoder = nn.LSTM(embed + latent, hidden, batch_first=True)
        self.scores = nn.Linear(hidden, vocabulary)
        self.drop = nn.Dropout(0.5)
        if latent:
            self.read = nn.Embedding(vocabulary, embed)
            self.encoder = nn.LSTM(embed, hidden, batch_first=True)
            self.head = nn.Linear(hidden, 2 * latent)
            self.first = nn.Linear(latent, hidden)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -0.1, 0.1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Negative log-likelihood and rate of each sentence, in nats."""
        inputs, state, rate = self.drop(self.words(x[:, :-1])), None, torch.zeros(len(x))
        if self.latent:
            mean, log_variance = self.head(self.encoder(self.read(x))[1][0][-1]).chunk(2, 1)
            z = mean + torch.randn_like(mean) * (log_variance / 2).exp()
            rate = 0.5 * (mean**2 + log_variance.exp() - log_variance - 1).sum(1)
            inputs = torch.cat([inputs, z[:, None].expand(-1, inputs.shape[1], -1)], -1)
            hidden = self.first(z)[None]
            state = hidden, torch.zeros_like(hidden)
        scores = self.scores(self.drop(self.decoder(inputs, state)[0]))
        return nn.functional.cross_entropy(scores.transpose(1, 2), x[:, 1:], reduction="none").sum(1), rate


@torch.no_grad()
def measure(model: Plain, test: list[Tensor]) -> tuple[float, float]:
    """Mean reconstruction and rate of the test sentences."""
    model.eval()
    sums = torch.zeros(2, dtype=torch.float64)
    for x in test:
        nll, rate = model(x)
        sums += torch.stack([nll.sum(), rate.sum()])
    model.train()
    nll, rate = (sums / sum(len(x) for x in test)).tolist()
    return nll, rate


def train(arguments: argparse.Namespace) -> None:
    """Train, and print a line of JSON after every epoch."""
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    random.seed(arguments.seed)
    train, test, vocabulary = read(arguments.data)
    kept = batches(test, 64)
    latent = arguments.latent if arguments.kind == "vae" else 0
    model = Plain(vocabulary, arguments.embed, arguments.hidden, latent)
    optimiser = torch.optim.Adam(model.parameters(), 1e-3, fused=True)
    weight, seconds = 0.1, 0.0
    for epoch in range(1, arguments.epochs + 1):
        order, started = batches(train, arguments.batch), time.perf_counter()
        for x in random.sample(order, len(order)):
            weight = min(1.0, weight + 1 / (5 * len(order)))
            nll, rate = model(x)
            optimiser.zero_grad()
            (nll + weight * rate).mean().backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5)
            optimiser.step()
        seconds += time.perf_counter() - started
        nll, rate = measure(model, kept)
        line = {"kind": arguments.kind, "epoch": epoch, "steps": epoch * len(order), "seconds": round(seconds)}
        print(
            json.dumps(line | {"nll": round(nll, 3), "kl": round(rate, 3), "nelbo": round(nll + rate, 3)}), flush=True
        )


def main() -> None:
    """Read the command line and train."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(os.environ.get("ELBOROOM_DATA", ".")) / "ptb"
    parser.add_argument("--data", type=Path, default=default, help="the folder of ptb.train.txt and ptb.test.txt")
    parser.add_argument("--kind", choices=("lm", "vae"), default="lm")
    numbers = {"epochs": 5, "batch": 32, "embed": 256, "hidden": 256, "latent": 32, "threads": 1, "seed": 1}
    for name, value in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    train(parser.parse_args())


if __name__ == "__main__":
    main()
