"""What a family says of itself is on the list of Law, and holds."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
import torch
from torch.distributions import Distribution, MultivariateNormal

import elboroom
from elboroom.core.law import Law, law_of

ROOM = Path(elboroom.__file__).parent / "families"


def children(law: type[Law]) -> Iterator[type[Law]]:
    for child in law.__subclasses__():
        yield child
        yield from children(child)


for path in sorted(ROOM.glob("[a-z]*.py")):
    import_module(f"elboroom.families.{path.stem}")
LAWS = [law for law in children(Law) if law.__module__.startswith("elboroom.families")]


def test_every_distribution_of_ours_is_a_law() -> None:
    ours = [child for child in Distribution.__subclasses__() if child.__module__.startswith("elboroom")]
    assert ours == [Law]
    assert len(LAWS) > 20


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_a_family_says_nothing_of_itself_that_nobody_asks(law: type[Law]) -> None:
    said = {name for name, value in vars(law).items() if isinstance(value, bool | str) and not name.startswith("_")}
    assert said <= {*Law.__annotations__, "has_rsample"}


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_what_it_says_it_has_is_there(law: type[Law]) -> None:
    for name in ("log_prob_per_dim", "gathered"):
        assert hasattr(law, name) or not law.diagonal
    assert law.factorises or not law.diagonal
    assert hasattr(law, "moments") == law.has_moments
    assert (law.rsample is not Distribution.rsample) == law.has_rsample


def test_of_a_distribution_that_is_no_law_the_defaults_hold() -> None:
    q, z = MultivariateNormal(torch.zeros(2), torch.eye(2)), torch.randn(3, 2)
    law = law_of(type(q))
    assert law is Law
    assert law.has_density
    assert not any((law.diagonal, law.factorises, law.slow_density, law.has_moments))
    assert law.space == "euclidean"
    assert law.flat(q, z) is z  # type: ignore[arg-type]
    assert law.around(q, lambda r: r) is law.unwrapped(q) is q  # type: ignore[arg-type, return-value]
