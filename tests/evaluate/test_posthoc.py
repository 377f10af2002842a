"""The post-hoc likelihood of encoders without a density, against a model in which it is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from elboroom.core.draw import Batch, LatentModel
from elboroom.data import arrays
from elboroom.evaluate.posthoc import posthoc
from elboroom.evaluate.split import Split
from elboroom.families.point import PointPosterior


def pointed(known: Any, n: int) -> Split:
    """The first n rows of a linear Gaussian model whose encoder says the exact mean and nothing else."""
    exact = known.model.posterior

    class Mean(PointPosterior):
        def forward(self, batch: Batch) -> Any:
            return self.family(exact(Batch(batch.x.double())).mean)

    model = LatentModel(Mean(exact.net), known.model.prior, known.model.likelihood)
    data = arrays.dataset(known.x.numpy().astype(np.float32))
    data.splits.update(test=np.arange(n), valid=np.arange(n, 200))
    return Split(model, data, "test", np.arange(n))


def test_it_finds_the_likelihood(ppca: Any) -> None:
    """Within 4 standard errors of log N(x; b, W W' + s^2 I), and named for what it is."""
    known = ppca()
    found = posthoc(pointed(known, 40), 3000)
    assert found.estimator == "posthoc iw-3000"
    assert found.settings["prior"] == "own"
    assert 0 < found.errors["importance_noise"] < 0.02
    assert found.value == pytest.approx(
        known.log_p(known.x[:40]).mean().item(), abs=4 * found.errors["importance_noise"]
    )


def test_it_is_a_bound_that_tightens(ppca: Any) -> None:
    known = ppca()
    split, truth = pointed(known, 100), known.log_p(known.x[:100]).mean().item()
    values = [posthoc(split, k).value for k in (1, 10, 300)]
    assert values[0] < values[1] < values[2] < truth + 0.02  # type: ignore[operator]
