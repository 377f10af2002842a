"""Tokens are learnt once: whoever comes later reads those that the run keeps, and they are the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contract import Killed, act_at, kill, newest, same

import elboroom
from elboroom.core.problem import Problem
from elboroom.data import text
from elboroom.data.tokens import TOKENISER

SMALL: dict[str, Any] = {
    "steps": 6,
    "batch_size": 8,
    "latent": 3,
    "embed": 6,
    "hidden": 7,
    "threads": 1,
    "device": "cpu",
}
READ: dict[str, Any] = {"tokens": "bpe", "vocabulary": 280, "checkpoint_every": 2}
PAIRS: dict[str, Any] = {**READ, "context_column": "context", "own_vocabulary": "context", "given": "label,context"}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sentences with a label that is a number, and a context."""
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("text") / "said.tsv"
    drawn = [" ".join(rng.choice(["abc", "abd", "bcd", "cab"], rng.integers(2, 6))) for _ in range(80)]
    rows = [f"{words}\t{i % 3}\t{words[::-1]}\n" for i, words in enumerate(drawn)]
    path.write_text("text\tlabel\tcontext\n" + "".join(rows))
    return path


@pytest.fixture
def learnt(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many sentences each learning of tokens has seen."""
    seen, learn = [], text.byte_pairs

    def counted(sentences: Any, *more: Any) -> Any:
        known = list(sentences)
        seen.append(len(known))
        return learn(known, *more)

    monkeypatch.setattr(text, "byte_pairs", counted)
    return seen


@pytest.mark.parametrize(("options", "times"), [(READ | {"label_kinds": "label=ordinal"}, 1), (PAIRS, 2)])
def test_tokens_are_learnt_once(
    table: Path, learnt: list[int], tmp_path: Path, options: dict[str, Any], times: int
) -> None:
    with pytest.raises(Killed):
        elboroom.train("vae", table, tmp_path / "killed", bar=act_at(3, kill), **SMALL, **options)
    assert len(learnt) == times
    elboroom.resume(tmp_path / "killed")
    run = elboroom.load(tmp_path / "killed")
    run.elbo()
    assert run.sentences(2)
    assert len(learnt) == times, "by nobody else"
    alone = elboroom.train("vae", table, tmp_path / "alone", **SMALL, **options)
    same(newest(run.folder).state, newest(alone.folder).state)
    rows = np.arange(len(run.data))
    assert run.data.hash == alone.data.hash
    assert (run.data.x(rows) == alone.data.x(rows)).all()
    (run.folder / TOKENISER).unlink()
    elboroom.resume(run.folder, 1)
    assert (run.folder / TOKENISER).read_text() == (alone.folder / TOKENISER).read_text()


def test_a_tokeniser_of_another_run_is_refused(table: Path, tmp_path: Path) -> None:
    run = elboroom.train("vae", table, tmp_path / "run", **SMALL, tokens="words", label_column="label")
    kept = json.loads((run.folder / TOKENISER).read_text())
    kept["words"] = kept["words"][:-1]
    (run.folder / TOKENISER).write_text(json.dumps(kept))
    with pytest.raises(Problem, match=r"tokeniser.json has \d+ tokens, and this run was trained on \d+: delete it"):
        elboroom.resume(run.folder, 1)
