"""Terms on the moments of the aggregate posterior: its covariance near the identity, its third moment near zero."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from elboroom.core import distributed
from elboroom.core.draw import Draw
from elboroom.core.kl import require_variance
from elboroom.core.model import LatentModel
from elboroom.core.objective import Term

Of = Literal["means", "samples"]


def covariance(draw: Draw, of: Of) -> Tensor:
    """Cov_x(mu) over the global batch with 1/B, plus diag(mean sigma^2) for the covariance of z itself, (D, D)."""

    def make() -> Tensor:
        centred = _centred(draw)
        found = centred.T @ centred / len(centred)
        return found if of == "means" else found + torch.diag(distributed.gather(draw.q.variance).mean(0))

    found: Tensor = draw.keep(("covariance", of), make)
    return found


def off_diagonal(of: Of) -> Term:
    """sum_{i != j} C_ij^2, both triangles counted."""

    def value(draw: Draw) -> Tensor:
        c = covariance(draw, of)
        return c.square().sum() - c.diagonal().square().sum()

    return Term("cov_off", value, check=_check, couples=True)


def diagonal(of: Of) -> Term:
    """sum_i (C_ii - 1)^2."""
    return Term(
        "cov_diag", lambda draw: (covariance(draw, of).diagonal() - 1).square().sum(), check=_check, couples=True
    )


def third_moment(only: Literal["all", "diagonal"] = "all") -> Term:
    """The squared norm of the third central moment of q(z), in closed form from means and variances.

    T_ijk = mean(a_i a_j a_k) + [j=k] mean(a_i s_j^2) + [i=k] mean(a_j s_i^2) + [i=j] mean(a_k s_i^2), a the centred means.
    """

    def value(draw: Draw) -> Tensor:
        a, s2 = _centred(draw), distributed.gather(draw.q.variance)
        n, eye = len(a), torch.eye(a.shape[1], dtype=a.dtype, device=a.device)
        third = torch.einsum("bi,bj,bk->ijk", a, a, a) / n
        cross = a.T @ s2 / n  # mean(a_i s_j^2)
        third = third + torch.einsum("ij,jk->ijk", cross, eye)
        third = third + torch.einsum("ji,ik->ijk", cross, eye) + torch.einsum("ki,ij->ijk", cross, eye)
        return (third if only == "all" else torch.einsum("iii->i", third)).square().sum()

    return Term("third", value, check=_check, couples=True)


def _centred(draw: Draw) -> Tensor:
    means = distributed.gather(draw.q.mean)
    return means - means.mean(0)


def _check(model: LatentModel) -> None:
    require_variance(model.families[0], "a penalty on moments")
