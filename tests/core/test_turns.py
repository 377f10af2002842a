"""Turns that depend on what the turns before them have cost, and the batches that they are taken on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from elboroom.core import distributed
from elboroom.core.batch import Batch
from elboroom.core.method import Turns, cost, once, times, until_flat
from elboroom.core.objective import Loss


def taken(turns: Turns, costs: Sequence[float]) -> int:
    """How many turns are taken where they cost these."""
    seen: list[Tensor] = []
    for turn in turns(0, seen):
        assert turn == len(seen)
        seen.append(torch.tensor(costs[turn]))
    return len(seen)


def test_once_and_times_do_not_look_at_costs() -> None:
    assert taken(once, [1.0]) == 1
    assert taken(times(3), [1.0, 9.0, 2.0]) == 3


def test_they_end_at_the_first_window_that_is_worse_than_the_one_before() -> None:
    falls, rises = [5.0, 5.0, 4.0, 4.0, 3.0, 3.0], [9.0, 1.0, 9.0, 1.5]
    assert taken(until_flat(2, 6), falls) == 6
    assert taken(until_flat(2, 99), [*falls, 3.0, 3.1, 0.0, 0.0]) == 8
    assert taken(until_flat(2, 99), rises) == 4
    assert taken(until_flat(2, 6), [9.0, 1.0, 1.0, 2.0, 0.0, 0.0]) == 6, (
        "means of windows are compared, not single turns"
    )
    assert taken(until_flat(1, 99), rises) == 3


def test_the_first_window_has_none_before_it_and_an_equal_one_is_not_worse() -> None:
    assert taken(until_flat(3, 7), [1e9] * 7) == 7
    assert taken(until_flat(15, 5), [float(turn) for turn in range(5)]) == 5


def test_every_process_decides_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the mean over ranks: here the other one has it worse and worse."""
    calls: list[Tensor] = []

    def mean(value: Tensor) -> Tensor:
        calls.append(value)
        return value + 10 * len(calls)

    monkeypatch.setattr(distributed, "mean", mean)
    assert taken(until_flat(2, 99), [5.0, 5.0, 4.0, 4.0, 3.0, 3.0]) == 4


def test_a_turn_costs_nats_per_token_where_lengths_differ() -> None:
    loss, x = Loss(torch.tensor(12.0, requires_grad=True), {}), torch.zeros(2, 5)
    assert cost(loss, Batch(x)).item() == 12.0
    found = cost(loss, Batch(x, lengths=torch.tensor([2, 4])))
    assert found.item() == 4.0
    assert not found.requires_grad


def test_turns_are_asked_for_one_by_one() -> None:
    """A turn is not decided before the one before it has been taken."""
    costs: list[Any] = []
    turns = iter(until_flat(1, 9)(0, costs))
    assert next(turns) == 0
    costs.append(torch.tensor(1.0))
    assert next(turns) == 1
    costs.append(torch.tensor(2.0))
    with pytest.raises(StopIteration):
        next(turns)
