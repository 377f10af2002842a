"""Text runs from Python: the rows, words, labels and checkpoints that they are measured and started with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import elboroom
from elboroom.core.problem import Problem
from elboroom.data import arrays, text
from elboroom.data.dataset import DataSet
from elboroom.data.lines import examples
from elboroom.runs import measure
from elboroom.runs.run import Run
from elboroom.training.checkpoint import newest
from elboroom.training.watches import held_out

SMALL: dict[str, Any] = {
    "steps": 6, "batch_size": 16, "latent": 3, "embed": 4, "hidden": 4, "threads": 1,
}  # fmt: skip


@pytest.fixture(scope="module")
def given(sentences: DataSet, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run that is conditional on the label."""
    return elboroom.train("vae", sentences, tmp_path_factory.mktemp("given") / "run", given="label", **SMALL)


def test_measures_of_text_look_at_rows_of_every_length(
    sentences: DataSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = elboroom.train("vae", sentences, tmp_path / "run", **SMALL)
    seen: list[int] = []

    def look(samples: Any, made: Any, some: list[str], *rest: Any) -> dict[str, Any]:
        assert len(made) == len(some)
        seen.extend(len(sentence.split()) for sentence in some)
        return {}

    monkeypatch.setattr("elboroom.evaluate.text.generated.measure", look)
    measure.metrics(run, "text", sentences=2, most=60, split="train")
    lengths = [len(s.split()) for s in run.data.sentences(run.data.splits["train"])]
    assert len(seen) == 60
    assert max(seen) == max(lengths)
    assert abs(np.mean(seen) - np.mean(lengths)) < 0.6


def test_a_look_at_a_long_validation_split_is_at_all_of_it() -> None:
    data = arrays.dataset(np.arange(40_000, dtype=np.float32).reshape(20_000, 2))
    data.splits["valid"] = np.arange(20_000)
    index = torch.cat([batch.index for batch in held_out(data, (), torch.device("cpu"), 1000)])  # type: ignore[misc]
    assert len(index.unique()) == 1000
    assert abs(index.double().mean() - 10_000) < 4 * 20_000 / (12 * 1000) ** 0.5


def test_data_that_is_split_otherwise_is_refused(sentences: DataSet, tmp_path: Path) -> None:
    elboroom.train("vae", sentences.hold_out(0.3), tmp_path / "run", **SMALL)
    with pytest.raises(Problem, match="has another split"):
        _ = elboroom.load(tmp_path / "run", data=sentences).data
    with pytest.raises(Problem, match="has another split"):
        elboroom.resume(tmp_path / "run", 2, data=sentences)


def test_a_sentence_may_be_as_long_as_those_of_the_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [" ".join(["a word"] * n) for n in range(70, 90)] * 2
    run = elboroom.train("vae", lines, tmp_path / "run", **SMALL)
    end = run.model.likelihood.net.head  # type: ignore[union-attr]
    monkeypatch.setattr(type(end), "forward", lambda head, x: -100.0 * torch.eye(6)[2].expand(*x.shape[:-1], 6))
    assert len(run.sample(1)[0].split()) >= 2 * 89


def test_a_warm_start_takes_words_over_by_name_and_the_best(tmp_path: Path) -> None:
    one = [f"{a} {b} ." for a in ("red", "red", "red", "old", "old") for b in ("dog", "cat", "dog")] * 4
    two = [s.replace("red", "blue").replace("old", "red") for s in one[:-3]] + ["dog dog dog red ."] * 9
    first = elboroom.train("vae", one, tmp_path / "one", patience=3, look_every=2, **SMALL)
    still = {**SMALL, "steps": 1, "lr": 1e-12}
    second = elboroom.train("vae", two, tmp_path / "two", warm=tmp_path / "one", **still)
    assert first.tokeniser is not None
    assert second.tokeniser is not None
    assert first.tokeniser.to_json() != second.tokeniser.to_json()
    names = [n for n, w in second.model.state_dict().items() if len(w) == second.tokeniser.size]
    assert len(names) == 4, "two embeddings and a softmax with its biases"
    state = elboroom.load(tmp_path / "one", data=one).model.state_dict()
    for name in names:
        for word in ("red", "dog", ".", "cat"):
            rows = [r.tokeniser.encode(word)[0] for r in (first, second)]  # type: ignore[union-attr]
            torch.testing.assert_close(second.model.state_dict()[name][rows[1]], state[name][rows[0]])
    best, last = newest(tmp_path / "one", best=True), newest(tmp_path / "one")
    assert best.step <= last.step
    name = next(n for n in second.model.state_dict() if "weight_hh" in n)
    torch.testing.assert_close(second.model.state_dict()[name], state[name])


def test_pseudo_inputs_are_sentences_of_the_run_whatever_it_starts_from(tmp_path: Path) -> None:
    """They are read by the word vectors that the run took over, and are not those of another vocabulary."""
    one = [f"{a} {b} ." for a in ("red", "old") for b in ("dog", "cat", "cow")] * 9
    two = [s.replace("red", "blue blue") for s in one]
    for name, method, said in (("one", "vae", one), ("other", "vamp-vae", two), ("same", "vamp-vae", one)):
        few = {} if method == "vae" else {"pseudo_inputs": 5}
        elboroom.train(method, said, tmp_path / name, **SMALL, **few)
        still = {**SMALL, "steps": 1, "lr": 1e-12, "pseudo_inputs": 5}
        run = elboroom.train("vamp-vae", one, tmp_path / f"from-{name}", warm=tmp_path / name, **still)
        pseudo, net = run.model.prior.pseudo, run.model.posterior.net  # type: ignore[union-attr]
        assert run.tokeniser is not None
        for words, length in zip(pseudo.ids, pseudo.lengths, strict=True):  # type: ignore[union-attr, arg-type]
            assert run.tokeniser.decode(words[: length - 1].tolist()) in one
        learned = pseudo.x.abs().max().item()  # type: ignore[union-attr]
        assert learned > 1e-4 if name == "same" else learned < 1e-9
        rows = torch.arange(5)
        if name != "same":
            read = pseudo.read(net, rows)  # type: ignore[operator, union-attr]
            torch.testing.assert_close(read, net(pseudo.ids))  # type: ignore[operator, union-attr]


@pytest.mark.parametrize("head", ["label\tText", "Label\tSentence", "LABEL\ttext"])
def test_the_header_of_a_table_is_no_sentence(head: str, tmp_path: Path) -> None:
    path = tmp_path / "reviews.tsv"
    path.write_text(head + "\n" + "good\tvery nice\nbad\tnot nice\n" * 4, encoding="utf-8")
    labels, read = examples({"train": [path]})
    assert [name.lower() for name in labels] == ["label"]
    assert len(list(read["train"])) == 8
    path.write_text("Label\tReview\n" + "good\tvery nice\nbad\tnot nice\n" * 4, encoding="utf-8")
    with pytest.raises(Problem, match=r"which column of .* is the text"):
        text.load(path)


def test_a_label_of_other_values_is_refused(given: Run, sentences: DataSet) -> None:
    rows = sentences.splits["train"][:30]
    said, numbers = sentences.sentences(rows), sentences.labels[rows, 0].tolist()
    same = text.handed(said, numbers)
    assert np.allclose(given.encode(same), given.encode(said, u=sentences.u(rows, ["label"])), atol=1e-6)
    other = text.handed(said, ["xyz"[number] for number in numbers])
    with pytest.raises(Problem, match="label is x, y, z in array, and this model knows 0, 1, 2"):
        given.encode(other)


def test_a_conditional_run_answers_every_verb(given: Run) -> None:
    assert len(given.sample(500)) == 500, "more than there are training sentences"
    batch = given.examples(3)
    assert len(given.reconstruct(batch)) == 3
    assert len(given.interpolate(batch, given.examples(3, seed=1), points=4)[0]) == 4
    assert "bleu" in measure.metrics(given, "text", sentences=50)
    found = given.evaluate(samples=2)
    assert found["aggregate_rate"]["value"] is None
    assert "differs between labels" in found["aggregate_rate"]["reason"]
