"""The page of results of style transfer: Yelp reviews, captions and the sentences of the grammar.

`python docs/results/style.py train [NAME ...]` trains and measures what is left of the plan, in the order of the page, or these
runs of it (several processes share it; what was cut off goes on where it was), `python docs/results/style.py` writes style.md
from the records.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from records import Plan, publish, records, work

from elboroom.evaluate.transfer.exact import has_grammar

SMALL: dict[str, Any] = {"embed": 64, "hidden": 128, "dropout": 0.0, "steps": 6_000, "threads": 1}
NETS: dict[str, Any] = {  # the rest is what `elbo train` does where nothing is said
    "net": "bilstm",
    "embed": 128,
    "hidden": 256,
    "dropout": 0.2,
    "batch_size": 64,
    "lr": 2e-3,
    "precision": "32-fast",
    "threads": 1,
}
YELP: dict[str, Any] = NETS | {"min_count": 5, "epochs": 6, "longest": 15}
CAPTIONS: dict[str, Any] = NETS | {"min_count": 2, "epochs": 20}
NO_WORDS = {"mul_content": 0.0, "adv_content": 0.0}
NOTHING = {"mul_style": 0.0, "adv_style": 0.0, **NO_WORDS}
FACTORS = ("polarity", "tense", "negation")

# Terms in balance with the nll: with an adv_style of 1 the nll of negation stayed at 2.8 nats, with 0.3 it fell to 0.2.
BALANCED = {
    "content_size": 32,
    "style_size": 2,
    "mul_style": 5.0,
    "adv_style": 0.3,
    "mul_content": 0.5,
    "adv_content": 0.0,
}
CHASE = {"critic_lr": 3e-3}  # at 1e-3 the adversary fell behind the encoder
RATES = {"rate": 0.05, "style_rate": 1.0}

ON_SENTENCES = [
    *(Plan(f"style-sentences-vae-{f}", "style-vae", {"label": f, **BALANCED, **CHASE, **RATES}) for f in FACTORS),
    *(Plan(f"style-sentences-ae-{f}", "style-ae", {"label": f, **BALANCED, **CHASE}) for f in FACTORS),
]
ON_YELP = [
    Plan("style-yelp-vae", "style-vae"),
    Plan("style-yelp-ae", "style-ae"),
    Plan("style-yelp-vae-style-terms", "style-vae", NO_WORDS),
    Plan("style-yelp-embedding", "style-embedding", {"latent": 136}),
    Plan("style-yelp-multi-decoder", "multi-decoder", {"latent": 136}),
    Plan("style-yelp-vae-bottleneck", "style-vae", {"style_rate": 5.0}),
    Plan("style-yelp-vae-nothing", "style-vae", NOTHING),
    Plan("style-yelp-vae-mul-style", "style-vae", {"adv_style": 0.0, **NO_WORDS}),
    Plan("style-yelp-vae-adv-style", "style-vae", {"mul_style": 0.0, **NO_WORDS}),
    Plan("style-yelp-offset-dae", "dae", {"latent": 136}),
    Plan("style-yelp-offset-vae", "vae", {"latent": 136}),
    Plan("style-yelp-vae-faithful", "style-vae", {"faithful": True}),
]
ON_CAPTIONS = [Plan("style-captions-vae", "style-vae"), Plan("style-captions-ae", "style-ae")]
PAIRS = 20
STRENGTHS, FEW = (1.0, 1.25, 1.5, 2.0), 2_000  # of a transfer, over this many sentences


def measure(run: Any) -> None:
    """Transfer of the whole test split and of the sentences that people rewrote, the probe of the blocks, and twenty pairs."""
    from elboroom.runs import measure

    by = "style" if run.styles() else "offset"
    measure.metrics(run, ["transfer"], most=100_000, by=by)
    if len(run.model.blocks) > 1:
        measure.metrics(run, ["blocks"])
    if has_grammar(run.data):
        by_words(run)
    elif len(run.model.blocks) > 1:
        by_strength(run)
    pairs(run, by)


def by_strength(run: Any) -> None:
    """Transfer at more than the mean style of the other class: what accuracy then costs in content."""
    from elboroom.evaluate.transfer.measure import Bench, Task

    ((label, values),) = run.styles().items()
    batch = run.examples(FEW, "test")
    texts = run.data.sentences(batch.index)
    has = run.data.labels[batch.index.numpy(), list(run.data.about.labels).index(label)]
    bench, task = Bench(run.data, label), Task(texts, has, 1 - has, {})
    said = {}
    for strength in STRENGTHS:
        made = [""] * len(texts)
        for value, name in enumerate(values):
            rows = [row for row, old in enumerate(has) if old != value]
            done = run.transfer([texts[row] for row in rows], {label: name}, strength=strength)
            for row, text in zip(rows, done, strict=True):
                made[row] = text
        said[f"{strength:g}"] = {key: result.value for key, result in bench.scores(task, made).items()}
    (run.folder / "edits.json").write_text(json.dumps(said, indent=1) + "\n")


def by_words(run: Any) -> None:
    """Exact answers apart: where the words that stay tell the rest of the sentence, and where they do not."""
    from elboroom.evaluate.transfer.exact import answer

    ((factor, values),) = run.styles().items()
    rows = run.examples(2_000, "test").index
    has = run.data.labels[rows.numpy(), list(run.data.about.labels).index(factor)]
    found: dict[bool, list[bool]] = {True: [], False: []}
    for value, name in enumerate(values):
        given = run.data.sentences(rows[(has + 1) % len(values) == value])
        for text, made in zip(given, run.transfer(given, name), strict=True):
            right = answer(text, factor, value) or ""
            stay = {*text.split()} & {*right.split()}
            found[_told(text, stay, factor) and _told(right, stay, factor)].append(made == right)
    said = {
        name: {"exact": sum(some) / len(some) if some else None, "sentences": len(some)}
        for name, some in (("told", found[True]), ("not told", found[False]))
    }
    (run.folder / "edits.json").write_text(json.dumps(said, indent=1) + "\n")


def _told(text: str, words: set[str], factor: str) -> bool:
    """Whether these words of a sentence tell it from those with another verb phrase and the same value of a factor."""
    from itertools import product

    from elboroom.data.sentences import FACTORS, VALUES, parse, render

    known = dict(zip(FACTORS, parse(text) or (), strict=True))
    free = [name for name in ("tense", "negation", "polarity", "verb") if name != factor]
    others = (
        known | dict(zip(free, some, strict=True)) for some in product(*(range(len(VALUES[name])) for name in free))
    )
    return sum(words <= {*render(other.values()).split()} for other in others) == 1


def pairs(run: Any, by: str) -> None:
    """Keeps the first sentences of the test split, in an order drawn once, each with what becomes of it."""
    label, values = next(iter(run.styles(by).items()))
    batch = run.examples(PAIRS, "test")
    inputs = run.data.sentences(batch.index)
    column = list(run.data.about.labels).index(label)
    kept = []
    for text, y in zip(inputs, run.data.labels[batch.index.numpy(), column].tolist(), strict=True):
        to = (y + 1) % len(values)
        u = run.labelled(1, **{label: values[y]}) if run.given else None
        kept.append([values[y], text, values[to], run.transfer([text], {label: values[to]}, by=by, u=u)[0]])
    (run.folder / "sentences.json").write_text(json.dumps(kept, indent=1) + "\n")


def train(names: list[str]) -> None:
    """What is left, in the order of the page, or of these runs."""
    first, rest = ON_SENTENCES[:1], ON_SENTENCES[1:]
    for plans, data, common in (
        (first, "sentences", SMALL),
        (ON_YELP[:3], "yelp-sentiment", YELP),
        (rest, "sentences", SMALL),
        (ON_YELP[3:5], "yelp-sentiment", YELP),
        (ON_CAPTIONS, "caption-style", CAPTIONS),
        (ON_YELP[5:], "yelp-sentiment", YELP),
    ):
        work([plan for plan in plans if not names or plan.name in names], measure, data, **common)


if __name__ == "__main__":
    if sys.argv[1:2] == ["train"]:
        train(sys.argv[2:])
    else:
        from style_page import page

        plans = (ON_SENTENCES, ON_YELP, ON_CAPTIONS)
        names = [plan.name for some in plans for plan in some]
        publish("style", page(records(names), *plans), names)
