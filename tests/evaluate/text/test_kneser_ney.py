"""The n-gram model, against arithmetic on paper and against the textbook written out with dictionaries."""

from __future__ import annotations

import math
import os
from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from elboroom.core.problem import Problem
from elboroom.evaluate.text import kneser_ney
from elboroom.evaluate.text.kneser_ney import END, START, UNK, KneserNey, modified_discounts

TINY = ["a b", "a b", "a c"]


def p(model: KneserNey, word: str, context: str = "", begins: bool = True) -> float:
    return float(model.distribution(context, begins)[model.ids.get(word, UNK)])


def test_two_words_back_counted_by_hand() -> None:
    """Discounts 0.5, 1, 1.5, because no count of counts but t_1 and t_2 is there.

    Words seen before a, b, c, </s>: 1, 1, 1, 2 of 5 pairs. Taken off: 0.5 + 0.5 + 0.5 + 1 = 2.5, of 5: half is left for
    1/5 each to a, b, c, </s>, <unk>.
    """
    model = KneserNey(TINY, order=2)
    assert model.fallback == [1, 2]
    assert model.discounts == [(0.5, 1.0, 1.5)] * 2
    inside = model.distribution(begins=False)
    assert inside[START] == 0
    assert inside[END] == pytest.approx((2 - 1) / 5 + 0.5 / 5)
    for word in "abc":
        assert p(model, word, begins=False) == pytest.approx((1 - 0.5) / 5 + 0.5 / 5)
    assert p(model, "<unk>", begins=False) == pytest.approx(0.5 / 5)
    # after a: b twice, c once; (1 + 0.5) / 3 is left
    assert p(model, "b", "a", begins=False) == pytest.approx((2 - 1) / 3 + 0.5 * 0.2)
    assert p(model, "c", "a", begins=False) == pytest.approx((1 - 0.5) / 3 + 0.5 * 0.2)
    assert p(model, "a", "a", begins=False) == pytest.approx(0.5 * 0.2)
    assert p(model, "never", "a", begins=False) == pytest.approx(0.5 * 0.1)
    # a begins all three sentences; b is followed by the end twice
    scored = model.score(["a b", "", "d"])
    first = ((3 - 1.5) / 3 + 0.5 * 0.2) * ((2 - 1) / 3 + 0.5 * 0.2) * ((2 - 1) / 2 + 0.5 * 0.3)
    at_once = 0.5 * 0.3
    unseen = 0.5 * 0.1 * 0.3  # nothing was seen after <unk>: the end has its own probability
    assert np.exp(-scored.nats) == pytest.approx([first, at_once, unseen])
    assert scored.tokens.tolist() == [3, 1, 2]
    assert scored.unknown == 1
    assert scored.perplexity()[0] == pytest.approx((first * at_once * unseen) ** (-1 / 6))


def test_three_words_back_counts_contexts_below_and_sentences_at_the_begin() -> None:
    """ab and ac each have one word before them, so count once; <s> a has none and counts three times."""
    model = KneserNey(TINY, order=3)
    middle = (1 - 0.5) / 2 + 0.5 * 0.2
    assert p(model, "b", "a", begins=False) == pytest.approx(middle)
    assert p(model, "a") == pytest.approx((3 - 1.5) / 3 + 0.5 * 0.2)
    assert p(model, "b", "a") == pytest.approx((2 - 1) / 3 + (1 + 0.5) / 3 * middle)


def test_discounts_by_counts_of_counts() -> None:
    """t = 10, 4, 2, 1: Y = 10 / (10 + 8)."""
    a = np.repeat([1, 2, 3, 4, 9, 0], [10, 4, 2, 1, 7, 5])
    y = 10 / 18
    assert modified_discounts(a) == pytest.approx((1 - 2 * y * 4 / 10, 2 - 3 * y * 2 / 4, 3 - 4 * y * 1 / 2))


@pytest.mark.parametrize(
    "times", [(0, 4, 2, 1), (10, 0, 2, 1), (10, 4, 0, 1), (10, 4, 2, 0), (10, 1, 9, 1), (9, 8, 1, 9)]
)
def test_small_texts_give_no_discounts(times: tuple[int, ...]) -> None:
    """A count is missing, or D_2 = 2 - 3 (10 / 12) 9 < 0, or D_3 < 0."""
    assert modified_discounts(np.repeat([1, 2, 3, 4], times)) is None


def test_a_text_falls_back_order_by_order() -> None:
    model = KneserNey(text(400, 30), order=4)
    fallen = [n for n, found in enumerate(model.discounts, 1) if found == kneser_ney.FALLBACK]
    assert model.fallback == fallen
    assert 1 in fallen  # few words, each after many others
    assert len(fallen) < 4


