"""elbo transfer, as a user types it."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from shell import elbo

WORDS = ["--steps", "6", "--batch-size", "8", "--embed", "8", "--hidden", "8", "--threads", "1"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("reviews")
    said = [(n, w, y) for n in ("soup", "cake", "room", "view") for w, y in (("awful", "bad"), ("great", "good"))]
    (folder / "notes.txt").write_text("".join(f"{y}\tthe {n} was {w}\n" for n, w, y in said) * 3)
    words = ["train", "style-vae", "--data", folder / "notes.txt", "--out", folder / "run"]
    done = elbo(*words, "--style-size", 2, "--content-size", 3, *WORDS)
    assert done.returncode == 0, done.stderr
    return str(folder / "run")


def test_sentences_come_from_the_command_line_a_file_or_standard_input(
    run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = elbo("transfer", run, "the soup was awful", "--to", "good")
    assert one.returncode == 0, one.stderr
    assert len(one.stdout.splitlines()) == 1
    (tmp_path / "two.txt").write_text("the soup was awful\nthe cake was awful\n")
    two = elbo(
        "transfer",
        run,
        "--file",
        tmp_path / "two.txt",
        "--to",
        "label=good",
        "--strength",
        "1.5",
        "--beam",
        "2",
        "--json",
    )
    assert [pair["input"] for pair in json.loads(two.stdout)] == ["the soup was awful", "the cake was awful"]
    monkeypatch.setattr("sys.stdin", io.StringIO("the soup was awful\n"))
    piped = elbo("transfer", run, "-", "--to", "good")
    assert piped.stdout == one.stdout
    assert elbo("transfer", run, "the soup was awful", "--like", "the view was great").returncode == 0
    assert len(elbo("transfer", run, "--n", "2", "--to", "bad").stdout.split("\n\n")) == 2


def test_the_end_of_a_training_names_transfer_and_its_lines_are_short(run: str, tmp_path: Path) -> None:
    data, out = Path(run).parent / "notes.txt", tmp_path / "run"
    done = elbo("train", "style-vae", "--data", data, "--out", out, "--style-size", 2, "--content-size", 3, *WORDS)
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"next: elbo eval {out}")
    assert last.endswith(f'elbo transfer {out} "YOUR SENTENCE" --to label=good')
    steps = [line for line in done.stderr.splitlines() if line.startswith("step ")]
    assert steps
    assert all(len(line) <= 80 and "loss" in line and "nll" in line for line in steps)


def test_unknown_words_are_told(run: str) -> None:
    done = elbo("transfer", run, "the fooood wass awful", "qwerty a b c d soup", "--to", "good")
    assert done.returncode == 0, done.stderr
    assert "elbo: warning: unknown to this model: fooood, wass, qwerty, a, b and 2 more" in done.stderr
    assert "unknown" not in elbo("transfer", run, "the soup was awful", "--to", "good").stderr
    for verb, *words in (("reconstruct",), ("edit", "--to", "good"), ("traverse",)):
        assert "unknown to this model: fooood" in elbo(verb, run, "the fooood was awful", *words).stderr, verb


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["the soup was awful", "--to", "angry"], "label has no value 'angry'; it has: bad, good"),
        ([" ", "--to", "good"], "one of these is empty"),
        (["xyzzy", "--to", "good"], "knows no word of 'xyzzy'"),
        (["the soup", "--file", "x.txt"], "from the command line or from --file"),
        (["the soup", "--to", "good", "--n", "3"], "--n has no effect when sentences are given"),
        (["--file", "nowhere.txt", "--to", "good"], "nowhere.txt"),
        (["the soup", "--to", "good", "--out", "x.png"], "--out is for images"),
    ],
)
def test_what_a_user_gets_wrong_is_one_sentence(run: str, words: list[str], sentence: str) -> None:
    done = elbo("transfer", run, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.unhurried
def test_sentences_go_through_a_pivot(tmp_path: Path) -> None:
    said = [(n, w, y) for n in ("soup", "cake", "room", "view") for w, y in (("awful", "bad"), ("great", "good"))]
    rows = [{"text": f"the {n} was {w}", "style": y, "french": f"le {n}e etait {w}e"} for n, w, y in said] * 3
    data = tmp_path / "notes.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    pairs = ["train", "seq2seq", "--data", data, "--label-column", "none", "--own-vocabulary", "context", *WORDS]
    there, back, run = tmp_path / "there", tmp_path / "back", tmp_path / "bst"
    bst = ["train", "bst", "--data", data, "--label-column", "style", "--context-column", "french", *WORDS]
    for words in (
        [*pairs, "--text-column", "french", "--context-column", "text", "--out", there],
        [*pairs, "--text-column", "text", "--context-column", "french", "--out", back],
        [*bst, "--base", back, "--out", run],
    ):
        done = elbo(*words)
        assert done.returncode == 0, done.stderr
    made = elbo("transfer", run, "the soup was awful", "--to", "good", "--through", there)
    assert (made.returncode, len(made.stdout.splitlines())) == (0, 1), made.stderr
    assert len(elbo("transfer", run, "--n", "2", "--to", "bad").stdout.split("\n\n")) == 2, "its data has translations"
    for words, sentence in (
        ([*bst, "--base", there, "--out", tmp_path / "x"], f"the base {there} is of the wrong direction"),
        (["transfer", run, "the soup", "--to", "good"], "say which run translates it, with --through RUN"),
        (["transfer", run, "the soup", "--to", "good", "--through", run], "bst is no translation"),
    ):
        done = elbo(*words)
        assert done.returncode == 2
        assert sentence in done.stderr
