"""The page of results on replies: what a z is worth in DailyDialog.

`python docs/results/dialogue.py train [NAME ...]` trains and measures what is left of the plan, or these runs of it
(two processes share it; what was cut off goes on where it was), `python docs/results/dialogue.py` writes dialogue.md from the
records that are there.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from answers import not_yet, values
from records import KEPT, Plan, chosen, publish, records, work
from tables import Records, table

from elboroom.data.sequences import CONTEXT
from elboroom.families.decoding import Greedy, Sampling
from elboroom.runs import measure as measures
from elboroom.runs.run import Run

HERE = Path(__file__).parent
DATA = "dailydialog-replies"
COMMON: dict[str, Any] = {  # the rest is what `elbo train` does where nothing is said
    "vocabulary": 10_000,
    "embed": 256,
    "hidden": 256,
    "epochs": 1,
    "threads": 1,
    "longest": 60,
}
SLOWLY = 0.9  # of the run; over a quarter of it the KL of cvae-bow fell from 0.64 at step 700 to 0.48 at step 1,200
PLANS = [
    Plan("dialogue-seq2seq", "seq2seq"),
    Plan("dialogue-cvae", "cvae"),
    Plan("dialogue-cvae-annealed", "cvae", {"warmup": SLOWLY}),
    Plan("dialogue-cvae-bow", "cvae-bow", {"warmup": SLOWLY}),
    Plan("dialogue-bn-cvae", "bn-cvae"),
    Plan("dialogue-free-bits", "free-bits", {"given": "context"}),
]
PARTS = {"precision": "P", "recall": "R", "f1": "F1"}


def _parts(names: dict[str, str]) -> dict[str, str]:
    """The columns of measures that have a precision, a recall and an F1."""
    return {f"{key}_{part}": f"{title} {p}" for key, title in names.items() for part, p in PARTS.items()}


TABLES = [
    {"perplexity": "PPL (IW)", "rate": "KL", "mutual_information": "MI", "active_units": "AU"},
    _parts({f"bleu_{n}": f"BLEU-{n}" for n in (1, 2, 3, 4)}),
    _parts({f"bow_{name}": name for name in ("average", "extrema", "greedy")})
    | {f"{scope}_distinct_{n}": f"{scope}-{n}" for scope in ("intra", "inter") for n in (1, 2)},
]
PUBLISHED = [
    ["PPL (reconstruction under posterior z)", "36.40", "24.49", "30.67"],
    ["KL", "0.15", "9.30", "5.18"],
    ["BLEU-4", "10.23", "8.56", "8.64"],
    ["A-bow precision / recall", "95.87 / 90.93", "96.89 / 93.95", "96.64 / 94.43"],
    ["E-bow precision / recall", "86.26 / 77.91", "83.55 / 81.13", "84.69 / 81.75"],
]
SHOWN = "sentences.json"


def measure(run: Run) -> None:
    """The likelihood given the context by IW-100, the measures of replies, and five replies to each of ten contexts."""
    run.evaluate(samples=100, iw_most=400)
    measures.metrics(run, "replies", most=2_000)
    rows = run.rows("test")[1][:: max(1, len(run.rows("test")[1]) // 10)][:10]
    turns = run.data.turns(CONTEXT, rows)
    made = run.generate(turns, 5, Greedy(unknown=False) if run.latent else Sampling(unknown=False))
    real = run.data.sentences(rows)
    shown = [{"turns": a, "reply": b, "made": c} for a, b, c in zip(turns, real, made, strict=True)]
    (run.folder / SHOWN).write_text(json.dumps(shown, indent=1))


def page(found: Records) -> str:
    """The page."""
    names = [plan.name for plan in PLANS]
    parts = [
        "# Replies in DailyDialog",
        "Every run has states of 256 units and 10,000 words, and trains for one epoch, all else as `elbo train` has it where "
        "nothing is said: `python docs/results/dialogue.py train`. PPL is that of 400 replies of the test split, other "
        "measures are on 2,000 of its contexts.",
        *(values(found, names, some, "dialogue-") for some in TABLES),
        not_yet(found, names, "dialogue-"),
        "PPL is the importance-weighted bound of the reply given its context. P is the mean of ten replies, R the best "
        "of them, F1 that of the two means. Vectors of words are made from the training text, so that the similarities "
        "compare with one another here and with no paper.",
        *_seen(found),
        "## Published, on Switchboard",
        table(["", "CVAE", "CVAE (BOW)", "BN-CVAE"], PUBLISHED),
        "Zhu et al. 2020. Another corpus, other vectors, and a PPL that is no likelihood: what may be compared is the "
        "order. A plain CVAE has a KL near zero; with a bag of words, or batch norm, it is clearly above, with better recall.",
    ]
    for name in found:
        entries = json.loads((KEPT / name / SHOWN).read_text())
        said = [
            f"- {' / '.join(entry['turns'])}<br>real: *{entry['reply']}*<br>" + "<br>".join(entry["made"])
            for entry in entries
        ]
        parts += [f"## {name.removeprefix('dialogue-')}: five replies each", "\n".join(said)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _seen(found: Records) -> list[str]:
    """What the tables say beside what is expected, once the rows are there that it is about."""
    of = {name.removeprefix("dialogue-"): record["metrics"] for name, record in found.items()}
    if not {"seq2seq", "cvae", "cvae-bow", "bn-cvae"} <= {*of}:
        return []

    def each(key: str, digits: int = 3) -> str:
        return ", ".join(f"{of[name][key]['value']:.{digits}f} {name}" for name in ("cvae", "cvae-bow", "bn-cvae"))

    rate, recall = ({name: of[name][key]["value"] for name in of} for key in ("rate", "bleu_4_recall"))
    told = [name for name in ("cvae-bow", "bn-cvae") if rate[name] > 1.0 > rate["cvae"]]
    better = [name for name in told if recall[name] > recall["cvae"]]
    return [
        f"Expected: a KL near zero of `cvae` and one clearly above with a bag of words or batch norm "
        f"({each('rate', 2)} here), with better recall (BLEU-4 R: {each('bleu_4_recall')}) and more different replies "
        f"(inter-1: {each('inter_distinct_1')}). So it is here of {' and '.join(better) or 'none'}.",
        "`seq2seq` draws every word from its softmax and attends to the words of the context; the others read the context "
        "as one vector, draw z and write the likeliest words. So its replies differ most and its PPL is lowest. "
        "A KL that is annealed over nine tenths of one epoch leaves a decoder that relied on z and has a tenth of the "
        "epoch to learn to do without: hence the PPL of `cvae-annealed`.",
    ]


if __name__ == "__main__":
    if sys.argv[1:2] == ["train"]:
        work(chosen(PLANS, sys.argv[2:]), measure, DATA, **COMMON)
    names = [plan.name for plan in PLANS]
    publish("dialogue", page(records(names)), names)
