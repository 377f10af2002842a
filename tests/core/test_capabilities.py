"""What can be asked of a family is a value: families side by side state their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.distributions import MultivariateNormal

from elboroom.core.batch import Batch
from elboroom.core.blocks import of
from elboroom.core.draw import Draw
from elboroom.core.kl import has_density, require_density, require_kl
from elboroom.core.law import Capabilities, Law, capabilities
from elboroom.core.model import LatentModel
from elboroom.core.problem import Problem
from elboroom.families.gaussian import Gaussian
from elboroom.families.point import Point
from elboroom.families.sphere import UniformSphere
from elboroom.terms.evidence import kl
from elboroom.terms.moments import third_moment


@dataclass(frozen=True)
class Beside:
    """Two families side by side, the first of so many dimensions."""

    first: type[Law]
    second: type[Law]
    at: int

    @property
    def capabilities(self) -> Capabilities:
        return capabilities(self.first) & capabilities(self.second)

    def part(self, where: slice) -> type[Law]:
        return self.first if where.stop is not None and where.stop <= self.at else self.second


class Pair(Law):
    """The law of such a family."""

    def __init__(self, first: Any, second: Any) -> None:
        self.both, self.at = (first, second), first.event_shape[-1]
        super().__init__(first.batch_shape, torch.Size([self.at + second.event_shape[-1]]))
        self.capabilities = capabilities(first) & capabilities(second)

    def part(self, where: slice) -> Any:
        return self.both[where.start >= self.at]

    def rsample(self, shape: Any = ()) -> Tensor:
        return torch.cat([law.rsample(shape) for law in self.both], -1)

    def log_prob(self, z: Tensor) -> Tensor:
        return self.both[0].log_prob(z[..., : self.at]) + self.both[1].log_prob(z[..., self.at :])


class Made(nn.Module):
    def __init__(self, family: Any, law: Any) -> None:
        super().__init__()
        self.family, self.law = family, law

    def forward(self, batch: Batch) -> Any:
        return self.law(len(batch.x))


def model(second: type[Law]) -> LatentModel:
    def law(n: int) -> Pair:
        loc = torch.linspace(-1, 1, 3 * n).view(n, 3)
        other = Gaussian(loc, loc / 2) if second is Gaussian else Point(loc)
        return Pair(Gaussian(loc[:, :2], loc[:, 1:]), other)

    def prior(n: int) -> Pair:
        zeros = torch.zeros(n, 5)
        return Pair(Gaussian(zeros[:, :2], zeros[:, :2]), Gaussian(zeros[:, 2:], zeros[:, 2:]))

    q, p = Made(Beside(Gaussian, second, 2), law), Made(Beside(Gaussian, Gaussian, 2), prior)
    return LatentModel(q, p, nn.Identity(), {"style": 2, "content": 3})


def test_a_class_says_what_its_family_can() -> None:
    assert capabilities(Gaussian) == Capabilities(factorises=True, diagonal=True, has_parts=True)
    assert capabilities(Gaussian(torch.zeros(1, 2), torch.zeros(1, 2))) == capabilities(Gaussian)
    assert capabilities(MultivariateNormal) == Capabilities()


def test_side_by_side_is_what_both_can() -> None:
    both = capabilities(Gaussian) & capabilities(Point)
    assert not both.has_density
    assert both.has_parts
    assert both.space == "euclidean"
    assert (capabilities(Gaussian) & capabilities(UniformSphere)).space == "several"
    slow = Capabilities(slow_density=True)
    assert (capabilities(Gaussian) & slow) == Capabilities(slow_density=True)
    assert capabilities(Gaussian) & capabilities(Gaussian) == capabilities(Gaussian)


def test_a_family_that_is_a_value_is_asked_as_any_other() -> None:
    assert has_density(Beside(Gaussian, Gaussian, 2))
    require_kl(Beside(Gaussian, Gaussian, 2), Gaussian)
    with pytest.raises(Problem, match="needs the density"):
        require_density(Beside(Gaussian, Point, 2), "this")
    with pytest.raises(Problem, match="needs the density of both"):
        require_kl(Beside(Gaussian, Point, 2), Gaussian)


def test_the_kl_of_a_product_is_had_though_no_formula_knows_the_pair() -> None:
    torch.manual_seed(0)
    draw = Draw(model(Gaussian), Batch(torch.zeros(4, 1)), samples=20_000)
    kl().check(draw.model)
    blocks = [of(name, kl())(draw) for name in ("style", "content")]
    assert [block.shape for block in blocks] == [(4, 2), (4, 3)]
    torch.testing.assert_close(draw.rate, torch.cat(blocks, 1).sum(1), rtol=0.05, atol=0.05)


def test_a_block_states_its_own() -> None:
    mixed = model(Point)
    with pytest.raises(Problem, match="needs the density of both"):
        kl().check(mixed)
    with pytest.raises(Problem, match="needs the variances"):
        third_moment().check(mixed)
    for term in (kl(), third_moment()):
        of("style", term).check(mixed)
        with pytest.raises(Problem, match="point"):
            of("content", term).check(mixed)
