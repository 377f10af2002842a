"""What is kept of a sentence, against hand-made cases."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from elboroom.core.problem import Problem
from elboroom.data import places
from elboroom.evaluate.transfer import content, vectors
from elboroom.evaluate.transfer.vectors import Vectors

STYLE = {"great", "awful"}
TWO = Vectors("two", {"soup": 0, "cake": 1, "great": 2}, np.array([[1, 0], [0, 1], [5, 5]], np.float32))


def test_overlap_counts_words_of_content_once() -> None:
    inputs = ["the soup was great", "the soup was great", "soup and cake", "it was great", "great"]
    outputs = ["the soup was awful", "the cake was awful", "soup soup !", "it was awful", "soup"]
    found = content.overlaps(inputs, outputs, STYLE)
    np.testing.assert_allclose(found[[0, 1, 2, 4]], [1, 0, 0.5, 0])
    assert np.isnan(found[3]), "neither has a word of content"


def test_a_copy_has_cosine_one_and_style_words_do_not_count() -> None:
    inputs, outputs = ["soup great", "soup", "cake soup", "great"], ["soup awful", "cake", "soup cake", "soup"]
    found = content.cosines(inputs, outputs, TWO, STYLE)
    np.testing.assert_allclose(found[:3], [1, 0, 1])
    assert np.isnan(found[3])
    assert content.cosines(["soup"], ["nothing known"], TWO, STYLE).tolist() == [0.0]


def test_min_max_and_mean_stand_side_by_side() -> None:
    """soup cake: [0 0; 1 1; .5 .5], soup: [1 0; 1 0; 1 0]: cosine (1 + .5) / (sqrt 2.5 sqrt 3)."""
    found = content.cosines(["soup cake"], ["soup"], TWO, ())
    np.testing.assert_allclose(found, 1.5 / np.sqrt(2.5 * 3))


def test_copies_are_told_by_their_words() -> None:
    assert content.copies(["a b", "a b"], ["a  b", "b a"]).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("text", "numbers", "wanted"),
    [
        ("I don't like it.", False, "i do n't like it ."),
        ("It's 9.50 dollars, isn't it?", True, "it 's _num_ dollars , is n't it ?"),
        ("we 're happy !", False, "we 're happy !"),
        ("Two  spaces", False, "two spaces"),
    ],
)
def test_rewritings_are_tokenised_as_the_corpus_is_and_that_once(text: str, numbers: bool, wanted: str) -> None:
    assert content.tokenised(text, numbers) == wanted
    assert content.tokenised(wanted, numbers) == wanted


def test_words_in_like_company_have_like_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELBOROOM_CACHE", str(tmp_path))
    texts = [
        f"the {noun} {verb} {place}"
        for noun in ("cat", "dog")
        for verb in ("runs", "sleeps")
        for place in ("here", "there")
    ]
    texts += [f"a {noun} {verb} well" for noun in ("car", "bus") for verb in ("drives", "stops")] * 2
    found = vectors.trained(texts * 5)

    def near(a: str, b: str) -> float:
        x, y = found.of([a])[0], found.of([b])[0]
        return float(x @ y / np.sqrt((x @ x) * (y @ y)))

    assert near("cat", "dog") > 0.9 > near("cat", "bus")
    assert "training text" in found.name
    assert len(list((places.cache() / "transfer").iterdir())) == 1
    again = vectors.trained(texts * 5)
    assert np.array_equal(again.table, found.table), "read back from the cache"


def test_vectors_of_a_file_are_glove_or_word2vec(tmp_path: Path) -> None:
    glove, word2vec, broken = tmp_path / "g.txt", tmp_path / "w.txt", tmp_path / "b.txt"
    glove.write_text("cat 1 2\ndog 3 4\n")
    word2vec.write_text("2 2\ncat 1 2\ndog 3 4\n")
    broken.write_text("cat 1 2\ndog 3\n")
    assert vectors.read(glove).of(["dog", "bird"]).tolist() == vectors.read(word2vec).of(["dog"]).tolist() == [[3, 4]]
    with pytest.raises(Problem, match=r"line 2 of .*b.txt is not a word and 2 numbers"):
        vectors.read(broken)
