"""Codes that are moved stay where they live, and go the shortest way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from elboroom.core.model import LatentModel
from elboroom.core.problem import Problem
from elboroom.data.dataset import DataSet
from elboroom.families.ball import Wrapped, WrappedPrior
from elboroom.geometry import paths
from elboroom.geometry.ball import Ball
from elboroom.geometry.spaces import Euclidean, Hyperbolic, Sphere, space_of
from elboroom.runs.lifecycle import train

TINY: dict[str, Any] = {"steps": 2, "batch_size": 8, "latent": 3, "net": "mlp-300", "threads": 1}


@pytest.mark.parametrize("c", [0.5, 2.0])
def test_a_geodesic_of_the_ball_is_walked_at_one_speed(c: float) -> None:
    ball = Ball(c, learned=True)
    space, a, b = Hyperbolic(ball), torch.tensor([0.3, -0.2, 0.1]), torch.tensor([-0.4, 0.3, 0.2])
    way = space.way(a, b, 5).double()
    torch.testing.assert_close(way[0], a.double(), atol=1e-6, rtol=0)
    torch.testing.assert_close(way[-1], b.double(), atol=1e-6, rtol=0)
    with torch.no_grad():
        steps = ball.distance(way[:-1], way[1:])
        torch.testing.assert_close(steps, (ball.distance(a, b) / 4).expand(4), rtol=1e-4, atol=0)
    torch.testing.assert_close(space.back(space.flat(a)), a)


def test_a_great_circle_keeps_the_norm_and_its_speed() -> None:
    a, b = torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.0, 0.6, 0.8])
    way = Sphere().way(a, b, 4)
    torch.testing.assert_close(way.norm(dim=-1), torch.ones(4))
    torch.testing.assert_close((way[:-1] * way[1:]).sum(-1), torch.full((3,), np.cos(np.pi / 6), dtype=torch.float32))


def test_a_coordinate_of_the_sphere_is_what_it_is_set_to_and_the_others_make_room() -> None:
    z, values = torch.tensor([0.6, 0.0, 0.8]), torch.linspace(-1, 1, 5)
    grid = Sphere().along(z, [1, 2], values)
    torch.testing.assert_close(grid.norm(dim=-1), torch.ones(2, 5))
    torch.testing.assert_close(grid[0, :, 1], values)
    torch.testing.assert_close(grid[1, :, 2], values)
    torch.testing.assert_close(grid[0, 1:4, 0] / grid[0, 1:4, 2], torch.full((3,), 0.75))  # as in z
    assert Sphere().reach(3.0) == 1.0
    assert Euclidean().reach(3.0) == 3.0


def test_the_plane_has_straight_lines() -> None:
    a, b = torch.zeros(2), torch.tensor([3.0, 6.0])
    torch.testing.assert_close(Euclidean().way(a, b, 4), torch.tensor([[0.0, 0], [1, 2], [2, 4], [3, 6]]))


def test_a_posterior_that_wraps_another_has_the_ball_of_its_prior() -> None:
    posterior, prior = nn.Identity(), WrappedPrior(2, Ball(0.5))
    posterior.family = Wrapped  # type: ignore[assignment]
    space = space_of(LatentModel(posterior, prior, nn.Identity()))
    assert isinstance(space, Hyperbolic)
    assert space.ball is prior.ball


@pytest.mark.unhurried
@pytest.mark.parametrize(("method", "kind"), [("vmf-vae", Sphere), ("p-vae", Hyperbolic), ("vae", Euclidean)])
def test_verbs_decode_codes_of_the_space(method: str, kind: type, pixels: DataSet, tmp_path: Path) -> None:
    run = train(method, pixels, tmp_path / "run", **TINY)
    assert type(run.space) is kind
    x, y = run.examples(2), run.examples(2, seed=1)
    asked: list[Any] = []
    decoded = run._decoded
    run._decoded = lambda z, *rest: asked.append(z.numpy()) or decoded(z, *rest)  # type: ignore[func-returns-value, method-assign]
    run.traverse(x, points=5, reach=2.0)
    run.interpolate(x, y, points=5)
    run.analogy(x, y, x, strength=1.5)
    for codes in asked:
        size = np.linalg.norm(codes, axis=-1)
        if kind is Sphere:
            np.testing.assert_allclose(size, 1.0, rtol=1e-5)
        elif kind is Hyperbolic:
            assert (size < 1).all()
    ends = asked[1].reshape(2, 5, -1)
    np.testing.assert_allclose(ends[:, 0], run.encode(x), atol=1e-5)
    np.testing.assert_allclose(ends[:, -1], run.encode(y), atol=1e-5)


def test_samples_of_the_ball_are_decoded_from_where_they_were_drawn(pixels: DataSet, tmp_path: Path) -> None:
    """In 128 dimensions |log_0 z| is near 11.3, further out than single precision can tell."""
    run = train("p-vae", pixels, tmp_path / "run", **{**TINY, "latent": 128})
    seen: list[torch.Tensor] = []
    run.model.likelihood.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    run.sample(300)
    ball: Any = run.model.posterior.ball
    far = torch.cat([ball.log0(z)[0].norm(dim=-1) for z in seen])
    assert len(far) == 300
    assert abs(far.mean().item() - 11.3) < 0.2


@pytest.mark.parametrize("points", [1, 10**30])
def test_a_way_has_two_points_or_more_and_not_endlessly_many(points: int) -> None:
    for way in (paths.spread, lambda n: paths.line(torch.zeros(2), torch.ones(2), n)):
        with pytest.raises(Problem, match=r"at least 2 points|at most 100,000 points"):
            way(points)
