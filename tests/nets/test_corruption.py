"""Noise on sentences: each operator by its law, the marks untouched, no pad among the words."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from elboroom.core import distributed
from elboroom.core.batch import Batch
from elboroom.core.problem import Problem
from elboroom.core.vocabulary import END, PAD, START, UNK
from elboroom.nets import corruption
from elboroom.nets.corruption import Corrupted, Corruption

V = 40


def sentences(count: int = 400, longest: int = 12) -> Tensor:
    """Rows of 0 to `longest` words, all different within a row."""
    x = torch.zeros(count, longest + 2, dtype=torch.long)
    for row in range(count):
        n = row % (longest + 1)
        words = 4 + torch.randperm(V - 4)[:n]
        x[row, : n + 2] = torch.cat([torch.tensor([START]), words, torch.tensor([END])])
    return x


def well_formed(x: Tensor) -> bool:
    """<s> first, </s> once and last, then padding only."""
    ends = (x == END).int()
    after = ends.cumsum(1) - ends
    return bool(
        (x[:, 0] == START).all()
        and (ends.sum(1) == 1).all()
        and ((x == PAD) == after.bool()).all()
        and not (x[:, 1:] == START).any()
    )


@pytest.mark.parametrize(
    "noise",
    [{"drop": 0.3}, {"blank": 0.3}, {"substitute": 0.3}, {"shuffle": 3}, {"drop": 0.5, "blank": 0.3, "shuffle": 2}],
)
def test_marks_stay_and_rows_close_up(noise: dict[str, Any]) -> None:
    x = sentences()
    assert well_formed(x)
    y = Corruption(vocabulary=V, **noise)(x)
    assert well_formed(y)
    assert (y != PAD).sum(1).max() == y.shape[1]
    assert y.shape != x.shape or not y.equal(x)


def test_dropped_words_leave_the_others_in_their_order() -> None:
    x = sentences()
    y = Corruption(drop=0.3)(x)
    for before, after in zip(x.tolist(), y.tolist(), strict=True):
        left = iter(before)
        assert all(word in left for word in after if word != PAD)  # a subsequence
    words = int((x >= 4).sum())
    share = 1 - int((y >= 4).sum()) / words
    assert abs(share - 0.3) < 5 * math.sqrt(0.21 / words)


@pytest.mark.parametrize("name", ["blank", "substitute"])
def test_changed_words(name: str) -> None:
    x = sentences()
    y = Corruption(vocabulary=V, **{name: 0.4})(x)
    assert y.shape == x.shape
    changed, words = y != x, x >= 4
    assert not (changed & ~words).any()
    count = int(words.sum())
    if name == "blank":
        assert (y[changed] == UNK).all()
        expected = 0.4
    else:
        assert (y[changed] >= 4).all()
        assert (y < V).all()
        assert len(y[changed].unique()) == V - 4
        expected = 0.4 * (1 - 1 / (V - 4))  # a word may be its own substitute
    assert abs(changed.sum().item() / count - expected) < 5 * math.sqrt(0.24 / count)


@pytest.mark.parametrize("most", [1, 2, 5])
def test_no_word_moves_too_far(most: int) -> None:
    x = sentences()
    y = Corruption(shuffle=most)(x)
    furthest = 0
    for before, after in zip(x.tolist(), y.tolist(), strict=True):
        assert sorted(before) == sorted(after)
        places = {word: place for place, word in enumerate(before) if word >= 4}
        moves = [abs(place - places[word]) for place, word in enumerate(after) if word >= 4]
        furthest = max([furthest, *moves])
    assert furthest == most


def test_the_operators_come_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shuffle, drop, blank, substitute: with noise 0 every word is dropped, blanked and substituted where it may be."""
    order: list[str] = []
    for name in ("shuffled", "dropped", "chance"):
        original = getattr(corruption, name)

        def spy(x: Tensor, by: float, name: str = name, original: Any = original) -> Tensor:
            order.append(f"{name} {by:g}")
            out: Tensor = original(x, by)
            return out

        monkeypatch.setattr(corruption, name, spy)
    Corruption(drop=0.1, blank=0.2, substitute=0.3, shuffle=4, vocabulary=V)(sentences(10))
    assert order == ["shuffled 4", "dropped 0.1", "chance 0.1", "chance 0.2", "chance 0.3"]


def test_without_noise_and_in_evaluation_nothing_happens() -> None:
    x = sentences(20)
    assert Corruption()(x) is x
    noisy = Corruption(0.5, 0.5, 0.5, 3, V)
    assert noisy.eval()(x) is x


def test_noise_is_torchs_own() -> None:
    x, noisy = sentences(50), Corruption(0.3, 0.3, 0.3, 2, V)
    torch.manual_seed(5)
    first = noisy(x)
    torch.manual_seed(5)
    assert noisy(x).equal(first)
    assert not (noisy(x).shape == first.shape and noisy(x).equal(first))


def test_two_processes_see_the_noise_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    x, noisy = sentences(40), Corruption(0.0, 0.3, 0.3, 2, V)
    torch.manual_seed(1)
    truth, parts = noisy(x), []
    monkeypatch.setattr(distributed, "world", lambda: 2)
    monkeypatch.setattr(corruption, "longest", lambda length, like: x.shape[1])
    for rank in (0, 1):
        monkeypatch.setattr(distributed, "rank", lambda rank=rank: rank)
        torch.manual_seed(1)
        parts.append(noisy(x[20 * rank : 20 * rank + 20]))
    assert torch.cat(parts).equal(truth)


class Seen(nn.Module):
    """A posterior that returns its batch."""

    family = Batch

    def forward(self, batch: Batch) -> Batch:
        return batch


def test_a_posterior_that_is_shown_noise() -> None:
    x = sentences(30)
    lengths = (x != PAD).sum(1) - 1
    q = Corrupted(Seen(), Corruption(drop=0.5))
    assert q.family is Batch
    seen = q(Batch(x, lengths=lengths, step=3))
    assert seen.step == 3
    assert seen.lengths.equal((seen.x != PAD).sum(1) - 1)
    assert (seen.lengths < lengths).any()
    q.eval()
    assert q(Batch(x)).x is x


@pytest.mark.parametrize(
    ("noise", "said"), [({"drop": 1.0}, "to drop"), ({"shuffle": -1}, "places"), ({"substitute": 0.1}, "vocabulary")]
)
def test_what_cannot_be(noise: dict[str, Any], said: str) -> None:
    with pytest.raises(Problem, match=said):
        Corruption(**noise)
