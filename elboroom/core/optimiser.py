"""Optimisers: Adam, which of an embedding moves only the rows that were read, AdamW, SGD, RMSprop, and clipping."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.adam import adam

MakeOptimiser = Callable[[list[nn.Parameter]], Optimizer]


class Adam(torch.optim.Adam):
    """Adam with the fused kernel.

    Where a gradient is sparse, as that of an embedding is, its rows take a step of Adam and the others stay as they are, their
    moments too. Dense Adam would move every word at every step, by the momentum of the last time it was read, and spend more
    time on that than on the words that are there.
    """

    def __init__(self, parameters: list[nn.Parameter], lr: float, betas: tuple[float, float] = (0.9, 0.999)) -> None:
        super().__init__(parameters, lr=lr, betas=betas, fused=True)

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """One step; `closure` is not for us."""
        assert closure is None
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None and parameter.grad.is_sparse:
                    self._rows(parameter, parameter.grad.coalesce(), group)
                    parameter.grad = None
        super().step()

    def _rows(self, parameter: nn.Parameter, grad: Tensor, group: dict[str, Any]) -> None:
        memory = self.state[parameter]
        if not memory:  # the keys of dense Adam
            memory["step"] = torch.zeros((), device=parameter.device)
            memory["exp_avg"], memory["exp_avg_sq"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
        rows, values = grad.indices()[0], grad.values()  # (n,), (n, ...)
        whole = [parameter, memory["exp_avg"], memory["exp_avg_sq"]]
        parts = [tensor.index_select(0, rows) for tensor in whole]
        adam(  # as if the rows were all
            *([parts[0]], [values], [parts[1]], [parts[2]], [], [memory["step"]]),
            fused=True,
            amsgrad=False,
            beta1=group["betas"][0],
            beta2=group["betas"][1],
            lr=group["lr"],
            weight_decay=0.0,
            eps=group["eps"],
            maximize=False,
        )
        for tensor, part in zip(whole, parts, strict=True):
            tensor.index_copy_(0, rows, part)


def adamw(lr: float, weight_decay: float = 0.01) -> MakeOptimiser:
    """AdamW for a group of parameters. Every row of an embedding moves: each decays and keeps its momentum, read or not."""
    return lambda parameters: torch.optim.AdamW(parameters, lr, weight_decay=weight_decay, fused=True)


def sgd(lr: float, momentum: float = 0.0, weight_decay: float = 0.0) -> MakeOptimiser:
    """Gradient descent for a group of parameters.

    Without momentum and decay a row of an embedding that was not read has nowhere to go, and is not touched.
    """
    return lambda parameters: torch.optim.SGD(parameters, lr, momentum, weight_decay=weight_decay)


def rmsprop(lr: float, decay: float = 0.9) -> MakeOptimiser:
    """RMSprop for a group of parameters: gradients over the root of their running mean square."""
    return lambda parameters: torch.optim.RMSprop(parameters, lr, alpha=decay)


def is_by_rows(optimiser: Optimizer) -> bool:
    """Whether it takes sparse gradients, so that of an embedding only the rows that were read cost anything."""
    plain = not (optimiser.defaults.get("momentum") or optimiser.defaults["weight_decay"])
    return isinstance(optimiser, Adam) or (isinstance(optimiser, torch.optim.SGD) and plain)


def memory_of(optimiser: Optimizer) -> tuple[str, ...]:
    """The names of what it remembers of each parameter; `step` is a number, the others have the parameter's shape."""
    if isinstance(optimiser, torch.optim.SGD):
        return ("momentum_buffer",) if optimiser.defaults["momentum"] else ()
    if isinstance(optimiser, torch.optim.RMSprop):
        return ("step", "square_avg")
    return ("step", "exp_avg", "exp_avg_sq")


def clip(parameters: Sequence[nn.Parameter], most: float) -> None:
    """Scales gradients so that the norm of them all is at most so much."""
    values = []
    for parameter in parameters:
        if parameter.grad is not None:
            if parameter.grad.is_sparse:
                parameter.grad = parameter.grad.coalesce()
            values.append(parameter.grad.values() if parameter.grad.is_sparse else parameter.grad)
    norm = _norm(values)
    if norm.device.type == "cpu" and norm <= most:  # elsewhere nobody waits to know
        return
    scale = (most / (norm + 1e-6)).clamp_max(1.0)
    for value in values:
        value.mul_(scale)


def _norm(values: Sequence[Tensor]) -> Tensor:
    """The norm of them all; by products on a CPU, where they take half the time of a reduction."""
    if any(value.device.type != "cpu" for value in values) or not values:
        return nn.utils.get_total_norm(values)
    flat = [value.flatten() for value in values]
    return torch.stack([each.dot(each) for each in flat]).sum().sqrt()
