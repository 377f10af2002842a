"""The metric `transfer`: how well a run gives sentences another style, on a split and on sentences that people rewrote."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from elboroom.core.problem import Problem, unknown
from elboroom.data import sentences as grammar
from elboroom.data.corpora import transfer_pairs
from elboroom.data.dataset import DataSet
from elboroom.data.sequences import CONTEXT
from elboroom.data.words import style_words
from elboroom.evaluate.registry import Quantity, Results, family, named
from elboroom.evaluate.result import Result
from elboroom.evaluate.subject import reads_pivot
from elboroom.evaluate.text.bleu import bleu
from elboroom.evaluate.text.kneser_ney import UNKNOWN, KneserNey
from elboroom.evaluate.transfer import content, exact, vectors
from elboroom.evaluate.transfer.classifier import judge
from elboroom.training.batches import batch_of

if TYPE_CHECKING:
    from elboroom.evaluate.subject import Subject

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ORDER = 5  # of the n-gram model that judges fluency
COPY, HUMAN, RIGHT = "copy of the input", "human rewriting", "right answer"
REWRITTEN = ("yelp-sentiment", "caption-style")  # corpora of which people rewrote sentences
REFERENCES = "references"  # behind the keys of what is measured on sentences that people rewrote
GIVES = {
    "transfer_accuracy": Quantity("Accuracy of transfer", "high"),
    "transfer_cosine": Quantity("Content: cosine of word vectors", "high"),
    "transfer_overlap": Quantity("Content: overlap of words", "high"),
    "transfer_self_bleu": Quantity("Content: BLEU against the input", "high"),
    "transfer_bleu": Quantity("BLEU against human rewritings", "high"),
    "transfer_ppl": Quantity("Fluency: perplexity a word", "low"),
    "transfer_mean": Quantity("Geometric mean of accuracy and overlap", "high"),
    "transfer_copies": Quantity("Share of copies", "low"),
    "transfer_exact": Quantity("Exact transfer", "high"),
    "transfer_exact_reconstructed": Quantity("Exact transfer of what is reconstructed", "high"),
    "transfer_parses": Quantity("Outputs that parse", "high"),
    "transfer_flipped": Quantity("Outputs with the style asked for", "high"),
    "transfer_kept": Quantity("Outputs with all else kept", "high"),
}


@dataclass(frozen=True)
class Task:
    """Sentences to be given another style: the value that each has and is to have, rewritings if there are any."""

    inputs: list[str]
    sources: Ints
    targets: Ints
    settings: dict[str, Any]
    references: list[str] = field(default_factory=list)
    contexts: list[list[str]] = field(default_factory=list)  # of a run that writes from those of the data
    numbers: bool = False  # whether numbers are written _num_

    def alike(self, outputs: Sequence[str]) -> list[str]:
        """Outputs as the inputs are written: where there are rewritings, all are lower-cased and tokenised alike."""
        return [content.tokenised(text, self.numbers) for text in outputs] if self.references else list(outputs)


class Bench:
    """What judges the transfer of one label of a data set."""

    def __init__(self, data: DataSet, label: str, words: Path | None = None) -> None:
        train, column = data.splits["train"], list(data.about.labels).index(label)
        self.label, self.classes = label, data.about.labels[label]
        texts = data.sentences(train)
        self.judge = judge(data, label)
        self.style = {entry.word for entry in style_words(texts, data.labels[train, column], self.classes)}
        self.vectors = vectors.trained(texts) if words is None else vectors.read(words)
        self.model = KneserNey(texts, ORDER)
        held = next((name for name in ("test", "valid") if name in data.splits), "train")
        real, self.real = data.splits[held], "real text" if held == "test" else f"real text of {held}"
        self.own = float((self.judge.predict(data.sentences(real)) == data.labels[real, column]).mean())
        self.real_ppl = self.model.score(data.sentences(real)).perplexity()[0]
        self.numbers = "_num_" in self.model.ids

    def scores(self, task: Task, outputs: Sequence[str]) -> dict[str, Result]:
        """Every measure of some outputs."""
        texts, inputs = task.alike(outputs), task.alike(task.inputs)
        said = task.settings | {"label": self.label, "sentences": len(texts)}
        right = (self.judge.predict(texts) == task.targets).astype(float)
        overlap = content.overlaps(inputs, texts, self.style)
        cosine = content.cosines(inputs, texts, self.vectors, self.style)
        without = f"without {len(self.style):,} words of style"
        found = {
            "transfer_accuracy": _mean(
                right, f"TextCNN, {self.own:.3f} accurate on {self.real}", said, self.judge.about
            ),
            "transfer_cosine": _mean(cosine, f"cosine of [min; max; mean] of {self.vectors.name}, {without}", said),
            "transfer_overlap": _mean(overlap, f"Jaccard of words {without} and stop words", said),
            "transfer_self_bleu": replace(bleu(texts, inputs), estimator="bleu-4 against the input"),
            "transfer_ppl": self._fluency(texts, said),
            "transfer_copies": _mean(content.copies(inputs, texts), "output equals input", said),
        }
        found["transfer_mean"] = _geometric(found["transfer_accuracy"], found["transfer_overlap"], said)
        if task.references:
            references = task.alike(task.references)
            found["transfer_bleu"] = replace(bleu(texts, references), estimator="bleu-4 against one human rewriting")
        return {key: replace(result, settings=said | result.settings) for key, result in found.items()}

    def _fluency(self, texts: Sequence[str], said: dict[str, Any]) -> Result:
        """Perplexity a word under the n-gram model of the training text, of all outputs, of short and of long ones."""
        scored = self.model.score(texts)
        value, error = scored.perplexity()
        middle = float(np.median(scored.tokens))
        parts: dict[str, Any] = {"real_text": self.real_ppl, "words_and_end": float(scored.tokens.mean())}
        for name, some in (("short", scored.tokens <= middle), ("long", scored.tokens > middle)):
            if some.any():
                parts[name] = float(np.exp(scored.nats[some].sum() / scored.tokens[some].sum()))
        how = f"{self.model.order}-gram Kneser-Ney of the training text; {self.real} {self.real_ppl:.1f}"
        how += "".join(f"; {name} outputs {parts[name]:.1f}" for name in ("short", "long") if name in parts)
        return Result(value, how, "per word", said, {"sampling": error}, parts=parts)


def _mean(values: Floats, estimator: str, said: dict[str, Any], about: dict[str, Any] | None = None) -> Result:
    """The mean over sentences, of those that have a value."""
    some = values[~np.isnan(values)]
    parts = dict(about or {}) | ({"left_out": len(values) - len(some)} if len(some) < len(values) else {})
    if not len(some):
        return Result(None, estimator, "of 1", said, reason="no sentence has a word of content", parts=parts)
    errors = {"sampling": float(some.std(ddof=1) / math.sqrt(len(some)))} if len(some) > 1 else {}
    return Result(float(some.mean()), estimator, "of 1", said, errors, parts=parts)


def _geometric(accuracy: Result, overlap: Result, said: dict[str, Any]) -> Result:
    how = "sqrt(accuracy * overlap of words)"
    if accuracy.value is None or overlap.value is None:
        return Result(None, how, "of 1", said, reason="there is no overlap of words")
    return Result(math.sqrt(accuracy.value * overlap.value), how, "of 1", said)


def beside(found: dict[str, Result], others: dict[str, dict[str, Result]]) -> dict[str, Result]:
    """Results with the value that each end of the scale has: a copy of the input, a perfect answer."""
    ends = {key: {name: scores[key].value for name, scores in others.items() if key in scores} for key in found}
    return {key: replace(result, parts=result.parts | {"beside": ends[key]}) for key, result in found.items()}


@family("transfer", "labels", GIVES, by_name=True)
def of_run(
    subject: Subject,
    most: int = 10_000,
    seed: int = 0,
    split: str | None = None,
    label: str = "",
    by: str = "style",
    to: str = "",
    vectors: Path | None = None,
    through: Path | None = None,
    references: str = "",
    strength: float = 1.0,
) -> Results:
    """How well sentences are given another style: accuracy, content, fluency, exact where the right answer is known.

    Of two styles each sentence gets the other one, of more the next one; with --to, and of a map, all others get that one.
    Outputs are decoded greedily from E[z|x] with the mean style of the class, or moved as --by says; a run that writes from
    translations has those of the data, or is told which run makes them. Where people rewrote sentences of this data, those are
    measured too.
    """
    run = subject.run
    if run.tokeniser is None:
        raise Problem(f"transfer is measured on sentences; {run.data.about.name} is {run.data.about.kind}")
    name, values, only = changed(run, label, by, to)
    results: Results = {}
    column, part = list(run.data.about.labels).index(name), run.split(split, most, seed)
    if only:
        rest = part.rows[run.data.labels[part.rows, column] != values.index(only)]
        if not len(rest):
            raise Problem(
                f"all sentences of '{part.name}' are {only} already, so there are none to change; use another --to or --split"
            )
        part = replace(part, rows=rest)
    bench = Bench(run.data, name, vectors)
    truth = run.data.labels[part.rows, column]
    decoding = {"decoding": "greedy, without <unk>", "by": by, "strength": strength}
    inputs = run.data.sentences(part.rows)
    targets = (truth + 1) % len(values) if not only else np.full_like(truth, values.index(only))
    pivot = reads_pivot(run)
    contexts = run.data.turns(CONTEXT, part.rows) if pivot and through is None else []
    task = Task(inputs, truth, targets, part.settings | decoding, contexts=contexts, numbers=bench.numbers)
    outputs = outputs_of(run, task, name, values, by, through, strength)
    copy = bench.scores(task, task.inputs)
    others = {COPY: copy}
    if exact.has_grammar(run.data):
        right = [exact.answer(s, name, t) or "" for s, t in zip(task.inputs, task.targets.tolist(), strict=True)]
        others[RIGHT] = bench.scores(task, right)
        batch = batch_of(run.data, part.rows, run.given)
        same = run.edit(batch, by="map", strength=0.0) if run.changes() else run.reconstruct(batch)
        results |= _exact(task, outputs, same, name)
    results |= beside(bench.scores(task, outputs), others)
    corpus = references or (run.data.about.name if run.data.about.name in REWRITTEN else "")
    if corpus and not split and not (pivot and through is None):
        results |= _rewritten(run, bench, name, values, by, only, corpus, through, strength)
    return named(results)


def changed(run: Any, label: str = "", by: str = "style", to: str = "") -> tuple[str, list[str], str]:
    """The label of a run that is changed, what its values are called, and the one that all others get, if there is one."""
    styles = run.styles(by)
    if not styles:
        raise Problem("this run has no style to change; use --by offset or fgim, or a run of emb2emb with --by map")
    if label and label not in styles:
        raise unknown("label that this run changes", label, styles)
    if by != "style" and not label and len(styles) > 1:
        raise Problem(f"{run.data.about.name} has the labels {', '.join(styles)}: say which with --label")
    name = label or next(iter(styles))
    only = to or run.changes(by).get(name) or ""
    if only and only not in styles[name]:
        raise unknown(name, only, styles[name])
    return name, styles[name], only


def outputs_of(
    run: Any, task: Task, label: str, values: list[str], by: str, through: Path | None = None, strength: float = 1.0
) -> list[str]:
    """What the run makes of each sentence, the style that it is to have being given; nothing of one that it cannot read."""
    if run.given not in ((), (label,)):
        raise Problem(
            f"this run is given {', '.join(run.given)}; transfer is measured of runs that are given one label"
        )
    inputs = task.alike(task.inputs)
    reads = reads_pivot(run)  # then what it knows of x does not matter
    known = np.array([reads or any(word != UNKNOWN for word in run.seen(text).split()) for text in inputs])
    made = [""] * len(inputs)
    for source, target in sorted(set(zip(task.sources.tolist(), task.targets.tolist(), strict=True))):
        rows = np.flatnonzero(known & (task.sources == source) & (task.targets == target)).tolist()
        if rows:
            u = run.labelled(len(rows), **{label: values[source]}) if run.given else None
            pivot: dict[str, Any] = (
                {"context": [task.contexts[row] for row in rows]} if task.contexts else {"through": through}
            )
            texts = [inputs[row] for row in rows]
            done = run.transfer(texts, {label: values[target]}, strength=strength, by=by, u=u, **pivot)
            for row, text in zip(rows, done, strict=True):
                made[row] = text
    return made


def _rewritten(
    run: Any,
    bench: Bench,
    label: str,
    values: list[str],
    by: str,
    only: str | None,
    corpus: str,
    through: Path | None,
    strength: float,
) -> Results:
    """The same on the sentences of Li et al. 2018 that people rewrote."""
    pairs = [pair for pair in transfer_pairs(corpus) if not only or values[pair.target] == only]
    said = {"data": f"{corpus}, pairs of Li et al. 2018", "n": len(pairs), "by": by, "strength": strength}
    targets = np.array([pair.target for pair in pairs])
    task = Task(
        [pair.source for pair in pairs],
        1 - targets,
        targets,
        said,
        [pair.reference for pair in pairs],
        numbers=bench.numbers,
    )
    outputs = outputs_of(run, task, label, values, by, through, strength)
    others = {COPY: bench.scores(task, task.inputs), HUMAN: bench.scores(task, task.references)}
    return {f"{key} {REFERENCES}": result for key, result in beside(bench.scores(task, outputs), others).items()}


def _exact(task: Task, outputs: Sequence[str], reconstructed: Sequence[str], label: str) -> Results:
    """Against the one right answer that the grammar has, over all sentences and over those that are reconstructed exactly."""
    found = exact.verdicts(task.inputs, outputs, label, task.targets.tolist())
    same = np.array([a.split() == b.split() for a, b in zip(task.inputs, reconstructed, strict=True)])
    said = task.settings | {"label": label, "sentences": len(outputs), "factors": len(grammar.FACTORS)}
    results = {f"transfer_{key}": _mean(values, f"grammar, {label}", said) for key, values in found._asdict().items()}
    share = f"{same.mean():.3f} of sentences are reconstructed exactly"
    if same.any():
        results["transfer_exact_reconstructed"] = _mean(found.exact[same], f"grammar, {label}; {share}", said)
    else:
        results["transfer_exact_reconstructed"] = Result(None, f"grammar, {label}", "of 1", said, reason=share)
    copied = {"transfer_parses": 1.0, "transfer_kept": 1.0}  # a copy parses and keeps all, and flips nothing
    others = {key: {COPY: copied.get(key, 0.0), RIGHT: 1.0} for key in results}
    return {key: replace(result, parts=result.parts | {"beside": others[key]}) for key, result in results.items()}
