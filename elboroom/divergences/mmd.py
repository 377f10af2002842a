"""The two-sample test by MMD: a kernel as a value, a permutation test on one kernel matrix, the witness function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from elboroom.core.problem import Problem, unknown
from elboroom.divergences import kernels
from elboroom.divergences.samples import at_least

CHUNK = 250  # permutations at a time

# By name; each takes a distance as its scale. The mean square distance of two draws of N(0, s^2 I) is 2 d s^2, the C of
# the inverse multiquadric.
KERNELS: dict[str, Callable[[Tensor, Tensor, float], Tensor]] = {
    "rbf": kernels.rbf,
    "imq": lambda x, y, h: kernels.imq_scales(x, y, h * h),
}


@dataclass(frozen=True)
class Kernel:
    """A kernel with its scale, a distance: `rbf` of bandwidth h, or `imq`, the multi-scale sum at C = h^2."""

    name: str
    scale: float

    @staticmethod
    def of(name: str, x: Tensor, y: Tensor, scale: float | None = None) -> Kernel:
        """The kernel at a scale, by default the median distance of the pooled sample."""
        if name not in KERNELS:
            raise unknown("kernel", name, KERNELS)
        scale = float(kernels.median_distance(x, y)) if scale is None else scale
        if not 0 < scale < float("inf"):
            raise Problem(f"the bandwidth of a kernel must be positive, not {scale:g}")
        return Kernel(name, scale)

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        return KERNELS[self.name](x, y, self.scale)


@dataclass(frozen=True, eq=False)
class Permuted:
    """A statistic beside its values under permutations of the labels."""

    statistic: float
    null: Tensor  # (permutations,)

    @property
    def p(self) -> float:
        """(1 + #{T* >= T}) / (1 + permutations)."""
        slack = 1e-9 * float(self.null.abs().max())  # the same partition in another order of summation is no smaller
        return (1 + int((self.null >= self.statistic - slack).sum())) / (1 + len(self.null))


def permutation_test(k: Tensor, n: int, permutations: int = 1000, seed: int = 0) -> Permuted:
    """MMD^2 (U) of the first n rows of a pooled kernel matrix against the rest, and under permuted labels."""
    at_least(permutations, 1, "the number of permutations")
    noise = torch.Generator().manual_seed(seed)
    total = len(k)
    k = k - torch.diag(k.diagonal())
    labels = torch.arange(total).unsqueeze(1) < n  # (N, 1)
    found = [_unbiased(k, labels.to(k))]
    for start in range(0, permutations, CHUNK):
        width = min(CHUNK, permutations - start)
        labels = torch.rand(total, width, generator=noise).argsort(0) < n  # (N, P), n of each column true
        found.append(_unbiased(k, labels.to(k)))
    values = torch.cat(found)
    return Permuted(float(values[0]), values[1:])


def _unbiased(k: Tensor, first: Tensor) -> Tensor:
    """MMD^2 (U) for each column of labels, from a kernel matrix without its diagonal, (P,)."""
    n = float(first[:, 0].sum())
    m = len(k) - n
    onto = k @ first  # (N, P)
    xx = (first * onto).sum(0)
    xy = onto.sum(0) - xx
    yy = k.sum() - xx - 2 * xy
    return xx / (n * (n - 1)) + yy / (m * (m - 1)) - 2 * xy / (n * m)


def witness(kernel: Callable[[Tensor, Tensor], Tensor], x: Tensor, y: Tensor, at: Tensor) -> Tensor:
    """mean_i k(x_i, .) - mean_j k(y_j, .) at points (q, d): positive where x is denser, (q,)."""
    return kernel(at, x).mean(1) - kernel(at, y).mean(1)


def two_sample(
    x: Tensor, y: Tensor, kernel: Kernel, permutations: int = 1000, seed: int = 0
) -> tuple[Permuted, dict[str, Any]]:
    """The permutation test of two samples, with MMD^2 (V) and (U)."""
    pooled = torch.cat([x, y])
    k, n = kernel(pooled, pooled), len(x)  # (N, N)
    test = permutation_test(k, n, permutations, seed)
    biased = kernels.mmd2_v(k[:n, :n], k[n:, n:], k[:n, n:])
    return test, {"mmd2_v": float(biased), "mmd2_u": test.statistic}
