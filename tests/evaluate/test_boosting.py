"""Where scikit-learn is another inside, its own booster is used: the same numbers, and one warning."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier

from elboroom.evaluate import boosting
from elboroom.evaluate.disentanglement import Rows, score
from elboroom.evaluate.downstream import downstream

RNG = np.random.default_rng(0)
FACTORS = RNG.integers(3, size=(300, 2))
CODES = FACTORS @ RNG.normal(size=(2, 4)) + RNG.normal(size=(300, 4))
OURS = "elboroom.evaluate.boosting."


@pytest.fixture(params=["gone", "other arguments"])
def another_inside(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A scikit-learn whose private names have gone, or take other arguments."""
    for name in ("stages", "growth"):
        monkeypatch.delitem(sys.modules, OURS + name, raising=False)
        monkeypatch.delattr(boosting, name, raising=False)
    if request.param == "gone":
        monkeypatch.setitem(sys.modules, "sklearn.tree._tree", None)  # to import it again fails
    else:
        own = GradientBoostingClassifier._fit_stage

        def fit_stage(self: Any, *everything: Any, **named: Any) -> Any:
            return own(self, *everything, **named)

        monkeypatch.setattr(GradientBoostingClassifier, "_fit_stage", fit_stage)
    boosting.fast.cache_clear()
    yield
    boosting.fast.cache_clear()


def measured() -> tuple[Any, Any]:
    dci = score("dci", CODES, FACTORS, train=200, test=100, allow_smaller=True)
    return dci, downstream(Rows(CODES, FACTORS, allow_smaller=True), sizes=(60,))["downstream-60"].to_json()


@pytest.fixture(scope="module")
def fast() -> tuple[Any, Any]:
    assert boosting.fast() is not None, "with the version that is tested, our own trees are grown"
    return measured()


@pytest.mark.slow
def test_the_numbers_are_the_same_and_it_is_said_once(fast: tuple[Any, Any], another_inside: None) -> None:
    with pytest.warns(UserWarning, match="falls back to scikit-learn, which is slower"):
        model = boosting.boosted(CODES, FACTORS[:, 0])
    assert type(model) is GradientBoostingClassifier
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dci, curve = measured()
    assert curve == fast[1], "predictions, bit for bit"
    assert [dci.parts[name] for name in ("train", "test")] == [fast[0].parts[name] for name in ("train", "test")]
    np.testing.assert_allclose(dci.parts["importance"], fast[0].parts["importance"], atol=1e-12)
    assert dci.value == pytest.approx(fast[0].value, abs=1e-12), "up to the order of sums"
