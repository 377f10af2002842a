"""The LSTM recurrence over packed sentences, with its gradient written out.

* the products with the inputs of all steps are one matrix product, and so are the gradients of each weight matrix;
* a word that several copies of a sentence share is multiplied once;
* gates are computed where they lie, and without gradients only those of one step are held.

Gates come in the order of PyTorch: i, f, g, o.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional as F

_backward = torch.ops.aten


def recurrence(
    x: Tensor, weight: Tensor, bias: Tensor, inner: Tensor, h: Tensor, c: Tensor, sizes: list[int]
) -> Tensor:
    """The states after every word, (n K, H).

    x       inputs, (n, I), shared by the K copies of a sentence, or (n K, I)
    weight  of the inputs, (4H, I)
    bias    of the gates, (4H,), or of those of each row, (B K, 4H)
    inner   weight of the states, (4H, H)
    h, c    before the first word, (B K, H) each
    sizes   the rows of each step, K for a sentence that still goes on
    """
    if torch.is_grad_enabled() and any(t.requires_grad for t in (x, weight, bias, inner, h, c)):
        return _Recurrence.apply(x, weight, bias, inner, h, c, sizes)  # type: ignore[no-any-return, no-untyped-call]
    return _forward(x, weight, bias, inner, h, c, sizes, keep=False)[0]


def copied(x: Tensor, sizes: list[int]) -> Tensor:
    """Words once for every copy of their sentence: (n, I) -> (n K, I)."""
    copies = sum(sizes) // len(x)
    return x if copies == 1 else x.repeat_interleave(copies, 0)


def plain(x: Tensor, weight: Tensor, bias: Tensor, inner: Tensor, h: Tensor, c: Tensor, sizes: list[int]) -> Tensor:
    """The formulas, which can be differentiated as often as one likes."""
    states = []
    for part in torch.split(F.linear(copied(x, sizes), weight), sizes):
        n = len(part)
        gates = part + F.linear(h[:n], inner) + (bias if bias.dim() == 1 else bias[:n])
        i, f, g, o = gates.chunk(4, 1)
        c = torch.sigmoid(f) * c[:n] + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        states.append(h)
    return torch.cat(states)


def _forward(
    x: Tensor, weight: Tensor, bias: Tensor, inner: Tensor, h: Tensor, c: Tensor, sizes: list[int], keep: bool
) -> tuple[Tensor, ...]:
    """States (n K, H), then gates (n K, 4H), cells and tanh of cells (n K, H); unless kept, of one step only."""
    copies, rows, at = sum(sizes) // len(x), sum(sizes) if keep else sizes[0], 0
    words = x @ weight.T  # (n, 4H)
    states = x.new_empty(sum(sizes), inner.shape[1])
    gates = words if copies == 1 else x.new_empty(rows, len(inner))
    cells, squashed = x.new_empty(rows, inner.shape[1]), x.new_empty(rows, inner.shape[1])
    for n, part in zip(sizes, torch.split(words, [size // copies for size in sizes]), strict=True):
        here = slice(at, at + n) if keep else slice(n)
        if copies == 1:
            gate = part.addmm_(h[:n], inner.T)
        else:
            gate = torch.mm(h[:n], inner.T, out=gates[here])
            gate.view(len(part), copies, -1).add_(part.unsqueeze(1))
        gate.add_(bias if bias.dim() == 1 else bias[:n])
        gate[:, : 2 * inner.shape[1]].sigmoid_()
        i, f, g, o = gate.chunk(4, 1)
        c = torch.mul(f, c[:n], out=cells[here]).addcmul_(i, g.tanh_())
        h = torch.mul(o.sigmoid_(), torch.tanh(c, out=squashed[here]), out=states[at : at + n])
        at += n
    return states, gates, cells, squashed


class _Recurrence(Function):
    """The states with the gradient written out. Differentiated again, it falls back on the formulas."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, inner: Tensor, h: Tensor, c: Tensor, sizes: list[int]
    ) -> Tensor:
        states, *kept = _forward(x, weight, bias, inner, h, c, sizes, keep=True)
        ctx.sizes = sizes
        ctx.save_for_backward(x, weight, bias, inner, h, c, states, *kept)
        return states

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, bias, inner, h, c, states, *kept = ctx.saved_tensors
        sizes = ctx.sizes
        if torch.is_grad_enabled():  # of views, since an input may itself depend on the weights
            x, weight, bias, inner, h, c = given = [t.view_as(t) for t in (x, weight, bias, inner, h, c)]
            wanted = [t for t, needed in zip(given, ctx.needs_input_grad, strict=False) if needed]
            made = plain(x, weight, bias, inner, h, c, sizes)
            found = iter(torch.autograd.grad(made, wanted, grad, create_graph=True))
            return *(next(found) if needed else None for needed in ctx.needs_input_grad[:6]), None
        steep, last_h, last_c, constant = _descend(kept, inner, h, c, bias.dim() == 2, grad, sizes)
        inner_grad = steep.T @ _before(states, h, sizes) if ctx.needs_input_grad[3] else None
        if constant is None:
            constant = steep.sum(0)
        if len(x) < len(steep):
            steep = steep.view(len(x), -1, steep.shape[1]).sum(1)
        x_grad = steep @ weight if ctx.needs_input_grad[0] else None
        weight_grad = steep.T @ x if ctx.needs_input_grad[1] else None
        return x_grad, weight_grad, constant, inner_grad, last_h, last_c, None


def _descend(
    kept: Sequence[Tensor], inner: Tensor, h: Tensor, c: Tensor, by_row: bool, grad: Tensor, sizes: list[int]
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Gradients of what goes into the gates, (n K, 4H), of the first states, and of the bias of every row."""
    gates, cells, squashed = kept
    i, f, g, o = gates.chunk(4, 1)
    steep = torch.empty_like(gates)  # d(c or h) / d(what goes into a gate), then times the gradient of c or h
    di, df, dg, do = steep.chunk(4, 1)
    _backward.sigmoid_backward.grad_input(g, i, grad_input=di)
    _backward.sigmoid_backward.grad_input(_before(cells, c, sizes), f, grad_input=df)
    _backward.tanh_backward.grad_input(i, g, grad_input=dg)
    _backward.sigmoid_backward.grad_input(squashed, o, grad_input=do)
    slope = _backward.tanh_backward(o, squashed)  # dh / dc
    down_h, down_c = torch.zeros_like(h), torch.zeros_like(c)
    constant = steep.new_zeros(len(h), steep.shape[1]) if by_row else None
    steps = zip(sizes, *(torch.split(t, sizes) for t in (steep, f, slope, grad)), strict=True)
    for n, step, f_t, slope_t, grad_t in reversed(list(steps)):
        dh, dc, four = down_h[:n], down_c[:n], step.view(n, 4, -1)
        dc.addcmul_(dh.add_(grad_t), slope_t)
        four[:, :3].mul_(dc.unsqueeze(1))
        four[:, 3].mul_(dh)
        dc.mul_(f_t)
        torch.mm(step, inner, out=dh)
        if constant is not None:
            constant[:n].add_(step)
    return steep, down_h, down_c, constant


def _before(after: Tensor, first: Tensor, sizes: list[int]) -> Tensor:
    """The state before every step, from those after it: (n K, H)."""
    later = zip(torch.split(after, sizes), sizes[1:], strict=False)
    return torch.cat([first, *(state[:size] for state, size in later)])
