"""DIP's moments of the aggregate posterior: against numpy, against samples, and where they cost nothing."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from elboroom.core.batch import Batch
from elboroom.core.draw import Draw
from elboroom.core.model import LatentModel
from elboroom.core.objective import Term
from elboroom.core.problem import Problem
from elboroom.families.gaussian import Gaussian, StandardNormal
from elboroom.families.point import PointPosterior
from elboroom.terms.moments import Of, covariance, diagonal, off_diagonal, third_moment

B, J = 9, 3


class Codes(nn.Module):
    """q(z|x) = N(x, exp(u)): means and log-variances are those of the batch."""

    family = Gaussian

    def forward(self, batch: Batch) -> Gaussian:
        assert batch.u is not None
        return Gaussian(batch.x, batch.u)


def draw_of(loc: Tensor, logvar: Tensor) -> Draw:
    return Draw(LatentModel(Codes(), StandardNormal(loc.shape[1]), nn.Identity()), Batch(loc, logvar))


def some(batch: int = B) -> tuple[Tensor, Tensor]:
    """Skewed, correlated means far from the origin, and uneven variances."""
    mixing = torch.tensor([[1.0, 0.5, 0.0], [0.0, 1.0, -0.8], [0.3, 0.0, 2.0]]).double()
    loc = torch.randn(batch, J).double().exp() @ mixing + 4
    return loc, torch.randn(batch, J).double() - 0.5


def by_numpy(loc: Tensor, logvar: Tensor, of: Of) -> np.ndarray:
    found = np.cov(loc.numpy().T, ddof=0)
    return found if of == "means" else found + np.diag(np.exp(logvar.numpy()).mean(0))


@pytest.mark.parametrize("of", ["means", "samples"])
def test_the_covariance_is_that_of_numpy(of: Of) -> None:
    """Fault 5: centred over the batch, 1/B, exp(logvar) as the variance; both triangles count."""
    loc, logvar = some()
    c, draw = by_numpy(loc, logvar, of), draw_of(loc, logvar)
    np.testing.assert_allclose(covariance(draw, of).numpy(), c, rtol=1e-12)
    off = sum(c[i, j] ** 2 for i in range(J) for j in range(J) if i != j)
    assert off_diagonal(of)(draw).item() == pytest.approx(off, rel=1e-10)
    assert diagonal(of)(draw).item() == pytest.approx(((np.diag(c) - 1) ** 2).sum(), rel=1e-10)


TERMS = [off_diagonal("means"), off_diagonal("samples"), diagonal("means"), diagonal("samples"), third_moment()]


@pytest.mark.parametrize("term", [*TERMS, third_moment("diagonal")])
def test_a_batch_that_is_there_twice_costs_the_same(term: Term) -> None:
    """Fault 5: peers never divide by B."""
    loc, logvar = some()
    once, twice = draw_of(loc, logvar), draw_of(loc.repeat(2, 1), logvar.repeat(2, 1))
    torch.testing.assert_close(term(twice), term(once), rtol=1e-12, atol=0)
    torch.testing.assert_close(term(draw_of(loc.flip(0) - 7, logvar.flip(0))), term(once), rtol=1e-9, atol=0)


def whitened(of: Of) -> tuple[Tensor, Tensor]:
    """Codes whose covariance is the identity."""
    loc, logvar = some()
    logvar = logvar - 2
    a = loc - loc.mean(0)
    left = torch.eye(J).double() - (torch.diag(logvar.exp().mean(0)) if of == "samples" else 0)
    white = a @ torch.linalg.inv(torch.linalg.cholesky(a.T @ a / B)).T
    return white @ torch.linalg.cholesky(left).T, logvar


@pytest.mark.parametrize("of", ["means", "samples"])
def test_the_penalty_is_zero_at_the_identity_alone(of: Of) -> None:
    loc, logvar = whitened(of)
    draw = draw_of(loc, logvar)
    assert off_diagonal(of)(draw).item() == pytest.approx(0, abs=1e-20)
    assert diagonal(of)(draw).item() == pytest.approx(0, abs=1e-20)
    wide = draw_of(1.1 * loc, logvar)
    assert diagonal(of)(wide).item() > 1e-3
    sheared = draw_of(loc + 0.1 * loc.roll(1, 1), logvar)
    assert off_diagonal(of)(sheared).item() > 1e-3
    of_other: Of = "samples" if of == "means" else "means"
    assert diagonal(of_other)(draw).item() > 1e-4, "the two flavours differ by the variance of q"


def test_the_third_moment_agrees_with_samples() -> None:
    """T_ijk = E (z - m)_i (z - m)_j (z - m)_k over q(z), at mu +- sigma in every dimension: exact up to third order."""
    loc, logvar = some()
    q = Gaussian(loc, logvar)
    signs = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0]).double()] * J).unsqueeze(1)  # (2^J, 1, J)
    z = q.loc + q.stddev * signs - loc.mean(0)
    t = torch.einsum("sbi,sbj,sbk->ijk", z, z, z) / (len(z) * B)
    only = torch.einsum("iii->i", t)
    draw = draw_of(loc, logvar)
    assert third_moment()(draw).item() == pytest.approx(t.square().sum().item(), rel=1e-10)
    assert third_moment("diagonal")(draw).item() == pytest.approx(only.square().sum().item(), rel=1e-10)


def test_the_third_moment_by_hand() -> None:
    """The formula as printed, entry by entry."""
    loc, logvar = some()
    a, s2 = (loc - loc.mean(0)).numpy(), logvar.exp().numpy()
    total, only = 0.0, 0.0
    for i in range(J):
        for j in range(J):
            for k in range(J):
                t = (a[:, i] * a[:, j] * a[:, k]).mean()
                t += (j == k) * (a[:, i] * s2[:, j]).mean() + (i == k) * (a[:, j] * s2[:, i]).mean()
                t += (i == j) * (a[:, k] * s2[:, i]).mean()
                total, only = total + t**2, only + (i == j == k) * t**2
    draw = draw_of(loc, logvar)
    assert third_moment()(draw).item() == pytest.approx(total, rel=1e-10)
    assert third_moment("diagonal")(draw).item() == pytest.approx(only, rel=1e-10)


def test_symmetric_codes_have_no_third_moment() -> None:
    loc, logvar = some()
    centred = loc - loc.mean(0)
    draw = draw_of(torch.cat([centred, -centred]), logvar.repeat(2, 1))
    assert third_moment()(draw).item() == pytest.approx(0, abs=1e-20)


@pytest.mark.parametrize("term", TERMS)
def test_a_point_posterior_is_refused(term: Term) -> None:
    model = LatentModel(PointPosterior(nn.Identity()), StandardNormal(J), nn.Identity())
    with pytest.raises(Problem, match="--posterior gaussian"):
        term.check(model)
    assert term.couples
