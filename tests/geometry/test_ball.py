"""The arithmetic of the Poincare ball: inverses, printed formulas, geodesics, geoopt, and what holds at centre and boundary."""

from __future__ import annotations

import math
import warnings

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from elboroom.geometry.ball import MARGIN, Ball, asinhc, log_sinhc, tanhc

CURVATURES = [1e-2, 0.25, 1.0, 10.0]


def points(ball: Ball, n: int = 40, d: int = 3, reach: float = 0.95) -> Tensor:
    """Points of the ball, some of them near its boundary."""
    way = torch.nn.functional.normalize(torch.randn(n, d).double(), dim=-1)
    return way * torch.rand(n, 1).double() ** 0.3 * reach / ball.c.sqrt()


def close(a: Tensor, b: Tensor, atol: float = 1e-9) -> None:
    torch.testing.assert_close(a, b, atol=atol, rtol=1e-9)


@pytest.mark.parametrize("c", CURVATURES)
def test_exp_and_log_are_inverse(c: float) -> None:
    ball = Ball(c)
    x, y, u = points(ball), points(ball), torch.randn(40, 3).double()
    close(ball.exp(ball.log(y, x), x), y)
    close(ball.unwrap(ball.wrap(u, x), x), u)
    v = 0.5 * u * ball.gap(x)  # a length that does not leave double precision
    close(ball.log(ball.exp(v, x), x), v)
    close(ball.exp(v, torch.zeros_like(x)), ball.exp0(v))
    close(ball.log(y, torch.zeros_like(y)), ball.log0(y))
    close(ball.log0(ball.exp0(u)), u)


@pytest.mark.parametrize("c", CURVATURES)
def test_the_formulas_as_they_are_printed(c: float) -> None:
    """Moebius addition, exp, log and the transport word for word, with norms and quotients."""
    ball = Ball(c)
    c = ball.c.item()  # as the ball keeps it
    root = math.sqrt(c)
    x, y, u = points(ball), points(ball), torch.randn(40, 3).double()

    def add(x: Tensor, y: Tensor) -> Tensor:
        dot, x2, y2 = (x * y).sum(-1, keepdim=True), x.square().sum(-1, keepdim=True), y.square().sum(-1, keepdim=True)
        top = (1 + 2 * c * dot + c * y2) * x + (1 - c * x2) * y
        return top / (1 + 2 * c * dot + c * c * x2 * y2)

    def size(t: Tensor) -> Tensor:
        return t.norm(dim=-1, keepdim=True)

    lam = 2 / (1 - c * x.square().sum(-1, keepdim=True))
    k = add(-x, y)
    close(ball.add(x, y), add(x, y))
    close(ball.exp(u / lam, x), add(x, torch.tanh(root * size(u) / 2) * u / (root * size(u))))
    close(ball.log(y, x), 2 / (root * lam) * torch.atanh(root * size(k)) * k / size(k))
    close(ball.transport(u, x), 2 / lam * u)
    close(ball.wrap(u, x), ball.exp(ball.transport(u, x), x))
    gaps = (ball.gap(x) * ball.gap(y)).squeeze(-1)
    close(ball.distance(x, y), torch.acosh(1 + 2 * c * (x - y).square().sum(-1) / gaps) / root)


@pytest.mark.parametrize("c", CURVATURES)
def test_distances(c: float) -> None:
    """The length of log, symmetric, kept by translations; transport keeps lengths; r = 2 |v| for a wrapped v."""
    ball = Ball(c)
    x, y, a, v = points(ball), points(ball), points(ball, reach=0.7), torch.randn(40, 3).double()
    far = ball.distance(x, y)
    close(far, ball.distance(y, x))
    close(far, 2 / ball.gap(x).squeeze(-1) * ball.log(y, x).norm(dim=-1))
    close(far, ball.distance(ball.add(a, x), ball.add(a, y)))
    close(2 / ball.gap(x).squeeze(-1) * ball.transport(v, x).norm(dim=-1), 2 * v.norm(dim=-1))
    close(ball.distance(x, ball.wrap(v, x)), 2 * v.norm(dim=-1))
    assert not ball.distance(x, x).any()


