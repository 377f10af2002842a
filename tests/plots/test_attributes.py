"""The figure of attributes: every class, by name, tested where it was not learnt."""

from __future__ import annotations

import numpy as np
import pytest

import elboroom
from elboroom.core.problem import Problem
from elboroom.plots.attributes import attributes


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> elboroom.Run:
    """Codes that know an image by its brightness, which is its first label."""
    rng, y = np.random.default_rng(0), np.arange(240) % 12
    x = (20 * y[:, None, None] + rng.integers(0, 4, (240, 8, 8))).astype(np.uint8)
    data, labels = x, {"shade": np.array(list("abcdefghijkl"))[y], "dark": (y < 3).astype(int)}
    return elboroom.train(
        "vae", data, tmp_path_factory.mktemp("runs") / "run", labels=labels, steps=30, latent=2, threads=1
    )


def words(run: elboroom.Run, label: str = "") -> list[str]:
    return [text.get_text() for axes in attributes(run, label).axes for text in axes.texts]


def test_every_class_is_shown_by_its_name_with_what_the_shares_are(run: elboroom.Run) -> None:
    said = [text for text in words(run) if text.startswith("shade")]
    assert [text.split()[1] for text in said] == list("abcdefghijkl"), "all of them, not the first eight"
    assert all("right" in text and "without z" in text for text in said)


def test_another_label_can_be_said_and_is_tested_on_the_test_split(run: elboroom.Run) -> None:
    assert next(text for text in words(run, "dark") if text.startswith("dark")).startswith("dark 0\n")
    answers = run.data.labels[run.rows("test")[1], 1]
    share = max(answers.mean(), 1 - answers.mean())
    assert f"{share:.0%} without z" in words(run, "dark")[0]
    with pytest.raises(Problem, match="no label 'drak'; did you mean 'dark'"):
        attributes(run, "drak")
    assert "dark" in run.plot("attributes", label="dark").caption
    with pytest.raises(Problem, match="has no effect on traversals"):
        run.plot("traversals", label="dark")