def text(sentences: int, words: int, seed: int = 0) -> list[str]:
    """Sentences of a Markov chain over a few words."""
    rng = np.random.default_rng(seed)
    chain = rng.dirichlet(np.full(words, 0.3), words)
    found = []
    for size in rng.integers(0, 9, sentences):
        state, said = 0, []
        for _ in range(size):
            state = int(rng.choice(words, p=chain[state]))
            said.append(f"w{state}")
        found.append(" ".join(said))
    return found


class Textbook:
    """The same model, straight from its definition."""

    def __init__(self, sentences: list[str], order: int) -> None:
        rows = [["<s>", *s.split(), "</s>"] for s in sentences]
        self.order = order
        self.words = {w for row in rows for w in row} - {"<s>"} | {"<unk>"}
        raw = [
            Counter(tuple(row[i : i + n]) for row in rows for i in range(len(row) - n + 1)) for n in range(1, order + 1)
        ]
        self.a: list[dict[tuple[str, ...], int]] = []
        for n in range(1, order + 1):
            if n == order:
                here = dict(raw[n - 1])
            else:
                before = Counter(g[1:] for g in raw[n])
                here = {g: c if g[0] == "<s>" else before[g] for g, c in raw[n - 1].items()}
            here.pop(("<s>",), None)
            self.a.append(here)
        self.d = [self.discounts(list(here.values())) for here in self.a]

    @staticmethod
    def discounts(a: list[int]) -> list[float]:
        t = Counter(a)
        if not all(t[k] for k in (1, 2, 3, 4)):
            return [0, 0.5, 1, 1.5]
        y = t[1] / (t[1] + 2 * t[2])
        d = [k - (k + 1) * y * t[k + 1] / t[k] for k in (1, 2, 3)]
        return [0, *d] if all(0 < x < k for k, x in enumerate(d, 1)) else [0, 0.5, 1, 1.5]

    @cache  # noqa: B019
    def p(self, word: str, h: tuple[str, ...]) -> float:
        h = h[-(self.order - 1) :] if self.order > 1 else ()
        below = self.p(word, h[1:]) if h else 1 / len(self.words)
        a, d = self.a[len(h)], self.d[len(h)]
        after = {g: c for g, c in a.items() if g[:-1] == h}
        total = sum(after.values())
        if not total:
            return below
        mine = after.get((*h, word), 0)
        return (mine - d[min(mine, 3)]) / total + sum(d[min(c, 3)] for c in after.values()) / total * below

    def nats(self, sentence: str) -> float:
        row = ["<s>", *(w if w in self.words else "<unk>" for w in sentence.split()), "</s>"]
        return -sum(math.log(self.p(w, tuple(row[:i]))) for i, w in enumerate(row) if i)


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("size", [30, 300])
def test_it_is_the_textbook(order: int, size: int) -> None:
    seen, new = text(size, 12), [*text(30, 12, seed=1), "w1 never w2 w3", "never", "never seen words", ""]
    model, book = KneserNey(seen, order), Textbook(seen, order)
    assert [pytest.approx(d) for d in model.discounts] == [tuple(d[1:]) for d in book.d]
    assert model.score(new).nats == pytest.approx([book.nats(s) for s in new])


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_probabilities_sum_to_one_after_any_words(order: int) -> None:
    model, book = KneserNey(text(200, 12), order), Textbook(text(200, 12), order)
    contexts = ["", "w1", "w3 w1", "w1 w2 w3 w4 w5 w6", "never", "w1 never", "never w1", text(5, 12)[3]]
    for context in contexts:
        for begins in (True, False):
            found = model.distribution(context, begins)
            assert found.sum() == pytest.approx(1, abs=1e-12)
            assert found[START] == 0
            assert (np.delete(found, START) > 0).all()
            h = (*["<s>"] * begins, *(w if w in book.words else "<unk>" for w in context.split()))
            assert found[END] == pytest.approx(book.p("</s>", h))
            assert p(model, "w4", context, begins) == pytest.approx(book.p("w4", h))


def test_scores_are_the_product_of_the_distributions() -> None:
    model = KneserNey(text(200, 12), 4)
    sentence = "w3 w1 never w2"
    words = sentence.split()
    each = [p(model, word, " ".join(words[:i])) for i, word in enumerate(words)]
    wanted = math.prod(each) * model.distribution(sentence)[END]
    assert math.exp(-model.score([sentence]).nats[0]) == pytest.approx(wanted)


def test_a_word_that_follows_one_word_only_is_unlikely_elsewhere() -> None:
    """Francisco is as frequent as glass but is only seen after san."""
    sentences = ["san francisco"] * 6 + [f"{w} glass" for w in ("my", "your", "the", "a", "this", "no")]
    model = KneserNey(sentences, order=2)
    assert p(model, "francisco", "new", begins=False) < p(model, "glass", "new", begins=False) / 4
    assert p(model, "francisco", "san", begins=False) > 0.5


