"""The prior of pseudo-inputs: p(z) = 1/K sum_k q(z|s_k), the s_k learned and read by the encoder itself."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from elboroom.core import distributed
from elboroom.core.batch import Batch
from elboroom.core.kl import has_density
from elboroom.core.law import Law
from elboroom.core.reference import Reference

CHUNK = 50  # components at a time


class PseudoInputs(nn.Module):
    """K inputs that are parameters, (K, *shape)."""

    def __init__(self, x: Tensor, u: Tensor | None = None) -> None:
        super().__init__()
        self.x, self.u = nn.Parameter(x), None if u is None else nn.Parameter(u)

    def __len__(self) -> int:
        return len(self.x)

    def labels(self, rows: Tensor) -> Tensor | None:
        """u of these rows."""
        return None if self.u is None else self.u[rows]

    def read(self, net: nn.Module, rows: Tensor) -> Tensor:
        """What the encoder emits for these rows, (n, outputs)."""
        out: Tensor = net(self.x[rows], self.labels(rows))
        return out


class PseudoImages(PseudoInputs):
    """K images that are parameters, by their logits: whatever is learned, pixels stay in (0, 1)."""

    def __init__(self, x: Tensor, u: Tensor | None = None, margin: float = 0.01) -> None:
        super().__init__(torch.logit(x, eps=margin), u)

    def read(self, net: nn.Module, rows: Tensor) -> Tensor:
        out: Tensor = net(torch.sigmoid(self.x[rows]), self.labels(rows))
        return out


class PseudoSentences(PseudoInputs):
    """K sentences as word vectors: those that the encoder has for some words by now, and beside them what is learned, x.

    The words keep their place as the encoder learns its vectors. Were the vectors themselves parameters, all the words
    would move away from pseudo-inputs that are slow to learn.
    """

    ids: Tensor
    lengths: Tensor

    def __init__(self, ids: Tensor, lengths: Tensor, width: int, u: Tensor | None = None) -> None:
        super().__init__(torch.zeros(*ids.shape, width), u)
        self.register_buffer("ids", ids)
        self.register_buffer("lengths", lengths)

    def read(self, net: Any, rows: Tensor) -> Tensor:
        with torch.no_grad():
            words = net.embed(self.ids[rows])  # (n, L, ni)
        out: Tensor = net.read(words + self.x[rows], self.lengths[rows], self.labels(rows))
        return out


class Vamp(Law):
    """An equal mixture of q(z|s_k). Every question reads the pseudo-inputs anew, since the encoder moves between two."""

    has_rsample = True

    def __init__(self, posterior: Any, pseudo: PseudoInputs, latent: int) -> None:
        self.posterior, self.pseudo = posterior, pseudo
        super().__init__(torch.Size(), torch.Size([latent]))

    def _law(self, rows: Tensor) -> Any:
        """q(z|s_k) of these rows, none of which is read twice where there are more rows than pseudo-inputs."""
        if len(rows) <= len(self.pseudo):
            return self.posterior.law(self.pseudo.read(self.posterior.net, rows))
        every = torch.split(torch.arange(len(self.pseudo), device=rows.device), CHUNK)
        return self.posterior.law(torch.cat([self.pseudo.read(self.posterior.net, some) for some in every])[rows])

    @property
    def mean(self) -> Tensor:
        """The origin, which stands for a mean that nothing needs."""
        return self.pseudo.x.new_zeros(self.event_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        place = distributed.uniform((math.prod(sample_shape),), self.pseudo.x, 0)
        rows = (place * len(self.pseudo)).long().clamp_max(len(self.pseudo) - 1)
        z: Tensor = self._law(rows).rsample()
        return z.view(*sample_shape, *z.shape[1:])

    def log_prob(self, z: Tensor) -> Tensor:
        everyone = torch.arange(len(self.pseudo), device=z.device)
        parts = [self._law(rows).log_prob(z.unsqueeze(-2)) for rows in torch.split(everyone, CHUNK)]  # (..., chunk)
        return torch.logsumexp(torch.cat(parts, -1), -1) - math.log(len(self.pseudo))


class VampImplicit(Vamp):
    """The same of a posterior without a density."""

    has_density = False


class VampPrior(nn.Module):
    """p(z) = 1/K sum_k q(z|s_k) of a posterior with a `net` and a `law` of what the net emits."""

    def __init__(self, posterior: Any, pseudo: PseudoInputs, latent: int) -> None:
        super().__init__()
        self.posterior = Reference(posterior)
        self.pseudo, self.latent = pseudo, latent
        self.family = Vamp if has_density(posterior.family) else VampImplicit

    def forward(self, batch: Batch) -> Vamp:
        return self.family(self.posterior.module, self.pseudo, self.latent)
