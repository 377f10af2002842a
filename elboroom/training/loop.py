"""The loop. It knows no method: who descends what, how often and on which batch is said by the players."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from elboroom.core import distributed
from elboroom.core.batch import Batch
from elboroom.core.draw import Draw
from elboroom.core.freeze import freeze, thawed
from elboroom.core.method import Method, Player, cost, once
from elboroom.core.objective import Loss
from elboroom.core.optimiser import clip
from elboroom.core.problem import Problem
from elboroom.core.stages import Trainable
from elboroom.data.dataset import Kind
from elboroom.training.batches import Batches, reseed
from elboroom.training.fit import Fit

Autocast = Callable[[], AbstractContextManager[Any]]


class Loop:
    """Trains a method step by step; a step depends on the state before it and on (seed, step) alone."""

    def __init__(
        self,
        method: Trainable,
        batches: Batches,
        seed: int,
        autocast: Autocast = nullcontext,
        rate: Callable[[int], float] | None = None,
        parts: int = 1,
    ) -> None:
        self.method, self.batches, self.seed, self.autocast = method, batches, seed, autocast
        self.rate, self.parts = rate, parts  # the learning rate where it moves; in how many parts a batch is taken

    def step(self, step: int) -> dict[str, Tensor | float]:
        """Every turn of every player, then the controllers; returns what is logged."""
        method, losses, logged = self.method.at(step), dict[int, Loss](), dict[str, Tensor | float]()
        shared: dict[int, Draw] = {}  # of each part
        if self.rate is not None:
            logged["lr"] = lr = self.rate(step)
            method.set_rate(lr)
        for number, player in enumerate(method.players):
            costs: list[Tensor] = []
            for turn in player.turns(step, costs):
                taken = [self.take(method, step, number, turn, part, shared) for part in range(self.parts)]
                losses[number], batch = taken[0] if self.parts == 1 else _together(taken)
                costs.append(cost(losses[number], batch))
            if number in losses:
                known = {*logged, "loss"} if player.rival else logged
                logged |= {k: v for k, v in losses[number].logged.items() if k not in known}
        method.update(step, losses)
        if method.average is not None:
            method.average.update(method.model)
        return logged

    def take(
        self, method: Method, step: int, number: int, turn: int, part: int, shared: dict[int, Draw]
    ) -> tuple[Loss, Batch]:
        """One part of a turn, its loss and its batch: gradients are added to those of the parts before, and the last moves."""
        player = method.players[number]
        reseed(self.seed, step, number, turn)  # every part sees its slice of the same noise
        with distributed.part(part, self.parts):
            draw = self.draw(method, player, step, number, turn, shared.get(part), part)
            shared.setdefault(part, draw)
            with self.autocast(), freeze(_others(method, number, draw is shared[part])):
                loss = player.objective(draw)
            descend = move if part == self.parts - 1 else add_gradients
            descend(method, player, loss.total if self.parts == 1 else loss.total / self.parts)
        later = any(other.batch == "shared" for other in method.players[number + 1 :])
        if self.parts > 1 and not later and player.turns is once:  # nobody reads it again: what it holds is let go
            shared[part] = method.draw(player, draw.batch)
        return loss._replace(total=loss.total.detach()), draw.batch

    def draw(
        self, method: Method, player: Player, step: int, number: int, turn: int, shared: Draw | None, part: int = 0
    ) -> Draw:
        """The Draw of one turn, as the player asks: the shared one, a new one on the step's batch, or on another batch."""

        def another() -> Draw:
            return method.draw(player, _slice(self.batches.fresh(step, number, turn), part, self.parts))

        if player.batch == "fresh" or (player.batch == "onward" and turn):
            return another()
        if player.batch == "shared" and shared is not None:
            return shared
        own = shared.batch if shared else _slice(self.batches(step), part, self.parts)
        return method.draw(player, own, another)


def _slice(batch: Batch, part: int, of: int) -> Batch:
    """One of the parts of a batch, of equal size; sentences stay padded to the longest of the whole."""
    if of == 1:
        return batch
    cut: dict[str, Any] = {k: v.chunk(of)[part] for k, v in vars(batch).items() if isinstance(v, Tensor)}
    return replace(batch, **cut)


def _together(taken: list[tuple[Loss, Batch]]) -> tuple[Loss, Batch]:
    """The loss and the log of a whole batch, which are the means over its parts, and the batch as far as costs ask for it."""
    losses, batches = zip(*taken, strict=True)
    logged = {k: _mean([loss.logged[k] for loss in losses]) for k in losses[0].logged}
    lengths = [batch.lengths for batch in batches if batch.lengths is not None]
    total = torch.stack([loss.total.detach() for loss in losses]).mean()
    return Loss(total, logged), replace(batches[0], lengths=torch.cat(lengths) if lengths else None)


def _mean(values: list[Tensor | float]) -> Tensor | float:
    """The mean over parts; a weight that is a number is the same in all."""
    tensors = [value for value in values if isinstance(value, Tensor)]
    return torch.stack(tensors).mean(0) if tensors else values[0]


def refuse_parts(method: Trainable, fit: Fit, kind: Kind) -> None:
    """Refuses to take a batch in parts where that would not be what the whole batch gives."""
    parts = fit.accumulate
    coupled = next((getattr(part, "name", type(part).__name__) for part in method.coupled), None)
    normed = next((type(module).__name__ for module in thawed(method) if isinstance(module, _BatchNorm)), None)
    if coupled or normed:
        raise Problem(
            f"--accumulate {parts}: {coupled or normed} needs all examples of a batch together; remove --accumulate"
        )
    if fit.batch_size % (parts * fit.devices):
        where = f" on each of {fit.devices} devices" if fit.devices > 1 else ""
        raise Problem(f"--batch-size {fit.batch_size} cannot be taken in {parts} parts{where}: make it a multiple")
    if fit.order(kind) == "constant":
        raise Problem("batches of one length differ in size and cannot be taken in parts; use --batches buckets")


def _others(method: Method, number: int, shared: bool) -> list[nn.Parameter]:
    """The parameters that the player does not move, nor one after it that reads the same Draw."""
    later = method.players[number + 1 :] if shared else []
    moved = {name for player in later if player.batch == "shared" for name in player.moves}
    moved.update(method.players[number].moves)
    return [p for name, owned in method.owned.items() if name not in moved for p in owned]


def add_gradients(method: Method, player: Player, loss: Tensor) -> None:
    """Adds the gradients of a loss to those of the groups that the player moves, and of nothing else."""
    parameters = [p for name in player.moves for p in method.owned[name]]
    for parameter, grad in zip(parameters, torch.autograd.grad(loss, parameters, allow_unused=True), strict=True):
        if grad is not None:
            grad = laid_out_as(parameter, grad)
            parameter.grad = grad if parameter.grad is None else parameter.grad + grad


def move(method: Method, player: Player, loss: Tensor) -> None:
    """One optimiser step of the groups that the player moves, and of nothing else."""
    add_gradients(method, player, loss)
    parameters = [p for name in player.moves for p in method.owned[name]]
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
