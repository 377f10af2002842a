"""Independence of two variables seen together: mutual information in nats and the p-value of HSIC."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree
from scipy.special import digamma
from torch import Tensor

from elboroom.core.problem import Problem
from elboroom.divergences import critic
from elboroom.divergences.critic import Estimate, Training
from elboroom.divergences.mmd import Kernel, Permuted
from elboroom.divergences.samples import at_least, rows
from elboroom.divergences.variational import divergence

LOW = 6  # dimensions of both together up to which neighbours say something
FOLDS = 4  # permutations of the training half: draws of the product are cheap


@dataclass(frozen=True)
class Independence:
    """Two variables seen together: MI by a critic and by neighbours, HSIC with its p-value, and a verdict."""

    variational: Estimate
    neighbours: Estimate | None  # only where both together have few dimensions
    hsic: float
    p: float
    verdict: str
    settings: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The same as a plain dict."""
        return asdict(self)


def independence(
    a: ArrayLike | Tensor, b: ArrayLike | Tensor, *, permutations: int = 1000, k: int = 3, most: int = 1000,
    level: float = 0.05, seed: int = 0, how: Training | None = None, names: tuple[str, str] = ("A", "B"),
) -> Independence:  # fmt: skip
    """The dependence of row i of A on row i of B: MI in nats, and HSIC tested by permuting B."""
    x, y = paired(a, b, names)
    few = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))[:most]
    test, scales = hsic_test(x[few], y[few], permutations, seed)
    mi = mutual_information(x, y, "kl", how or Training(seed=seed))
    near = knn_information(x, y, k, seed) if x.shape[1] + y.shape[1] <= LOW else None
    best = mi if near is None else near
    verdict = f"{names[0]} and {names[1]} depend on each other" if test.p <= level else (
        f"No dependence of {names[0]} and {names[1]} was found")  # fmt: skip
    verdict += f": about {best.value:.3g} nats in common, HSIC {test.statistic:.3g} with p = {test.p:.3g}."
    settings = {"permutations": permutations, "bandwidths": scales, "rows": len(x), "tested_rows": len(few),
                "level": level, "seed": seed}  # fmt: skip
    return Independence(mi, near, test.statistic, test.p, verdict, settings)


def mutual_information(
    a: ArrayLike | Tensor,
    b: ArrayLike | Tensor,
    name: str = "kl",
    how: Training | None = None,
    names: tuple[str, str] = ("A", "B"),
) -> Estimate:
    """I(A; B) = KL(joint || product of marginals), a lower bound; another f-divergence of the two by its name."""
    row, how = divergence(name), how or Training()
    x, y = paired(a, b, names)
    noise = torch.Generator().manual_seed(how.seed)
    order = torch.randperm(len(x), generator=noise)
    seen, held = order[: len(x) // 2], order[len(x) // 2 :]
    product = torch.cat([_product(x[seen], y[seen], noise) for _ in range(FOLDS)])
    found = critic.train(row, torch.cat([x[seen], y[seen]], 1), product, how)
    value, error = critic.read(row, found, torch.cat([x[held], y[held]], 1), _product(x[held], y[held], noise))
    settings = {**asdict(how), "trained_on": len(seen), "read_on": len(held)}
    return Estimate(value, error, row.name, row.unit, "variational bound, held out, B permuted", settings)


def _product(x: Tensor, y: Tensor, noise: torch.Generator) -> Tensor:
    """Rows of x beside rows of y in another order, none at its own place."""
    order = torch.randperm(len(x), generator=noise)
    moved = torch.empty_like(order)
    moved[order] = order.roll(1)  # one cycle through all
    return torch.cat([x, y[moved]], 1)


def knn_information(a: ArrayLike | Tensor, b: ArrayLike | Tensor, k: int = 3, seed: int = 0) -> Estimate:
    """I(A; B) by neighbours (Kraskov 2004, Eq. 8): psi(k) + psi(n) - mean[psi(n_a + 1) + psi(n_b + 1)]."""
    at_least(k, 1, "k")
    x, y = paired(a, b, ("A", "B"), k + 2)
    rng = np.random.default_rng(seed)
    parts = [_spread(v, rng) for v in (x, y)]
    n = len(x)
    both = np.hstack(parts)
    reach = cKDTree(both).query(both, k + 1, p=np.inf)[0][:, -1]
    reach = np.nextafter(reach, 0)  # strictly nearer than the k-th neighbour
    counts = [cKDTree(v).query_ball_point(v, reach, p=np.inf, return_length=True) for v in parts]  # itself among them
    per_row = digamma(k) + digamma(n) - digamma(counts[0]) - digamma(counts[1])
    value, error = float(per_row.mean()), float(per_row.std(ddof=1) / math.sqrt(n))
    return Estimate(value, error, "kl", "nats", f"nearest neighbours, k = {k}", {"k": k, "rows": n, "seed": seed})


def _spread(v: Tensor, rng: np.random.Generator) -> Any:
    """Columns of unit deviation, equal values set apart by a breath of noise."""
    array = v.numpy()
    deviation = array.std(0)
    array = (array - array.mean(0)) / np.where(deviation > 0, deviation, 1)
    return array + 1e-10 * rng.standard_normal(array.shape)


def hsic_test(x: Tensor, y: Tensor, permutations: int = 1000, seed: int = 0) -> tuple[Permuted, list[float]]:
    """HSIC = mean of (H K H) * L, RBF kernels at the median distances, and the same for permuted rows of y."""
    at_least(permutations, 1, "the number of permutations")
    noise = torch.Generator().manual_seed(seed)
    kernels = [Kernel.of("rbf", v, v[:0]) for v in (x, y)]
    k, other = (kernel(v, v).double() for kernel, v in zip(kernels, (x, y), strict=True))  # (n, n)
    k = (k - k.mean(0) - k.mean(1, keepdim=True) + k.mean()).flatten() / k.numel()
    values = [float(k.dot(other.flatten()))]
    for _ in range(permutations):
        order = torch.randperm(len(x), generator=noise)
        values.append(float(k.dot(other.index_select(0, order).index_select(1, order).flatten())))
    return Permuted(values[0], torch.tensor(values[1:], dtype=torch.float64)), [kernel.scale for kernel in kernels]


def paired(
    a: ArrayLike | Tensor, b: ArrayLike | Tensor, names: tuple[str, str], least: int = critic.LEAST
) -> tuple[Tensor, Tensor]:
    """Two variables of the same examples, (n, d) and (n, e)."""
    x, y = rows(a, names[0], least), rows(b, names[1], least)
    if len(x) != len(y):
        raise Problem(
            f"{names[0]} has {len(x)} rows but {names[1]} has {len(y)}; row i of both must be the same example"
        )
    for v, name in ((x, names[0]), (y, names[1])):
        if bool((v == v[0]).all()):
            raise Problem(f"{name} is the same in all rows, so nothing can depend on it")
    return x, y
