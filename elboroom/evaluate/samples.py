"""How far samples of a run are from held-out data: two-sample distances of features that the results name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elboroom.core.problem import Problem, unknown
from elboroom.divergences.mmd import Kernel, two_sample
from elboroom.divergences.samples import rows as real_rows
from elboroom.divergences.transport import frechet
from elboroom.evaluate.registry import Quantity, Results, family, named
from elboroom.evaluate.result import Result
from elboroom.training.batches import batch_of

if TYPE_CHECKING:
    from elboroom.evaluate.subject import Subject, Trained

FEATURES = ("pca", "pixels", "codes")
ROWS, PERMUTATIONS = 2000, 200
COMPONENTS = 50  # of PCA
WIDE = 1024  # values of an example up to which they are features themselves
GIVES = {
    "frechet-*": Quantity("Fréchet distance of samples (*) and data", "low"),
    "mmd_samples-*": Quantity("MMD² of samples (*) and data", "low"),
}


class Examples(NamedTuple):
    """Examples as a user would hand them in, with the labels that the run is given."""

    x: Any
    u: Tensor | None = None  # (n, U)


Encode = Callable[[Examples], Tensor]


@family("samples", "split", GIVES, by_name=True)
def of_run(
    subject: Subject, split: str | None = None, sampler: Literal["prior", "gmm", "flow", "kmeans"] = "prior",
    components: int | None = None, features: str | Trained = "", most: int = ROWS, seed: int = 0,
) -> Results:  # fmt: skip
    """Samples against held-out examples: the Fréchet distance and MMD² of their features, beside those of training examples.

    features: pca of the data (the default of images and vectors), pixels, codes of the run itself (the default of text), or
    another run, whose codes they are
    """
    run = subject.run
    part = run.split(split, min(most, ROWS), seed)
    n = len(part.rows)
    if n < 5:
        raise Problem("sample quality needs at least 5 held-out examples")
    encode, told = _features(run, features)
    new = encode(_examples(run, part.rows))
    u = run.examples(n, "train", seed).u  # the labels of samples are those of training examples
    drawn = encode(Examples(run.sample(n if u is None else len(u), seed, u, None, sampler, components), u))
    known = encode(_examples(run, run.split("train", n, seed).rows))
    settings = part.settings | {"sampler": sampler, "features": told, "dimensions": new.shape[1], "samples": len(drawn)}
    settings |= {"components": components or 10} if sampler in ("gmm", "kmeans") else {}
    distance, floor = (float(frechet(rows, new)) for rows in (drawn, known))
    note = f"training examples {floor:.3g}"
    found = {
        f"frechet-{sampler}": Result(
            distance, f"Gaussians of {told}", "", settings, parts={"of training examples": floor}, note=note
        )
    }
    kernel = Kernel.of("rbf", drawn, new)
    test, _ = two_sample(drawn, new, kernel, PERMUTATIONS, seed)
    chance = {"under equal laws": float(test.null.std())}
    settings = settings | {"kernel": "rbf", "bandwidth": kernel.scale, "permutations": PERMUTATIONS}
    how, note = f"U-statistic, rbf at the median distance, of {told}", f"p = {test.p:.3g}"
    found[f"mmd_samples-{sampler}"] = Result(test.statistic, how, "", settings, chance, parts={"p": test.p}, note=note)
    return named(found)


def _features(run: Trained, features: str | Trained) -> tuple[Encode, str]:
    """What makes features of examples, (n, d), and its name."""
    if not isinstance(features, str):
        if features.given not in ((), run.given):
            raise Problem(
                f"--features {features.folder.name}: it is given {', '.join(features.given)}, which samples of this run are not"
            )
        return _codes(features), f"codes of {features.folder.name}"
    name = features or ("codes" if run.tokeniser is not None else "pca")
    if name not in FEATURES:
        raise unknown("kind of features", name, FEATURES)
    if name == "codes":
        return _codes(run), "codes of the run itself"
    if run.tokeniser is not None:
        raise Problem(f"--features {name} is for images and vectors; those of text are codes, or another run")
    if name == "pixels":
        wide = int(np.prod(run.data.about.shape))
        if wide > WIDE:
            raise Problem(
                f"--features pixels is for examples of at most {WIDE:,} values, and these have {wide:,}; use pca"
            )
        return _flat, "pixels" if run.data.about.kind == "pixels" else "columns"
    return _pca(run)


def _pca(run: Trained) -> tuple[Encode, str]:
    """The principal components of training examples."""
    x = _flat(_examples(run, run.split("train", ROWS).rows))
    count = min(COMPONENTS, x.shape[1], len(x) - 1)
    centre = x.mean(0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        axes = torch.pca_lowrank(x - centre, count, center=False, niter=6)[2]  # (D, count)
    return lambda some: (_flat(some) - centre) @ axes, f"{count} principal components of the data"


def _codes(run: Trained) -> Encode:
    """The means of q(z|x); a sentence without words has none and is left out."""
    run.require_codes()

    def codes(some: Examples) -> Tensor:
        said, u = some.x, some.u if run.given else None
        if run.tokeniser is not None:
            there = [place for place, sentence in enumerate(said) if sentence.strip()]
            said, u = [said[place] for place in there], None if u is None else u[there]
        elif run.data.about.kind == "pixels":
            said = np.clip(said, 0, 1)  # the mean of a Gaussian may lie outside
        return real_rows(run.encode(said, u) if len(said) else np.empty((0, run.latent)), "codes of samples")

    return codes


def _examples(run: Trained, rows: NDArray[np.int64]) -> Examples:
    """Rows of the data with their own labels."""
    batch = batch_of(run.data, rows, run.given)
    return Examples(run.data.sentences(rows) if run.tokeniser is not None else batch.x.numpy(), batch.u)


def _flat(some: Examples) -> Tensor:
    return real_rows(some.x, "samples")
