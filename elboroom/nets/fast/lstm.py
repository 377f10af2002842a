"""The LSTM over packed sentences: PyTorch's layer, weights and values, computed the way that a CPU likes best.

* PyTorch's own kernel is the fastest where sentences are nearly of one length, as those of a bucket are: they are padded;
* otherwise, for copies that share their words, and where products may be fast (--precision 32-fast), of which the kernel
  knows nothing, the recurrence is ours and no pad is read: a step works on the sentences that are still going on (see
  Packing);
* both can be differentiated twice, which the kernel alone cannot.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn import functional as F
from torch.nn.utils.rnn import PackedSequence

from elboroom.nets.fast.recurrence import copied, plain, recurrence

PADDED = 1.2  # times the words of a batch: up to there one kernel on pads is faster than ours on what is real


def run(
    cell: nn.LSTM,
    x: Tensor,
    sizes: list[int],
    state: tuple[Tensor, ...],
    beside: Tensor | None = None,
    added: Tensor | None = None,
) -> Tensor:
    """The states of a one-layer LSTM after every word, (n K, H).

    x       inputs word by word, (n, I), shared by the K copies of a sentence, or (n K, I)
    sizes   the rows of each step, K for a sentence that still goes on
    state   h and c where the rows begin, (B K, H) each
    beside  stands beside every input of a row, (B K, D)
    added   is added to every input of a row, (B K, I)
    """
    if x.device.type != "cpu":
        return library(cell, x, sizes, state, beside, added)
    longest, rows = len(sizes), sizes[0]
    exact = torch.get_float32_matmul_precision() == "highest"  # and not --precision 32-fast
    if exact and len(x) == sum(sizes) and longest * rows <= PADDED * len(x):
        return _padded(cell, x, sizes, state, beside, added)
    return _ragged(cell, x, sizes, state, beside, added)


def _padded(
    cell: nn.LSTM,
    x: Tensor,
    sizes: list[int],
    state: tuple[Tensor, ...],
    beside: Tensor | None,
    added: Tensor | None,
) -> Tensor:
    """Sentences of nearly one length, read on to the end of the longest; what is read beyond an end is left out again."""
    longest, rows = len(sizes), sizes[0]
    even = longest * rows == len(x)
    there = None if even else (torch.arange(rows) < torch.tensor(sizes).unsqueeze(1)).flatten().nonzero().squeeze(1)
    words = x if there is None else x.new_zeros(longest * rows, x.shape[1]).index_copy(0, there, x)
    words = words.view(longest, rows, -1)
    words = words if added is None else words + added
    words = words if beside is None else torch.cat([words, beside.expand(longest, *beside.shape)], 2)
    states = _even(words, state[0], state[1], list(cell.all_weights[0])).flatten(0, 1)
    return states if there is None else states.index_select(0, there)


def library(
    cell: nn.LSTM | nn.GRU,
    x: Tensor,
    sizes: list[int],
    state: tuple[Tensor, ...],
    beside: Tensor | None = None,
    added: Tensor | None = None,
) -> Tensor:
    """The same by PyTorch's own layer throughout: for the GRU, and for other devices."""
    x = copied(x, sizes)
    x = x if added is None else x + rows(added, sizes)
    x = x if beside is None else torch.cat([x, rows(beside, sizes)], 1)
    first = tuple(t.unsqueeze(0) for t in state)
    out: PackedSequence = cell(PackedSequence(x, torch.tensor(sizes)), first if len(first) > 1 else first[0])[0]
    return out.data


def rows(each: Tensor, sizes: list[int]) -> Tensor:
    """What belongs to the rows of the first step, at every word: (B K, ...) -> (n K, ...)."""
    return torch.cat([each[:size] for size in sizes])


def _ragged(
    cell: nn.LSTM,
    x: Tensor,
    sizes: list[int],
    state: tuple[Tensor, ...],
    beside: Tensor | None,
    added: Tensor | None,
) -> Tensor:
    """Sentences that end at different steps. What is the same in all of them is multiplied once, as a bias of its row."""
    weights: list[Tensor] = list(cell.all_weights[0])
    weight, inner, bias = weights[0], weights[1], weights[2] + weights[3]
    if beside is not None:
        weight, constant = torch.split(weight, [x.shape[1], beside.shape[1]], 1)
        bias = F.linear(beside[: sizes[0]], constant, bias)  # (B K, 4H)
    if added is not None:
        bias = bias + F.linear(added[: sizes[0]], weight)
    h, c = (t[: sizes[0]] for t in state)
    return recurrence(x, weight, bias, inner, h, c, sizes)


def _even(x: Tensor, h: Tensor, c: Tensor, weights: list[Tensor]) -> Tensor:
    """Sentences of one length: inputs (T, B, I) -> states (T, B, H)."""
    given = (x, h, c, *weights)
    if torch.is_grad_enabled() and any(t.requires_grad for t in given):
        return _Even.apply(*given)  # type: ignore[no-any-return, no-untyped-call]
    return _kernel(x, h, c, weights, train=False)


def _kernel(x: Tensor, h: Tensor, c: Tensor, weights: list[Tensor], train: bool) -> Tensor:
    return torch.lstm(x, (h.unsqueeze(0), c.unsqueeze(0)), weights, True, 1, 0.0, train, False, False)[0]


class _Even(Function):
    """PyTorch's kernel with its own gradient. Differentiated again, it falls back on the formulas."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, h: Tensor, c: Tensor, *weights: Tensor) -> Tensor:
        given = [t.detach().requires_grad_(n) for t, n in zip((x, h, c, *weights), ctx.needs_input_grad, strict=True)]
        with torch.enable_grad():
            ctx.made = _kernel(given[0], given[1], given[2], given[3:], train=True)
        ctx.given = given
        ctx.save_for_backward(x, h, c, *weights)
        states: Tensor = ctx.made.detach()
        return states

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        again = torch.is_grad_enabled()
        given, made = ctx.given, ctx.made
        if again:  # of views, since an input may itself depend on the weights
            given = [t.view_as(t) for t in ctx.saved_tensors]
            made = _formulas(*given)
        wanted = [t for t, needed in zip(given, ctx.needs_input_grad, strict=True) if needed]
        found = iter(torch.autograd.grad(made, wanted, grad, create_graph=again, retain_graph=True))
        return tuple(next(found) if needed else None for needed in ctx.needs_input_grad)


def _formulas(x: Tensor, h: Tensor, c: Tensor, *weights: Tensor) -> Tensor:
    """What the kernel computes."""
    states = plain(x.flatten(0, 1), weights[0], weights[2] + weights[3], weights[1], h, c, [len(h)] * len(x))
    return states.view(*x.shape[:2], -1)
