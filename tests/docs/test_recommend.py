"""What `elbo recommend` prints is a command that `elbo train` takes."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from shell import Done, elbo

from elboroom.commands.recommend import PURPOSES
from elboroom.runs import lifecycle

DATA = ("labelled.npz", "plain.npy", "labelled.tsv", "plain.txt", "vectors.csv", "plain.csv", "two words.npz")
LABELLED = {"labelled.npz": "shape", "labelled.tsv": "label", "vectors.csv": "label", "two words.npz": "'the shape'"}


class Ready(Exception):
    """A run is specified and built, and would now be written."""


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, rng = tmp_path_factory.mktemp("stage"), np.random.default_rng(0)
    x, shape = rng.integers(0, 2, (60, 16, 16)).astype(np.uint8), np.arange(60) % 3
    np.savez(folder / "labelled.npz", x=x, colour=np.zeros(60, int), shape=shape, scale=np.arange(60) % 4)
    np.savez(folder / "two words.npz", x=x, **{"a,b": shape, "the shape": shape})
    np.save(folder / "plain.npy", x)
    lines = [f"a dog runs on w{i % 7} near w{i % 5} ." for i in range(60)]
    tags = [("positive", "negative")[i % 2] for i in range(60)]
    (folder / "labelled.tsv").write_text("".join(f"{tag}\t{line}\n" for tag, line in zip(tags, lines, strict=True)))
    (folder / "plain.txt").write_text("\n".join(lines) + "\n")
    rows = rng.normal(size=(60, 3)).round(3).tolist()
    (folder / "vectors.csv").write_text(
        "a,b,c,label\n" + "".join(f"{r[0]},{r[1]},{r[2]},{i % 2}\n" for i, r in enumerate(rows))
    )
    (folder / "plain.csv").write_text("a,b,c\n" + "".join(f"{r[0]},{r[1]},{r[2]}\n" for r in rows))
    return folder


def asked(data: Path, purpose: str, *more: str) -> Done:
    return elbo("recommend", "--data", data, "--for", purpose, *more)


@pytest.mark.parametrize("purpose", PURPOSES)
@pytest.mark.parametrize("data", DATA)
def test_what_it_prints_is_a_command_that_trains(
    data: str, purpose: str, stage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = asked(stage / data, purpose)
    if purpose == "style" and data not in LABELLED:
        return
    assert said.returncode == 0, said.stderr
    monkeypatch.setattr(lifecycle, "_new_folder", lambda *_: (_ for _ in ()).throw(Ready))
    words = shlex.split(said.stdout.splitlines()[0])
    assert words[0] == "elbo"
    with pytest.raises(Ready):
        pytest.fail(elbo(*words[1:], "--threads", "1").stderr)


@pytest.mark.parametrize(("data", "label"), LABELLED.items())
def test_a_style_is_a_label_of_the_data_that_has_two_values(data: str, label: str, stage: Path) -> None:
    assert f" {label} " in asked(stage / data, "style").stdout.splitlines()[0]


def test_of_several_labels_all_are_told(stage: Path) -> None:
    assert (
        "The labels that can be changed are shape, scale; this names the first."
        in asked(stage / "labelled.npz", "style").stdout
    )
    assert "labels that can be changed" not in asked(stage / "labelled.tsv", "style").stdout
    assert json.loads(asked(stage / "labelled.npz", "style", "--json").stdout)["options"] == "--given shape"


@pytest.mark.parametrize(
    ("data", "remedy"),
    [
        ("plain.npy", "--labels TABLE --given NAME"),
        ("plain.txt", "label TAB text"),
        ("plain.csv", "--labels TABLE --given NAME"),
    ],
)
def test_without_labels_it_says_what_to_do(data: str, remedy: str, stage: Path) -> None:
    code, out, said = asked(stage / data, "style")
    assert (code, out, said.count("\n")) == (2, "", 1)
    assert "has no label with two values or more" in said
    assert remedy in said
