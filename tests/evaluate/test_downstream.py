"""Downstream tasks: factors predicted from codes with few and with many labels."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.ensemble import GradientBoostingClassifier

from elboroom.core.problem import Problem
from elboroom.evaluate.disentanglement import Grid, Rows
from elboroom.evaluate.downstream import Predictor, downstream, fit, logistic

SIZES = (3, 4, 5)
BOTH: tuple[Predictor, Predictor] = ("boosting", "logistic")


def factorial(*sizes: int) -> NDArray[np.int64]:
    return np.stack(np.meshgrid(*map(np.arange, sizes), indexing="ij"), -1).reshape(-1, len(sizes))


@pytest.fixture(scope="module")
def grid() -> Grid:
    codes = factorial(*SIZES) * [1.0, 0.5, 2.0]
    return Grid(np.concatenate([codes, np.zeros((60, 1))], 1), sizes=SIZES, names=("shape", "scale", "place"))


@pytest.mark.slow
@pytest.mark.parametrize("mode", BOTH)
def test_clear_codes_need_labels_and_no_more(grid: Grid, mode: Predictor) -> None:
    found = downstream(grid, 0, mode, sizes=(10, 50, 400), test=200, threads=1, ceilings={"place": 0.975})
    assert list(found) == [*(f"downstream-{n}" for n in (10, 50, 400)), "efficiency-10", "efficiency-50"]
    few, middle, many = (found[f"downstream-{n}"].value or 0 for n in (10, 50, 400))
    assert 1 / 5 < few < middle <= many
    assert many == pytest.approx(1, abs=0.03)
    assert found["efficiency-50"].value == pytest.approx(middle / many)
    parts = found["downstream-10"].parts
    assert parts["chance"] == [1 / 3, 1 / 4, 1 / 5]
    assert parts["ceiling"] == [1, 1, 0.975]
    assert few == pytest.approx(np.mean(parts["factors_test"]))
    assert parts["min_test"] == min(parts["factors_test"])
    interval = found["downstream-10"].interval
    assert interval is not None
    assert interval["low"] < few < interval["high"]
    json.dumps([score.to_json() for score in found.values()], allow_nan=False)


@pytest.mark.slow
def test_points_are_drawn_as_in_the_study(grid: Grid) -> None:
    """For each size train, then test, 16 at a time, one `randint` for each factor."""

    def draw(rng: np.random.RandomState, n: int) -> NDArray[np.int64]:
        chunks = [min(16, n - at) for at in range(0, n, 16)]
        return np.concatenate([np.stack([rng.randint(size, size=m) for size in SIZES], 1) for m in chunks])

    rng = np.random.RandomState(0)
    found = downstream(grid, 0, "boosting", sizes=(10, 40), test=100, threads=1)
    for size in (10, 40):
        train, test = draw(rng, size), draw(rng, 100)
        scale = np.array([1.0, 0.5, 2.0, 0.0])
        x, others = (np.pad(f, ((0, 0), (0, 1))) * scale for f in (train, test))
        for k in range(3):
            model = GradientBoostingClassifier(random_state=0).fit(x, train[:, k])
            wanted = np.mean(model.predict(others) == test[:, k])
            assert found[f"downstream-{size}"].parts["factors_test"][k] == wanted


@pytest.mark.parametrize("mode", BOTH)
def test_one_valued_labels_give_a_constant_and_unseen_values_are_errors(mode: Predictor) -> None:
    rng = np.random.default_rng(0)
    codes = rng.standard_normal((8, 2))
    constant = fit(codes, np.full(8, 3), mode)
    assert constant.predict(rng.standard_normal((5, 2))).tolist() == [3] * 5
    model = fit(codes, np.array([0, 0, 0, 0, 2, 2, 2, 2]), mode, threads=1)
    assert set(model.predict(rng.standard_normal((50, 2))).tolist()) <= {0, 2}


def test_folds_that_train_on_one_class_are_skipped() -> None:
    codes = np.array([[0.0], [0.1], [0.2], [0.3], [0.4], [0.5], [0.6], [0.7], [5.0], [6.0]])
    classes = np.array([0] * 8 + [1] * 2)  # the last fold leaves zeros alone
    assert logistic(codes, classes).predict(codes[:1]).tolist() == [0]
    assert logistic(codes[[0, 8]], np.array([0, 1])).predict(codes[[0, 9]]).tolist() == [0, 1]  # no fold is left


@pytest.mark.slow
def test_ten_labels_of_forty_values() -> None:
    sizes = (40, 2)
    grid = Grid(factorial(*sizes).astype(float), sizes=sizes)
    for mode in BOTH:
        found = downstream(grid, 0, mode, sizes=(10,), test=200, threads=1)["downstream-10"]
        assert found.value is not None
        assert found.parts["unseen"][0] >= 30
        assert found.parts["factors_test"][0] <= 10 / 40 + 0.1


@pytest.mark.slow
def test_a_seed_gives_one_answer_and_threads_change_nothing(grid: Grid) -> None:
    one, two = (downstream(grid, 3, "boosting", sizes=(60,), test=100, threads=threads) for threads in (1, 2))
    assert one["downstream-60"].to_json() == two["downstream-60"].to_json()
    other = downstream(grid, 4, "boosting", sizes=(60,), test=100, threads=1)
    assert other["downstream-60"].to_json() != one["downstream-60"].to_json()


def test_arrays_and_what_is_wrong_with_them() -> None:
    rng = np.random.default_rng(1)
    factors = rng.integers(3, size=(300, 2))
    codes = factors + 0.1 * rng.standard_normal((300, 2))
    with pytest.raises(Problem, match="needs 5,010 rows but there are 300"):
        downstream(Rows(codes, factors), mode="logistic")
    found = downstream(Rows(codes, factors, allow_smaller=True), mode="logistic", sizes=(10, 100, 1000))
    assert found["downstream-100"].settings["test"] == 200
    assert found["downstream-1000"].value is None
    assert "300 rows" in found["downstream-1000"].reason
    assert found["efficiency-100"].value is None
    with pytest.raises(Problem, match="continuous"):
        downstream(Rows(codes, codes, allow_smaller=True))
    with pytest.raises(Problem, match="unknown predictor 'forest'"):
        downstream(Rows(codes, factors, allow_smaller=True), mode="forest")  # type: ignore[arg-type]
    with pytest.raises(Problem, match="at least one label"):
        downstream(Rows(codes, factors, allow_smaller=True), sizes=())
