"""Gradient steps on codes: down the loss, the smallest step that succeeds, and no word of the rest of the batch."""

from __future__ import annotations

import torch
from torch import Tensor

from elboroom.latent.fgim import HALVINGS, SURE, fgim


def log_p(z: Tensor) -> Tensor:
    """A classifier that is sure beyond the plane sum z = 0."""
    return torch.nn.functional.logsigmoid(z.sum(1))


def test_one_small_step_lowers_the_loss() -> None:
    z = torch.randn(20, 3) - 1
    found = fgim(z, log_p, [1e-3], iterations=1)
    assert (log_p(found.codes) > log_p(z)).all()
    slope = torch.sigmoid(-z.sum(1))  # of log p along every axis
    torch.testing.assert_close(found.codes, z + 1e-3 * slope.unsqueeze(1))


def test_the_smallest_step_that_succeeds_is_taken_and_what_is_sure_stays() -> None:
    z = torch.tensor([[-1.0, -1.0], [5.0, 5.0], [-400.0, -400.0]])
    found = fgim(z, log_p, [0.001, 100.0, 5.0], iterations=30)
    assert found.sure.tolist() == [True, True, True]
    assert [round(step, 6) for step in found.steps.tolist()] == [5.0, 0.001, 100.0]
    assert torch.equal(found.codes[1], z[1])
    stuck = fgim(z[:1], log_p, [1e-5, 1e-4], iterations=2)
    assert not stuck.sure.any()
    assert stuck.steps.item() == torch.tensor(1e-4).item(), "the one that gets nearest"


def test_a_step_that_is_far_too_long_ends_where_the_classifier_is_just_sure() -> None:
    """And still is: the gradient beyond the boundary is no guide to how far."""
    z = torch.tensor([[-1.0, -1.0], [-40.0, 3.0]])
    found = fgim(z, log_p, [100.0], iterations=30)
    p = log_p(found.codes).exp()
    assert found.sure.all()
    assert (p >= SURE - 1e-6).all()
    assert (found.codes.sum(1) < 7.2).all(), "6.9 is enough, and whole steps end beyond 80"


def test_what_becomes_of_one_does_not_depend_on_its_batch() -> None:
    z = torch.randn(16, 5) - 1
    head = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    whole = fgim(z, lambda c: torch.log_softmax(head(c), -1)[:, 1])
    for row in (0, 7):
        alone = fgim(z[row : row + 1], lambda c: torch.log_softmax(head(c), -1)[:, 1])
        torch.testing.assert_close(alone.codes[0], whole.codes[row], rtol=1e-4, atol=1e-5)
        assert alone.steps[0] == whole.steps[row]


def test_nothing_is_worked_out_for_what_is_sure_already() -> None:
    """Nor for larger steps from the same code: of a code that is sure at once only its smallest step is left, and leaves."""
    counted: list[int] = []

    def counting(z: Tensor) -> Tensor:
        counted.append(len(z))
        return log_p(z)

    z = torch.tensor([[5.0, 5.0], [-1.0, -1.0], [6.0, 6.0]])
    found = fgim(z, counting, [1e-6, 8.0, 50.0], iterations=4)
    assert found.sure.all()
    assert counted[0] == 9
    assert counted[1] == 3, "those of the one code that is not sure"
    assert counted[4] == 1, "the step that is too small"
    assert counted[5:] == [3] * HALVINGS, "then where the last step of each ends"
