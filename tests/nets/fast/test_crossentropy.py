"""The fused softmax is the plain one: values, gradients and second derivatives, in blocks and in parts, safe or not."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from elboroom.nets.fast import crossentropy
from elboroom.nets.fast.crossentropy import Head

N, H, V = 7, 4, 11


def plain(h: Tensor, weight: Tensor, bias: Tensor | None, tokens: Tensor) -> Tensor:
    return torch.log_softmax(F.linear(h, weight, bias), 1).gather(1, tokens.unsqueeze(1)).squeeze(1)


def made(bias: bool, scale: float, kind: torch.dtype = torch.float64) -> tuple[Head, Tensor, Tensor]:
    head = Head(H, V, bias=bias).to(kind)
    h = (scale * torch.randn(N, H, dtype=kind)).requires_grad_()
    return head, h, torch.tensor([0, 10, 3, 3, 7, 1, 10])


@pytest.fixture(params=[3, 2048], ids=["blocks", "whole"])
def _block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crossentropy, "BLOCK", request.param)


@pytest.mark.usefixtures("_block")
@pytest.mark.parametrize("kept", [0, 1 << 28], ids=["again", "kept"])
@pytest.mark.parametrize("scale", [1.0, 300.0], ids=["safe", "large"])
@pytest.mark.parametrize("bias", [False, True])
def test_values_and_gradients(bias: bool, scale: float, kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crossentropy, "KEPT", kept)
    head, h, tokens = made(bias, scale)
    ours, theirs = head.log_prob(h, tokens), plain(h, head.weight, head.bias, tokens)
    torch.testing.assert_close(ours, theirs, atol=1e-10, rtol=0)
    weights = torch.randn(N, dtype=torch.float64)  # every token with one of its own, as in importance weighting
    wanted = (h, *head.parameters())
    for a, b in zip(*(torch.autograd.grad(v, wanted, weights) for v in (ours, theirs)), strict=True):
        torch.testing.assert_close(a, b, atol=1e-10, rtol=0)


@pytest.mark.usefixtures("_block")
@pytest.mark.parametrize("scale", [1.0, 300.0], ids=["safe", "large"])
def test_in_parts_without_gradients(scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    head, h, tokens = made(True, scale)
    whole = head.log_prob(h, tokens).detach()
    monkeypatch.setattr(crossentropy, "ROWS", 2)
    with torch.no_grad():
        torch.testing.assert_close(head.log_prob(h, tokens), whole, atol=1e-12, rtol=0)
    with torch.inference_mode():
        torch.testing.assert_close(head.log_prob(h, tokens), whole, atol=1e-12, rtol=0)


@pytest.mark.parametrize("level", [-1000.0, -90.0, 0.0, 90.0, 1000.0])
def test_single_precision_at_any_level(level: float) -> None:
    """The same constant in all logits changes nothing, though exp alone would overflow or vanish."""
    head, h, tokens = made(True, 1.0, torch.float32)
    truth = plain(h.double(), head.weight.double(), head.bias.double(), tokens)
    head.bias.data += level
    ours = head.log_prob(h, tokens)
    close = 1e-5 + 2e-7 * abs(level)  # what the logits themselves are rounded by
    torch.testing.assert_close(ours.double(), truth, atol=close, rtol=0)
    for a, b in zip(
        torch.autograd.grad(ours.sum(), (h, *head.parameters())),
        torch.autograd.grad(truth.sum(), (h, *head.parameters())),
        strict=True,
    ):
        torch.testing.assert_close(a, b.to(a.dtype), atol=10 * close, rtol=0)


@pytest.mark.usefixtures("_block")
@pytest.mark.parametrize("bias", [False, True])
def test_first_and_second_derivatives_by_finite_differences(bias: bool) -> None:
    head, h, tokens = made(bias, 1.0)
    names = [name for name, _ in head.named_parameters()]

    def run(h: Tensor, *weights: Tensor) -> Tensor:
        held = Head(H, V, bias=bias)
        for name, weight in zip(names, weights, strict=True):
            delattr(held, name)
            setattr(held, name, weight)
        return held.log_prob(h, tokens)

    assert torch.autograd.gradcheck(run, (h, *head.parameters()))
    assert torch.autograd.gradgradcheck(run, (h, *head.parameters()))


def test_features_that_depend_on_the_weights_themselves() -> None:
    """Tied weights: a gradient that is to be differentiated again counts each way to them once, as any other does."""
    head, h, tokens = made(True, 1.0)
    value = head.log_prob(torch.tanh(h @ head.weight.T) @ head.weight, tokens).sum()
    wanted = (h, *head.parameters())
    once = torch.autograd.grad(value, wanted, retain_graph=True)
    for a, b in zip(torch.autograd.grad(value, wanted, create_graph=True), once, strict=True):
        torch.testing.assert_close(a, b)


def test_only_what_needs_a_gradient_gets_one() -> None:
    head, h, tokens = made(True, 1.0)
    head.requires_grad_(False)
    (found,) = torch.autograd.grad(head.log_prob(h, tokens).sum(), h)
    (truth,) = torch.autograd.grad(plain(h, head.weight, head.bias, tokens).sum(), h)
    torch.testing.assert_close(found, truth)
    head.requires_grad_(True)
    found = torch.autograd.grad(head.log_prob(h.detach(), tokens).sum(), head.bias)[0]
    torch.testing.assert_close(found.sum(), torch.zeros((), dtype=torch.float64), atol=1e-12, rtol=0)


def test_a_gradient_can_be_taken_twice() -> None:
    head, h, tokens = made(True, 1.0)
    out = head.log_prob(h, tokens).sum()
    first = torch.autograd.grad(out, (h, *head.parameters()), retain_graph=True)
    for a, b in zip(first, torch.autograd.grad(out, (h, *head.parameters())), strict=True):
        assert a.equal(b)


def test_the_memory_of_the_blocks_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without gradients no tensor is as large as all logits."""
    sizes = []
    original = crossentropy._exponentials

    def spy(h: Tensor, weight: Tensor, bias: Tensor | None, plain: bool) -> tuple[Tensor, Tensor | None]:
        found, top = original(h, weight, bias, plain)
        sizes.append(found.numel())
        return found, top

    monkeypatch.setattr(crossentropy, "_exponentials", spy)
    head = Head(2, 5000, bias=False)
    with torch.no_grad():
        found = head.log_prob(torch.zeros(3000, 2), torch.zeros(3000, dtype=torch.long))
    torch.testing.assert_close(found, torch.full((3000,), -math.log(5000)))
    assert max(sizes) <= crossentropy.ROWS * crossentropy.BLOCK
    assert sum(sizes) == 3000 * 5000
