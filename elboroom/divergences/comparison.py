"""The comparison of two samples: one statistic, one p-value, one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from elboroom.core.calls import asked
from elboroom.core.memory import require
from elboroom.core.problem import Problem
from elboroom.divergences import mmd
from elboroom.divergences.critic import Estimate, Training, estimate
from elboroom.divergences.mmd import Kernel
from elboroom.divergences.samples import at_least, pair, thinned
from elboroom.divergences.transport import wasserstein
from elboroom.divergences.variational import divergence

FEW = 50  # rows below which finding nothing says little


@dataclass(frozen=True)
class Comparison:
    """Two samples held against each other: MMD^2 (U) as the statistic, its permutation p-value, and what that means."""

    statistic: float
    p: float
    biased: float  # MMD^2 (V)
    verdict: str
    names: tuple[str, str]
    kernel: Kernel
    settings: dict[str, Any]
    divergences: dict[str, Estimate] = field(default_factory=dict)
    wasserstein: float | None = None  # of numbers only
    a: Tensor = field(default_factory=lambda: torch.empty(0, 1), repr=False, compare=False)  # (n, d), as tested
    b: Tensor = field(default_factory=lambda: torch.empty(0, 1), repr=False, compare=False)  # (m, d)

    def witness(self, at: Tensor) -> Tensor:
        """The witness function at points (q, d): positive where A is denser, (q,)."""
        return mmd.witness(self.kernel, self.a, self.b, at)

    def to_json(self) -> dict[str, Any]:
        """All but the samples, as a plain dict."""
        found: dict[str, Any] = {
            "estimator": "MMD^2, unbiased, by permutations",
            "statistic": self.statistic,
            "p": self.p,
            "biased": self.biased,
            "verdict": self.verdict,
            "names": list(self.names),
            "settings": self.settings,
        }
        if self.wasserstein is not None:
            found["wasserstein"] = self.wasserstein
        if self.divergences:
            found["divergences"] = {name: value.to_json() for name, value in self.divergences.items()}
        return found


@asked
def compare(
    a: ArrayLike | Tensor, b: ArrayLike | Tensor, *, kernel: str = "rbf", bandwidth: float | None = None,
    permutations: int = 1000, most: int = 2000, level: float = 0.05, divergences: Sequence[str] = (), seed: int = 0,
    how: Training | None = None, names: tuple[str, str] = ("A", "B"),
) -> Comparison:  # fmt: skip
    """Whether two samples come from one distribution.

    kernel: rbf or imq; bandwidth: its distance, by default the median of the pooled sample. Of more than `most` rows
    that many are drawn for the test. divergences: names of f-divergences to bound from below as well (slower),
    with critics trained as `how` says.
    """
    x, y = pair(a, b, names)
    at_least(permutations, 1, "the number of permutations")
    at_least(most, 5, "the number of rows to test")
    if not 0 < level < 1:
        raise Problem(f"the level of a test must be between 0 and 1, not {level:g}")
    for name in divergences:
        divergence(name)  # an unknown one is refused before anything is computed
    noise = torch.Generator().manual_seed(seed)
    few_x, few_y = thinned(x, most, noise), thinned(y, most, noise)
    require(24 * (len(few_x) + len(few_y)) ** 2, f"to test {len(few_x):,} rows against {len(few_y):,}")
    chosen = Kernel.of(kernel, few_x, few_y, bandwidth)
    test, found = mmd.two_sample(few_x, few_y, chosen, permutations, seed)
    estimates = {name: estimate(x, y, name, how or Training(seed=seed), names) for name in divergences}
    settings = {"kernel": kernel, "bandwidth": chosen.scale, "permutations": permutations, "rows": [len(x), len(y)],
                "tested_rows": [len(few_x), len(few_y)], "dimensions": x.shape[1], "level": level, "seed": seed}  # fmt: skip
    return Comparison(
        statistic=test.statistic,
        p=test.p,
        biased=found["mmd2_v"],
        verdict=_verdict(test, names, level, min(len(few_x), len(few_y))),
        names=names,
        kernel=chosen,
        settings=settings,
        divergences=estimates,
        wasserstein=float(wasserstein(x[:, 0], y[:, 0])) if x.shape[1] == 1 else None,
        a=few_x,
        b=few_y,
    )


def _verdict(test: mmd.Permuted, names: tuple[str, str], level: float, rows: int) -> str:
    found = f"MMD² = {test.statistic:.3g}, p = {test.p:.3g} from {len(test.null):,} permutations"
    if test.p <= level:
        return f"{names[0]} and {names[1]} differ ({found})."
    weak = f"; {rows} rows would show large differences only" if rows < FEW else ""
    return f"No difference between {names[0]} and {names[1]} was found ({found}{weak})."
