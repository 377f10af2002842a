"""The page of results on maps of codes: sentiment, simplification, exact answers, images, and which base is best to map in.

`python docs/results/maps.py train` trains and measures what is left of the plan, in the order of the page, or with names behind
it those runs alone and the bases that they stand on; several processes share it. `again NAME ...` measures these anew, and
`time [sentiment turkcorpus asset]` times edits and steps of training; both train what is not in runs/ any more.
`python docs/results/maps.py` writes maps.md from the records.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from maps_page import timed_ways
from records import KEPT, ROOT, Plan, again, claimed, publish, records, work
from records import train as train_plan

ONE = {"threads": 1}
SMALL: dict[str, Any] = ONE | {"embed": 64, "hidden": 128, "latent": 16, "steps": 6_000}
YELP: dict[str, Any] = ONE | {
    "min_count": 5, "longest": 15, "embed": 128, "hidden": 256, "latent": 128, "dropout": 0.1, "epochs": 6, "batch_size": 64,
    "precision": "32-fast",
}  # fmt: skip
PAIRED: dict[str, Any] = ONE | {"batch_size": 64, "epochs": 10, "precision": "32-fast"}
SIMPLE: dict[str, Any] = PAIRED | {"min_count": 2, "embed": 128, "hidden": 256, "latent": 128}
MAP: dict[str, Any] = ONE | {"batch_size": 64, "steps": 10_000}
EXACT: dict[str, Any] = ONE | {"batch_size": 64, "steps": 4_000, "width": 256}  # as wide as 16 dimensions need
STRENGTHS = (0.1, 0.5, 0.9, 0.95, 0.99)
BASES: dict[str, dict[str, Any]] = {
    "ae": {},
    "dae": {"drop": 0.1},
    "daae": {"drop": 0.1, "lam": 0.1},
    "vae": {},
    "wae-s": {},
    "free-bits": {"target": 12.0},
}
FACTORS = {"negation": "negative", "tense": "future"}
PAIRS = 30_000  # of the grammar, to learn from


@dataclass(frozen=True)
class Row:
    """A run of the page, what it is trained on and stands on, and how it is measured."""

    plan: Plan
    data: str
    common: dict[str, Any]
    measure: Callable[[Any], None]
    base: str = ""

    @property
    def name(self) -> str:
        """Its name."""
        return self.plan.name

    @property
    def source(self) -> str:
        """Its data: by name, or pairs of the grammar, written where they are not there yet."""
        if not self.data.startswith(GRAMMAR):
            return self.data
        folder = ROOT / "runs" / self.data
        write_pairs(self.data.removeprefix(GRAMMAR), folder)
        return str(folder)

    @property
    def settings(self) -> dict[str, Any]:
        """How it is trained."""
        return self.common | ({"base": str(ROOT / "runs" / self.base)} if self.base else {})

    def ready(self) -> bool:
        """Whether it is trained, which it is now unless another process is at it."""
        with claimed(self.plan) as mine:
            if mine:
                train_plan(self.plan, self.source, **self.settings)
            return mine

    def work(self) -> None:
        """Trains, measures and keeps it, unless it has a record, or another process trains what it stands on."""
        if not self.plan.finished() and (not self.base or ROWS[self.base].ready()):
            work([self.plan], self.measure, self.source, **self.settings)


GRAMMAR = "maps-pairs-"  # folders of pairs that this file writes


def write_pairs(factor: str, folder: Path) -> None:
    """Sentences of the grammar beside the one right answer, split as `sentences` is."""
    if (folder / "test.tsv").exists():
        return
    import numpy as np

    from elboroom.data import registry
    from elboroom.data.sentences import FACTORS as ALL
    from elboroom.data.sentences import VALUES
    from elboroom.evaluate.transfer.exact import answer

    data = registry.load("sentences")
    data = data.hold_out(data.holdout)
    value, column = VALUES[factor].index(FACTORS[factor]), ALL.index(factor)
    folder.mkdir(parents=True, exist_ok=True)
    for split, most in (("train", PAIRS), ("test", 2_000)):
        rows = data.splits[split][data.labels[data.splits[split], column] != value]
        rows = np.sort(np.random.default_rng(0).choice(rows, min(most, len(rows)), replace=False))
        lines = (f"{text}\t{answer(text, factor, value)}\n" for text in data.sentences(rows))
        (folder / f"{split}.tsv").write_text("text\ttarget\n" + "".join(lines))


def reconstructs(run: Any) -> None:
    """A base: how much of what it reads it writes again."""
    from elboroom.runs import measure

    measure.metrics(run, ["likelihood"], samples=1, most=2_000)
    rows = run.rows("test")[1][:2_000]
    given = run.data.sentences(rows)
    same = [a == b for a, b in zip(given, run.reconstruct(given), strict=True)]
    _tell(run, {"base": {"exact": sum(same) / len(same)}})


def exact(run: Any) -> None:
    """A map of pairs of the grammar: exact answers on the test split, of all and of what the base reconstructs."""
    from elboroom.data.sentences import VALUES
    from elboroom.evaluate.transfer.exact import verdicts
    from elboroom.runs import measure

    factor = next(name for name in FACTORS if run.folder.name.endswith(name))
    measure.metrics(run, ["likelihood"], samples=1, most=100)
    given = run.data.sentences(run.rows("test")[1])
    same = [a == b for a, b in zip(given, run.edit(given, by="map", strength=0.0), strict=True)]
    value = VALUES[factor].index(FACTORS[factor])
    found = verdicts(given, run.edit(given, by="map"), factor, [value] * len(given))
    told = {name: float(values.mean()) for name, values in found._asdict().items()}
    told |= {"reconstructed": sum(same) / len(same)}
    if any(same):
        told["exact_reconstructed"] = float(found.exact[same].mean())
    _tell(run, {"map": told})


def styles(*ways: str) -> Callable[[Any], None]:
    """The sentiment of negative sentences changed in these ways."""

    def measured(run: Any) -> None:
        from elboroom.evaluate.registry import find
        from elboroom.evaluate.subject import Subject
        from elboroom.runs import measure

        measure.metrics(run, ["likelihood"], samples=1, most=100)
        said: dict[str, dict[str, float]] = {}
        for way in ways:  # `fgim x2`: by fgim, at strength 2
            by, _, strength = way.partition(" x")
            asked = {"by": by, "to": "positive", "most": 2_000, "strength": float(strength or 1)}
            results = find("transfer").of(Subject(run), asked)
            said[way] = {name: result.value for name, result in results.items() if result.value is not None}
            said[way]["sentences"] = results["transfer_accuracy"].settings["sentences"]
        _tell(run, said)

    return measured


def simpler(run: Any) -> None:
    """BLEU and SARI of simplifications."""
    from elboroom.runs import measure

    measure.metrics(run, ["translation", "simplification"])


def digits(run: Any) -> None:
    """Digits that become sevens: whether a classifier of pixels takes them for such, and whether their slant stays."""
    import numpy as np
    from sklearn.linear_model import LogisticRegression

    from elboroom.runs import measure

    measure.metrics(run, ["likelihood"], samples=1, most=100)
    rng = np.random.default_rng(0)
    rows = rng.choice(run.data.splits["train"], 5_000, replace=False)
    pixels = run.data.x(rows).flatten(1).numpy()
    judge = LogisticRegression(max_iter=200).fit(pixels, run.data.labels[rows, 0])
    test = run.rows("test")[1]
    some = rng.choice(test[run.data.labels[test, 0] != 7], 1_000, replace=False)
    x = run.data.x(some).numpy()
    said = {}
    for way in ("map", "fgim", "offset"):
        made = np.asarray(run.edit(x, to="7", by=way))
        sevens = judge.predict(made.reshape(len(made), -1)) == 7
        slants = np.corrcoef(shear(x), shear(made))[0, 1]
        said[way] = {"accuracy": float(sevens.mean()), "slant": float(slants)}
    _tell(run, said)


def shear(images: Any) -> Any:
    """The slant of images (n, 1, H, W): the covariance of x and y over the variance of y."""
    import numpy as np

    x = np.asarray(images, np.float64)[:, 0]
    y, z = np.mgrid[: x.shape[1], : x.shape[2]]
    mass = x.sum((1, 2)) + 1e-9
    cy, cx = ((x * axis).sum((1, 2)) / mass for axis in (y, z))
    dy, dx = y[None] - cy[:, None, None], z[None] - cx[:, None, None]
    return (x * dx * dy).sum((1, 2)) / ((x * dy * dy).sum((1, 2)) + 1e-9)


def shapes(run: Any) -> None:
    """Sprites that become hearts: the overlap with the one right picture, and how far the centre has moved."""
    import numpy as np

    from elboroom.data.dsprites import SIZES
    from elboroom.runs import measure

    measure.metrics(run, ["likelihood"], samples=1, most=100)
    test = run.rows("train")[1]  # every sprite is there, so none is held out
    test = np.random.default_rng(0).choice(test[run.data.labels[test, 0] != 2], 1_000, replace=False)
    factors = run.data.labels[test].copy()
    factors[:, 0] = 2
    right = run.data.x(np.ravel_multi_index(tuple(factors.T), SIZES)).numpy() > 0.5
    x = run.data.x(test).numpy()
    made = {way: run.edit(x, to="2", label="shape", by=way) for way in ("map", "fgim", "offset")}
    made["reconstructed"] = run.edit(right.astype(np.float32), by="map", strength=0.0)  # as well as the base draws
    _tell(run, {way: _beside(np.asarray(images), right) for way, images in made.items()})


def _beside(made: Any, right: Any) -> dict[str, float]:
    """How sprites that were made lie on the right ones."""
    import numpy as np

    drawn = made > 0.5
    overlap = (drawn & right).sum((1, 2, 3)) / np.maximum(1, (drawn | right).sum((1, 2, 3)))
    moved = np.linalg.norm(_centre(made) - _centre(right.astype(float)), axis=1)
    return {"overlap": float(overlap.mean()), "pixels": float(np.median(moved))}


def _centre(images: Any) -> Any:
    import numpy as np

    x = np.asarray(images)[:, 0]
    y, z = np.mgrid[: x.shape[1], : x.shape[2]]
    return np.stack([(x * axis).sum((1, 2)) / (x.sum((1, 2)) + 1e-9) for axis in (y, z)], 1)


def _tell(run: Any, said: dict[str, dict[str, float]]) -> None:
    (run.folder / "edits.json").write_text(json.dumps(said, indent=1) + "\n")


SENTENCES = [Row(Plan(f"maps-sentences-{b}", b, o), "sentences", SMALL, reconstructs) for b, o in BASES.items()]
ANSWERS = [
    Row(
        Plan(f"maps-sentences-{b}-{f}", "emb2emb", {"target_column": "target"}),
        f"{GRAMMAR}{f}",
        EXACT,
        exact,
        f"maps-sentences-{b}",
    )
    for b in BASES
    for f in FACTORS
]
TO = {"to": "positive"}
SENTIMENT = [
    Row(
        Plan("maps-yelp-dae", "dae", {"drop": 0.1}),
        "yelp-sentiment",
        YELP,
        styles("offset", "fgim", "offset x2", "fgim x2"),
    ),
    *(
        Row(
            Plan(f"maps-yelp-{weight:g}", "emb2emb", TO | {"style_weight": weight}),
            "yelp-sentiment",
            MAP | {"longest": YELP["longest"]},
            styles("map", "map+fgim", "fgim", "fgim x2", "offset") if weight == 0.9 else styles("map"),
            "maps-yelp-dae",
        )
        for weight in STRENGTHS
    ),
    Row(
        Plan("maps-yelp-0.9-alone", "emb2emb", TO | {"style_weight": 0.9, "adversary": 0.0}),
        "yelp-sentiment",
        MAP | {"longest": YELP["longest"]},
        styles("map"),
        "maps-yelp-dae",
    ),
]
STARTS = ("scratch", "pretrained", "mapped", "frozen")
SIMPLER = [
    row
    for data in ("turkcorpus", "asset")
    for row in (
        Row(Plan(f"maps-{data}-dae", "dae", {"drop": 0.1}), data, SIMPLE, reconstructs),
        Row(Plan(f"maps-{data}-emb2emb", "emb2emb", {"adversary": 0.032}), data, PAIRED, simpler, f"maps-{data}-dae"),
        *(
            Row(Plan(f"maps-{data}-{start}", "seq2seq", {"start": start}), data, PAIRED, simpler, f"maps-{data}-dae")
            for start in STARTS
        ),
    )
]  # fmt: skip
IMAGES = [
    Row(Plan("maps-mnist-vae", "vae", {"latent": 20}), "mnist", ONE, lambda run: run.evaluate(samples=1)),
    Row(Plan("maps-mnist-7", "emb2emb", {"to": "7"}), "mnist", MAP | {"lr": 1e-3}, digits, "maps-mnist-vae"),
    Row(Plan("maps-dsprites-vae", "vae", {"latent": 10, "steps": 6_000}), "dsprites", ONE, lambda run: run.evaluate(samples=1)),
    Row(Plan("maps-dsprites-heart", "emb2emb", {"label": "shape", "to": "2", "style_weight": 0.1}), "dsprites",
        MAP | {"lr": 1e-3}, shapes, "maps-dsprites-vae"),
]  # fmt: skip
ROWS = {row.name: row for row in (*SENTIMENT, *SENTENCES, *ANSWERS, *SIMPLER, *IMAGES)}


def train(names: list[str]) -> None:
    """What is left of these, each after the base that it stands on."""
    for name in names or ROWS:
        ROWS[name].work()


def remeasure(names: list[str]) -> None:
    """Measures these anew, trained first where they are gone."""
    for name in names:
        if (not ROWS[name].base or ROWS[ROWS[name].base].ready()) and ROWS[name].ready():
            again([ROWS[name].plan], ROWS[name].measure)


TIMED = ["sentiment", "turkcorpus", "asset"]  # tables


def take_times(tables: list[str]) -> None:
    """Times the edits of the table of sentiment and the steps of those of simplification, each in one process."""
    import maps_times

    import elboroom

    def there(rows: list[Row]) -> bool:
        return all((not row.base or ROWS[row.base].ready()) and row.ready() for row in rows)

    if "sentiment" in tables and there(SENTIMENT):
        runs = {row.name: elboroom.load(row.plan.folder) for row in SENTIMENT}
        ways = {title: (runs[name], way) for title, (name, way) in timed_ways(STRENGTHS).items()}
        texts = maps_times.negatives(runs["maps-yelp-dae"], "sentiment", TO["to"])
        maps_times.keep(
            KEPT / "maps-yelp-times" / "edits.json", maps_times.of_edits(ways, texts, "sentiment", TO["to"])
        )
    for data in TIMED[1:]:
        rows = [row for row in SIMPLER if row.base == f"maps-{data}-dae"]
        if data in tables and there(rows):
            told = maps_times.of_steps({row.name: row.plan.folder for row in rows})
            maps_times.keep(KEPT / f"maps-{data}-times" / "edits.json", told)


def found() -> dict[str, dict[str, Any]]:
    """The records that are there, with what was told of edits and how long training took."""
    known = records(ROWS)
    for name, record in known.items():
        for file in ("edits.json", "timing.json"):
            path = KEPT / name / file
            record[file.removesuffix(".json")] = json.loads(path.read_text()) if path.exists() else {}
    return known


if __name__ == "__main__":
    said, names = sys.argv[1:2], sys.argv[2:]
    there_are = TIMED if said == ["time"] else [*ROWS]
    if unknown := [name for name in names if name not in there_are]:
        sys.exit(f"there is no {unknown[0]}; there are {', '.join(there_are)}")
    if said == ["train"]:
        train(names)
    if said == ["again"]:
        remeasure(names)
    if said == ["time"]:
        take_times(names or TIMED)
    from maps_page import figure, page

    known = found()
    figure(known, STRENGTHS, Path(__file__).parent / "maps-trade-off.png")
    publish("maps", page(known, list(BASES), list(FACTORS), STRENGTHS), ROWS)
