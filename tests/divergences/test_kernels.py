"""Kernels and MMD: closed forms, identities, gradients, and a test that is uniform under P = Q."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from scipy.stats import kstest
from torch import Tensor

from elboroom.core.problem import Problem
from elboroom.divergences import kernels
from elboroom.divergences.mmd import Kernel, permutation_test, two_sample, witness


def normal(n: int, d: int, seed: int) -> Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def closed(m: tuple[float, ...], s: float, h: float) -> float:
    """MMD^2 of N(0, I) and N(m, s^2 I) under an RBF kernel."""
    d, far = len(m), sum(v * v for v in m)
    wide = h * h + 1 + s * s
    within: float = (h * h / (h * h + 2)) ** (d / 2) + (h * h / (h * h + 2 * s * s)) ** (d / 2)
    across: float = (h * h / wide) ** (d / 2) * math.exp(-far / (2 * wide))
    return within - 2 * across


def matrices(x: Tensor, y: Tensor, h: float) -> tuple[Tensor, Tensor, Tensor]:
    return kernels.rbf(x, x, h), kernels.rbf(y, y, h), kernels.rbf(x, y, h)


def test_mmd_of_two_gaussians() -> None:
    m, s, h = (0.7, -0.3), 0.6, 1.1
    assert closed(m, s, h) == pytest.approx(0.16273, abs=5e-6)
    found = [
        float(kernels.mmd2_u(*matrices(normal(1000, 2, 2 * i), torch.tensor(m) + s * normal(1000, 2, 2 * i + 1), h)))
        for i in range(8)
    ]
    assert np.mean(found) == pytest.approx(closed(m, s, h), abs=4 * float(np.std(found, ddof=1)) / math.sqrt(8))
    assert np.std(found) < 0.02


def test_the_difference_of_the_biased_and_the_unbiased() -> None:
    kxx, kyy, kxy = matrices(normal(7, 3, 0), normal(11, 3, 1) + 1, 1.3)
    kx, ky = kernels.off_diagonal_mean(kxx), kernels.off_diagonal_mean(kyy)
    gap = kernels.mmd2_v(kxx, kyy, kxy) - kernels.mmd2_u(kxx, kyy, kxy)
    assert float(gap) == pytest.approx(float((1 - kx) / 7 + (1 - ky) / 11))


def test_equal_lists() -> None:
    """V is 0, and the unbiased one, as WAE has it, is (2/n)(kbar_off - 1)."""
    z = normal(9, 4, 0)
    k = kernels.imq(z, z, 8.0)
    assert float(kernels.mmd2_v(k, k, k)) == pytest.approx(0, abs=1e-12)
    assert float(kernels.mmd2_u(k, k, k)) == pytest.approx(2 / 9 * (float(kernels.off_diagonal_mean(k)) - 1))


def test_kernels_by_hand() -> None:
    x, y = torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]])
    assert float(kernels.square_distances(x, y)) == pytest.approx(25)
    assert float(kernels.rbf(x, y, 5.0)) == pytest.approx(math.exp(-0.5))
    assert float(kernels.imq(x, y, 25.0)) == pytest.approx(0.5)
    assert float(kernels.imq_scales(x, y, 25.0)) == pytest.approx(sum(s / (s + 1) for s in kernels.SCALES))
    assert float(kernels.imq_scales(x, x, 25.0)) == pytest.approx(7)


@pytest.mark.parametrize("kernel", [kernels.rbf, kernels.imq, kernels.imq_scales])
def test_gradients(kernel: object) -> None:
    x, y = normal(4, 2, 0).requires_grad_(), normal(5, 2, 1)
    assert callable(kernel)
    assert torch.autograd.gradcheck(
        lambda v: kernels.mmd2_u(kernel(v, v, 1.5), kernel(y, y, 1.5), kernel(v, y, 1.5)), (x,)
    )


def test_precision_and_leading_axes_are_kept() -> None:
    x, y = normal(6, 3, 0), normal(5, 3, 1)
    assert kernels.rbf(x.float(), y.float(), 1.0).dtype == torch.float32
    each = [kernels.mmd2_v(*matrices(x[:, [j]], y[:, [j]], 1.0)) for j in range(3)]
    at_once = kernels.mmd2_v(*matrices(x.T.unsqueeze(-1), y.T.unsqueeze(-1), 1.0))  # (3,)
    assert torch.allclose(at_once, torch.stack(each))


def test_far_from_the_origin() -> None:
    x = normal(50, 3, 0).float()
    assert torch.allclose(kernels.rbf(x + 1000, x + 1000, 1.0), kernels.rbf(x, x, 1.0), atol=2e-3)


def test_the_median_distance() -> None:
    x, y = torch.tensor([[0.0], [0.0], [1.0]]), torch.tensor([[3.0]])
    pairs = [abs(a - b) for a, b in itertools.combinations([0.0, 0.0, 1.0, 3.0], 2) if a != b]
    assert float(kernels.median_distance(x, y)) == np.median(pairs)
    many = normal(3000, 2, 0)
    assert float(kernels.median_distance(many, many[:0])) == pytest.approx(
        math.sqrt(2 * math.log(2)) * math.sqrt(2), rel=0.05
    )
    assert kernels.median_distance(many, many[:0], seed=1) == kernels.median_distance(many, many[:0], seed=1)
    with pytest.raises(Problem, match="all points are equal"):
        kernels.median_distance(torch.ones(5, 2), torch.ones(5, 2))


def test_permutations_of_one_matrix_are_those_of_the_samples() -> None:
    x, y = normal(4, 2, 0), normal(3, 2, 1)
    pooled = torch.cat([x, y])
    k = kernels.rbf(pooled, pooled, 1.0)
    test = permutation_test(k, 4, 500)
    assert test.statistic == pytest.approx(float(kernels.mmd2_u(*matrices(x, y, 1.0))))
    possible = []
    for first in itertools.combinations(range(7), 4):
        rest = [i for i in range(7) if i not in first]
        possible.append(float(kernels.mmd2_u(*matrices(pooled[list(first)], pooled[rest], 1.0))))
    gaps = (test.null.unsqueeze(1) - torch.tensor(possible, dtype=torch.float64)).abs().min(1).values
    assert float(gaps.max()) < 1e-12
    exact = np.mean(np.array(possible) >= test.statistic - 1e-12)
    assert test.p == pytest.approx(exact, abs=0.08)


def test_p_is_uniform_under_one_distribution() -> None:
    found = []
    for seed in range(200):
        x, y = normal(20, 2, 2 * seed), normal(25, 2, 2 * seed + 1)
        found.append(two_sample(x, y, Kernel.of("rbf", x, y), 199, seed)[0].p)
    assert kstest(found, "uniform").pvalue > 0.01
    assert np.mean(np.array(found) <= 0.05) < 0.1


@pytest.mark.parametrize("name", ["rbf", "imq"])
def test_p_is_small_where_samples_differ(name: str) -> None:
    x, y = normal(100, 2, 0), normal(80, 2, 1) + 1
    test, found = two_sample(x, y, Kernel.of(name, x, y), 1000)
    assert test.p == pytest.approx(1 / 1001)
    assert found["mmd2_v"] > found["mmd2_u"] > 0


def test_the_witness_integrates_to_mmd() -> None:
    x, y = normal(30, 2, 0), normal(20, 2, 1) + 1
    kernel = Kernel("rbf", 1.2)
    gap = witness(kernel, x, y, x).mean() - witness(kernel, x, y, y).mean()
    assert float(gap) == pytest.approx(float(kernels.mmd2_v(kernel(x, x), kernel(y, y), kernel(x, y))))
    assert float(witness(kernel, x, y, torch.tensor([[-1.0, -1.0]], dtype=torch.float64))) > 0


def test_mistakes_are_said() -> None:
    x = normal(10, 2, 0)
    with pytest.raises(Problem, match="unknown kernel 'rfb'; did you mean 'rbf'"):
        Kernel.of("rfb", x, x)
    with pytest.raises(Problem, match="must be positive"):
        Kernel.of("rbf", x, x, 0.0)
    with pytest.raises(Problem, match="permutations must be at least 1"):
        permutation_test(torch.eye(6), 3, 0)
