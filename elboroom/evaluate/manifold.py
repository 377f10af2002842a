"""Maps of a manifold side by side: spectral ones, t-SNE and the codes of a model, by how they keep neighbours and axes."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr
from sklearn.datasets import make_swiss_roll
from sklearn.decomposition import PCA, KernelPCA
from sklearn.manifold import TSNE, Isomap, LocallyLinearEmbedding, SpectralEmbedding, trustworthiness

from elboroom.core.problem import Problem
from elboroom.divergences.kernels import median_distance
from elboroom.divergences.samples import rows
from elboroom.evaluate.result import Result

Floats = NDArray[np.float64]
LEAST = 20  # rows


@dataclass(frozen=True)
class Comparator:
    """A way to map rows to the plane, and what kind of problem it solves."""

    name: str
    embed: Callable[[Floats, int, int], Any]  # rows (n, d), neighbours, seed -> (n, 2)
    convex: bool
    matrix: Literal["dense", "sparse", ""]  # whose eigenvectors it takes
    parametric: bool = False  # whether it is a function with parameters, which maps new points


class Embedder(Protocol):
    """A model that maps rows to codes, e.g. `elboroom.VAE("ae")`."""

    def fit_transform(self, X: Any) -> Any: ...


def classical_mds(x: Floats) -> Any:
    """Classical MDS on Euclidean distances: the leading eigenvectors of -1/2 H D^2 H, which kernel PCA takes."""
    return KernelPCA(2, kernel="precomputed").fit_transform(-0.5 * cdist(x, x, "sqeuclidean"))


def kernel_pca(x: Floats) -> Any:
    """Kernel PCA, RBF at the median distance."""
    values = torch.from_numpy(x)
    h = float(median_distance(values, values[:0]))
    return KernelPCA(2, kernel="rbf", gamma=1 / (2 * h * h)).fit_transform(x)


def t_sne(x: Floats, seed: int) -> Any:
    """t-SNE from the start that PCA gives."""
    return TSNE(2, perplexity=min(30, len(x) // 4), random_state=seed).fit_transform(x)


COMPARATORS = (
    Comparator("PCA", lambda x, k, seed: PCA(2, svd_solver="full").fit_transform(x), True, "dense"),
    Comparator("classical MDS", lambda x, k, seed: classical_mds(x), True, "dense"),
    Comparator("kernel PCA", lambda x, k, seed: kernel_pca(x), True, "dense"),
    Comparator("Isomap", lambda x, k, seed: Isomap(n_neighbors=k).fit_transform(x), True, "dense"),
    Comparator(
        "LLE",
        lambda x, k, seed: LocallyLinearEmbedding(n_neighbors=k, random_state=seed).fit_transform(x),
        True,
        "sparse",
    ),
    Comparator(
        "Laplacian eigenmaps",
        lambda x, k, seed: SpectralEmbedding(affinity="nearest_neighbors", n_neighbors=k, random_state=seed).fit_transform(x),
        True,
        "sparse",
    ),
    Comparator("t-SNE", lambda x, k, seed: t_sne(x, seed), False, ""),
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Roll:
    """The Swiss roll: points in space and where they lie on the unrolled sheet."""

    x: Floats  # (n, 3), centred, in units of their deviation
    sheet: Floats  # (n, 2): length along the spiral, height

    @staticmethod
    def of(n: int = 1500, noise: float = 0.05, seed: int = 0) -> Roll:
        """n points with Gaussian noise, in units in which the radius of the spiral runs from 3 pi / 2 to 9 pi / 2."""
        clean, t = make_swiss_roll(n, noise=0.0, random_state=seed)
        x = clean + noise * np.random.default_rng(seed).standard_normal(clean.shape)
        length = (t * np.sqrt(1 + t**2) + np.arcsinh(t)) / 2
        return Roll((x - x.mean(0)) / x.std(), np.column_stack([length, clean[:, 1]]))


@dataclass(frozen=True, eq=False)
class Map:
    """One row of the table: a map of the points with its properties and measures."""

    name: str
    points: Floats = field(repr=False)  # (n, J)
    convex: bool
    matrix: str
    parametric: bool
    trustworthiness: Result
    spearman: dict[str, Result]  # of the best axis with each true coordinate; all axes are in its parts

    def to_json(self) -> dict[str, Any]:
        """All but the points, as a plain dict."""
        return {
            "name": self.name,
            "convex": self.convex,
            "matrix": self.matrix,
            "parametric": self.parametric,
            "trustworthiness": self.trustworthiness.to_json(),
            "spearman": {name: number.to_json() for name, number in self.spearman.items()},
        }


@dataclass(frozen=True, eq=False)
class Atlas:
    """Several maps of the same points, with what colours them."""

    maps: list[Map]
    truth: dict[str, Floats]  # true coordinates, each (n,)
    labels: NDArray[np.int64] | None = None  # (n,), places in `classes`
    classes: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The table as a plain dict."""
        return {"settings": self.settings, "maps": [found.to_json() for found in self.maps]}


