"""Measures of runs beyond their likelihood: disentanglement on the code table, agreement of several runs, sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from elboroom.core.problem import Problem, unknown
from elboroom.evaluate.codes import code_table
from elboroom.evaluate.disentanglement import evaluate, metrics
from elboroom.evaluate.disentanglement.udr import udr
from elboroom.evaluate.downstream import Predictor
from elboroom.evaluate.downstream import downstream as predicted
from elboroom.evaluate.probe import probe as probe_codes
from elboroom.evaluate.text import measure
from elboroom.families.gaussian import NoPrior, StandardNormal
from elboroom.runs.run import Run
from elboroom.training.batches import batch_of
from elboroom.training.checkpoint import write_json

AGAINST_NORMAL = "dimension-wise-kl"
CEILINGS = {"dsprites": {"orientation": 0.975}}  # its first and its last orientation are the same image


def disentanglement(
    run: Run, names: str | Sequence[str] = "all", mode: str = "dlib", representation: str = "mean", seed: int = 0,
    interval: bool = False, smaller: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Metrics of a run by name, added to its metrics.json; every image is encoded once.

    smaller: whether a protocol may take fewer rows than it asks for, of data that has no more.
    """
    found = evaluate(code_table(run, allow_smaller=smaller), names, mode, seed, representation, interval)
    if AGAINST_NORMAL in found and type(run.model.prior) is not StandardNormal:
        why = f"{AGAINST_NORMAL} is against N(0, I), which is not the prior of this run"
        if names != "all":
            raise Problem(why)
        found[AGAINST_NORMAL] = replace(found[AGAINST_NORMAL], value=None, parts={}, interval=None, reason=why)
    content = run.measured | {name: score.to_json() for name, score in found.items()}
    write_json(run.folder / "metrics.json", content)
    return content


def downstream(run: Run, mode: str = "boosting", representation: str = "mean", seed: int = 0) -> dict[str, Any]:
    """Every factor predicted from the codes with 10 to 10,000 labels, added to metrics.json; boosting takes minutes.

    mode: boosting or logistic; a mode of other metrics is taken for boosting, as the study did. Of a small data set, what it
    has labels for; the rest has no value but a reason.
    """
    if mode not in (*get_args(Predictor), *(m for entry in metrics().values() for m in entry.modes)):
        raise unknown("mode of downstream", mode, get_args(Predictor))
    source = code_table(run, allow_smaller=True).source.represented(representation)
    predictor: Any = mode if mode in get_args(Predictor) else "boosting"
    found = predicted(source, seed, predictor, ceilings=CEILINGS.get(run.data.about.name))
    content = run.measured | {name: score.to_json() for name, score in found.items()}
    write_json(run.folder / "metrics.json", content)
    return content


def agreement(runs: Sequence[Run], n: int = 10_000) -> dict[str, Any]:
    """UDR of each of several runs that differ in their seed only, on the same images."""
    if len(runs) < 2:
        raise Problem("udr compares runs with one another: name at least two")
    if len({run.spec.data["hash"] for run in runs}) > 1:
        raise Problem("udr compares runs on the same data")
    if len({run.data.split_hash for run in runs}) > 1:
        raise Problem("udr compares runs with the same training split: another share was held out of some of them")
    measured = [(run.split("train", n).codes[0].numpy(), run.kl_per_dim("train")) for run in runs]
    found = udr(measured)
    names = [str(run.folder) for run in runs]
    return {
        name: {"value": value, "mode": found.mode, "unit": "", "settings": found.settings}
        for name, value in zip(names, found.values, strict=True)
    }


def text(
    run: Run, samples: int = 10_000, most: int = 10_000, seed: int = 0, split: str | None = None
) -> dict[str, Any]:
    """Measures of the sentences that a run makes, added to its metrics.json.

    Samples are drawn word by word from z of the prior, reconstructions are greedy from the means of q(z|x). Real text is
    taken as the model sees it: words that it does not know are <unk>.
    """
    if run.tokeniser is None:
        raise Problem(f"measures of text are for sentences, and {run.spec.about.name} is {run.spec.about.kind}")
    part = run.split(split, most, seed)
    chosen = (run.data.splits["train"], run.data.splits[part.name], part.rows)
    train, test, some = (_seen(run, rows) for rows in chosen)
    made = run.reconstruct(batch_of(run.data, part.rows, run.given)) if run.latent else None
    found = measure(run.sample(samples, seed), made, some, train, test, seed)
    whose = "the Gaussian of codes" if isinstance(run.model.prior, NoPrior) else "the prior"
    decoding = {"sampled": f"word by word, z of {whose}", "reconstructed": "greedy, z = E[z|x]"}
    said = part.settings | {"decoding": decoding}
    content = run.measured | {
        key: replace(number, settings=said | number.settings).to_json() for key, number in found.items()
    }
    write_json(run.folder / "metrics.json", content)
    return content


def _seen(run: Run, rows: NDArray[np.int64]) -> list[str]:
    """Sentences of the data as the model sees them."""
    return [run.seen(sentence) for sentence in run.data.sentences(rows)]


def probe(run: Run, seed: int = 0, split: str | None = None) -> dict[str, Any]:
    """How well the first label is told from the codes by a linear probe, for 100 to 10,000 labels; added to metrics.json."""
    if not run.data.about.labels:
        raise Problem(f"a probe tells labels, and {run.spec.about.name} has none")
    name = run.rows(split)[0]
    if name == "train":
        raise Problem(
            "a probe learns from the training split and is tested on another: there is none, or none was said"
        )
    learn, test = (run.split(split, 20_000) for split in ("train", name))
    codes, others = learn.codes[0].numpy(), test.codes[0].numpy()
    labels = run.data.labels[:, 0]
    found = probe_codes(codes, labels[learn.rows], others, labels[test.rows], seed=seed)
    content = run.measured | {
        key: replace(number, settings=test.settings | number.settings).to_json() for key, number in found.items()
    }
    write_json(run.folder / "metrics.json", content)
    return content
