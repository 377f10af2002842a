"""What tests of the command share: how it is called in a test, and what a refusal looks like."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

TINY = ["--batch-size", "8", "--latent", "3", "--threads", "1", "--log-every", "2", "--checkpoint-every", "4"]
Elbo = Callable[..., tuple[int, str, str]]


def reals(path: Path) -> Path:
    np.save(path, np.random.default_rng(0).normal(size=(100, 4)))
    return path


def refused(answer: tuple[int, str, str], expected: str) -> None:
    code, _, err = answer
    assert code == 2, err
    assert expected in err
    assert len(err.splitlines()) == 1, err
