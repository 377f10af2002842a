"""What is handed in by name, by number and by file: odd letters, no numbers, files that lie. One sentence each."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from shell import elbo

import elboroom
from elboroom import Problem, Run
from elboroom.data import registry
from elboroom.families.decoding import Sampling
from elboroom.studies import Study

SMALL = {"steps": 1, "batch_size": 8, "threads": 1, "device": "cpu", "embed": 4, "hidden": 5}


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("runs")
    (folder / "words.txt").write_text("".join(f"w{i % 7} w{i % 5} w{i % 3}\n" for i in range(60)))
    return elboroom.train("vae", str(folder / "words.txt"), folder / "text", **SMALL, latent=2)


@pytest.fixture(scope="module")
def replies(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("runs")
    (folder / "talk.tsv").write_text("before\treply\n" + "".join(f"w{i % 7} ?\tw{i % 5}\n" for i in range(60)))
    columns = {"text_column": "reply", "context_column": "before"}
    return elboroom.train("seq2seq", str(folder / "talk.tsv"), folder / "replies", **SMALL, **columns)


@pytest.mark.parametrize(
    "words",
    [
        ["sample", "RUN", "--temperature", "inf"],
        ["sample", "RUN", "--temperature", "nan"],
        ["sample", "RUN", "--n", "2", "--out", ""],
        ["sample", "RUN", "--sampler", "\ud800"],
        ["reconstruct", "RUN", "\ud800 w1", "--decode", "\ud800"],
        ["eval", "\ud800"],
        ["eval", "RUN", "--metrics", "\ud800"],
        ["train", "vae", "--data", "\ud800", "--out", "OUT"],
        ["train", "\ud800", "--out", "OUT"],
        ["train", "vae", "--data", "RUN/../words.txt", "--out", ""],
        ["encode", "RUN", "--out", ""],
        ["report", "RUN", "--out", ""],
        ["export", "RUN", "--to", "projector", "--out", ""],
        ["plot", "a\nb\x85c\u2028d", "RUN"],
        ["eval", "a\nb"],
        ["eval", "RUN", "x" * 5000],
    ],
)
def test_a_bad_word_of_a_command_line_is_one_sentence(text: Run, tmp_path: Path, words: list[str]) -> None:
    done = elbo(*(word.replace("RUN", str(text.folder)).replace("OUT", str(tmp_path / "out")) for word in words))
    assert done.returncode == 2, done
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith("elbo: ")
    assert len(done.stderr) < 2000
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "call",
    [
        lambda run, odd: elboroom.train("vae", str(run.spec.data["source"]), run.folder.parent / odd, **SMALL),
        lambda run, odd: elboroom.train("vae", odd, run.folder.parent / "new", **SMALL),
        lambda run, odd: elboroom.train(odd, str(run.spec.data["source"]), run.folder.parent / "new", **SMALL),
        lambda run, odd: elboroom.load(odd),
        lambda run, odd: elboroom.resume(odd),
        lambda run, odd: Study.read(odd),
        lambda run, odd: run.report(run.folder / odd),
        lambda run, odd: run.export("projector", run.folder.parent / odd),
        lambda run, odd: run.plot(odd),
    ],
)
def test_a_name_with_nul_is_a_problem(text: Run, call: Callable[[Run, str], object]) -> None:
    with pytest.raises(Problem) as caught:
        call(text, "a\0b")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("temperature", [np.inf, np.nan, 0.0, -1.0])
def test_a_temperature_is_a_number_above_0(temperature: float) -> None:
    with pytest.raises(Problem, match="temperature"):
        Sampling(temperature=temperature)


@pytest.mark.parametrize("n", [2**63 - 1, 2**63, 10**30])
def test_more_answers_than_there_is_memory_are_refused(replies: Run, n: int) -> None:
    with pytest.raises(Problem, match=r"GB of memory|too large"):
        replies.generate("w1 ?", n)


def _npy(shape: str) -> bytes:
    """The head of an array of bytes that says this shape."""
    head = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\1\0" + len(head).to_bytes(2, "little") + head.encode()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("lying.npy", _npy("(99999999, 99, 99)") + bytes(99)),
        ("below.npy", _npy("(-4, 8, 8)") + bytes(256)),
        ("overflow.npy", _npy("(4611686018427387904, 8, 8)") + bytes(256)),
        ("lying.npz", _npy("(99999999, 99, 99)") + bytes(99)),
        ("below.npz", _npy("(-4, 8, 8)") + bytes(256)),
        ("bomb.npz", _npy("(9999, 999, 999)") + bytes(1 << 24)),
        ("name.npz", b"\x93NUMPY\1\0\x10\0(((((((((((((((("),
    ],
)
def test_arrays_that_lie_about_themselves_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: bytes
) -> None:
    monkeypatch.setenv("ELBOROOM_MEMORY", "1")
    if name.endswith(".npz"):
        with zipfile.ZipFile(tmp_path / name, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("x.npy", content)
    else:
        (tmp_path / name).write_bytes(content)
    done = elbo("train", "vae", "--data", tmp_path / name, "--out", tmp_path / "out")
    assert done.returncode == 2, done
    assert len(done.stderr.splitlines()) == 1, done.stderr
    with pytest.raises(Problem):
        registry.load(str(tmp_path / name))


@pytest.mark.parametrize("text", ["a = " + "[" * 20_000, "a" + ".b" * 20_000 + " = 1", "a = " + "{b=" * 20_000])
@pytest.mark.parametrize("use", ["study plan", "recipes", "train"])
def test_deeply_nested_toml_is_one_sentence(tmp_path: Path, text: str, use: str) -> None:
    path = tmp_path / "deep.toml"
    path.write_text(text)
    done = elbo(*use.split(), *(["vae", "--recipe"] if use == "train" else []), path)
    assert done.returncode == 2, done
    assert len(done.stderr.splitlines()) == 1, done.stderr
