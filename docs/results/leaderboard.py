"""What won for which purpose: the table of docs/results/README.md and elboroom/recommend.json, from the same records.

`python docs/results/leaderboard.py` writes both, `--check` leaves with 1 if what is on disk is not what would be written.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from made import hours
from records import outdated

from elboroom.commands.recommend import PURPOSES
from elboroom.core.problem import Problem
from elboroom.evaluate.registry import goal, quantity
from elboroom.training.spec import Spec

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
README, RECOMMEND = HERE / "README.md", ROOT / "elboroom" / "recommend.json"


@dataclass(frozen=True)
class Question:
    """A purpose, on a kind of data: the records that answer it and the quantity that they are ranked by."""

    purpose: str
    kind: str
    begins: str  # how the names of its records begin
    metric: str
    page: str
    also: str = ""  # options that name what the data has: LABEL stands for a label of it


@dataclass(frozen=True)
class Suggestion:
    """What the documents say where no record answers."""

    purpose: str
    kind: str
    method: str
    options: str  # LABEL stands for a label of the data
    why: str
    page: str


QUESTIONS = (
    Question("likelihood", "pixels", "binarized-mnist-", "log_likelihood", "binarized-mnist.md"),
    Question("likelihood", "tokens", "ptb-", "log_likelihood", "ptb.md"),
    Question("disentangling", "pixels", "dsprites-", "mig", "dsprites.md"),
    Question("disentangling", "tokens", "sentences-", "mig", "sentences.md"),
    Question("editing", "tokens", "multi30k-", "bleu", "multi30k.md"),
    Question("samples", "tokens", "multi30k-", "reverse_ppl", "multi30k.md"),
    Question("style", "tokens", "style-yelp-", "transfer_mean", "style.md", "--label LABEL"),
    Question("replies", "tokens", "dialogue-", "bleu_4_f1", "dialogue.md"),
)
SUGGESTIONS = (
    Suggestion(
        "editing",
        "pixels",
        "beta-vae",
        "--beta 4",
        "dimensions that move one thing each are what sliders need",
        "../images.md",
    ),
    Suggestion(
        "samples", "pixels", "vae", "", "sampled by elbo sample RUN --sampler gmm, a law of its codes", "../samplers.md"
    ),
    Suggestion(
        "style", "pixels", "vae", "--given LABEL", "a label that the decoder is given can be changed", "../images.md"
    ),
)


@dataclass(frozen=True)
class Entry:
    """A record as the table needs it."""

    name: str
    method: str
    options: str
    value: float
    error: float | None
    seconds: float | None
    seed: int

    @property
    def setting(self) -> str:
        """What it is but for the seed."""
        return f"{self.method} {self.options}".strip()


def entries(question: Question, folder: Path) -> list[Entry]:
    """The records of a question that have its number; models without a z are left out, unless z was not looked at.

    Runs of text with the defaults of before trunk c are left out where two settings or more were made again.
    """
    found, renewed = [], []
    for place in sorted(folder.glob(f"{question.begins}*")):
        metrics = json.loads((place / "metrics.json").read_text(encoding="utf-8"))
        number = metrics.get(question.metric, {})
        units = metrics.get("active_units", {"parts": {"variances": [1.0]}})
        if number.get("value") is None or not units.get("parts", {}).get("variances"):
            continue
        try:
            spec = Spec.read(place)
        except Problem:  # of a method that is no more
            continue
        timing = place / "timing.json"
        seconds = json.loads(timing.read_text()).get("seconds") if timing.exists() else None
        error = (number.get("errors") or {}).get("sampling")
        options = " ".join(filter(None, [said(spec), question.also]))
        entry = Entry(place.name, spec.method, options, number["value"], error, seconds, spec.fit.seed)
        (renewed if spec.model.trunk == "c" else found).append(entry)
    return renewed if len({entry.setting for entry in renewed}) > 1 else found or renewed


def said(spec: Spec) -> str:
    """The options that make a run what it is: those of its method, its posterior and its prior."""
    defaults = {o.name: o.default_for(spec.about.kind) for o in spec.card.options}
    own = {name: value for name, value in spec.options.items() if value != defaults.get(name)}
    chosen = {
        f"--{name.replace('_', '-')}": value for name, value in (own | spec.axes).items() if not isinstance(value, bool)
    }
    flags = [f"--{name.replace('_', '-')}" for name, value in own.items() if value is True]
    return " ".join(
        [
            *(f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in chosen.items()),
            *flags,
        ]
    )


def answer(question: Question, found: list[Entry]) -> dict[str, Any] | None:
    """The winner, by how much it leads the next setting, and the noise that the lead is held against."""
    settings: dict[str, list[Entry]] = {}
    for entry in found:
        settings.setdefault(entry.setting, []).append(entry)
    if len(settings) < 2:
        return None
    means = {name: statistics.fmean(e.value for e in some) for name, some in settings.items()}
    way = -1 if goal(question.metric) == "min" else 1
    first, second = sorted(means, key=lambda name: -way * means[name])[:2]
    several = [statistics.stdev([e.value for e in some]) for some in settings.values() if len(some) > 1]
    seeds = max(several) if several else None
    noise = _of_rows([*settings[first], *settings[second]]) if seeds is None else seeds
    winner, title = settings[first][0], quantity(question.metric)
    return {
        "purpose": question.purpose, "kind": question.kind, "data": question.begins.rstrip("-"), "metric": question.metric,
        "title": title.title if title else question.metric, "method": winner.method, "options": winner.options,
        "value": round(means[first], 4), "next": second, "next_value": round(means[second], 4),
        "lead": round(way * (means[first] - means[second]), 4), "noise": None if noise is None else round(noise, 4),
        "noise_of": "the rows, for each run" if seeds is None else "seeds", "runs": len(found),
        "minutes": None if winner.seconds is None else round(winner.seconds / 60), "page": f"docs/results/{question.page}",
    }  # fmt: skip


def _of_rows(both: list[Entry]) -> float | None:
    """The errors of two settings over the test rows together, as if they were independent."""
    worst = {entry.setting: 0.0 for entry in both}
    for entry in both:
        if entry.error is None:
            return None
        worst[entry.setting] = max(worst[entry.setting], entry.error)
    return sum(error**2 for error in worst.values()) ** 0.5


def answers(folder: Path = HERE / "runs") -> list[dict[str, Any]]:
    """Everything that recommend.json holds: what records say, and where there are none, what the documents suggest."""
    told = [found for question in QUESTIONS if (found := answer(question, entries(question, folder))) is not None]
    known = {(entry["purpose"], entry["kind"]) for entry in told}
    told += [
        {"purpose": s.purpose, "kind": s.kind, "method": s.method, "options": s.options, "suggested": s.why,
         "page": str(Path("docs/results", s.page)).replace("docs/results/../", "docs/")}
        for s in SUGGESTIONS if (s.purpose, s.kind) not in known
    ]  # fmt: skip
    return told


def page(told: Iterable[dict[str, Any]]) -> str:
    """The page of the results with its table."""
    kinds = {"pixels": "images", "tokens": "text", "vectors": "vectors"}
    rows = []
    for e in told:
        link = (
            "../" + e["page"].removeprefix("docs/")
            if not e["page"].startswith("docs/results")
            else e["page"].split("/")[-1]
        )
        what = f"`{' '.join([e['method'], e['options']]).strip()}`"
        if "suggested" in e:
            rows.append(
                f"| {e['purpose']} | {kinds[e['kind']]} | {what} | no record: {e['suggested']} | | [page]({link}) |"
            )
            continue
        lead = f"{e['lead']:.3g} before `{e['next']}`; {_noise(e)}"
        cost = "" if e["minutes"] is None else f"{e['minutes']:,} min"
        on, best = f"{kinds[e['kind']]}, {e['data']}", f"{e['title']} {e['value']:.4g}"
        rows.append(f"| {e['purpose']} | {on} | {what} | {best}, {lead} | {cost} | [page]({link}) |")
    return "\n".join(
        [f"{HEAD}| for | on | winner | by how much | cost | page |", f"|{' --- |' * 6}", *rows, "", counted(), TAIL]
    )


def _noise(told: dict[str, Any]) -> str:
    """What a lead is held against."""
    if told["noise"] is None:
        return "one seed, whose noise is not known"
    clear = "" if told["lead"] > 2 * told["noise"] else ", **within the noise**"
    return f"noise {told['noise']:.2g} ({told['noise_of']}){clear}"


def counted(folder: Path = HERE / "runs") -> str:
    """How many runs stand behind each page, how many of them have defaults of before, and what they took."""
    rows, total = [], 0.0
    for data, begins, what, link in PAGES:
        places = [place for place in folder.glob(f"{begins}*") if (place / "spec.json").exists()]
        old = sum(outdated(json.loads((place / "spec.json").read_text())) for place in places)
        number = f"{len(places) - old}" + (f", and {old} with earlier defaults" if old else "")
        spent = sum(hours(place) or 0.0 for place in places)
        total += spent
        rows.append(f"| {data} | {number} | {what} | {spent:.1f} | [{link}]({link}) |")
    head = ["| data | runs | measured | core-hours | page |", f"|{' --- |' * 5}"]
    return "\n".join([*head, *rows, "", f"Training took {total:.0f} core-hours in all."])


PAGES = (
    ("dSprites", "dsprites-", "disentanglement", "dsprites.md"),
    ("binarized MNIST", "binarized-mnist-", "IW-500", "binarized-mnist.md"),
    ("captions of Multi30k", "multi30k-", "IW-100 and measures of text", "multi30k.md"),
    ("Penn Treebank", "ptb-", "the same", "ptb.md"),
    ("sentences with known factors", "sentences-", "disentanglement of text", "sentences.md"),
    (
        "reviews, captions, sentences in another style",
        "style-",
        "accuracy, content, fluency, exact answers",
        "style.md",
    ),
    ("sentiment from few labels", "labels-", "a probe of codes with 100 to 10,000 labels", "labels.md"),
    ("replies of DailyDialog", "dialogue-", "IW-100 given the context, measures of ten replies", "dialogue.md"),
    ("captions translated", "translation-", "BLEU", "translation.md"),
    ("captions through French in another style", "pivot-", "as of style", "pivot.md"),
    ("faces", "faces-", "reconstruction beside PCA, edits", "faces.md"),
    ("maps of codes", "maps-", "edits of reviews, sentences, images; simplification", "maps.md"),
)
HEAD = """# Results

What won for which purpose, from the records in `docs/results/runs` alone. The lead is that over the next setting; it is held
against the spread of seeds where a setting has several, else against the standard errors of both runs over the test rows,
which is more than the noise of a difference of runs on the same rows. Most settings have one seed: a lead within the noise
is none. The cost is the time of training on two cores. `elbo recommend` reads the same numbers.

"""
TAIL = """
One seed each (study: three), with nets and epochs that fit a two-core machine. Every page is made by a script from the records
beside it, and names what differs from the papers. Of [a study](study.md) of 24 short runs on dSprites there is a page too.
"""


def main(words: list[str]) -> int:
    """Writes both, or says whether they are as they would be written."""
    told = answers()
    advice = [entry for entry in told if entry["purpose"] in PURPOSES]
    files = {README: page(told), RECOMMEND: json.dumps(advice, indent=1, ensure_ascii=False) + "\n"}
    if "--check" in words:
        old = [path for path, text in files.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
        for path in old:
            print(f"{path.name} is out of date: python docs/results/leaderboard.py")
        return 1 if old else 0
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