def test_one_discount_keeps_the_frequency_of_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """sum_h c(h) p(w|h) = c(w) + D (pairs p(w) - contexts of w), which is c(w) where p(w) = contexts of w / pairs."""
    d = 0.7
    monkeypatch.setattr(kneser_ney, "FALLBACK", (d, d, d))
    monkeypatch.setattr(kneser_ney, "modified_discounts", lambda a: None)
    seen = text(100, 8)
    model = KneserNey(seen, order=2)
    rows = [["<s>", *s.split(), "</s>"] for s in seen]
    pairs = {(a, b) for row in rows for a, b in pairwise(row)}
    heads = Counter(w for row in rows for w in row[:-1])
    after = {h: model.distribution("" if h == "<s>" else h, begins=h == "<s>") for h in heads}
    inside = model.distribution(begins=False)
    for word in {b for _, b in pairs}:
        place = END if word == "</s>" else model.ids[word]
        count = sum(row.count(word) for row in rows)
        contexts = sum(b == word for _, b in pairs)
        wanted = count + d * (len(pairs) * inside[place] - contexts)
        assert sum(times * after[h][place] for h, times in heads.items()) == pytest.approx(wanted)


def test_a_given_vocabulary_is_closed() -> None:
    wide, narrow = KneserNey(TINY, 2, ["a", "b", "c", "d", "e"]), KneserNey(TINY, 2, ["a"])
    assert p(wide, "d", begins=False) == pytest.approx(0.5 / 7)
    assert wide.distribution().sum() == pytest.approx(1)
    assert narrow.score(["a b"]).unknown == 1
    assert narrow.score(["a b"]).nats == pytest.approx(narrow.score(["a <unk>"]).nats)
    assert p(narrow, "<unk>", "a", begins=False) > 0.5  # b and c are one word now
    assert KneserNey(["<unk> a"], 2).score(["b a"]).unknown == 1


def test_markers_in_the_text_are_words() -> None:
    model = KneserNey(["a </s> b", "<s> a"], 3)
    assert model.distribution("a").sum() == pytest.approx(1)
    assert model.score(["a </s>"]).tokens.tolist() == [3]


def test_the_order_ends_with_the_longest_sentence() -> None:
    """Four tokens with their markers: there are no 5-grams, and asking for 9 changes nothing."""
    assert KneserNey(TINY, 9).order == 4
    assert KneserNey(TINY, 9).score(TINY).nats == pytest.approx(KneserNey(TINY, 4).score(TINY).nats)
    assert KneserNey([""], 5).distribution().sum() == pytest.approx(1)


def test_the_error_is_that_of_another_text() -> None:
    model = KneserNey(text(2000, 12), 3)
    rng = np.random.default_rng(0)
    new = np.array(text(300, 12))
    error = model.score(list(new)).perplexity()[1]
    again = [model.score(list(new[rng.integers(0, 300, 300)])).perplexity()[0] for _ in range(300)]
    assert error == pytest.approx(np.std(again), rel=0.15)
    assert model.score(["w1"]).perplexity()[1] == 0


@pytest.mark.parametrize(
    ("sentences", "order", "said"),
    [
        ([], 2, "there are no sentences to train on"),
        ("a b", 2, "must be a list of sentences, not one string"),
        ([["a", "b"]], 2, "must be sentences as strings, not list"),
        (["a"], 0, "the order of n-grams must be at least 1, not 0"),
    ],
)
def test_mistakes_are_said(sentences: list[str], order: int, said: str) -> None:
    with pytest.raises(Problem, match=said):
        KneserNey(sentences, order)


def test_a_vocabulary_is_not_one_string() -> None:
    with pytest.raises(Problem, match="vocabulary must be a list of words"):
        KneserNey(["a"], 2, "a b c")


def test_five_words_of_the_penn_treebank() -> None:
    """141.2 is the test perplexity of this model in Mikolov et al. 2011, counting ends of sentences."""
    folder = Path(os.environ.get("ELBOROOM_DATA", "")) / "ptb"
    if not (folder / "ptb.train.txt").is_file():
        pytest.skip("ELBOROOM_DATA does not name a folder of real data")
    train, test = ((folder / f"ptb.{part}.txt").read_text().splitlines() for part in ("train", "test"))
    scored = KneserNey(train, 5).score(test)
    assert scored.tokens.sum() == 82_430
    assert scored.unknown == 0
    assert scored.perplexity()[0] == pytest.approx(141.2, abs=0.05)
