"""The judge of style: a TextCNN (Kim 2014) that no method trains with, made once a data set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from elboroom.core.problem import Problem
from elboroom.data.dataset import DataSet
from elboroom.evaluate.transfer.kept import Made, digest, kept
from elboroom.nets.windows import Windows

Ints = NDArray[np.int64]
NAME = "textcnn-2"  # changes whenever a judgement would
WIDTHS, FILTERS, EMBED, DROPOUT = (3, 4, 5), 128, 128, 0.5
LR, BATCH, EPOCHS, SEEN = 1e-3, 128, 6, 2  # words seen fewer times are unknown
PAD, UNKNOWN = 0, 1
LONGEST = 100  # words that it reads


class TextCNN(nn.Module):
    """Windows of 3, 4 and 5 words, 128 filters each, the maximum of each over the sentence, dropout, a linear layer."""

    def __init__(self, vocabulary: int, classes: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, EMBED, padding_idx=PAD)
        self.windows = Windows(EMBED, WIDTHS, FILTERS)
        self.out = nn.Linear(self.windows.outputs, classes)

    def forward(self, ids: Tensor) -> Tensor:
        seen = self.windows(self.embedding(ids), ids != PAD)
        logits: Tensor = self.out(F.dropout(seen, DROPOUT, self.training))
        return logits  # (B, classes)


@dataclass(frozen=True)
class Judge:
    """A trained classifier of one label, with what it was trained and chosen on."""

    words: list[str]  # from id 2 on
    net: TextCNN
    about: dict[str, Any]

    @cached_property
    def ids(self) -> dict[str, int]:
        """The id of every word that it knows."""
        return {word: place for place, word in enumerate(self.words, UNKNOWN + 1)}

    def predict(self, sentences: Sequence[str]) -> Ints:
        """The likeliest class of each sentence, (n,)."""
        with torch.inference_mode():
            parts = [self.net.eval()(_ids(self.ids, sentences[i : i + 512])) for i in range(0, len(sentences), 512)]
        return torch.cat(parts).argmax(1).numpy()


def judge(data: DataSet, label: str) -> Judge:
    """The classifier of a label of a data set: trained on its training split, chosen on its validation split.

    Without a validation split a twentieth of the training split is held out for that. The test split takes no part.
    """
    column, classes = list(data.about.labels).index(label), data.about.labels[label]
    fit, choose = data.splits["train"], data.splits.get("valid")
    if choose is None:
        order = np.random.default_rng(0).permutation(len(fit))
        some = max(1, len(fit) // 20)
        fit, choose = fit[order[some:]], fit[order[:some]]
    texts, chosen = data.sentences(fit), data.sentences(choose)
    y, wanted = data.labels[fit, column], data.labels[choose, column]
    if len(np.unique(y)) < 2:
        raise Problem(f"'{label}' has a single value in the training split, so nothing tells its classes apart")
    settings = (NAME, WIDTHS, FILTERS, EMBED, DROPOUT, LR, BATCH, EPOCHS, SEEN, classes, y.tobytes(), wanted.tobytes())
    key = digest(*settings, sentences=[*texts, *chosen])
    state, about = kept(NAME, key, lambda: _trained(texts, y, chosen, wanted, classes))
    with torch.random.fork_rng(devices=[]):
        net = TextCNN(len(about["words"]) + UNKNOWN + 1, classes)
    net.load_state_dict(state)
    return Judge(about["words"], net, {name: value for name, value in about.items() if name != "words"})


def _trained(texts: Sequence[str], y: Ints, chosen: Sequence[str], wanted: Ints, classes: int) -> Made:
    """The weights of the epoch that is best on what it is chosen by."""
    counts = Counter(word for text in texts for word in text.split())
    words = sorted(word for word, count in counts.items() if count >= SEEN) or sorted(counts)
    known = {word: place for place, word in enumerate(words, UNKNOWN + 1)}
    rng, best, kept_state, at = np.random.default_rng(0), -1.0, dict[str, Tensor](), 0
    order = np.argsort([len(text.split()) for text in texts], kind="stable")  # batches of similar lengths
    batches = [order[i : i + BATCH] for i in range(0, len(order), BATCH)]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = TextCNN(len(words) + UNKNOWN + 1, classes)
        descend = torch.optim.Adam(net.parameters(), LR)
        for epoch in range(EPOCHS):
            net.train()
            for which in rng.permutation(len(batches)):
                rows = batches[which]
                logits = net(_ids(known, [texts[row] for row in rows]))
                descend.zero_grad()
                F.cross_entropy(logits, torch.from_numpy(y[rows])).backward()  # type: ignore[no-untyped-call]
                descend.step()
            right = float((Judge(words, net, {}).predict(chosen) == wanted).mean())
            if right > best:
                best, at = right, epoch + 1
                kept_state = {name: tensor.detach().clone() for name, tensor in net.state_dict().items()}
            if best == 1.0 or epoch + 1 - at >= 2:
                break
    about = {"words": words, "judge": NAME, "trained_on": len(texts), "chosen_on": len(chosen), "chosen_accuracy": best}
    return kept_state, about | {"epochs": at}


def _ids(known: dict[str, int], sentences: Sequence[str]) -> Tensor:
    """Rows of ids, padded to the longest, (B, L); a sentence without words is one that is unknown."""
    rows = [[known.get(word, UNKNOWN) for word in sentence.split()[:LONGEST]] or [UNKNOWN] for sentence in sentences]
    ids = torch.full((len(rows), max(map(len, rows))), PAD)
    for row, found in zip(ids, rows, strict=True):
        row[: len(found)] = torch.tensor(found, dtype=torch.long)
    return ids
