"""The loop. It knows no method: who descends what, how often and on which batch is said by the players."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from elboroom.core import distributed
from elboroom.core.draw import Draw
from elboroom.core.freeze import freeze
from elboroom.core.method import Method, Player, cost
from elboroom.core.objective import Loss
from elboroom.core.optimiser import clip
from elboroom.core.stages import Trainable
from elboroom.training.batches import Batches, reseed

Autocast = Callable[[], AbstractContextManager[Any]]


class Loop:
    """Trains a method step by step; a step depends on the state before it and on (seed, step) alone."""

    def __init__(
        self,
        method: Trainable,
        batches: Batches,
        seed: int,
        autocast: Autocast = nullcontext,
    ) -> None:
        self.method, self.batches, self.seed, self.autocast = method, batches, seed, autocast

    def step(self, step: int) -> dict[str, Tensor | float]:
        """Every turn of every player, then the controllers; returns what is logged."""
        method, losses, logged, shared = self.method.at(step), dict[int, Loss](), dict[str, Tensor | float](), None
        for number, player in enumerate(method.players):
            costs: list[Tensor] = []
            for turn in player.turns(step, costs):
                reseed(self.seed, step, number, turn)
                draw = self.draw(method, player, step, number, turn, shared)
                shared = shared or draw
                with self.autocast(), freeze(_others(method, number, draw is shared)):
                    loss = losses[number] = player.objective(draw)
                move(method, player, loss.total)
                costs.append(cost(loss, draw.batch))
            if number in losses:
                known = {*logged, "loss"} if player.rival else logged
                logged |= {k: v for k, v in losses[number].logged.items() if k not in known}
        method.update(step, losses)
        return logged

    def draw(self, method: Method, player: Player, step: int, number: int, turn: int, shared: Draw | None) -> Draw:
        """The Draw of one turn, as the player asks: the shared one, a new one on the step's batch, or on another batch."""

        def another() -> Draw:
            return method.draw(player, self.batches.fresh(step, number, turn))

        if player.batch == "fresh" or (player.batch == "onward" and turn):
            return another()
        if player.batch == "shared" and shared is not None:
            return shared
        return method.draw(player, shared.batch if shared else self.batches(step), another)


def _others(method: Method, number: int, shared: bool) -> list[nn.Parameter]:
    """The parameters that the player does not move, nor one after it that reads the same Draw."""
    later = method.players[number + 1 :] if shared else []
    moved = {name for player in later if player.batch == "shared" for name in player.moves}
    moved.update(method.players[number].moves)
    return [p for name, owned in method.owned.items() if name not in moved for p in owned]


def move(method: Method, player: Player, loss: Tensor) -> None:
    """One optimiser step of the groups that the player moves, and of nothing else."""
    parameters = [p for name in player.moves for p in method.owned[name]]
    for parameter, grad in zip(parameters, torch.autograd.grad(loss, parameters, allow_unused=True), strict=True):
        parameter.grad = grad if grad is None else laid_out_as(parameter, grad)
    reduce(parameters)
    limits = {method.clips[name] for name in player.moves}
    for most in limits - {0.0}:  # one norm for all that move together
        clip([p for name in player.moves if method.clips[name] == most for p in method.owned[name]], most)
    for name in player.moves:
        method.optimisers[name].step()
    for parameter in parameters:
        parameter.grad = None


def reduce(parameters: list[nn.Parameter]) -> None:
    """Averages gradients over ranks in one flat all-reduce; of sparse ones the rows that any rank has."""
    if distributed.world() == 1:
        return
    grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
    rows = [_counts(grad) for grad in grads if grad.is_sparse]
    flat = torch.cat([grad.to_dense().flatten() for grad in grads] + rows)
    dist.all_reduce(flat)
    flat.div_(distributed.world())
    sizes = [p.numel() for p in parameters] + [len(count) for count in rows]
    parts = list(torch.split(flat, sizes))
    counts = iter(parts[len(parameters) :])
    for parameter, grad, part in zip(parameters, grads, parts, strict=False):
        whole = part.view_as(parameter)
        parameter.grad = _at(next(counts), whole) if grad.is_sparse else laid_out_as(parameter, whole)


def _counts(grad: Tensor) -> Tensor:
    """How many times a sparse gradient has each row."""
    rows: Tensor = grad._indices()[0]
    return torch.bincount(rows, minlength=len(grad)).to(grad.dtype)


def _at(counts: Tensor, whole: Tensor) -> Tensor:
    """The sparse gradient of the rows that are counted."""
    (rows,) = counts.nonzero(as_tuple=True)
    return torch.sparse_coo_tensor(rows.unsqueeze(0), whole[rows], whole.shape, is_coalesced=True)


def laid_out_as(parameter: nn.Parameter, grad: Tensor) -> Tensor:
    """The gradient in the memory layout of its parameter: the fused optimiser walks both side by side."""
    same = grad.is_sparse or grad.stride() == parameter.stride()
    return grad if same else torch.empty_like(parameter).copy_(grad)
