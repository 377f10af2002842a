"""Measures of what a run answers to contexts: replies of a dialogue, translations, simplifications."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elboroom.core.problem import Problem
from elboroom.data.dataset import DataSet
from elboroom.data.sequences import CONTEXT
from elboroom.evaluate.registry import Quantity, family, named
from elboroom.evaluate.result import Result, mean
from elboroom.evaluate.split import Split
from elboroom.evaluate.subject import Subject
from elboroom.evaluate.text.bleu import bleu
from elboroom.evaluate.text.replies import ORDERS, SIMILARITIES, f1, scores
from elboroom.evaluate.text.sari import Sari, sari
from elboroom.evaluate.transfer.vectors import read, trained
from elboroom.families.decoding import Beam, Greedy, Sampling

Ints = NDArray[np.int64]
REPLIES, WIDTH = 10, 5
AGAINST = {f"bleu_{n}": f"BLEU-{n}" for n in ORDERS} | {
    f"bow_{name}": f"Similarity of words ({name})" for name in SIMILARITIES
}
GIVES_REPLIES = {
    f"{what}_{which.lower()}": Quantity(f"{title}, {which} of {REPLIES} replies", "high")
    for what, title in AGAINST.items()
    for which in ("precision", "recall", "F1")
} | {
    f"{where}_distinct_{n}": Quantity(f"Distinct-{n} {said}", "high")
    for where, said in (("intra", "within a reply"), ("inter", f"over the {REPLIES} replies to a context"))
    for n in (1, 2)
}
GIVES_SARI = {
    "sari": Quantity("SARI", "high"),
    "sari_keep": Quantity("SARI: what is kept", "high"),
    "sari_delete": Quantity("SARI: what is deleted", "high"),
    "sari_add": Quantity("SARI: what is added", "high"),
    "sari_of_source": Quantity("SARI of the source itself", "neither"),
    "sari_of_reference": Quantity("SARI of a reference against the others", "neither"),
}


def _part(subject: Subject, split: str | None, most: int, seed: int) -> Split:
    run = subject.run
    if run.model.conditioner is None:
        raise Problem("this metric is for models that read a context, and this one reads none")
    return run.split(split, most, seed)


@family("replies", "sentences", GIVES_REPLIES, by_name=True)
def replies(
    subject: Subject, most: int = 10_000, seed: int = 0, split: str | None = None, vectors: Path | None = None
) -> dict[str, Result]:
    """Ten replies to each context against the real one: BLEU, similarity of words, distinct n-grams.

    Each reply is from another z, its words greedy; of a model without z its words are drawn. Precision is the mean of the
    ten, recall the best of them, F1 the harmonic mean of both after they are averaged over contexts. Labels that the model
    is given are those of the real reply. Vectors of words are those of a file, or else of the training text.
    """
    run, part = subject.run, _part(subject, split, most, seed)
    how: Any = Greedy(unknown=False) if run.latent else Sampling(unknown=False)
    made = run.generate(run.data.turns(CONTEXT, part.rows), REPLIES, how, seed, _labels(subject, part.rows))
    words = trained(run.data.sentences(run.data.splits["train"])) if vectors is None else read(vectors)
    each = [scores(*pair, words) for pair in zip(made, run.data.sentences(part.rows), strict=True)]
    said = part.settings | {
        "replies": REPLIES,
        "decoding": f"{'greedy, z of the prior' if run.latent else 'word by word'}, without <unk>",
        "smoothing": "7 of NLTK",
        "vectors": words.name,
    }
    values = {key: np.array([row[key] for row in each]) for key in each[0]}
    values |= {f"{what}_f1": f1(values[f"{what}_precision"], values[f"{what}_recall"]) for what in AGAINST}
    return named({key: mean(torch.from_numpy(some), "replies-1", "of 1", said) for key, some in values.items()})


@family("translation", "sentences", {"translation_bleu": Quantity("BLEU of answers", "high")}, by_name=True)
def translation(subject: Subject, most: int = 10_000, seed: int = 0, split: str | None = None) -> dict[str, Result]:
    """BLEU of what a beam of 5 writes for each context, by sacrebleu, lower-cased, on words as they stand."""
    run, part = subject.run, _part(subject, split, most, seed)
    made = _searched(subject, run.data.turns(CONTEXT, part.rows), part.rows, seed)
    real = run.data.sentences(part.rows)
    found = bleu([text.lower() for text in made], [text.lower() for text in real])
    said = part.settings | {"decoding": f"beam {WIDTH}, without <unk>", "case": "lower"}
    return named({"translation_bleu": replace(found, settings=said | found.settings)})


@family("simplification", "sentences", GIVES_SARI, by_name=True)
def simplification(subject: Subject, most: int = 10_000, seed: int = 0, split: str | None = None) -> dict[str, Result]:
    """SARI of what a beam of 5 writes for each source against all its references.

    Beside it stand that of the source itself, and that of the first reference against the others, in the order of the data.
    most: of sources. Labels that the model is given are those of the first reference.
    """
    run, part = subject.run, _part(subject, split, most, seed)
    sources = _sources(run.data, run.rows(split)[1], most)
    part = replace(part, rows=np.concatenate(list(sources.values())))
    made = _searched(subject, list(map(list, sources)), np.array([rows[0] for rows in sources.values()]), seed)
    said = [(" ".join(turns), run.data.sentences(rows)) for turns, rows in sources.items()]
    pairs = list(zip(said, made, strict=True))
    ours = [sari(source, text, references) for (source, references), text in pairs]
    copied = [sari(source, source, references) for (source, references), _ in pairs]
    humans = [sari(source, r[0], r[1:]) for (source, r), _ in pairs if len(r) > 1]
    counts = [len(rows) for rows in sources.values()]
    settings = part.settings | {"decoding": f"beam {WIDTH}, without <unk>", "sources": len(sources)}
    settings["references"] = [min(counts), max(counts)]
    found = {"sari": _mean([s.value for s in ours], settings)}
    found |= {f"sari_{name}": _mean([getattr(s, name) for s in ours], settings) for name in Sari._fields}
    found["sari_of_source"] = _mean([s.value for s in copied], settings)
    found["sari_of_reference"] = _mean([s.value for s in humans], settings)
    return named(found)


def _sources(data: DataSet, rows: Ints, most: int) -> dict[tuple[str, ...], Ints]:
    """At most `most` contexts, drawn once and the same every time, each with all its rows in the order of the data."""
    rows, found = np.sort(rows), dict[tuple[str, ...], list[int]]()
    for row, turns in zip(rows.tolist(), data.turns(CONTEXT, rows), strict=True):
        found.setdefault(tuple(turns), []).append(row)
    sources = [(turns, np.array(places)) for turns, places in found.items()]
    if most < len(sources):
        chosen = np.random.default_rng(0).choice(len(sources), most, replace=False)
        sources = [sources[place] for place in np.sort(chosen)]
    return dict(sources)


def _mean(values: Sequence[float], settings: dict[str, Any]) -> Result:
    if not values:
        return Result(None, "sari-1", "of 100", settings, reason="no source has two references")
    return mean(100 * torch.tensor(values).double(), "sari-1", "of 100", settings)


def _searched(subject: Subject, contexts: list[list[str]], rows: Ints, seed: int) -> list[str]:
    """One answer to each context with the labels of its row, by beam search."""
    how = Beam(width=WIDTH, unknown=False)
    return [one for (one,) in subject.run.generate(contexts, 1, how, seed, _labels(subject, rows))]


def _labels(subject: Subject, rows: Ints) -> Tensor | None:
    """The labels of rows that the run is given."""
    return subject.run.data.u(rows, subject.run.given) if subject.run.given else None
