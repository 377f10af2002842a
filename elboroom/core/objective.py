"""Term, Weight and Objective: a loss written as its formula, `nll() + beta * kl()`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, overload

import torch
from torch import Tensor, nn

from elboroom.core import distributed
from elboroom.core.draw import Draw
from elboroom.core.model import LatentModel
from elboroom.core.problem import Problem


def _accept(model: LatentModel) -> None:
    """The check of a term that any model can meet."""


@dataclass(frozen=True)
class Term:
    """A named quantity of a Draw, in nats: f(Draw) -> (B,), (B, D) or ()."""

    name: str
    f: Callable[[Draw], Tensor]
    samples: int = 1  # how many z it asks for
    check: Callable[[LatentModel], None] = _accept  # raises Problem where the model cannot give it
    couples: bool = False  # whether it couples the examples of a batch
    is_rate: bool = False  # whether it is KL(q || p), which some models have as a mere number

    def __call__(self, draw: Draw) -> Tensor:
        return self.f(draw)

    def mean(self, draw: Draw) -> Tensor:
        """Summed over latent dimensions, averaged over the batch: the one unit, nats per example."""
        value, rows = self.f(draw), len(draw.batch.x)
        if value.dim() > 2 or (value.dim() and len(value) != rows):
            raise Problem(
                f"the term '{self.name}' returned shape {tuple(value.shape)}; a term must have shape (B,), (B, D) or (), "
                f"and B is {rows} here"
            )
        return value if value.dim() == 0 else value.sum(1).mean() if value.dim() > 1 else value.mean()

    def __add__(self, other: Term | Objective) -> Objective:
        return 1.0 * self + other

    def __sub__(self, other: Term | Objective) -> Objective:
        return 1.0 * self - other

    def __neg__(self) -> Objective:
        return -1.0 * self

    def __rmul__(self, weight: float) -> Objective:
        _refuse_product(weight, self)
        return Constant(weight) * self

    def __mul__(self, weight: float | Weight) -> Objective:
        return weight * self if isinstance(weight, Weight) else self.__rmul__(weight)


def _refuse_product(left: object, right: Term | Objective) -> None:
    """Refuses what is no weight before a term or a sum."""
    if isinstance(left, int | float):
        return
    names = (side.name if isinstance(side, Term) else str(side) for side in (left, right))
    raise Problem(
        f"{' * '.join(names)} is no loss: what stands before a term is a number, a schedule or a controller; a product of two "
        "terms is a term of your own, Term(name, lambda draw: ...)"
    )


class Weight(nn.Module, ABC):
    """What stands before a term: a number, a schedule of the step, or a controller of the value. Memory lives in buffers."""

    logged_as = "weight"  # of its term, in the log
    steers = False  # whether it is there to move the value of its term
    couples = False  # whether what it makes of a batch mean is not the mean of what it would make of each example

    @abstractmethod
    def now(self, step: int) -> float | Tensor:
        """The coefficient at this step, or what stands for it in the log under another name."""

    def apply_to(self, step: int, value: Tensor) -> Tensor:
        """What is descended, given the batch mean of the term."""
        return self.now(step) * value

    def update(self, step: int, value: Tensor) -> None:
        """Called once after each step with the global mean of the term, detached."""

    def begin(self, step: int) -> None:
        """Called with the step at which its stage begins, by a method in stages."""

    def before(self, name: str) -> str:
        """How the two are written."""
        return f"{self.extra_repr()} * {name}"

    def times(self, factor: float) -> Weight:
        """The same weight, so many times as large."""
        return self if factor == 1.0 else Scaled(self, factor)

    @overload
    def __mul__(self, other: Term | Objective) -> Objective: ...

    @overload
    def __mul__(self, other: float) -> Weight: ...

    def __mul__(self, other: Term | Objective | float) -> Objective | Weight:
        """Before a term, or before a sum of terms with constant weights; a number makes it so many times as large."""
        if isinstance(other, int | float):
            return self.times(other)
        if isinstance(other, Term):
            return Objective([(self, other)])
        if not isinstance(other, Objective):
            right = other.extra_repr() if isinstance(other, Weight) else other
            raise Problem(
                f"{self.extra_repr()} * {right} is no weight: it stands before a term or beside a number; of two schedules "
                "make one of your own, a Weight with now(step)"
            )
        if len(other.parts) > 1 and type(self).update is not Weight.update:
            raise Problem(f"{self.extra_repr()} steers one term by its value; give each term of a sum its own weight")
        for weight, term in other.parts:
            if not isinstance(weight, Constant):
                raise Problem(f"{term.name} has a changing weight already; write the two as one weight")
        return Objective([(self._before(weight), term) for weight, term in other.parts if isinstance(weight, Constant)])

    def __rmul__(self, factor: float) -> Weight:
        return self.__mul__(factor)

    def _before(self, inner: Constant) -> Weight:
        """This weight before a term that has a constant one."""
        return inner if isinstance(inner, Logged) else self.times(inner.value)


class Constant(Weight):
    """A number."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.value = float(value)
        self.steers = self.value not in (0.0, 1.0)

    def now(self, step: int) -> float:
        return self.value

    def times(self, factor: float) -> Constant:
        return self if factor == 1.0 else Constant(factor * self.value)

    def before(self, name: str) -> str:
        return name if self.value == 1.0 else super().before(name)

    def extra_repr(self) -> str:
        return f"{self.value:g}"


