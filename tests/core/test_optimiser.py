"""Adam of rows: those that were read take the steps of dense Adam, the others stay."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from elboroom.core.optimiser import Adam, MakeOptimiser, adamw, clip, is_by_rows, memory_of, sgd


def grads_at(rows: list[int], table: nn.Embedding, seed: int) -> Tensor:
    """The gradient of a table of which some rows were read, one of them twice."""
    weights = torch.randn(len(rows), table.embedding_dim, generator=torch.Generator().manual_seed(seed))
    (grad,) = torch.autograd.grad((table(torch.tensor(rows)) * weights).sum(), [table.weight])
    return grad


def test_rows_read_at_every_step_take_the_steps_of_dense_adam() -> None:
    torch.manual_seed(0)
    sparse, dense = nn.Embedding(6, 3, sparse=True), nn.Embedding(6, 3)
    dense.load_state_dict(sparse.state_dict())
    start = sparse.weight.detach().clone()
    ours, theirs = Adam([sparse.weight], 0.1), torch.optim.Adam([dense.weight], 0.1)
    for step in range(5):
        for table in (sparse, dense):
            table.weight.grad = grads_at([1, 4, 4], table, step)
        assert sparse.weight.grad is not None
        assert sparse.weight.grad.is_sparse
        ours.step()
        theirs.step()
    torch.testing.assert_close(sparse.weight, dense.weight, rtol=1e-5, atol=1e-6)
    assert torch.equal(sparse.weight[[0, 2, 3, 5]], start[[0, 2, 3, 5]])


def test_a_row_that_is_not_read_keeps_its_moments() -> None:
    table = nn.Embedding(4, 2, sparse=True)
    adam = Adam([table.weight], 0.1)
    table.weight.grad = grads_at([0, 1], table, 0)
    adam.step()
    before = {key: value[1].clone() for key, value in adam.state[table.weight].items() if value.dim()}
    place = table.weight[1].detach().clone()
    table.weight.grad = grads_at([0], table, 1)
    adam.step()
    assert torch.equal(table.weight[1], place)
    assert all(torch.equal(adam.state[table.weight][key][1], value) for key, value in before.items())


def test_sparse_and_dense_gradients_are_clipped_together() -> None:
    table, layer = nn.Embedding(4, 2, sparse=True), nn.Linear(2, 2)
    copy = nn.Embedding(4, 2)
    copy.load_state_dict(table.state_dict())
    table.weight.grad, copy.weight.grad = grads_at([0, 3, 3], table, 0), grads_at([0, 3, 3], copy, 0)
    layer.weight.grad = torch.ones(2, 2)
    other = nn.Parameter(torch.zeros(2, 2))
    other.grad = torch.ones(2, 2)
    clip([table.weight, layer.weight, layer.bias], 0.5)
    nn.utils.clip_grad_norm_([copy.weight, other], 0.5)
    assert copy.weight.grad is not None
    torch.testing.assert_close(table.weight.grad.to_dense(), copy.weight.grad)
    torch.testing.assert_close(layer.weight.grad, other.grad)


def test_mixed_uses_of_a_table_move_it_whole() -> None:
    table = nn.Embedding(5, 3, sparse=True)
    start = table.weight.detach().clone()
    (grad,) = torch.autograd.grad(table(torch.tensor([1])).sum() + (table.weight @ torch.ones(3)).sum(), [table.weight])
    table.weight.grad = grad
    Adam([table.weight], 0.1).step()
    assert (table.weight != start).all()


@pytest.mark.parametrize(
    ("make", "by_rows", "memory"),
    [
        (sgd(0.1), True, ()),
        (sgd(0.1, momentum=0.9), False, ("momentum_buffer",)),
        (sgd(0.1, weight_decay=0.1), False, ()),
        (adamw(0.1), False, ("step", "exp_avg", "exp_avg_sq")),
        (lambda parameters: Adam(parameters, 0.1), True, ("step", "exp_avg", "exp_avg_sq")),
    ],
)
def test_what_an_optimiser_takes_and_remembers(make: MakeOptimiser, by_rows: bool, memory: tuple[str, ...]) -> None:
    table = nn.Embedding(6, 3)
    optimiser = make([table.weight])
    table.sparse = is_by_rows(optimiser)
    assert table.sparse == by_rows
    table.weight.grad = grads_at([1, 4, 4], table, 0)
    optimiser.step()
    kept = {key: value for key, value in optimiser.state[table.weight].items() if value is not None}
    assert tuple(kept) == memory_of(optimiser) == memory
    assert all(value.shape == (() if key == "step" else table.weight.shape) for key, value in kept.items())


def test_rows_take_the_steps_of_plain_descent() -> None:
    sparse, dense = nn.Embedding(6, 3, sparse=True), nn.Embedding(6, 3)
    dense.load_state_dict(sparse.state_dict())
    for table in (sparse, dense):
        optimiser = sgd(0.1)([table.weight])
        for step in range(3):
            table.weight.grad = grads_at([1, 4, 4], table, step)
            optimiser.step()
    torch.testing.assert_close(sparse.weight, dense.weight)
