"""Draws from the sphere per second."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from benchmarks.measure import Result, in_turns, measurement, timed
from elboroom.families.sphere import VonMisesFisher
from elboroom.nets.fast.memory import keep_memory

N, D, KAPPA = 100_000, 32, 13.0
FEW = 5_000  # examples that the loop is timed on


def one(m: Tensor, kappa: float, rng: np.random.Generator) -> Tensor:
    """A draw from von Mises-Fisher for one example, differentiable in m, as published code has it (Xu & Durrett 2018)."""
    n = len(m) - 1
    b = n / (math.sqrt(4 * kappa * kappa + n * n) + 2 * kappa)
    x0 = (1 - b) / (1 + b)
    c = kappa * x0 + n * math.log(1 - x0 * x0)
    while True:
        y = rng.beta(n / 2, n / 2)
        omega = (1 - (1 + b) * y) / (1 - (1 - b) * y)
        if kappa * omega + n * math.log(1 - x0 * omega) - c >= math.log(rng.random()):
            break
    noise = torch.randn(len(m))
    across = noise - (noise @ m) * m
    return omega * m + math.sqrt(1 - omega * omega) * across / across.norm()


@measurement("vmf-sampling")
def vmf_sampling() -> Result:
    """100,000 draws of von Mises-Fisher in 32 dimensions, all at once; against a loop over examples (50 or more)."""
    keep_memory()
    loc = torch.nn.functional.normalize(torch.randn(N, D), dim=-1)
    q, rng = VonMisesFisher(loc, torch.tensor(KAPPA)), np.random.default_rng(0)

    def loop() -> Tensor:
        return torch.stack([one(m, KAPPA, rng) for m in loc[:FEW]])

    seconds = in_turns({"ours": timed(q.rsample), "loop": timed(loop)}, repetitions=7)
    ours, reference = N / seconds["ours"], FEW / seconds["loop"]
    return Result(ours, "draws/s", reference, ours / reference, target=50.0)
