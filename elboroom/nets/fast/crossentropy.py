"""The last layer of a language model and the logarithm of its softmax as one function: log softmax(W h + b)_y.

The logits of a batch are by far its largest tensor, so they are made in blocks of the vocabulary and passed over as
rarely as can be:

* a block is exponentiated where it lies; only if a sum comes out too large or too small is all of it done again with
  the largest logits taken off before;
* it is never divided by the sum: in the gradients P'(g h) and g (P W), with P = E / s, the rows of h are, which are few;
* the word that did occur is read off h and W, so that nothing is subtracted from P either;
* without gradients a block is forgotten at once, and of very many tokens it is made again.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn import functional as F

BLOCK = 2048  # words of the vocabulary at a time, fewer if that makes more than
MOST = 6 << 20  # numbers: the allocator keeps 24 MB for the next block, larger ones it would give back
KEPT = 1 << 28  # probabilities, 1 GB, that are kept for the gradient; of more they are computed again
ROWS = 1024  # tokens at a time without gradients
SMALL, LARGE = 1e-25, 1e25  # between which a sum of exponentials is far within single precision


class Head(nn.Linear):
    """Logits of the vocabulary, W h + b."""

    def log_prob(self, h: Tensor, tokens: Tensor) -> Tensor:
        """log softmax(W h + b) of each token: (n, H), (n,) -> (n,)."""
        if torch.is_autocast_enabled(h.device.type):  # casts the plain layer only
            return _plain(h, self.weight, self.bias, tokens)
        given = (h, self.weight, self.bias)
        if torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in given):
            return _LogSoftmax.apply(*given, tokens)  # type: ignore[no-any-return, no-untyped-call]
        sums = [_log_sum(part, self.weight, self.bias)[0] for part in torch.split(h, ROWS)]
        return _chosen(h, tokens, self.weight, self.bias) - torch.cat(sums)


def _plain(h: Tensor, weight: Tensor, bias: Tensor | None, tokens: Tensor) -> Tensor:
    """The formula, which can be differentiated as often as one likes."""
    logits = F.linear(h, weight, bias)
    return -F.cross_entropy(logits.to(torch.promote_types(logits.dtype, torch.float32)), tokens, reduction="none")


def _chosen(h: Tensor, tokens: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """The logit of each token, (n,)."""
    logit = (h * weight[tokens]).sum(1)
    return logit if bias is None else logit + bias[tokens]


def _blocks(h: Tensor, *vocabulary: Tensor | None) -> list[tuple[Any, ...]]:
    """Tensors that have a row for every word, a block at a time; None stays None."""
    size = max(1, min(BLOCK, MOST // max(1, len(h))))
    count = max(-(-len(t) // size) for t in vocabulary if t is not None)
    parts = [[None] * count if t is None else torch.split(t, size) for t in vocabulary]
    return list(zip(*parts, strict=True))


def _exponentials(h: Tensor, weight: Tensor, bias: Tensor | None, plain: bool) -> tuple[Tensor, Tensor | None]:
    """exp(logits - top) of a block, (n, block); top is the largest of each row, (n, 1), or None for none taken off."""
    logits = h @ weight.T if bias is None else torch.addmm(bias, h, weight.T)
    if plain:
        return logits.exp_(), None
    top = logits.amax(1, keepdim=True)
    return logits.sub_(top).exp_(), top


def _log_sum(
    h: Tensor, weight: Tensor, bias: Tensor | None, keep: bool = False, plain: bool | None = None
) -> tuple[Tensor, list[Tensor | None]]:
    """log sum_v exp(logit_v) of every row, (n,), and the blocks with their tops, if they are to be kept."""
    plain = h.device.type == "cpu" if plain is None else plain  # elsewhere nobody waits to know how large the sums are
    sums, kept = [], list[Tensor | None]()
    for w, b in _blocks(h, weight, bias):
        found, top = _exponentials(h, w, b, plain)
        total = found.sum(1)
        sums.append(total if top is None else total.log() + top.squeeze(1))
        kept += [found, top] if keep else []
    whole = torch.stack(sums)  # (blocks, n)
    if not plain:
        return whole.logsumexp(0), kept
    whole = whole.sum(0)
    if bool(((whole > SMALL) & (whole < LARGE)).all()):
        return whole.log(), kept
    del kept
    return _log_sum(h, weight, bias, keep, plain=False)


class _LogSoftmax(Function):
    """The logarithm with the gradient written out. Differentiated again, it falls back on the formula."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, weight: Tensor, bias: Tensor | None, tokens: Tensor) -> Tensor:
        log_sum, kept = _log_sum(h, weight, bias, keep=len(h) * len(weight) <= KEPT)
        ctx.save_for_backward(h, weight, bias, tokens, log_sum, *kept)
        return _chosen(h, tokens, weight, bias) - log_sum

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        h, weight, bias, tokens, log_sum, *kept = ctx.saved_tensors
        needs = ctx.needs_input_grad
        if torch.is_grad_enabled():  # of views, since h may itself depend on the weights, which is not ours to follow
            h, weight, bias = h.view_as(h), weight.view_as(weight), None if bias is None else bias.view_as(bias)
            given = [t for t, needed in zip((h, weight, bias), needs, strict=False) if needed]
            found = iter(torch.autograd.grad(_plain(h, weight, bias, tokens), given, grad, create_graph=True))
            return *(next(found) if needed else None for needed in needs[:3]), None
        by = grad.unsqueeze(1)
        expected = torch.zeros_like(h) if needs[0] else None  # P W, (n, H)
        weight_grad = torch.empty_like(weight) if needs[1] else None
        bias_grad = torch.empty_like(bias) if needs[2] else None
        top, scale = None, torch.exp(-log_sum).unsqueeze(1)  # P = scale E, row by row
        scaled = -by * scale * h
        for w, b, dw, db in _blocks(h, weight, bias, weight_grad, bias_grad):
            e, top = (kept.pop(0), kept.pop(0)) if kept else _exponentials(h, w, b, plain=False)
            if top is not None:  # a scale of the block's own
                scale = torch.exp(top - log_sum.unsqueeze(1))
                scaled = -by * scale * h
            if expected is not None:
                expected.addmm_(e, w) if top is None else expected.addcmul_(e @ w, scale)
            if dw is not None:
                torch.mm(e.T, scaled, out=dw)
            if db is not None:
                torch.mv(e.T, -(by * scale).squeeze(1), out=db)
        if expected is not None and top is None:
            expected.mul_(scale)
        if weight_grad is not None:
            weight_grad.index_add_(0, tokens, by * h)
        if bias_grad is not None:
            bias_grad.index_add_(0, tokens, grad)
        h_grad = None if expected is None else weight[tokens].sub_(expected).mul_(by)
        return h_grad, weight_grad, bias_grad, None
