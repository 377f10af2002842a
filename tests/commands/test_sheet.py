"""elbo eval --sheet and --score, as a user types them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from shell import elbo

WORDS = ["--steps", "4", "--batch-size", "8", "--embed", "8", "--hidden", "8", "--threads", "1"]
SAID = [(n, w, y) for n in ("soup", "cake", "room", "view") for w, y in (("awful", "bad"), ("great", "good"))]


def notes(path: Path, rows: int = 3) -> Path:
    entries = [
        {"text": f"the {n} was {w}", "mood": y, "end": "e" if n < "r" else "m", "french": f"le {n}e etait {w}e"}
        for n, w, y in SAID
    ]
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries * rows))
    return path


def trained(data: Path, out: Path, *words: object) -> Path:
    method, *more = words or ("style-ae", "--label-column", "mood", "--style-size", 2, "--content-size", 3)
    text = () if "--text-column" in more else ("--text-column", "text")
    done = elbo("train", method, "--data", data, *text, "--out", out, *more, *WORDS)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sheet")
    data = notes(folder / "notes.jsonl")
    for parent in ("one", "two"):
        trained(data, folder / parent / "run")
    trained(data, folder / "labels", "ae", "--label-column", "mood,end", "--latent", "3")
    trained(notes(folder / "other.jsonl", 4), folder / "other")
    return folder


def test_two_runs_of_one_name_are_judged_and_told_apart(place: Path, tmp_path: Path) -> None:
    sheet, runs = tmp_path / "sheet.csv", [place / "one" / "run", place / "two" / "run"]
    made = elbo("eval", *runs, "--sheet", sheet, "--pairs", "2", "--to", "good", "--json")
    assert made.returncode == 0, made.stderr
    with sheet.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["style wanted"] for row in rows} == {"good"}
    assert sorted(set(json.loads((tmp_path / "sheet.key.json").read_text()).values())) == list(map(str, runs))
    for rater in ("ann", "bob"):
        with (tmp_path / f"{rater}.csv").open("w", newline="") as file:
            table = csv.DictWriter(file, rows[0].keys())
            table.writeheader()
            table.writerows(row | {"fluency": 4, "style": 2} for row in rows)
    scored = elbo("eval", "--score", tmp_path / "ann.csv", "--score", tmp_path / "bob.csv", "--json")
    assert scored.returncode == 0, scored.stderr
    found = json.loads(scored.stdout)
    assert {found[f"fluency {run}"]["value"] for run in runs} == {4}
    assert elbo("eval", "--score", tmp_path / "ann.csv", "--to", "good").returncode == 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["one/run", "--label", "colour"], "unknown label that this run changes 'colour'"),
        (["one/run", "--to", "angry"], "unknown mood 'angry'"),
        (["labels", "--by", "offset"], "has the labels mood, end: say which with --label"),
        (["labels"], "has no style to change; use --by offset"),
        (["one/run", "one/run"], "takes each run once"),
        (["one/run", "other"], "other holds out other sentences than run"),
        (["one/run", "labels", "--by", "offset", "--label", "end"], "unknown label that this run changes 'end'"),
        (["one/run", "--metrics", "text"], "--metrics has no effect with --sheet"),
        (["one/run", "--vectors", "x.txt"], "--vectors has no effect with --sheet"),
        (["one/run", "--through", "two/run"], "--through is for a run that reads translations"),
    ],
)
def test_what_cannot_be_judged_is_one_sentence(place: Path, tmp_path: Path, words: list[str], sentence: str) -> None:
    said = [place / word if (place / word / "spec.json").is_file() else word for word in words]
    done = elbo("eval", *said, "--sheet", tmp_path / "sheet.csv")
    assert done.returncode == 2
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "sheet.csv").exists()


@pytest.mark.unhurried
def test_a_run_that_writes_from_translations_is_judged_too(place: Path, tmp_path: Path) -> None:
    data, own = place / "notes.jsonl", ["--label-column", "none", "--own-vocabulary", "context"]
    there, back, bst = tmp_path / "there", tmp_path / "back", tmp_path / "bst"
    trained(data, there, "seq2seq", "--text-column", "french", "--context-column", "text", *own)
    trained(data, back, "seq2seq", "--context-column", "french", *own)
    trained(data, bst, "bst", "--context-column", "french", "--label-column", "mood", "--base", back)
    for more in ([], ["--through", there]):
        done = elbo("eval", bst, "--sheet", tmp_path / "sheet.csv", "--pairs", "2", *more)
        assert done.returncode == 0, done.stderr
        assert set(json.loads((tmp_path / "sheet.key.json").read_text()).values()) == {"bst"}
