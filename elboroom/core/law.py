"""Law: a distribution that says what can be asked of it. All of ours are laws, and all that is asked is listed here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor
from torch.distributions import Distribution

Space = Literal["euclidean", "sphere", "ball", "several"]


@dataclass(frozen=True)
class Capabilities:
    """What can be asked of a family of distributions. Those of families side by side are `a & b`."""

    # of z
    has_density: bool = True  # log_prob can be computed, and means something
    slow_density: bool = False  # log_prob of a z that was drawn elsewhere takes long
    factorises: bool = False  # its dimensions are independent
    diagonal: bool = False  # a Gaussian of independent dimensions: `logvar`, `log_prob_per_dim`, `gathered`
    has_parts: bool = False  # `part`, the law of some of its dimensions
    has_moments: bool = False  # `moments`, a Gaussian of the mean and variance of its draws
    space: Space = "euclidean"  # where its z live; on the others no coordinate is free of the rest

    # of x
    has_mean: bool = True  # `mean` is an example as the data has them
    levels: int | None = None  # grey levels that log_prob is the probability of, if it is one

    def __and__(self, other: Capabilities) -> Capabilities:
        """Of two independent laws side by side: what can be asked of both, and is slow where one is."""
        both = {f.name: getattr(self, f.name) and getattr(other, f.name) for f in fields(self)}
        both["slow_density"] = self.slow_density or other.slow_density
        both["space"] = self.space if self.space == other.space else "several"
        both["levels"] = self.levels if self.levels == other.levels else None
        return Capabilities(**both)


class Law(Distribution):
    """A distribution of z or of x. Where it has `rsample`, a `sample` is that without a gradient.

    The class attributes are the capabilities of a family, where they differ from these defaults. Terms and evaluators ask
    `capabilities(family)` before they begin, which is a value: a family that is put together of others is any object with
    capabilities of its own.
    """

    arg_constraints: ClassVar[dict[str, Any]] = {}  # nothing is checked, which would wait for the device

    has_density: ClassVar[bool] = True
    slow_density: ClassVar[bool] = False
    factorises: ClassVar[bool] = False
    diagonal: ClassVar[bool] = False
    has_parts: ClassVar[bool] = False
    has_moments: ClassVar[bool] = False
    space: ClassVar[Space] = "euclidean"
    has_mean: ClassVar[bool] = True
    levels: ClassVar[int | None] = None

    def __init__(self, batch_shape: torch.Size, event_shape: torch.Size) -> None:
        super().__init__(batch_shape, event_shape, validate_args=False)

    def flat(self, z: Tensor) -> Tensor:
        """z in a chart where distances of codes can be told."""
        return z

    def unwrapped(self) -> Any:
        """The law on R^d of which this one is made: itself, where it lives there."""
        return self

    def around(self, fit: Callable[[Any], Distribution]) -> Distribution:
        """What `fit` makes of the law on R^d, where this one lives."""
        return fit(self)


def law_of(family: type[Distribution]) -> type[Law]:
    """The verbs of a family: those of Law itself, where it is no Law."""
    return family if issubclass(family, Law) else Law


def capabilities(of: Any) -> Capabilities:
    """What can be asked of a family, or of a law: what it states itself, or else what its class says.

    A Distribution that is no Law has the defaults.
    """
    stated = getattr(of, "capabilities", None)
    if isinstance(stated, Capabilities):
        return stated
    kind = law_of(of if isinstance(of, type) else type(of))
    return Capabilities(**{f.name: getattr(kind, f.name) for f in fields(Capabilities)})
