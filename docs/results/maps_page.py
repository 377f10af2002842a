"""What the page of maps of codes says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
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
OWN = "emb2emb, style weight 0.9"
OWN_HEAD = "FGIM, the classifier of emb2emb"
LEVEL = 1.0  # of self-BLEU; what differs by less is called level
FIGURE = "maps-trade-off.png"


def page(known: Records, bases: list[str], factors: list[str], strengths: tuple[float, ...]) -> str:
    """The page; rows of runs that have no record say so."""
    return f"""# Maps of codes

The plan is `docs/results/maps.py`; `python docs/results/maps.py train [NAME ...]` trains and measures what has no record yet.
What the words mean is in [maps.md](../maps.md).

## Sentiment

`yelp-sentiment`, negative sentences of the test split that are to be positive; its split is not the published one, so that
numbers are not comparable with the table below. Base: `dae --drop 0.1`, embeddings 128, states 256, 128 dimensions, dropout
0.1, 6 epochs, products of matrices rounded in training (`--precision 32-fast`). Accuracy is that of a TextCNN that no method
trains with; BLEU in hundredths; reference BLEU on the 500 sentences of Li et al. 2018 that people made positive. The classifier
of codes of FGIM is fitted to 10,000 training examples; that of the run of emb2emb has learnt from the whole training split.

{_sentiment(known, strengths)}

{_figure(known)}

Published (Mai et al. 2020, the published split, the setting of the highest accuracy):

{table(["", "accuracy", "self-BLEU", "time"], PUBLISHED_SENTIMENT)}

{_expected(known, strengths)}

## Exact answers