@pytest.mark.parametrize("c", CURVATURES)
def test_transport_is_along_the_geodesic(c: float) -> None:
    """An isometry of tangent spaces, and what log finds of a wrapped vector, by its coordinates alone."""
    ball = Ball(c)
    x, (u, v) = points(ball), torch.randn(2, 40, 3).double() / max(1.0, math.sqrt(c))
    scale = 2 / ball.gap(x).squeeze(-1)
    moved, other = ball.transport(u, x), ball.transport(v, x)
    close(scale**2 * (moved * other).sum(-1), 4 * (u * v).sum(-1))
    close(ball.transport(u, torch.zeros_like(x)), u)
    close(ball.exp(moved, x), ball.add(x, ball.exp0(u)))
    close(ball.log(ball.wrap(u, x).clone(), x), moved)
    close(ball.unwrap(ball.exp(moved, x).clone(), x), u)


@pytest.mark.parametrize("c", CURVATURES)
def test_it_agrees_with_geoopt(c: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from geoopt.manifolds.stereographic import math as theirs
    ball = Ball(c)
    k = -ball.c
    x, y, u = points(ball), points(ball), torch.randn(40, 3).double()
    v = 0.5 * u * ball.gap(x)
    close(ball.add(x, y), theirs.mobius_add(x, y, k=k))
    close(ball.exp(v, x), theirs.expmap(x, v, k=k))
    close(ball.log(y, x), theirs.logmap(x, y, k=k))
    close(ball.distance(x, y), theirs.dist(x, y, k=k))
    close(ball.transport(u, x), theirs.parallel_transport0(x, u, k=k))
    close(ball.transport(u, x), theirs.parallel_transport(torch.zeros_like(x), x, u, k=k))
    close(ball.exp0(u), theirs.expmap0(u, k=k))
    close(ball.log0(y), theirs.logmap0(y, k=k))


def test_without_curvature_it_is_the_plane() -> None:
    ball = Ball(1e-12)
    x, v = torch.randn(2, 20, 3).double()
    close(ball.wrap(v, x), x + v, 1e-7)
    close(ball.unwrap(x, v), x - v, 1e-7)
    close(ball.log_volume(v), torch.full((20,), 3 * math.log(2)).double(), 1e-7)


@pytest.mark.parametrize("c", [0.5, 1.0])
def test_opposite_points_of_the_boundary_are_as_far_apart_as_they_should(c: float) -> None:
    """d = (4 / sqrt(c)) artanh(1 - 1e-5), 24.41 at c = 1; an artanh that is clipped at 1 - 1e-7 says 16.81."""
    ball = Ball(c)
    edge = ball.clip(torch.tensor([[9.0, 0.0]]))
    assert edge.norm().item() == pytest.approx((1 - MARGIN) / math.sqrt(c), rel=1e-12)
    truth = 4 * math.atanh(1 - MARGIN) / math.sqrt(c)
    assert ball.distance(edge, -edge).item() == pytest.approx(truth, rel=1e-9)
    assert 2 * ball.unwrap(-edge, edge).norm().item() == pytest.approx(truth, rel=1e-9)
    inside = torch.tensor([[0.3, 0.4]]).double()
    assert torch.equal(ball.clip(inside), inside)


def test_the_three_functions_of_a_square() -> None:
    """Against their definitions on both sides of where the series ends, with gradients to second order."""
    s = torch.tensor([0.0, 1e-12, 9.9e-5, 1.01e-4, 0.3, 4.0, 900.0]).double()
    x = s[1:].sqrt()
    close(tanhc(s)[1:], torch.tanh(x) / x, 1e-12)
    close(asinhc(s)[1:], torch.asinh(x) / x, 1e-12)
    close(log_sinhc(s)[1:], torch.log(torch.sinh(x) / x), 1e-11)
    assert tanhc(s)[0] == asinhc(s)[0] == 1
    assert log_sinhc(torch.tensor(1e8).double()).item() == pytest.approx(1e4 - math.log(2e4))
    for f in (tanhc, asinhc, log_sinhc):
        assert gradcheck(f, s[1:].clone().requires_grad_(), eps=1e-7, atol=1e-6)
        slope = torch.autograd.functional.jacobian(lambda s, f=f: f(s).sum(), s[2:4])
        assert slope[0].item() == pytest.approx(slope[1].item(), rel=1e-4), "the series and what follows it meet"
