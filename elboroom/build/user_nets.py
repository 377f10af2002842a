"""Nets of the user's own: tried on two blank examples, so that a wrong shape is said in a sentence and not trained on."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from elboroom.core.problem import Problem


def check_net(net: nn.Module, role: str, x: Tensor, given: int, wanted: tuple[int, ...]) -> nn.Module:
    """The net, if it makes (2, *wanted) of two examples and what is given beside them; nothing of it is changed."""
    name = "x" if role == "encoder" else "z"
    like = next(net.parameters(), x)
    modes = [(module, module.training) for module in net.modules()]
    try:
        with torch.no_grad():
            output = net.eval()(x.to(like), torch.zeros(len(x), given).to(like) if given else None)
    except Exception as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise Problem(f"{role}({name}, u) fails for {name} of shape {_shape(x)}: {reason}") from error
    finally:
        for module, mode in modes:
            module.training = mode
    if output.shape != (len(x), *wanted):
        needed = ", ".join(map(str, ("B", *wanted)))
        raise Problem(
            f"{role}({name}, u) returns {_shape(output)} for {name} of shape {_shape(x)}; this model needs ({needed})"
        )
    return net


def _shape(x: Tensor) -> str:
    return f"({', '.join(map(str, ('B', *x.shape[1:])))})"
