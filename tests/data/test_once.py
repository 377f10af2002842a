"""What is dear is done once in a run: text is read, its byte pairs are learnt, and the method is built."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from shell import elbo

import elboroom
from elboroom.core.method import Method
from elboroom.data import registry, text

SMALL = {"steps": 2, "batch_size": 4, "embed": 4, "hidden": 4, "latent": 2, "threads": 1}


@pytest.fixture
def sentences(tmp_path: Path) -> Path:
    file = tmp_path / "sentences.txt"
    file.write_text("".join(f"a dog runs on w{i % 7} near w{i % 5} .\n" for i in range(60)))
    return file


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each of these was called."""
    count: Counter[str] = Counter()

    def wrap(owner: Any, name: str, called: str) -> None:
        plain: Callable[..., Any] = getattr(owner, name)

        def counting(*words: Any, **more: Any) -> Any:
            count[called] += 1
            return plain(*words, **more)

        monkeypatch.setattr(owner, name, counting)

    wrap(registry, "_load", "loaded")
    wrap(text, "examples", "read")
    wrap(text, "byte_pairs", "learnt")
    wrap(Method, "__init__", "built")
    return count


@pytest.mark.parametrize(
    ("more", "built"),
    [({}, 1), ({"holdout": 0.2}, 1), ({"patience": 1, "look_every": 1}, 2)],  # the best weights go into another method
    ids=str,
)
def test_of_a_run_from_python(
    sentences: Path, tmp_path: Path, counted: Counter[str], more: dict[str, Any], built: int
) -> None:
    run = elboroom.train("vae", str(sentences), tmp_path / "run", tokens="bpe", vocabulary=280, **SMALL, **more)
    assert run.elbo().value
    assert counted == {"loaded": 1, "read": 1, "learnt": 1, "built": built}


def test_of_a_run_from_a_terminal_its_verdicts_too(sentences: Path, tmp_path: Path, counted: Counter[str]) -> None:
    words = [part for name, value in SMALL.items() for part in (f"--{name.replace('_', '-')}", value)]
    words += ["--tokens", "bpe", "--vocabulary", 280, "--out", tmp_path / "run"]
    left = elbo("train", "vae", "--data", sentences, *words)
    assert left.returncode == 0, left.stderr
    assert counted == {"loaded": 1, "read": 1, "learnt": 1, "built": 1}
