"""The page of results on faces: reconstruction beside principal components, and attributes edited.

`python docs/results/faces.py train` trains and measures what has no record yet,
`python docs/results/faces.py` writes faces.md from the records.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parent))

from records import KEPT, ROOT, Plan, publish, records, work
from tables import Records, table

from benchmarks import own_data

FREY, PORTRAITS = "faces-freyfaces", "faces-portraits"
PLANS = [Plan(FREY, "vae"), Plan(PORTRAITS, "vae")]
COMMON: dict[str, Any] = {"threads": 1}
SMILES = (617, 1265)  # frames of the film, by eye
NOT = ((1086, 1109), (1187, 1194))  # of these, the lips are pursed
WAYS = {"offset": {}, "offset, strength 1.5": {"strength": 1.5}, "fgim": {"by": "fgim"}}
TITLES = {FREY: "`freyfaces`, smile", PORTRAITS: "photos of one person, light"}
SHOWN = 8  # faces of a picture

Images = NDArray[np.float32]


def source(name: str) -> str:
    """The data of a run, written where they are not there yet."""
    folder = ROOT / "runs" / "faces"
    folder.mkdir(parents=True, exist_ok=True)
    return str(own_data.portraits(folder) if name == PORTRAITS else film(folder))


def film(folder: Path) -> Path:
    """The Frey faces with what the eye sees on them: a smile or none."""
    from elboroom.data import registry

    data = registry.load("freyfaces")
    smiles = np.zeros(len(data), np.int64)
    smiles[slice(*SMILES)] = 1
    for pursed in NOT:
        smiles[slice(*pursed)] = 0
    path = folder / "freyfaces.npz"
    np.savez(path, x=(255 * data.x(np.arange(len(data))).numpy()).round().astype(np.uint8), smile=smiles)
    return path


def measure(run: Any) -> None:
    """Reconstruction, and the attribute changed both ways on the whole test split."""
    from elboroom.runs import measure

    measure.metrics(run, ["likelihood"], samples=100)
    label = next(iter(run.data.about.labels))
    column = list(run.data.about.labels).index(label)
    values = run.data.classes.get(label, ("0", "1"))
    rows = {split: run.rows(split)[1] for split in ("train", "test")}
    x, has = ({split: of(rows[split]) for split in rows} for of in (run.data.x, lambda at: run.data.labels[at, column]))
    judge = Judge(x["train"].numpy(), has["train"])
    given = x["test"].numpy()
    said = {"reconstruction": own_data.measure(run), "judge": {"accuracy": judge.right(given, has["test"])}}
    said["another face"] = judge.tells(np.random.default_rng(0).permutation(given), 1 - has["test"], given)
    same = run.reconstruct(given)
    said["reconstructed"] = judge.tells(same, 1 - has["test"], given)
    pictures = [given, same]
    for way, options in WAYS.items():
        made = np.empty_like(given)
        for value, name in enumerate(values):
            others = has["test"] != value
            made[others] = run.edit(given[others], to=name, label=label, **options)
        said[way] = judge.tells(made, 1 - has["test"], given)
        pictures.append(made)
    (run.folder / "edits.json").write_text(json.dumps(said, indent=1) + "\n")
    draw(run.folder.name, pictures, has["test"])


class Judge:
    """Tells an attribute from pixels alone, by logistic regression on the training split."""

    def __init__(self, x: Images, has: NDArray[np.int64]) -> None:
        from sklearn.decomposition import PCA
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline

        self.of = make_pipeline(PCA(30, whiten=True, random_state=0), LogisticRegression(max_iter=1_000))
        self.of.fit(x.reshape(len(x), -1), has)

    def right(self, x: Images, has: NDArray[np.int64]) -> float:
        """In how many of these it sees this value."""
        return float((self.of.predict(x.reshape(len(x), -1)) == has).mean())

    def tells(self, made: Images, wanted: NDArray[np.int64], given: Images) -> dict[str, float]:
        """How many edits have the wanted value, and how much of what should stay has stayed."""
        return {"accuracy": self.right(made, wanted), "kept": alike(given, made)}


def alike(one: Images, other: Images) -> float:
    """The mean correlation of the pixels of the upper halves of faces: whatever their brightness and contrast."""
    halves = (x[:, :, : x.shape[2] // 2].reshape(len(x), -1).astype(np.float64) for x in (one, other))
    a, b = (x - x.mean(1, keepdims=True) for x in halves)
    return float(((a * b).sum(1) / np.sqrt((a * a).sum(1) * (b * b).sum(1))).mean())


def draw(name: str, pictures: list[Images], has: NDArray[np.int64]) -> None:
    """A few faces of each value: as they are, reconstructed, and edited in each way."""
    rng = np.random.default_rng(0)
    some = np.concatenate([rng.choice(np.flatnonzero(has == value), SHOWN // 2, replace=False) for value in (0, 1)])
    sheet = own_data.sheet(
        np.concatenate([images[some] for images in pictures]), SHOWN, max(1, 96 // pictures[0].shape[2])
    )
    sheet.save(KEPT.parent / f"{name}.png", optimize=True)


def page(found: Records) -> str:
    """The page; rows of runs that have no record say so."""
    edits = {name: json.loads((KEPT / name / "edits.json").read_text()) for name in found}
    return f"""# Faces

