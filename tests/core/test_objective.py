"""A loss is written as its formula, and is what the formula says."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from elboroom.core.batch import Batch
from elboroom.core.draw import Draw
from elboroom.core.model import LatentModel
from elboroom.core.objective import Constant, Objective, Term, Weight, logged
from elboroom.families.gaussian import StandardNormal
from elboroom.weights.controllers import PI, Hold
from elboroom.weights.schedules import Linear


def term(name: str, value: Tensor, samples: int = 1) -> Term:
    return Term(name, lambda draw: value, samples)


def at(step: int) -> Draw:
    empty = StandardNormal(1)
    return Draw(LatentModel(empty, empty, empty), Batch(torch.empty(2), step=step))


A, C = term("a", torch.tensor([1.0, 3.0])), term("c", torch.tensor([[1.0, 2.0], [3.0, 4.0]]), 5)
E = term("e", torch.tensor(7.0))


@pytest.mark.parametrize(
    ("formula", "total", "shown"),
    [
        (A + C, 2 + 5, "a + c"),
        (A - C, 2 - 5, "a + -1 * c"),
        (A + 2 * (C - 3 * E), 2 + 2 * (5 - 3 * 7), "a + 2 * c + -6 * e"),
        (A + 4 * C, 2 + 20, "a + 4 * c"),
        (0.5 * A + C, 1 + 5, "0.5 * a + c"),
        (A + Linear(0, 10, 100) * C, 2 + 5 * 5, "a + Linear(0 -> 10 in 100 steps) * c"),
        (A + 0.0 * C, 2, "a + 0 * c"),
        (A + logged(C), 2, "a + logged(c)"),
        (logged(C) + A, 2, "logged(c) + a"),
        (A + Hold(3.0, 10.0) * C, 2 + 10 * 2, "a + Hold(10 |. - 3|) * c"),
    ],
)
def test_a_sum_reads_and_counts_as_it_is_written(formula: Objective, total: float, shown: str) -> None:
    loss = formula(at(50))
    assert loss.total.item() == pytest.approx(total)
    assert float(loss.logged["loss"]) == pytest.approx(total)
    assert str(formula) == shown
    assert formula.samples == (5 if "c" in shown else 1)


def test_what_is_only_logged_has_no_part_in_the_loss_whatever_its_value() -> None:
    x = torch.tensor([1.0, 3.0], requires_grad=True)
    formula = term("a", x.square()) + logged(term("kl", x / 0)) + logged(term("other", x * torch.nan))
    loss = formula(at(0))
    assert loss.total.item() == 5
    assert torch.equal(torch.autograd.grad(loss.total, x)[0], x.detach())
    assert float(loss.logged["kl"]) == torch.inf
    assert torch.isnan(torch.as_tensor(loss.logged["other"]))
    assert loss.logged.keys() == {"a", "kl", "other", "loss"}
    assert not torch.as_tensor(loss.logged["kl"]).requires_grad


def test_what_is_only_logged_can_still_be_descended_beside_it() -> None:
    """A Draw keeps what its terms share, with its gradient, whichever of them asks first."""
    x = torch.tensor([1.0, 3.0], requires_grad=True)

    def shared(name: str) -> Term:
        return Term(name, lambda draw: draw.keep("kl", lambda: x.square()))

    assert torch.equal(torch.autograd.grad((logged(shared("a")) + shared("b"))(at(0)).total, x)[0], x.detach())


@pytest.mark.parametrize(
    ("value", "mean"),
    [(torch.tensor(3.0), 3.0), (torch.tensor([1.0, 3.0]), 2.0), (torch.ones(2, 3), 3.0)],
)
def test_the_one_unit(value: Tensor, mean: float) -> None:
    """Summed over all that is inside an example, averaged over the batch."""
    assert term("t", value).mean(at(0)).item() == mean


def test_what_is_logged() -> None:
    value = torch.tensor([1.0, 3.0], requires_grad=True)
    logged = (term("a", value) + Linear(0, 10, 100) * C + 3 * term("d", value))(at(50)).logged
    assert logged.keys() == {"a", "c", "c.weight", "d", "loss"}
    assert logged["c.weight"] == 5.0
    assert all(not torch.as_tensor(v).requires_grad for v in logged.values())


def test_controllers_see_their_own_term_once() -> None:
    class Spy(Constant):
        def __init__(self) -> None:
            super().__init__(1.0)
            self.seen: list[tuple[int, float]] = []

        def update(self, step: int, value: Tensor) -> None:
            assert not value.requires_grad
            self.seen.append((step, float(value)))

    one, two = Spy(), Spy()
    formula = one * A + two * C
    formula.update(7, formula(at(7)).logged)
    assert (one.seen, two.seen) == ([(7, 2.0)], [(7, 5.0)])


def test_memory_of_a_weight_is_in_the_state() -> None:
    formula = A + PI(3.0, 0.01, 0.1, 0.0) * C
    assert set(formula.state_dict()) == {"weights.1.value", "weights.1.integral"}
    formula.update(0, formula(at(0)).logged)
    other = A + PI(3.0, 0.01, 0.1, 0.0) * C
    other.load_state_dict(formula.state_dict())
    assert torch.equal(other(at(1)).total, formula(at(1)).total)


def test_a_weight_says_what_it_is() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Weight()  # type: ignore[abstract]
    assert Constant(4).now(10**6) == 4.0
