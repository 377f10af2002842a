"""The metric of FactorVAE counts votes of the dimension that varies least."""

from __future__ import annotations

import numpy as np
import pytest

from elboroom.evaluate.disentanglement import Grid
from elboroom.evaluate.disentanglement.factor_vae import MODES, Protocol
from elboroom.evaluate.disentanglement.registry import find

SIZES = (3, 4, 5)
FACTORS = np.stack(np.unravel_index(np.arange(60), SIZES), 1)
MIXING = np.array([[0.3, 0.2, 0.0], [0.2, -0.2, 0.1], [0.0, 0.1, 0.2]])
MU = FACTORS @ MIXING + 0.2 * np.random.default_rng(0).normal(size=(60, 3))


def test_it_is_the_protocol_of_the_study(monkeypatch: pytest.MonkeyPatch) -> None:
    """Vote by vote, as it was first written."""
    monkeypatch.setitem(MODES, "dlib", Protocol(1000, 8, 300, 200))
    grid, rng = Grid(MU, None, SIZES), np.random.RandomState(2)

    def batch(n: int) -> np.ndarray:
        return np.stack([rng.randint(s, size=n) for s in SIZES], 1)

    def codes(factors: np.ndarray) -> np.ndarray:
        return MU[np.ravel_multi_index(tuple(factors.T), SIZES)]

    spread = np.var(codes(batch(1000)), axis=0, ddof=1)
    votes = np.zeros((2, 3, 3), int)
    for i in range(500):
        k, f = rng.randint(3), batch(8)
        f[:, k] = f[0, k]
        votes[int(i >= 300), k, np.argmin(np.var(codes(f), axis=0, ddof=1) / spread)] += 1
    found = find("factor-vae")(grid, 2)
    np.testing.assert_array_equal(found.parts["votes"], votes[0])
    np.testing.assert_array_equal(found.parts["test_votes"], votes[1])
    assert found.value == votes[1][votes[0].argmax(0), np.arange(3)].sum() / 200


def test_a_faint_column_has_no_vote() -> None:
    faint = 0.01 * np.random.default_rng(1).normal(size=(60, 1))
    bare, more = (find("factor-vae")(Grid(mu, None, SIZES)) for mu in (MU, np.hstack([MU, faint])))
    assert bare.value == more.value
    assert more.parts["mask"].tolist() == [True, True, True, False]
    assert more.settings["active"] == 3
    free = find("factor-vae")(Grid(np.hstack([MU, faint]), None, SIZES), threshold=0.0)
    assert free.settings["active"] == 4


@pytest.mark.parametrize("mode", sorted(MODES))
def test_no_active_dimension_scores_zero(mode: str) -> None:
    found = find("factor-vae")(Grid(np.full((60, 2), 3.0), None, SIZES), 0, mode)
    assert found.value == 0
    assert found.settings["active"] == 0


def test_a_rescaled_column_changes_nothing() -> None:
    bare, scaled = (find("factor-vae")(Grid(mu, None, SIZES)) for mu in (MU, MU * [1, 4, 0.5]))
    assert bare.value == scaled.value


def test_the_mode_of_the_paper() -> None:
    found = find("factor-vae")(Grid(FACTORS * 0.001, None, SIZES), 0, "paper")
    assert found.value == 1  # on standardised codes only constants fall
    assert (found.settings["train"], found.settings["length"], found.settings["variances"]) == (800, 200, 60)
