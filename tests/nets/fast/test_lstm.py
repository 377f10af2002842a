"""The packing of sentences, and the LSTM over it, which is PyTorch's."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

from elboroom.core.problem import Problem
from elboroom.core.vocabulary import PAD
from elboroom.nets.fast import lstm
from elboroom.nets.fast.packing import Packing

X = torch.tensor([[1, 5, 6, 2, 0, 0], [1, 7, 4, 8, 9, 2], [1, 2, 0, 0, 0, 0], [1, 5, 12, 2, 0, 0]])
LENGTHS = (X != PAD).sum(1)
SHAPES = {"even": [3, 3, 3], "frayed": [5, 4, 4, 5], "ragged": [6, 1, 3, 2]}  # as it is, padded, by our recurrence


def test_packing_lays_words_out_step_by_step() -> None:
    packing = Packing.of(LENGTHS)
    assert packing.sizes == [4, 4, 3, 3, 1, 1]
    assert packing.order.tolist() == [1, 0, 3, 2]
    assert packing.take(X).tolist() == [1, 1, 1, 1, 7, 5, 5, 2, 4, 6, 12, 8, 2, 2, 9, 2]
    assert packing.last(packing.take(X)).tolist() == [2, 2, 2, 2]
    assert packing.backwards(packing.take(X)).tolist() == [2, 2, 2, 2, 9, 6, 12, 1, 8, 5, 5, 4, 1, 1, 7, 1]
    assert packing.spread(packing.take(X)).equal(X)
    assert packing.total(torch.ones(packing.count)).tolist() == LENGTHS.tolist()


def test_packing_refuses_an_empty_sentence() -> None:
    with pytest.raises(Problem, match="has no tokens"):
        Packing.of(torch.tensor([2, 0]))


def layer(
    kind: torch.dtype,
    copies: int = 1,
    beside: int = 0,
    added: bool = False,
    hidden: int = 5,
    shape: str = "frayed",
) -> tuple[nn.LSTM, list[int], list[Tensor], Tensor | None, Tensor | None]:
    cell = nn.LSTM(4 + beside, hidden).to(kind)
    packing = Packing.of(torch.tensor(SHAPES[shape]))
    sizes = [size * copies for size in packing.sizes]
    x, h, c, z, plus = (
        torch.randn(*shape, dtype=kind, requires_grad=True)
        for shape in ((packing.count, 4), (sizes[0], hidden), (sizes[0], hidden), (sizes[0], beside), (sizes[0], 4))
    )
    return cell, sizes, [x, h, c], z if beside else None, plus if added else None


@pytest.mark.parametrize("kind", [torch.float64, torch.float32])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("copies", "beside", "added"), [(1, 0, False), (1, 2, False), (1, 2, True), (3, 2, False), (2, 2, True)]
)
def test_the_lstm_is_that_of_pytorch(kind: torch.dtype, shape: str, copies: int, beside: int, added: bool) -> None:
    cell, sizes, (x, h, c), z, plus = layer(kind, copies, beside, added, shape=shape)
    ours = lstm.run(cell, x, sizes, (h, c), z, plus)
    theirs = lstm.library(cell, x, sizes, (h, c), z, plus)
    close = 1e-10 if kind == torch.float64 else 1e-5
    torch.testing.assert_close(ours, theirs, atol=close, rtol=0)
    with torch.no_grad():
        torch.testing.assert_close(lstm.run(cell, x, sizes, (h, c), z, plus), theirs, atol=close, rtol=0)
    wanted = [t for t in (x, h, c, z, plus, *cell.parameters()) if t is not None]
    cotangent = torch.randn_like(theirs)
    for a, b in zip(*(torch.autograd.grad(out, wanted, cotangent) for out in (ours, theirs)), strict=True):
        torch.testing.assert_close(a, b, atol=close, rtol=close)


def test_fast_products_are_taken_by_our_recurrence(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch's kernel would take them exact, and slowly."""
    cell, sizes, (x, h, c), z, _ = layer(torch.float32, 1, 2, shape="even")
    exact = lstm.run(cell, x, sizes, (h, c), z)

    def kernel(*given: object) -> Tensor:
        raise AssertionError("the kernel was asked")

    monkeypatch.setattr(lstm, "_padded", kernel)
    with pytest.raises(AssertionError, match="the kernel was asked"):
        lstm.run(cell, x, sizes, (h, c), z)
    torch.set_float32_matmul_precision("medium")
    try:
        fast = lstm.run(cell, x, sizes, (h, c), z)
    finally:
        torch.set_float32_matmul_precision("highest")
    torch.testing.assert_close(fast, exact, atol=2e-2, rtol=0)


def test_the_library_is_one_sentence_after_another() -> None:
    """Packed as here, PyTorch's layer reads each sentence by itself."""
    cell, sizes, (x, h, c), z, _ = layer(torch.float64, 1, 2)
    lengths = torch.tensor(SHAPES["frayed"])
    packing = Packing.of(lengths)
    assert z is not None
    found = packing.spread(lstm.library(cell, x, sizes, (h, c), z))
    words = packing.spread(x)
    for place, row in enumerate(packing.order.tolist()):
        n = int(lengths[row])
        alone = torch.cat([words[row, :n], z[place].expand(n, -1)], 1).unsqueeze(1)
        out, _ = cell(alone, (h[place].view(1, 1, -1), c[place].view(1, 1, -1)))
        torch.testing.assert_close(found[row, :n], out.squeeze(1))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("copies", "beside"), [(1, 0), (1, 2), (2, 2)])
def test_the_lstm_has_second_derivatives(shape: str, copies: int, beside: int) -> None:
    cell, sizes, (x, h, c), z, _ = layer(torch.float64, copies, beside, hidden=2, shape=shape)

    def run(x: Tensor, h: Tensor, c: Tensor, *rest: Tensor) -> Tensor:
        weights = rest[-4:]
        held = SimpleNamespace(all_weights=[weights])  # of a cell nothing else is read
        return lstm.run(held, x, sizes, (h, c), rest[0] if beside else None)  # type: ignore[arg-type]

    given = [x, h, c, *([z] if z is not None else []), *cell.parameters()]
    assert torch.autograd.gradcheck(run, given)
    assert torch.autograd.gradgradcheck(run, given, fast_mode=True)  # along random directions


@pytest.mark.parametrize("shape", SHAPES)
def test_a_gradient_can_be_taken_twice(shape: str) -> None:
    cell, sizes, (x, h, c), _, _ = layer(torch.float64, shape=shape)
    out = lstm.run(cell, x, sizes, (h, c)).square().sum()
    first = torch.autograd.grad(out, (x, *cell.parameters()), retain_graph=True)
    for a, b in zip(first, torch.autograd.grad(out, (x, *cell.parameters())), strict=True):
        assert a.equal(b)


@pytest.mark.parametrize("shape", SHAPES)
def test_inputs_that_depend_on_the_weights_themselves(shape: str) -> None:
    """The layer twice over: a gradient that is to be differentiated again counts each way to the weights once."""
    cell, sizes, (x, h, c), _, _ = layer(torch.float64, hidden=4, shape=shape)
    value = lstm.run(cell, lstm.run(cell, x, sizes, (h, c)), sizes, (h, c)).square().sum()
    wanted = (x, h, c, *cell.parameters())
    once = torch.autograd.grad(value, wanted, retain_graph=True)
    for a, b in zip(torch.autograd.grad(value, wanted, create_graph=True), once, strict=True):
        torch.testing.assert_close(a, b)
