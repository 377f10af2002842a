"""Terms that read a critic: the density ratio for the model, the classification loss for the critic itself."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elboroom.core import ranks
from elboroom.core.draw import Draw
from elboroom.core.objective import Term


def permuted(z: Tensor) -> Tensor:
    """Each column rearranged on its own across the global batch: a sample of prod_j q(z_j), (B, D)."""
    rows = z.shape[0]
    everyone = ranks.gather(z)
    order = torch.rand(everyone.shape, device=z.device).argsort(0)
    return everyone.gather(0, order)[ranks.rank() * rows : (ranks.rank() + 1) * rows]


def density_ratio(critic: nn.Module) -> Term:
    """TC = E_q(z) [l_0(z) - l_1(z)], l the critic's logits for `from q(z)` and `from the product of its marginals`."""

    def value(draw: Draw) -> Tensor:
        logits: Tensor = critic(draw.z[0])
        return logits[:, 0] - logits[:, 1]

    return Term("tc_critic", value, modules=(critic,))


def critic_nll(critic: nn.Module) -> Term:
    """1/2 CE(z, 0) + 1/2 CE(permuted z', 1), z' from a second batch; both detached, so nothing reaches the encoder."""

    def value(draw: Draw) -> Tensor:
        codes = draw.z[0].detach()  # the Draw is shared: its z must keep the graph that other terms need
        with torch.no_grad():
            product = permuted(draw.other.z[0])
        logits: Tensor = critic(torch.cat([codes, product]))
        truth = torch.arange(2, device=logits.device).repeat_interleave(len(codes))
        return F.cross_entropy(logits, truth)

    return Term("critic", value, modules=(critic,))
