"""The commands on text, as a user types them, and what a user can get wrong with it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from shell import elbo

SMALL = ["--steps", "6", "--batch-size", "8", "--embed", "8", "--hidden", "8", "--latent", "3", "--threads", "1"]


def done(*words: str) -> str:
    found = elbo(*words)
    assert found.returncode == 0, found.stderr
    return found.stdout


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "notes.txt"
    words = [(a, b, c) for a in ("red", "old", "big", "new") for b in ("dog", "cat", "man") for c in ("runs", "sleeps")]
    path.write_text("".join(f"{b}\tthe {a} {b} {c}\n" for a, b, c in words), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def run(corpus: Path) -> str:
    folder = str(corpus.parent / "run")
    done("train", "free-bits", "--data", str(corpus), "--out", folder, *SMALL)
    return folder


def test_a_run_is_measured_and_speaks(run: str, tmp_path: Path) -> None:
    found = json.loads(done("eval", run, "--samples", "3", "--json"))
    assert found["perplexity"]["estimator"] == found["log_likelihood"]["estimator"] == "iw-3"
    assert found["perplexity"]["settings"]["tokeniser"] == "words"
    assert len(done("sample", run, "--n", "4").splitlines()) == 4
    assert done("sample", run, "--n", "4", "--seed", "1") == done("sample", run, "--n", "4", "--seed", "1")
    pairs = json.loads(done("reconstruct", run, "the red dog runs", "--json"))
    assert [len(pair) for pair in pairs] == [2]
    assert pairs[0][0] == "the red dog runs"
    way = json.loads(done("interpolate", run, "the red dog runs", "the old cat sleeps", "--points", "4", "--json"))
    assert [len(row) for row in way] == [4]
    assert len(json.loads(done("analogy", run, "the red dog", "the red cat", "the old cat", "--json"))[0]) == 1
    assert len(json.loads(done("traverse", run, "--points", "3", "--json"))) == 3
    out = tmp_path / "said.txt"
    done("sample", run, "--n", "2", "--decode", "beam", "--beam", "2", "--out", str(out))
    assert len(out.read_text().splitlines()) == 2


def test_a_beam_of_one_is_greedy(run: str) -> None:
    greedy = done("reconstruct", run, "--decode", "greedy", "--n", "3")
    assert greedy == done("reconstruct", run, "--decode", "beam", "--beam", "1", "--n", "3")


@pytest.mark.slow
def test_its_report_shows_sentences(run: str) -> None:
    done("report", run)
    page = Path(run, "report.html").read_text(encoding="utf-8")
    for heading in ("Samples", "Reconstructions", "Interpolations", "KL per dimension", "Map of the codes"):
        assert f"<h2>{heading}</h2>" in page, heading
    assert page.count("Not shown") == page.count("no map of them"), "a few sentences may be too few for a map"


def test_its_codes_are_probed(run: str) -> None:
    found = json.loads(done("eval", run, "--metrics", "probe", "--json"))
    assert found["probe-100"]["value"] is None
    assert found["probe-100"]["reason"]


def test_a_language_model_has_a_report_too(corpus: Path, tmp_path: Path) -> None:
    small = [word for word in SMALL if word not in ("--latent", "3")]
    done("train", "lm", "--data", str(corpus), "--out", str(tmp_path / "lm"), *small)
    done("report", str(tmp_path / "lm"))
    assert "<h2>Samples</h2>" in Path(tmp_path, "lm", "report.html").read_text(encoding="utf-8")
    assert "lm has no z" in elbo("plot", "collapse", str(tmp_path / "lm")).stderr


def test_it_resumes_from_the_command_line(corpus: Path, tmp_path: Path) -> None:
    done("train", "bn-vae", "--data", str(corpus), "--out", str(tmp_path / "run"), *SMALL)
    assert json.loads(done("resume", str(tmp_path / "run"), "--steps", "2", "--json"))["step"] == 8


WRONG: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is empty"),
    "one word": (b"word\n", "at least|too small|too few"),
    "encoding": ("caf\u00e9 is open\n".encode("latin-1") * 9, "UTF-8"),
    "a long line": (b"word " * 2_500_000, "line"),
    "labels that do not match": (b"a\tone two\n" * 5 + b"three four\n" * 5, "TAB|label"),
    "a vocabulary of one": (b"word word\n" * 30, "vocabulary"),
    "NUL": (b"one two\nthree \x00 four\n" * 9, "NUL"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_text_is_one_sentence(name: str, tmp_path: Path) -> None:
    content, says = WRONG[name]
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    found = elbo("train", "vae", "--data", str(path), "--out", str(tmp_path / "run"), *SMALL)
    assert found.returncode == 2, found.stderr
    assert len(found.stderr.strip().splitlines()) == 1, found.stderr
    assert found.stderr.startswith("elbo: ")
    assert not (tmp_path / "run").exists()
    assert re.search(says, found.stderr), found.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--likelihood", "bernoulli"], "word by word"),
        (["--net", "burgess"], "unknown net for text"),
        (["--inject", "nowhere"], "--inject nowhere"),
        (["--prior", "student"], "for text use --prior normal"),
        (["--tokens", "letters"], "--tokens"),
        (["--text-column", "body"], "body"),
        (["--min-count", "99"], "vocabulary"),
    ],
)
def test_a_wrong_flag_is_one_sentence(corpus: Path, tmp_path: Path, words: list[str], says: str) -> None:
    found = elbo("train", "vae", "--data", str(corpus), "--out", str(tmp_path / "run"), *SMALL, *words)
    assert found.returncode == 2, found.stderr
    assert says in found.stderr, found.stderr


def test_sentences_are_refused_by_images_and_pictures_by_text(run: str, tmp_path: Path) -> None:
    found = elbo("sample", run, "--out", str(tmp_path / "x.png"))
    assert found.returncode == 2
    assert "a .txt file" in found.stderr
    found = elbo("train", "lm", "--data", "dsprites", "--out", str(tmp_path / "lm"), "--steps", "1")
    assert found.returncode == 2
    assert "lm works on tokens" in found.stderr


@pytest.mark.slow
def test_measures_of_text_on_a_run_that_has_no_others(corpus: Path, tmp_path: Path) -> None:
    folder = str(tmp_path / "run")
    done("train", "vae", "--data", str(corpus), "--out", folder, *SMALL, "--given", "label")
    said = done("eval", folder, "--metrics", "text", "--split", "train", "--most", "5")
    assert "on 5 rows of train of" in " ".join(said.split()), "wherever a line breaks"
    found = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert found["bleu"]["settings"]["split"] == "train"
    assert found["bleu"]["settings"]["sentences"] == 5
    for verb in ("reconstruct", "interpolate", "traverse", "report"):
        done(verb, folder)


def test_what_is_said_is_heard_or_refused(run: str) -> None:
    assert done("sample", run, "--n", "9", "--beam", "3") == done(
        "sample", run, "--n", "9", "--beam", "3", "--decode", "beam"
    )
    assert (
        "--temperature is for --decode sample" in elbo("sample", run, "--decode", "greedy", "--temperature", "2").stderr
    )
    for verb, given in (("reconstruct", ["a dog"]), ("interpolate", ["a dog", "a cat"])):
        assert "--n has no effect when sentences are given" in elbo(verb, run, *given, "--n", "2").stderr
    assert "--beam is for --decode beam" in elbo("sample", run, "--decode", "sample", "--beam", "2").stderr
    said = [done("reconstruct", run, "the red dog", "--temperature", "9", "--seed", str(seed)) for seed in (0, 0, 1)]
    assert said[0] == said[1] != said[2]


def test_a_table_is_encoded_as_it_was_read(tmp_path: Path) -> None:
    path, folder = tmp_path / "table.csv", str(tmp_path / "run")
    path.write_text("stars,review\n" + "1,not so good\n5,very good\n" * 10, encoding="utf-8")
    done("train", "vae", "--data", str(path), "--text-column", "review", "--out", folder, *SMALL)
    found = json.loads(done("encode", folder, "--data", str(path), "--out", str(tmp_path / "codes.npy"), "--json"))
    assert found["shape"] == [20, 3]
