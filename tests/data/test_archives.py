"""Archives with an array for each split."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elboroom.core.problem import Problem
from elboroom.data import registry

X = np.arange(10 * 16).reshape(10, 4, 4).astype(np.uint8)
Y = np.arange(10) % 3


@pytest.mark.parametrize(
    ("keys", "splits", "labels"),
    [
        ({"x_train": X[:6], "y_train": Y[:6], "x_test": X[6:], "y_test": Y[6:]}, [6, 4], {"label": 3}),
        ({"train_images": X[:6], "test_images": X[6:]}, [6, 4], {}),
        ({"train": X[:5], "val": X[5:8], "test": X[8:]}, [5, 3, 2], {}),
        ({"X_train": X}, [10], {}),
    ],
)
def test_splits_are_read_off_the_keys(
    tmp_path: Path, keys: dict[str, Any], splits: list[int], labels: dict[str, int]
) -> None:
    np.savez(tmp_path / "x.npz", **keys)
    data = registry.load(tmp_path / "x.npz")
    assert [len(rows) for rows in data.splits.values()] == splits
    assert data.draft.labels == labels
    assert data.holdout == (0.0 if "test" in data.splits else 0.1)
    np.testing.assert_array_equal(np.rint(data.x(np.arange(10)).numpy()[:, 0] * 255), X)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"x_train": X[:6], "x_test": X[6:, :2]}, "do not fit together"),
        ({"x_train": X[:6], "y_train": Y[:6], "x_test": X[6:]}, "labels of train, but not of all"),
        ({"x_train": X[:6], "y_train": Y[:5], "x_test": X[6:], "y_test": Y[6:]}, "one label for each"),
        ({"x_train": X[:6], "other": X[6:]}, "choose one with"),
        ({"x_test": X, "y_test": Y}, "choose one with"),
    ],
)
def test_splits_that_do_not_fit_are_refused(tmp_path: Path, keys: dict[str, Any], said: str) -> None:
    np.savez(tmp_path / "x.npz", **keys)
    with pytest.raises(Problem, match=said):
        registry.load(tmp_path / "x.npz")