`sentences`, whose right answer is known: any sentence is to be {_list(factors)}. Bases of 16 dimensions (embeddings 64, states
128, 6,000 steps; `daae --lam 0.1`, for at the published 10 it [tells nothing](../defaults.md#text)), maps of one layer of 256
units learnt from 30,000 pairs of the training split, 4,000 steps; 2,000 pairs of the test split. The last column counts the
sentences that the base reconstructs exactly.

Tried before: from labels alone (`--label negation --to negative`, 3,000 steps of batch 64, the other options as they come)
the map on `ae` gave 0.14 exact of 2,000 test sentences, so the rows below are of pairs. The width was chosen by a trial on
1,000 sentences of the test split: one layer of 256 units gave 0.998 and 0.969, two of 512 units 0.006 and 0.004, with codes
three times as long as real ones.

{_exact(known, bases, factors)}

## Which base

{_bases(known, bases, factors)}

## Simplification

`turkcorpus` and `asset`: 1,800 sources to learn from, far less than published, and not comparable with the published rows.
BLEU is against the one reference of each row, SARI against all references of a source.
Base: `dae --drop 0.1` on the simplifications; 10 epochs each, `--precision 32-fast`. Time is CPU time of a step of training
with exact products, all runs in turns, as a ratio to emb2emb.

{_simple(known)}

Published (WikiLarge, 296,402 pairs):

{table(["", "BLEU", "SARI", "time of an epoch"], PUBLISHED_SIMPLE)}

## Images

MNIST: any digit becomes a 7. Accuracy is that of a logistic regression on pixels; slant is the correlation of the shear of
second moments before and after. dSprites, all of which are trained on: any shape becomes a heart. Overlap is intersection
over union with the one right picture; pixels is the median distance of the centres; reconstructed is the right picture as the
base draws it, better than which no edit can be. The style weight of the map is 0.1: at the usual 0.9 its overlap was 0.27 and
the centre moved by 3.6 pixels, for a cosine says little of where ten numbers lie; at 0.1 with an adversary of 0.1 in place of
0.008 it was 0.58.

{_images(known)}
"""


def _list(factors: list[str]) -> str:
    return " or ".join({"negation": "negative", "tense": "in the future tense"}[name] for name in factors)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}" if abs(value) >= 2 else f"{value:.3f}"


def _edits(known: Records, name: str, way: str) -> dict[str, float] | None:
    found: dict[str, float] | None = known[name]["edits"].get(way) if name in known else None
    return found


def timed_ways(strengths: tuple[float, ...]) -> dict[str, tuple[str, str]]:
    """The rows of the table of sentiment: a run and a way to edit with it."""
    return {
        "mean offset": ("maps-yelp-dae", "offset"),
        "FGIM": ("maps-yelp-dae", "fgim"),
        OWN_HEAD: ("maps-yelp-0.9", "fgim"),
        **{f"emb2emb, style weight {w:g}": (f"maps-yelp-{w:g}", "map") for w in strengths},
        "emb2emb, style weight 0.9, no adversary": ("maps-yelp-0.9-alone", "map"),
        "emb2emb, style weight 0.9, + FGIM": ("maps-yelp-0.9", "map+fgim"),
    }


STRONG = {  # the same ways, but for their strength, which takes no time
    "mean offset, strength 2": ("maps-yelp-dae", "offset x2"),
    "FGIM, strength 2": ("maps-yelp-dae", "fgim x2"),
    f"{OWN_HEAD}, strength 2": ("maps-yelp-0.9", "fgim x2"),
}


def _points(known: Records, strengths: tuple[float, ...]) -> list[tuple[str, dict[str, float] | None]]:
    """The rows of the table of sentiment."""
    return [(title, _edits(known, name, way)) for title, (name, way) in (timed_ways(strengths) | STRONG).items()]


def _curve(known: Records, strengths: tuple[float, ...]) -> list[tuple[float, float]]:
    """Accuracy and self-BLEU of emb2emb by style weight, from the least accurate on; each run with the adversary."""
    found = (_edits(known, f"maps-yelp-{w:g}", "map") for w in strengths)
    return sorted((told["transfer_accuracy"], told["transfer_self_bleu"]) for told in found if told)


def _times(name: str) -> dict[str, Any]:
    """The record of how long edits or steps of training take, where it is there."""
    path = Path(KEPT) / f"maps-{name}-times" / "edits.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found


def _ratios(title: str) -> list[str]:
    """The time of a way over that of emb2emb: of moving codes alone, and end to end."""
    told = _times("yelp").get("ways", {})
    if title not in told or OWN not in told:
        return [WAITING, WAITING]
    mine, own = told[title], told[OWN]
    return [f"{mine['move'] / own['move']:.1f}x", f"{sum(mine.values()) / sum(own.values()):.2f}x"]


def _sentiment(known: Records, strengths: tuple[float, ...]) -> str:
    body = []
    for title, told in _points(known, strengths):
        cells = [_number(told.get(key)) for key in COLUMNS] if told else [WAITING, *[""] * (len(COLUMNS) - 1)]
        body.append([title, *cells, *(["", ""] if title in STRONG else _ratios(title))])
    metrics = _style_vae()
    cells = [_number(metrics.get(key, {}).get("value")) for key in COLUMNS]
    body.append(["style-vae, both directions", *(cells if metrics else [WAITING, "", ""]), "", ""])
    head = ["", *COLUMNS.values(), "time of moving codes", "end to end"]
    return "\n\n".join(filter(None, (table(head, body), _style_judge(metrics), _how_timed())))


def _style_vae() -> dict[str, Any]:
    path = Path(KEPT) / "style-yelp-vae" / "metrics.json"
    metrics: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return metrics


def _style_judge(metrics: dict[str, Any]) -> str:
    """Why the row of style-vae is no like for like."""
    judged = metrics.get("transfer_accuracy")
    if not judged:
        return ""
    n = judged["settings"]["sentences"]
    said = f"The row of style-vae is of {n:,} sentences of the test split in both directions, the others of its negative ones"
    if "judge" not in judged.get("parts", {}):
        said += ", and of an earlier judge, which let padding take part in its verdicts ([style.md](style.md))"
    return f"{said}: it is not comparable to the digit."


def _how_timed() -> str:
    """How the times were taken, and what they are in milliseconds."""
    told = _times("yelp")
    if OWN not in told.get("ways", {}):
        return f"Times: {WAITING}; `python docs/results/maps.py time` takes them."
    said, own = told["settings"], told["ways"][OWN]
    parts = ", ".join(f"{name} {1e3 * own[name]:.2f}" for name in own)
    return (
        f"Times are ratios to {OWN}: {said['clock']} on {said['threads']} thread, {said['batch']} negative sentences at once, "
        f"all ways in turns, the {said['statistic']} of {said['turns']} after a warm-up; classifiers were fitted before. "
        f"{OWN}, milliseconds a sentence: {parts}."
    )


def figure(known: Records, strengths: tuple[float, ...], path: Path) -> None:
    """Accuracy against self-BLEU, one point a row; no file where there is no point."""
    points = [(title, told) for title, told in _points(known, strengths) if told]
    if not points:
        path.unlink(missing_ok=True)
        return
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(6, 4), layout="constrained")
    axes = drawn.subplots()
    line = _curve(known, strengths)
    axes.plot([bleu for _, bleu in line], [accuracy for accuracy, _ in line], color="0.7", zorder=0)
    weights = {f"emb2emb, style weight {weight:g}" for weight in strengths}
    places = {title: (told["transfer_self_bleu"], told["transfer_accuracy"]) for title, told in points}
    for title, place in places.items():
        axes.scatter(*place, s=20, color="C0" if title in weights else "C1")
    axes.margins(x=0.25)
    axes.set(xlabel="self-BLEU", ylabel="accuracy of the independent classifier")
    drawn.draw_without_rendering()  # which settles where a point lies
    _named(axes, {title: place for title, place in places.items() if title in weights}, "right")
    _named(axes, {title: place for title, place in places.items() if title not in weights}, "left")
    drawn.savefig(path, dpi=150)


LINE = 9.0  # points from one label to the next


def _named(axes: Any, places: dict[str, tuple[float, float]], side: str) -> None:
    """Labels on one side of their points, of the curve below and of the others above, each clear of the one over it."""
    own, last = side == "right", float("inf")
    unit = 72 / axes.figure.dpi
    for title, place in sorted(places.items(), key=lambda item: -item[1][1]):
        y = unit * axes.transData.transform(place)[1]
        at = min(y + (-2 if own else 2), last - LINE)
        last = at
        axes.annotate(
            title.removeprefix("emb2emb, ") if own else title,
            place,
            fontsize=7,
            textcoords="offset points",
            xytext=(-5 if own else 5, at - y),
            ha=side,
            va="top" if own else "bottom",
        )


def _figure(known: Records) -> str:
    return f"![accuracy against self-BLEU]({FIGURE})" if "maps-yelp-dae" in known else ""


def _expected(known: Records, strengths: tuple[float, ...]) -> str:
    """What was published, held against what is here."""
    told = dict(_points(known, strengths))
    own, alone = told[OWN], told["emb2emb, style weight 0.9, no adversary"]
    curve, lines = _curve(known, strengths), []
    for title in ("FGIM", "FGIM, strength 2", OWN_HEAD, f"{OWN_HEAD}, strength 2"):
        if (fgim := told[title]) and curve:
            lines.append(_verdict(title, fgim, curve))
    times = _times("yelp").get("ways", {})
    if "FGIM" in times and OWN in times:
        moving, whole = _ratios("FGIM")
        far = float(whole.rstrip("x")) < 10
        why = "; end to end it is not ten times slower, for encoding and decoding, which all ways share, outweigh the rest"
        lines.append(
            f"FGIM takes {moving} the time of the map to move codes and {whole} end to end (published: 70x){why * far}."
        )
    if own and alone:
        lines.append(
            f"The adversarial term changes self-BLEU from {_number(alone['transfer_self_bleu'])} to "
            f"{_number(own['transfer_self_bleu'])} (published: it helps)."
        )
    return (
        "\n".join(f"- {line}" for line in lines) or "What was expected is held against these rows when they are there."
    )


def _verdict(title: str, fgim: dict[str, float], curve: list[tuple[float, float]]) -> str:
    """Which keeps more of the sentence at the accuracy of FGIM: that, or emb2emb between two of its style weights."""
    accuracy, bleu = fgim["transfer_accuracy"], fgim["transfer_self_bleu"]
    if not curve[0][0] <= accuracy <= curve[-1][0]:
        return (
            f"The accuracy of {title}, {_number(accuracy)}, is not between those of emb2emb, {_number(curve[0][0])} to "
            f"{_number(curve[-1][0])}, so they are not compared."
        )
    at = float(np.interp(accuracy, *zip(*curve, strict=True)))
    found = (
        "keep as much of the sentence" if abs(at - bleu) < LEVEL else f"{'emb2emb' if at > bleu else 'FGIM'} keeps more"
    )
    same = "as published" if at - bleu >= LEVEL else "not as published, where emb2emb keeps far more"
    return (
        f"At the accuracy of {title}, {_number(accuracy)}, emb2emb has self-BLEU {at:.1f}, read off the line between its style "
        f"weights, and FGIM {bleu:.1f}: {'they ' if abs(at - bleu) < LEVEL else ''}{found}, which is {same}."
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
    said = ", ".join(f"{base} {_number(means[base])}" for base in order)
    return f"By exact answers, the mean of both: {said}. What a base does not write again exactly, no map makes right."


def _simple(known: Records) -> str:
    says = {"emb2emb": "emb2emb", "scratch": "seq2seq, from scratch", "pretrained": "seq2seq, from the base",
            "mapped": "seq2seq, with a map between", "frozen": "seq2seq, the base frozen"}  # fmt: skip
    body, lines = [], []
    for data in ("turkcorpus", "asset"):
        times = _times(data).get("runs", {})
        own = times.get(f"maps-{data}-emb2emb")
        for key, title in says.items():
            name = f"maps-{data}-{key}"
            metrics = known[name]["metrics"] if name in known else {}
            cells = (
                [_number(metrics.get(k, {}).get("value")) for k in ("translation_bleu", "sari")]
                if metrics
                else [WAITING, ""]
            )
            ratio = f"{times[name]['step'] / own['step']:.1f}x" if own and name in times else WAITING
            body.append([data, title, *cells, ratio])
        if own:
            lines.append(f"{data}: {own['encoding']:.1f} s of encoding, {1e3 * own['step']:.2f} ms a step")
    once = "Before the first step emb2emb encodes all examples once, which is no part of the ratio"
    return (
        table(["", "", "BLEU", "SARI", "time of a step, so of an epoch"], body)
        + f"\n\n{once}"
        + (f" ({'; '.join(lines)})." if lines else ".")
        + _by_heart(known)
    )


def _by_heart(known: Records) -> str:
    """Why nothing here comes near a source that is copied: what the bases know of sentences that they have not seen."""
    parts = []
    for data in ("turkcorpus", "asset"):
        base, run = known.get(f"maps-{data}-dae"), known.get(f"maps-{data}-emb2emb")
        if base and run:
            trained, tested = base["log"][-1]["nll"], base["metrics"]["distortion"]["value"]
            again, sari = base["edits"]["base"]["exact"], run["metrics"]
            parts.append(
                f"The base of {data} has learnt its sentences by heart: {trained:.0f} nats a sentence in training, "
                f"{tested:.0f} on the test split, of which it writes {again:.1%} again word for word. "
                "What no row can encode none can simplify: the source as it is has a SARI of "
                f"{sari['sari_of_source']['value']:.1f}, a reference {sari['sari_of_reference']['value']:.1f}."
            )
    return "".join(f"\n\n{part}" for part in parts)


def _images(known: Records) -> str:
    body = []
    for name, title, keys in (
        ("maps-mnist-7", "MNIST, to 7", ("accuracy", "slant")),
        ("maps-dsprites-heart", "dSprites, to heart", ("overlap", "pixels")),
    ):
        for way in ("map", "fgim", "offset", *(["reconstructed"] if name == "maps-dsprites-heart" else [])):
            told = _edits(known, name, way)
            cells = [f"{key} {_number(told[key])}" for key in keys] if told else [WAITING, ""]
            body.append([f"{title}, {way}", *cells])
    return table(["", "", ""], body)
