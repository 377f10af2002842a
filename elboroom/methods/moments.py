"""DIP-VAE: the moments of the aggregate posterior held near those of the prior."""

from __future__ import annotations

from typing import Literal

from elboroom.build.parts import Parts
from elboroom.build.registry import NonNegative, method
from elboroom.core.method import Method, descend
from elboroom.terms.evidence import kl, nll
from elboroom.terms.moments import diagonal, off_diagonal, third_moment

PURPOSE = "disentangled codes: one factor a dimension"


@method(
    "dip-vae-i", "nll + kl + off sum_ij C_ij^2 + diag sum_i (C_ii - 1)^2, C = Cov(mu)", paper="Kumar et al. 2018, Eq. 6"
)
def dip_vae_i(parts: Parts, off: NonNegative = 10.0, diag: NonNegative = 100.0) -> Method:
    """A VAE whose posterior means are decorrelated, with variance one.

    off: weight of the off-diagonal entries, both triangles counted
    diag: weight of the diagonal (published: 10 times the other, 50 times on CelebA)
    """
    return descend(parts.vae(), nll() + kl() + off * off_diagonal("means") + diag * diagonal("means"))


@method(
    "dip-vae-ii", "nll + kl + off sum_ij C_ij^2 + diag sum_i (C_ii - 1)^2, C = Cov(z)", paper="Kumar et al. 2018, Eq. 7"
)
def dip_vae_ii(
    parts: Parts,
    off: NonNegative = 5.0,
    diag: NonNegative = 5.0,
    third: NonNegative = 0.0,
    entries: Literal["all", "diagonal"] = "all",
) -> Method:
    """A VAE whose codes are decorrelated, with variance one; suits data with fewer factors than dimensions.

    The paper's third-order penalty is read as the squared norm of the full tensor of central moments.

    off: weight of the off-diagonal entries, both triangles counted
    diag: weight of the diagonal
    third: weight of the third central moment (published: 200 on dSprites)
    entries: of the third moment that are counted
    """
    objective = nll() + kl() + off * off_diagonal("samples") + diag * diagonal("samples")
    return descend(parts.vae(), objective + third * third_moment(entries) if third else objective)