`elbo train vae --data DATA` and nothing else ([defaults](../defaults.md#images-and-vectors)), one seed. The Frey faces are
1,965 pictures of a film; the folder of photos has 300 of 64 x 64 in colour, matplotlib's portrait each time cropped, turned and
lit a little differently (`benchmarks/own_data.py` makes them).

## Reconstruction

Squared error of an example of the test split, decoded from the mean of its code, pixels in [0, 1], beside as many principal
components of the training split as z has dimensions.

{table(["data", "dimensions", "PCA", "vae", "vae / PCA"], [_error(plan.name, found, edits) for plan in PLANS])}

## Attributes

Frey smiles in frames {SMILES[0]} to {SMILES[1] - 1} of the film but for two stretches of pursed lips, as the eye sees it;
a photo is light above {own_data.MIDDLE} of its first brightness, as it was made. Every face of the test split gets the other
value: `elbo edit RUN IMAGE --label smile --to 1`. Changed: the share that a logistic regression on 30 principal components of
pixels takes for the other value; beside each title, how often it is right on real faces of the test split. Kept: the mean
correlation with the pixels of the face as it was, in the upper half, where a smile changes little; light changes none of it.
Neighbours in the film are much alike, and some of them are in training: the numbers are kind.

{table(["", "changed", "kept"], [row for plan in PLANS for row in _edited(plan.name, edits)])}

{_pictures(edits)}"""


def _error(name: str, found: Records, edits: dict[str, Any]) -> list[str]:
    title = TITLES[name].split(",")[0]
    if name not in found:
        return [title, "not yet run", "", "", ""]
    errors = edits[name]["reconstruction"]
    latent = str(found[name]["spec"]["model"]["latent"])
    return [title, latent, f"{errors['pca']:.3g}", f"{errors['error']:.3g}", f"{errors['error'] / errors['pca']:.2f}"]


def _edited(name: str, edits: dict[str, Any]) -> list[list[str]]:
    if name not in edits:
        return [[TITLES[name], "not yet run", ""]]
    said = edits[name]
    title = f"{TITLES[name]} (judge {said['judge']['accuracy']:.3f})"
    ways = {"another face": "another face", "reconstructed": "reconstructed, not edited"} | {way: way for way in WAYS}
    return [
        [f"{title}: {told}", f"{said[way]['accuracy']:.3f}", f"{said[way]['kept']:.3f}"] for way, told in ways.items()
    ]


def _pictures(edits: dict[str, Any]) -> str:
    rows = "; ".join(["as they are", "reconstructed", *WAYS])
    said = (
        f"Rows: {rows}. In the left half of each picture faces are to smile or to be light, in the right half not to."
    )
    return "\n\n".join([said, *(f"![{TITLES[name]}]({name}.png)" for name in edits)]) + "\n"


if __name__ == "__main__":
    if sys.argv[1:2] == ["train"]:
        for plan in PLANS:
            work([plan], measure, source(plan.name), **COMMON)
    publish("faces", page(records(plan.name for plan in PLANS)), [plan.name for plan in PLANS])
