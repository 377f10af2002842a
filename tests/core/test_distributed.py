"""What is gathered over processes goes back to them, and to nobody else."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from elboroom.core import distributed


def test_the_gradient_of_a_neighbour_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Autograd hands one tensor to both sides of a sum: what is added up over ranks is a copy."""

    def all_gather(parts: list[Tensor], x: Tensor) -> None:
        for part in parts:
            part.copy_(x)

    monkeypatch.setattr(distributed, "world", lambda: 2)
    monkeypatch.setattr(distributed, "rank", lambda: 0)
    monkeypatch.setattr(distributed.dist, "all_gather", all_gather)
    monkeypatch.setattr(distributed.dist, "all_reduce", lambda grad: grad.mul_(2))  # both ranks send the same
    x, w = torch.ones(3, requires_grad=True), torch.ones(6, requires_grad=True)
    (distributed.gather(x) + 1 * w).square().sum().backward()
    torch.testing.assert_close(w.grad, torch.full((6,), 4.0))
    torch.testing.assert_close(x.grad, torch.full((3,), 8.0))