class Scaled(Weight):
    """A weight times a number."""

    def __init__(self, weight: Weight, factor: float) -> None:
        super().__init__()
        self.weight, self.factor = weight, float(factor)
        self.logged_as, self.steers, self.couples = weight.logged_as, weight.steers, weight.couples

    def now(self, step: int) -> float | Tensor:
        return self.factor * self.weight.now(step)

    def apply_to(self, step: int, value: Tensor) -> Tensor:
        return self.factor * self.weight.apply_to(step, value)

    def update(self, step: int, value: Tensor) -> None:
        self.weight.update(step, value)

    def extra_repr(self) -> str:
        return f"{self.factor:g} {self.weight.extra_repr()}"


class Logged(Constant):
    """No part in the loss, nor in its gradient: 0 times a term that is infinite would be nan."""

    def __init__(self) -> None:
        super().__init__(0.0)

    def apply_to(self, step: int, value: Tensor) -> Tensor:
        return torch.zeros_like(value)

    def times(self, factor: float) -> Constant:
        return self

    def before(self, name: str) -> str:
        return f"logged({name})"


def logged(term: Term) -> Objective:
    """A term that stands in the log alone: nll() + free_bits(kl(), 5.0) + logged(kl())."""
    return Logged() * term


class Loss(NamedTuple):
    """What is descended, and what is logged: every term, every weight that moves, and the total."""

    total: Tensor
    logged: dict[str, Tensor | float]


class Objective(nn.Module):
    """A weighted sum of terms."""

    def __init__(self, parts: list[tuple[Weight, Term]]) -> None:
        super().__init__()
        names = [term.name for _, term in parts]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise Problem(f"two terms of one objective are named '{twice}'; rename one")
        self.parts = parts
        self.weights = nn.ModuleList(weight for weight, _ in parts)

    @property
    def terms(self) -> list[Term]:
        """The terms, in the order of the formula."""
        return [term for _, term in self.parts]

    @property
    def samples(self) -> int:
        """How many z the terms ask for."""
        return max(term.samples for term in self.terms)

    def __add__(self, other: Term | Objective) -> Objective:
        right = 1.0 * other if isinstance(other, Term) else other
        return Objective(self.parts + right.parts)

    def __sub__(self, other: Term | Objective) -> Objective:
        return self + -1.0 * other

    def __neg__(self) -> Objective:
        return -1.0 * self

    def __mul__(self, factor: float | Weight) -> Objective:
        return factor * self if isinstance(factor, Weight) else self.__rmul__(factor)

    def __rmul__(self, factor: float) -> Objective:
        _refuse_product(factor, self)
        return Objective([(weight.times(factor), term) for weight, term in self.parts])

    def forward(self, draw: Draw) -> Loss:
        """The loss of one Draw at its batch's step."""
        step, total, logged = draw.batch.step, None, dict[str, Tensor | float]()
        for weight, term in self.parts:
            value = term.mean(draw)
            share = weight.apply_to(step, value)
            total = share if total is None else total + share
            logged[term.name] = value.detach()
            if not isinstance(weight, Constant):
                logged[f"{term.name}.{weight.logged_as}"] = weight.now(step)
        assert total is not None
        logged["loss"] = total.detach()
        return Loss(total, logged)

    def update(self, step: int, logged: dict[str, Tensor | float]) -> None:
        """Lets every controller see the global mean of its term."""
        for weight, term in self.parts:
            if type(weight).update is not Weight.update:
                with torch.no_grad():
                    value = logged[term.name]
                    assert isinstance(value, Tensor)
                    weight.update(step, distributed.mean(value))

    def __str__(self) -> str:
        return " + ".join(weight.before(term.name) for weight, term in self.parts)
