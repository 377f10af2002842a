"""--precision 32-fast: products of matrices are rounded while a run trains, and at no other time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import elboroom
from elboroom.core.problem import Problem
from elboroom.data.dataset import DataSet
from elboroom.training.loop import Loop

SMALL: dict[str, Any] = {"steps": 4, "batch_size": 8, "latent": 3, "threads": 1, "decay": "none"}


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How products were taken in each step."""
    found, step = list[str](), Loop.step

    def told(self: Loop, number: int) -> Any:
        found.append(torch.get_float32_matmul_precision())
        return step(self, number)

    monkeypatch.setattr(Loop, "step", told)
    return found


@pytest.mark.parametrize(("precision", "taken"), [("32-fast", "medium"), ("32-true", "highest")])
def test_products_are_fast_in_training_alone(
    seen: list[str], precision: str, taken: str, pixels: DataSet, tmp_path: Path
) -> None:
    run = elboroom.train("vae", pixels, tmp_path / "run", precision=precision, **SMALL)
    assert seen == [taken] * 4
    assert torch.get_float32_matmul_precision() == "highest"
    assert run.spec.fit.precision == precision


def test_they_are_exact_again_after_a_run_that_failed(
    pixels: DataSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Loop, number: int) -> Any:
        raise Problem("it failed")

    monkeypatch.setattr(Loop, "step", fail)
    with pytest.raises(Problem, match="it failed"):
        elboroom.train("vae", pixels, tmp_path / "run", precision="32-fast", **SMALL)
    assert torch.get_float32_matmul_precision() == "highest"


def test_a_fast_run_resumes_bit_for_bit(pixels: DataSet, tmp_path: Path) -> None:
    whole = elboroom.train("vae", pixels, tmp_path / "whole", precision="32-fast", **SMALL | {"steps": 8})
    elboroom.train("vae", pixels, tmp_path / "parts", precision="32-fast", **SMALL)
    parts = elboroom.resume(tmp_path / "parts", steps=4)
    assert parts.step == whole.step
    pairs = zip(whole.model.state_dict().values(), parts.model.state_dict().values(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