def swiss_roll(
    codes: Mapping[str, Embedder] | None = None, n: int = 1500, noise: float = 0.05, neighbours: int = 10, seed: int = 0,
    comparators: Sequence[Comparator] = COMPARATORS,
) -> Atlas:  # fmt: skip
    """Maps of the Swiss roll, held against the sheet that it was rolled from."""
    roll = Roll.of(n, noise, seed)
    truth = {"length": roll.sheet[:, 0], "height": roll.sheet[:, 1]}
    found = atlas(roll.x, codes, truth=truth, neighbours=neighbours, most=n, seed=seed, comparators=comparators)
    return Atlas(found.maps, found.truth, settings={"data": "Swiss roll", "noise": noise, **found.settings})


def atlas(
    x: ArrayLike, codes: Mapping[str, ArrayLike | Embedder] | None = None, *, labels: ArrayLike | None = None,
    truth: Mapping[str, ArrayLike] | None = None, neighbours: int = 10, most: int = 1500, seed: int = 0,
    comparators: Sequence[Comparator] = COMPARATORS,
) -> Atlas:  # fmt: skip
    """Maps of rows (n, d), data or codes, by each comparator, beside codes of the same rows.

    codes: by name, an array (n, J) or a model with fit_transform. Of more than `most` rows that many are drawn, after
    codes were made.
    """
    values = rows(x, "the data", LEAST).numpy()
    n = len(values)
    coded = {name: _coded(name, code, values) for name, code in (codes or {}).items()}
    columns = {name: _column(name, column, n).astype(np.float64) for name, column in (truth or {}).items()}
    classes, kinds = np.unique(_column("labels", np.zeros(n) if labels is None else labels, n), return_inverse=True)
    chosen = np.sort(np.random.default_rng(seed).permutation(n)[:most])
    if not 1 <= neighbours < len(chosen) / 2:
        raise Problem(f"neighbours must be at least 1 and fewer than half of the {len(chosen)} rows, not {neighbours}")
    values = values[chosen]
    if values.shape[1] < 2:
        raise Problem("the data has one column, so it needs no map")
    if len(np.unique(values, axis=0)) <= max(4, neighbours):
        raise Problem("the rows of the data are all but equal, so there is no map of them")
    columns = {name: column[chosen] for name, column in columns.items()}
    maps = []
    for way in comparators:
        points = _embedded(way, values, neighbours, seed)
        maps.append(_map(way, points, values, columns, neighbours))
    for name, code in coded.items():
        model = Comparator(name, lambda x, k, seed: x, False, "", parametric=True)
        maps.append(_map(model, code[chosen], values, columns, neighbours))
    settings = {"rows": len(chosen), "of": n, "dimensions": values.shape[1], "neighbours": neighbours, "seed": seed}
    if labels is None:
        return Atlas(maps, columns, settings=settings)
    return Atlas(maps, columns, kinds[chosen], tuple(map(str, classes)), settings)


def _coded(name: str, code: ArrayLike | Embedder, x: Floats) -> Floats:
    """Codes as handed in, or made by a model, (n, J)."""
    made = code.fit_transform(x) if hasattr(code, "fit_transform") else code
    found = rows(made, f"'{name}'", LEAST).numpy()
    if len(found) != len(x):
        raise Problem(
            f"'{name}' has {len(found)} rows but the data has {len(x)}; row i of both must be the same example"
        )
    return found


def _column(name: str, values: ArrayLike, n: int) -> NDArray[Any]:
    column = np.asarray(values)
    if column.shape != (n,):
        raise Problem(f"'{name}' has shape {column.shape}, not ({n},)")
    return column


def _embedded(way: Comparator, x: Floats, neighbours: int, seed: int) -> Floats:
    """The map of rows by a comparator, (n, 2)."""
    with warnings.catch_warnings():
        # pieces of the graph of neighbours are joined by Isomap and set apart by eigenmaps, as the picture shows
        warnings.filterwarnings("ignore", message="The number of connected|Graph is not fully|Changing the sparsity")
        try:
            return np.asarray(way.embed(x, neighbours, seed), np.float64)
        except (ValueError, np.linalg.LinAlgError, ArithmeticError) as error:
            raise Problem(f"{way.name} cannot map these rows: {str(error).splitlines()[0].rstrip('.')}") from error


def _map(way: Comparator, points: Floats, x: Floats, truth: Mapping[str, Floats], neighbours: int) -> Map:
    settings = {"rows": len(x), "neighbours": neighbours, "dimensions": points.shape[1]}
    trust = float(trustworthiness(x, points, n_neighbors=neighbours))
    found = {}
    for coordinate, values in truth.items():
        axes = [_spearman(points[:, j], values) for j in range(points.shape[1])]
        best = max(range(len(axes)), key=lambda j: abs(axes[j]))
        parts = {"axes": axes, "best": best}
        found[coordinate] = Result(abs(axes[best]), "largest |Spearman| of an axis", "", {"rows": len(x)}, parts=parts)
    measured = Result(trust, "trustworthiness", "", settings)
    return Map(way.name, points, way.convex, way.matrix, way.parametric, measured, found)


def _spearman(a: Floats, b: Floats) -> float:
    """The correlation of ranks, 0 for a constant."""
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0
    rho = float(spearmanr(a, b).statistic)
    return rho if math.isfinite(rho) else 0.0
