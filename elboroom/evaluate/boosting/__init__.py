"""Gradient boosting as scikit-learn does it, in less time where its version lets us.

The predictions are equal bit for bit; importances, which are sums over rows, up to the order of these sums.
"""

from __future__ import annotations

import os
import warnings
from functools import cache
from importlib import import_module
from typing import Any

from numpy.typing import NDArray
from sklearn.ensemble import GradientBoostingClassifier


def cores() -> int:
    """How many processors this process may use, and no more than OMP_NUM_THREADS where that is set."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    said = os.environ.get("OMP_NUM_THREADS", "")
    return min(count, int(said)) if said.isdigit() and int(said) > 0 else count


@cache
def fast() -> Any:
    """The class whose trees grow side by side; None, said once, where this scikit-learn is another inside."""
    try:
        return import_module("elboroom.evaluate.boosting.stages").Boosting
    except (ImportError, AttributeError) as error:
        warnings.warn(f"boosting falls back to scikit-learn, which is slower: {error}", stacklevel=3)
        return None


def boosted(x: NDArray[Any], y: NDArray[Any], seed: int = 0, threads: int | None = None) -> GradientBoostingClassifier:
    """Boosting with the defaults of scikit-learn, fitted to classes y."""
    if fast() is None:
        return GradientBoostingClassifier(random_state=seed).fit(x, y)
    model = fast()(random_state=seed)
    with model.on(cores() if threads is None else threads):
        model.fit(x, y)
    return model
