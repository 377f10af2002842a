"""The judge of style: it learns, is kept in the cache, and does not see the test split."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from elboroom.core.problem import Problem
from elboroom.data import places
from elboroom.data.dataset import DataSet
from elboroom.data.text import gather
from elboroom.evaluate.transfer import classifier


def reviews(seed: int) -> list[tuple[str, tuple[str]]]:
    """Sentences whose label is told by one word in them."""
    rng, nouns = np.random.default_rng(seed), ("soup", "cake", "room", "staff", "view")
    told = {"bad": ("awful", "cold", "rude"), "good": ("great", "warm", "kind")}
    return [
        (f"the {rng.choice(nouns)} was {rng.choice(told[label])} {rng.choice(('', 'today', 'again'))} .", (label,))
        for label in ("bad", "good")
        for _ in range(60)
    ]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DataSet:
    monkeypatch.setenv("ELBOROOM_CACHE", str(tmp_path))
    return gather("reviews", {"train": reviews(0), "valid": reviews(1), "test": reviews(2)}, {"label": None})


def test_it_learns_and_is_made_once(data: DataSet, monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch.get_rng_state()
    found = classifier.judge(data, "label")
    assert torch.equal(torch.get_rng_state(), before), "the noise of others is left alone"
    rows = data.splits["test"]
    assert (found.predict(data.sentences(rows)) == data.labels[rows, 0]).mean() > 0.95
    assert found.about["trained_on"] == found.about["chosen_on"] == 120
    monkeypatch.setattr(classifier, "_trained", None)  # would fail if it were asked
    again = classifier.judge(data, "label")
    assert again.words == found.words
    assert torch.equal(again.net.out.weight, found.net.out.weight)
    assert again.predict(["", "unheard of"]).shape == (2,)


def test_a_verdict_does_not_depend_on_the_sentences_beside_it(data: DataSet) -> None:
    judge = classifier.judge(data, "label")
    with torch.no_grad():  # filters that answer more to what is not there than to a word
        for name, weight in judge.net.windows.named_parameters():
            if name.endswith("bias"):
                weight += 3 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(0))
    texts = ["", "kind", "so rude .", *(text for text, _ in reviews(4)[::10]), "the soup was awful " * 30]
    alone = [judge.net.eval()(classifier._ids(judge.ids, [text])) for text in texts]
    together = judge.net(classifier._ids(judge.ids, texts))
    assert torch.allclose(torch.cat(alone), together, atol=1e-4)
    expected = [int(judge.predict([text])[0]) for text in texts]
    assert judge.predict(texts).tolist() == expected
    assert judge.predict(texts[::-1]).tolist() == expected[::-1]


def test_other_data_has_another_judge_and_the_test_split_takes_no_part(data: DataSet) -> None:
    classifier.judge(data, "label")
    same = gather("other", {"train": reviews(0), "valid": reviews(1), "test": reviews(9)}, {"label": None})
    classifier.judge(same, "label")
    assert len(list((places.cache() / "transfer").iterdir())) == 1
    classifier.judge(gather("new", {"train": reviews(3), "valid": reviews(1)}, {"label": None}), "label")
    assert len(list((places.cache() / "transfer").iterdir())) == 2


def test_a_file_that_was_cut_off_is_made_anew(data: DataSet) -> None:
    classifier.judge(data, "label")
    (path,) = (places.cache() / "transfer").iterdir()
    path.write_bytes(path.read_bytes()[:100])
    assert classifier.judge(data, "label").about["trained_on"] == 120


def test_one_value_is_refused(data: DataSet) -> None:
    one = gather("one", {"train": [("a b", ("x",)), ("c d", ("x",))]}, {"label": None})
    with pytest.raises(Problem, match="'label' has a single value"):
        classifier.judge(one, "label")
