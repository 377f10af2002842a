"""Measures of the sentences that a run makes."""

from __future__ import annotations

from dataclasses import replace

from elboroom.core.problem import Problem
from elboroom.evaluate.registry import family
from elboroom.evaluate.result import Result
from elboroom.evaluate.subject import Subject
from elboroom.evaluate.text.protocol import GIVES, measure
from elboroom.families.decoding import Greedy, Sampling
from elboroom.families.gaussian import NoPrior
from elboroom.training.batches import batch_of


@family("text", "sentences", GIVES)
def of_run(
    subject: Subject, most: int = 10_000, seed: int = 0, split: str | None = None, sentences: int = 10_000
) -> dict[str, Result]:
    """BLEU of reconstructions; self-BLEU, n-grams, lengths and perplexities of sentences drawn from the prior.

    Samples are drawn word by word from z of the prior, reconstructions are greedy from the means of q(z|x). Real text is
    taken as the model sees it: words that it does not know are <unk>, and <unk> may be written, as real text has it.
    """
    run = subject.run
    if run.tokeniser is None:
        raise Problem(f"text metrics are for sentences; {run.data.about.name} is {run.data.about.kind}")
    part = run.split(split, most, seed)
    chosen = (run.data.splits["train"], run.data.splits[part.name], part.rows)
    train, test, some = ([run.seen(sentence) for sentence in run.data.sentences(rows)] for rows in chosen)
    batch, greedy = batch_of(run.data, part.rows, run.given), Greedy(unknown=True)
    made = run.reconstruct(batch, decoding=greedy) if run.latent else None
    drawn = run.sample(sentences, seed, decoding=Sampling(unknown=True))
    found = measure(drawn, made, some, train, test, seed)
    whose = "the Gaussian of codes" if isinstance(run.model.prior, NoPrior) else "the prior"
    decoding = {"sampled": f"word by word, z of {whose}", "reconstructed": "greedy, z = E[z|x]"}
    said = part.settings | {"decoding": decoding}
    return {key: replace(result, settings=said | result.settings) for key, result in found.items()}
