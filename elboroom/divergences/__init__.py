"""Divergences of two samples: MMD, variational f-divergences, independence, goodness of fit, and one verdict of them."""

from elboroom.divergences.comparison import Comparison, compare
from elboroom.divergences.critic import Estimate, estimate
from elboroom.divergences.goodness import Goodness, gaussians, goodness, model
from elboroom.divergences.independence import Independence, independence
from elboroom.divergences.mmd import Kernel, permutation_test, witness
from elboroom.divergences.transport import wasserstein
from elboroom.divergences.variational import DIVERGENCES, FDivergence, bound

__all__ = [
    "DIVERGENCES",
    "Comparison",
    "Estimate",
    "FDivergence",
    "Goodness",
    "Independence",
    "Kernel",
    "bound",
    "compare",
    "estimate",
    "gaussians",
    "goodness",
    "independence",
    "model",
    "permutation_test",
    "wasserstein",
    "witness",
]
