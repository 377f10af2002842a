"""What a caller got wrong is a Problem; what is ours stays what it is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch

from elboroom.core.calls import asked
from elboroom.core.memory import Measured, limit, require
from elboroom.core.problem import Problem


@asked
def called(
    n: int,
    share: float = 0.5,
    name: str | Path | None = None,
    dims: list[int] | None = None,
    flag: bool = False,
    kinds: str | Mapping[str, str] | None = None,
    mode: Literal["a", "b"] = "a",
    x: Any = None,
    **options: Any,
) -> Any:
    if callable(x):
        x()
    return n, share, name, dims


@pytest.mark.parametrize(
    "wrong",
    [
        {"n": 1.5},
        {"n": True},
        {"n": "3"},
        {"n": None},
        {"n": np.ones(2)},
        {},
        {"n": 1, "share": "much"},
        {"n": 1, "share": 1j},
        {"n": 1, "name": 5},
        {"n": 1, "dims": [0.5]},
        {"n": 1, "dims": 3},
        {"n": 1, "flag": "yes"},
        {"n": 1, "kinds": 3},
        {"n": 1, "mode": "c"},
        {"n": 1, "mode": []},
    ],
)
def test_what_is_of_another_kind_is_refused_in_a_sentence(wrong: dict[str, Any]) -> None:
    with pytest.raises(Problem, match="called: "):
        called(**wrong)


def test_numbers_of_any_library_are_plain() -> None:
    n, share, name, dims = called(np.int64(3), np.float32(0.5), Path("a"), np.array([1, 2]), x=object())
    assert (type(n), type(share), dims) == (int, float, [1, 2])
    assert name == Path("a")
    assert called(torch.tensor(3))[0] == 3


@pytest.mark.parametrize(
    "error", [MemoryError(), OverflowError("int too large"), RecursionError(), OSError(28, "full")]
)
def test_what_the_machine_cannot_do_is_a_problem(error: Exception) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(Problem):
        called(1, x=fail)


def test_a_mistake_of_ours_stays_what_it_is() -> None:
    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        called(1, x=fail)


def test_what_would_not_fit_is_refused_before_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    with Measured("this"), pytest.raises(Problem, match=r"this needs 4,000\.0 GB of memory"):
        torch.nn.Linear(10**6, 10**6)
    monkeypatch.setenv("ELBOROOM_MEMORY", "0.001")
    assert limit() == 10**6
    with Measured("this"), pytest.raises(Problem, match=r"limit is 0\.0 GB"):
        torch.nn.Sequential(*(torch.nn.Linear(100, 100) for _ in range(100)))
    monkeypatch.setenv("ELBOROOM_MEMORY", "5000")
    require(4e12, "this")
    monkeypatch.setenv("ELBOROOM_MEMORY", "much")
    with pytest.raises(Problem, match="number of GB"):
        limit()
