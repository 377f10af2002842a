"""Gyroplanes: the printed formula, its limit on the plane, and how a likelihood of any kind takes them."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import gradcheck

from elboroom.core.batch import Batch
from elboroom.families.pixels import BernoulliLikelihood
from elboroom.geometry.ball import EDGE, ROUNDED, Ball
from elboroom.nets.dual import DualCritic
from elboroom.nets.gyroplane import Flat, GyroplaneLayer, Gyroplanes, gyroplane

N, H, J = 6, 4, 3


def some(ball: Ball) -> tuple[Tensor, Tensor, Tensor]:
    """z and b on the ball, a anywhere."""
    z, b = ball.exp0(torch.randn(N, J).double()), ball.exp0(0.5 * torch.randn(H, J).double())
    return z, torch.randn(H, J).double(), b


@pytest.mark.parametrize("c", [0.25, 1.0, 2.0])
def test_the_formula_as_it_is_printed(c: float) -> None:
    """sign<a, log_b z> lambda_b |a| / sqrt(c) asinh(2 sqrt(c) |<k, a>| / ((1 - c |k|^2) |a|)), one pair at a time."""
    ball = Ball(c)
    z, a, b = some(ball)
    found = gyroplane(ball, z, a, b)
    assert found.shape == (N, H)
    for n in range(N):
        for h in range(H):
            k = ball.add(-b[h], z[n])
            sign = torch.sign(a[h] @ ball.log(z[n], b[h]))
            inner = 2 * math.sqrt(c) * (k @ a[h]).abs() / ((1 - c * k @ k) * a[h].norm())
            truth = sign * 2 / ball.gap(b[h]) * a[h].norm() / math.sqrt(c) * torch.asinh(inner)
            assert found[n, h].item() == pytest.approx(truth.item(), rel=1e-9)


def test_as_c_goes_to_zero_it_is_linear() -> None:
    """f_{a,b}(z) -> 4 <a, z - b>, and the error falls with c."""
    z, a, b = torch.randn(N, J).double(), torch.randn(H, J).double(), torch.randn(H, J).double()
    truth = 4 * (z @ a.T - (a * b).sum(-1))
    errors = [(gyroplane(Ball(c), z, a, b) - truth).abs().max().item() for c in (1e-2, 1e-4, 1e-6, 1e-8)]
    assert errors[-1] < 1e-5
    assert all(later < 0.02 * before for before, later in pairwise(errors))


def test_it_is_zero_on_its_plane_and_odd_across_it() -> None:
    ball = Ball(1.0)
    a, b = torch.tensor([[0.0, 0.0, 2.0]]).double(), torch.zeros(1, 3).double()
    z = torch.tensor([[0.3, -0.5, 0.0], [0.3, -0.5, 0.4], [0.3, -0.5, -0.4]]).double()
    found = gyroplane(ball, z, a, b)[:, 0]
    assert found[0] == 0
    assert found[1].item() == pytest.approx(-found[2].item())
    assert found[1] > 0
    _, a, b = some(ball)
    assert gyroplane(ball, b, a, b).diagonal().abs().max() < 1e-12


def test_gradients_are_those_of_finite_differences() -> None:
    ball = Ball(0.7, learned=True)
    z, a, b = some(ball)

    def value(z: Tensor, a: Tensor, b: Tensor, raw: Tensor) -> Tensor:
        ball._parameters["raw"] = raw
        return gyroplane(ball, z, a, b)

    inputs = (0.5 * z.detach(), a, b.detach(), torch.tensor(-0.3).double())
    assert gradcheck(value, tuple(t.clone().requires_grad_() for t in inputs))


def test_a_layer_reads_any_z_in_the_precision_of_its_weights() -> None:
    layer = GyroplaneLayer(J, H, Ball(0.5))
    z = layer.ball.exp0(torch.randn(2, N, J))
    out = layer(z)
    assert out.shape == (2, N, H)
    assert out.dtype == torch.float32
    out.square().sum().backward()
    assert all(p.grad is not None and p.grad.any() for p in layer.parameters())
    b = layer.ball.exp0(layer.b)
    truth = gyroplane(layer.ball, z[1], layer.ball.gap(b) * layer.a, b)  # a' carried from the origin to b
    torch.testing.assert_close(out[1], truth.float())


@pytest.mark.parametrize(("dtype", "margin"), [(torch.float32, ROUNDED), (torch.float64, EDGE)])
def test_points_beyond_the_boundary_are_read_below_it(dtype: torch.dtype, margin: float) -> None:
    """A traversal may leave the ball, and rounding may put a point onto its boundary."""
    layer = GyroplaneLayer(J, H, Ball(1.0))
    way = torch.tensor([[0.0, 0.6, 0.8]], dtype=dtype)
    far, edge = layer(5 * way), layer((1 - margin) * way.double() / way.double().norm())
    assert torch.isfinite(far).all()
    torch.testing.assert_close(far, edge, rtol=1e-4, atol=1e-4)


def test_a_decoder_and_a_critic_see_how_far_out_a_point_is() -> None:
    """However far, where the coordinates of all points are those of the boundary."""
    ball, reach = Ball(1.0), torch.tensor([3.0, 8.0, 20.0, 70.0, 1e4]).double()
    z = ball.exp0(reach.unsqueeze(1) * torch.tensor([[0.0, 0.6, 0.8]]).double())
    flat = Flat(ball)(z)
    torch.testing.assert_close(flat.norm(dim=-1), reach.float(), rtol=1e-5, atol=0)
    layer = GyroplaneLayer(J, 1, ball)
    with torch.no_grad():
        layer.a.copy_(torch.tensor([[0.0, 0.6, 0.8]]))
        layer.b.zero_()
    torch.testing.assert_close(layer(z).squeeze(1), 4 * reach.float(), rtol=1e-5, atol=0)


def test_draws_of_the_prior_say_nothing_of_a_learned_curvature() -> None:
    """z = exp_0(v) with v ~ N(0, I) whatever c is, so what a critic reads, log_0(z) = v, does not move with c."""
    ball, v = Ball(0.7, learned=True), torch.randn(6, J).double()
    drawn = ball.exp0(v)
    (whole,) = torch.autograd.grad(Flat(ball)(drawn).square().sum(), ball.raw)
    assert whole.item() == pytest.approx(0.0, abs=1e-4)
    assert not Flat(ball)(drawn.detach()).requires_grad
    mean = drawn.detach().requires_grad_()  # a point of its own is read otherwise where the ball is bent otherwise
    assert torch.autograd.grad(Flat(ball)(mean).square().sum(), ball.raw)[0].abs().item() > 0.1


class Net(nn.Module):
    """A decoder of vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(J, 5)

    def forward(self, z: Tensor, u: Tensor | None = None) -> Tensor:
        out: Tensor = self.linear(z)
        return out


def test_a_likelihood_takes_units_where_it_took_z() -> None:
    """The same for pixels and for tokens: a likelihood is a function of (z, batch)."""
    likelihood = BernoulliLikelihood(Net(), 1)
    wrapped = Gyroplanes(likelihood, J, Ball(1.0))
    z, batch = wrapped.layer.ball.exp0(torch.randn(2, N, J)), Batch(torch.rand(N, 5))
    px = wrapped(z, batch)
    assert px.log_prob(batch.x).shape == (2, N)
    torch.testing.assert_close(px.logits, likelihood(wrapped.layer(z), batch).logits)


def test_a_critic_reads_log_0_and_does_not_own_the_ball() -> None:
    ball = Ball(0.5, learned=True)
    critic = DualCritic(J, 2, Flat(ball), width=8)
    z, h = ball.exp0(torch.randn(3, N, J)), torch.randn(N, 2)
    flat = DualCritic(J, 2, width=8)
    flat.load_state_dict(critic.state_dict())
    found = critic(z, h)
    assert found.shape == (3, N)
    torch.testing.assert_close(found, flat(ball.log0(z).float(), h))
    assert not [name for name, _ in critic.named_parameters() if "raw" in name]
    assert critic.joint
    assert not DualCritic(J).joint
