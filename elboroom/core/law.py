"""Law: a distribution that says what can be asked of it. All of ours are laws, and all that is asked is listed here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor
from torch.distributions import Distribution

Space = Literal["euclidean", "sphere", "ball"]


class Law(Distribution):
    """A distribution of z or of x. Where it has `rsample`, a `sample` is that without a gradient.

    The class attributes are what terms and evaluators ask before they begin; a family says where it differs from these
    defaults. A Distribution that is no Law is taken to have the defaults: ask `law_of(family)`.
    """

    arg_constraints: ClassVar[dict[str, Any]] = {}  # nothing is checked, which would wait for the device

    # of z
    has_density: ClassVar[bool] = True  # log_prob can be computed, and means something
    slow_density: ClassVar[bool] = False  # log_prob of a z that was drawn elsewhere takes long
    factorises: ClassVar[bool] = False  # its dimensions are independent
    diagonal: ClassVar[bool] = False  # a Gaussian of independent dimensions: `logvar`, `log_prob_per_dim`, `gathered`
    has_parts: ClassVar[bool] = False  # `part`, the law of some of its dimensions
    has_moments: ClassVar[bool] = False  # `moments`, a Gaussian of the mean and variance of its draws
    space: ClassVar[Space] = "euclidean"  # where its z live; on the other two no coordinate is free of the rest

    # of x
    has_mean: ClassVar[bool] = True  # `mean` is an example as the data has them
    levels: ClassVar[int | None] = None  # grey levels that log_prob is the probability of, if it is one

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
    """What a family says of itself: the defaults, where it is no Law."""
    return family if issubclass(family, Law) else Law
