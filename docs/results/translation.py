"""The page of results on translation: seq2seq on Multi30k, both ways.

`python docs/results/translation.py train [NAME ...]` trains and measures what is left of the plan, or these runs of it,
`python docs/results/translation.py` writes translation.md from the records that are there.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from answers import not_yet, values
from records import KEPT, Plan, publish, records, work
from tables import Records

from elboroom.data.sequences import CONTEXT
from elboroom.families.decoding import Beam
from elboroom.runs import measure as measures
from elboroom.runs.run import Run

HERE = Path(__file__).parent
COMMON: dict[str, Any] = {
    "min_count": 2,
    "embed": 256,
    "hidden": 256,
    "dropout": 0.3,
    "epochs": 8,
    "batch_size": 64,
    "lr": 2e-3,
    "threads": 1,
}
PLANS = {
    way: [
        Plan(f"translation-{way}-lstm", "seq2seq"),
        Plan(f"translation-{way}-transformer", "seq2seq", {"net": "transformer"}),
    ]
    for way in ("fr-en", "en-fr")
}
COLUMNS = {"translation_bleu": "BLEU", "perplexity": "PPL"}
SHOWN = "sentences.json"


def measure(run: Run) -> None:
    """BLEU and perplexity on test_2016_flickr, and ten translations."""
    run.evaluate(samples=1)
    measures.metrics(run, "translation")
    rows = run.rows("test")[1][::100]
    made = [one for (one,) in run.generate(run.data.turns(CONTEXT, rows), 1, Beam(width=5, unknown=False))]
    sources, real = (turns[0] for turns in run.data.turns(CONTEXT, rows)), run.data.sentences(rows)
    (run.folder / SHOWN).write_text(json.dumps(list(zip(sources, real, made, strict=True)), indent=1))


def page(found: Records) -> str:
    """The page."""
    names = [plan.name for plans in PLANS.values() for plan in plans]
    parts = [
        "# Translation of captions",
        "`seq2seq` on Multi30k, French to English and English to French, states of 256 units, words seen twice or more, "
        "8 epochs: `python docs/results/translation.py train`. BLEU is that of sacrebleu on the lower-cased tokens as "
        "published, of a beam of 5 on test_2016_flickr.",
        values(found, names, COLUMNS, "translation-"),
        not_yet(found, names, "translation-"),
        "A small transformer reaches about 60 BLEU from English to French in the literature. Ours overfit: they know "
        f"the 29,000 training sentences far better than new ones ({_gaps(found)}). Whether more dropout or smoothed labels "
        "close the gap was not tried.",
    ]
    for name in found:
        entries = json.loads((KEPT / name / SHOWN).read_text())
        lines = [f"- {source}<br>real: *{real}*<br>{made}" for source, real, made in entries]
        parts += [f"## {name.removeprefix('translation-')}", "\n".join(lines)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _gaps(found: Records) -> str:
    """What a sentence costs in training, with dropout, and on the test split."""
    return "; ".join(
        f"{name.removeprefix('translation-')}: {record['log'][-1]['nll']:.1f} nats a sentence in training, with dropout, "
        f"{record['metrics']['distortion']['value']:.1f} on the test split"
        for name, record in found.items()
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["train"]:
        for way, plans in PLANS.items():
            named = [plan for plan in plans if not sys.argv[2:] or plan.name in sys.argv[2:]]
            work(named, measure, f"multi30k-{way}", **COMMON)
    names = [plan.name for plans in PLANS.values() for plan in plans]
    publish("translation", page(records(names)), names)
