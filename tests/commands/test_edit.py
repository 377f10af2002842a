"""elbo edit, as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shell import elbo

WORDS = ["--steps", "6", "--batch-size", "8", "--embed", "8", "--hidden", "8", "--latent", "4", "--threads", "1"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("reviews")
    said = [(n, w, y) for n in ("soup", "cake", "room", "view") for w, y in (("awful", "bad"), ("great", "good"))]
    (folder / "notes.txt").write_text("".join(f"{y}\tthe {n} was {w}\n" for n, w, y in said) * 3)
    done = elbo("train", "ae", "--data", folder / "notes.txt", "--out", folder / "run", *WORDS)
    assert done.returncode == 0, done.stderr
    return str(folder / "run")


def test_sentences_are_edited_and_mistakes_are_one_sentence(run: str, tmp_path: Path) -> None:
    one = elbo("edit", run, "the soup was awful", "--label", "label", "--to", "good", "--by", "fgim", "--json")
    assert one.returncode == 0, one.stderr
    assert json.loads(one.stdout)[0]["input"] == "the soup was awful"
    some = elbo("edit", run, "--to", "good", "--n", 2)
    assert some.returncode == 0, some.stderr
    assert len(some.stdout.strip().split("\n\n")) == 2
    assert "are not told as good by the classifier of codes" in some.stderr, "six steps teach little"
    free = elbo("edit", run, "the soup was awful", "--to", "good", "--allow-unk")
    assert free.returncode == 0, free.stderr
    for words, match in (
        (["--to", "great"], "'great'"),
        (["--to", "good", "--by", "map"], "has no map; train one"),
        (["--to", "good", "--by", "magic"], "not 'magic'"),
        (["--to", "good", "--out", tmp_path / "x.png"], "--out is for images"),
        ([], "say the value"),
    ):
        done = elbo("edit", run, "the soup was awful", *words)
        assert done.returncode == 2, words
        assert match in done.stderr, done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
