"""Points of the ball: what keeps their distance from the boundary, what drops it, and that gradients pass to both."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from copy import deepcopy

import pytest
import torch
from torch import Tensor

from elboroom.geometry.ball import Ball
from elboroom.geometry.point import Point
from elboroom.nets.gyroplane import GyroplaneLayer

SHAPE = (4, 3, 2)


def points(requires_grad: bool = False) -> tuple[Point, Tensor, Tensor]:
    """Points, and the two tensors that they are made of; their gaps are all different."""
    z = torch.rand(SHAPE, dtype=torch.float64) / 2
    gap = -torch.arange(12, dtype=torch.float64).view(4, 3, 1)
    return Point.of(z.requires_grad_(requires_grad), gap.requires_grad_(requires_grad)), z, gap


KEEPS: dict[str, Callable[[Tensor], Tensor]] = {
    "a row": lambda t: t[0],
    "a slice": lambda t: t[1:, 2],
    "rows by number": lambda t: t[torch.tensor([2, 0])],
    "rows by a list": lambda t: t[[2, 0, 0]],
    "rows by a mask": lambda t: t[torch.tensor([True, False, True, True])],
    "rows by a mask of both": lambda t: t[torch.eye(4, 3, dtype=torch.bool)],
    "a new dimension": lambda t: t[:, None],
    "a new dimension from behind": lambda t: t[..., None, :],
    "unsqueeze": lambda t: t.unsqueeze(-2),
    "squeeze": lambda t: t[:1].squeeze(0),
    "flatten": lambda t: t.flatten(0, 1),
    "unflatten": lambda t: t.flatten(0, 1).unflatten(0, (2, 6)),
    "expand": lambda t: t.expand(5, -1, -1, -1),
    "detach": lambda t: t.detach(),
    "clone": lambda t: t.clone(),
    "cpu": lambda t: t.cpu(),
    "to a device": lambda t: t.to("cpu"),
    "the same precision": lambda t: t.double(),
    "torch.unsqueeze": lambda t: torch.unsqueeze(t, 0),
}


@pytest.mark.parametrize("name", KEEPS)
def test_another_shape_choice_or_place_of_points_keeps_the_gap(name: str) -> None:
    z, plain, gap = points()
    result = KEEPS[name](z)
    assert isinstance(result, Point)
    assert torch.equal(result.as_subclass(Tensor), KEEPS[name](plain))
    assert torch.equal(result.log_gap, KEEPS[name](gap))


@pytest.mark.parametrize("shape", [(-1, 2), (2, 6, 2), (12, 1, 2)])
def test_a_view_keeps_the_gap(shape: tuple[int, ...]) -> None:
    z, plain, gap = points()
    for result in (z.view(shape), z.reshape(*shape)):
        assert isinstance(result, Point)
        assert torch.equal(result.as_subclass(Tensor), plain.view(shape))
        assert torch.equal(result.log_gap, gap.view(*shape[:-1], 1))


@pytest.mark.parametrize(
    "f",
    [
        lambda t: t + 1,
        lambda t: 2 * t,
        lambda t: t.square(),
        lambda t: t.float(),
        lambda t: t.to(torch.float32),
        lambda t: t[..., 0],
        lambda t: t[..., [0, 0]],
        lambda t: t[:, :, 1:],
        lambda t: t[t > 0.4],
        lambda t: t[:2, :2, :].transpose(1, 2),
        lambda t: t.reshape(-1, 4),
        lambda t: torch.cat([t, t]),
        lambda t: torch.zeros_like(t),
        lambda t: torch.where(t > 0, t, t),
        lambda t: t.mean(0),
    ],
)
def test_what_is_no_longer_these_points_is_a_plain_tensor(f: Callable[[Tensor], Tensor]) -> None:
    z, plain, _ = points()
    result = f(z)
    assert type(result) is Tensor
    assert torch.equal(result, f(plain))


def test_plain_tensors_beside_points_stay_plain() -> None:
    z, plain, _ = points()
    assert type(plain[0].expand_as(z)) is Tensor
    assert type(torch.ones(12, 2).view_as(z)) is Tensor
    assert type(torch.ones(2).to(z)) is Tensor


def test_points_are_not_changed_in_place() -> None:
    z, _, _ = points()
    for change in (lambda: z.add_(1), lambda: z.__setitem__(0, 0.0)):
        with pytest.raises(TypeError, match="not changed in place"):
            change()
    assert z.detach().requires_grad_().requires_grad


def test_gradients_pass_to_coordinates_and_gap() -> None:
    z, plain, gap = points(requires_grad=True)
    some = z[1].unsqueeze(0)
    loss = some.square().sum() + (some.log_gap * 3).sum()  # type: ignore[attr-defined]
    of_z, of_gap = torch.autograd.grad(loss, [plain, gap])
    assert torch.equal(of_z[1], 2 * plain[1].detach())
    assert of_z[[0, 2, 3]].abs().sum() == 0
    assert torch.equal(of_gap[1], torch.full((3, 1), 3.0, dtype=torch.float64))
    detached = z.detach()
    assert isinstance(detached, Point)
    assert not detached.requires_grad
    assert not detached.log_gap.requires_grad


@pytest.mark.parametrize("copy", [deepcopy, lambda z: pickle.loads(pickle.dumps(z))])
def test_a_copy_has_both(copy: Callable[[Point], Point]) -> None:
    z, plain, gap = points()
    again = copy(z)
    assert isinstance(again, Point)
    assert torch.equal(again.as_subclass(Tensor), plain)
    assert torch.equal(again.log_gap, gap)


def test_a_point_beyond_what_coordinates_tell_keeps_its_distance_in_a_slice() -> None:
    ball, v = Ball(), torch.tensor([[30.0, 0.0], [40.0, 0.0]])
    z = ball.exp0(v)
    assert z[:, 0].tolist()[0] == pytest.approx(z[:, 0].tolist()[1], abs=1e-11)
    assert torch.allclose(ball.log0(z[1:]), v[1:].double())


@pytest.mark.unhurried
def test_a_decoder_of_points_can_be_compiled() -> None:
    ball = Ball()
    layer, z = GyroplaneLayer(2, 3, ball), ball.exp0(torch.randn(5, 2))
    assert torch.equal(torch.compile(layer, backend="eager")(z), layer(z))
