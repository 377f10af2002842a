"""Bad command lines: `python -m tests.attacks.commands --count 2000 [--seed S] [--processes N]`.

A seeded generator takes real command lines over every command and spoils them: values out of range or of another kind,
options of other commands, files that are something else. Each runs in this process as `elbo` would (a sample of them in
processes of their own) and must end with code 0, 1 or 2, no traceback, and one sentence where the code is 2.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["HF_HUB_OFFLINE"] = "1"  # a spoiled address asks nobody
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import torch
from shell import Done, elbo

import elboroom
from elboroom.cli import COMMANDS
from elboroom.commands import catalogue
from elboroom.explorer import serve

SMALL = {"steps": 2, "batch_size": 8, "latent": 2, "threads": 1, "device": "cpu"}
ODD = (
    "",
    " ",
    "0",
    "-1",
    "1.5",
    "nan",
    "inf",
    "-inf",
    "1e309",
    "1e-320",
    str(2**31),
    str(2**63),
    str(2**64),
    str(10**30),
    "1e9",
    "1000000000",
    "true",
    "none",
    "None",
    "[]",
    "{}",
    "é",
    "日本",
    "\ud800",
    "a\0b",
    "a\nb",
    "../..",
    "/",
    "/dev/null",
    ".",
    "x" * 300,
    "x" * 5000,
    "--",
    "-",
    "--help-me",
    "=",
    "a=b",
    "a=b,a=c",
    "=,=",
    ",",
    ",,",
    "%s",
    "%n",
    "{0}",
    "[red]x[/red]",
    "'",
    '"',
    ";",
    "$(x)",
    "*",
    "\\",
    "0x10",
    "1_000",
    "٣",
    "1e",
    "+5",
    " 5",
    "cuda",
    "auto",
    "all",
    "likelihood",
    "mean",
    "test",
    "no-such",
)


PATIENCE = 4  # seconds of a processor for a command
NUMBERS = (
    *("0", "-1", "1", "2", "3", "0.5", "1e-9", "1e9", "nan", "inf", "1e300", "1000000000", "999999999999"),
    *map(str, (2**31, 2**32, 2**63 - 1, 2**63, 2**64, 10**30)),
)


class Bench:
    """A folder with runs, data and files that are not what they say."""

    def __init__(self, root: Path) -> None:
        self.root, rng = root, np.random.default_rng(0)
        np.save(root / "x.npy", rng.integers(0, 256, (40, 8, 8)).astype(np.uint8))
        np.save(root / "v.npy", rng.normal(size=(40, 3)))
        (root / "words.txt").write_text("".join(f"w{i % 7} w{i % 5} w{i % 3}\n" for i in range(60)))
        self.image = elboroom.train("vae", str(root / "x.npy"), root / "image", **SMALL).folder
        text = {**SMALL, "embed": 4, "hidden": 5}
        self.text = elboroom.train("vae", str(root / "words.txt"), root / "text", **text).folder
        (root / "moods.tsv").write_text("text\tmood\n" + "".join(f"w{i % 7} w{i % 5}\tm{i % 2}\n" for i in range(60)))
        (root / "talk.tsv").write_text("before\treply\n" + "".join(f"w{i % 7} ?\tw{i % 5}\n" for i in range(60)))
        styled = {
            "embed": 4,
            "hidden": 5,
            "style_size": 2,
            "content_size": 2,
            "text_column": "text",
            "label_column": "mood",
        }
        few = {name: value for name, value in SMALL.items() if name != "latent"}
        self.style = elboroom.train("style-vae", str(root / "moods.tsv"), root / "style", **few, **styled).folder
        pairs = {**text, "text_column": "reply", "context_column": "before"}
        self.reply = elboroom.train("cvae", str(root / "talk.tsv"), root / "reply", **pairs).folder
        self.study = root / "study.toml"
        self.study.write_text(
            f'data = "{root / "x.npy"}"\n[every]\nsteps = 2\nbatch_size = 8\nlatent = 2\n[[runs]]\nmethod = "vae"\n'
            "[measure]\nsamples = 2\nmost = 10\ncodes = 0\n"
        )
        done = elbo("study", "run", self.study, "--out", root / "study", "--workers", 1)
        assert done.returncode == 0, done.stderr
        self.files = [root / "x.npy", root / "v.npy", root / "words.txt", self.study, *self._odd_files()]

    def clear(self) -> None:
        """Removes what lines made, so that the next is not refused for that alone."""
        for path in self.root.glob("out*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def _odd_files(self) -> Iterator[Path]:
        """Files that are damaged, lie about themselves, or are something else."""
        whole = (self.root / "x.npy").read_bytes()
        header = whole[:128]
        contents: dict[str, bytes] = {
            "empty.npy": b"",
            "cut.npy": whole[:200],
            "noise.npy": os.urandom(300),
            "lying.npy": header.replace(b"(40, 8, 8)", b"(9999999999, 8, 8)".ljust(10))[:128] + whole[128:],
            "empty.txt": b"",
            "latin.txt": "é ü\nß\n".encode("latin-1") * 9,
            "nul.txt": b"a\0b\nc\0d\n" * 9,
            "one.txt": b"one line",
            "latin.toml": 'name = "é"'.encode("latin-1"),
            "deep.toml": b"a = " + b"[" * 20_000,
            "bad.toml": b"runs = 5\n",
            "seeds.toml": b'seeds = true\n[[runs]]\nmethod = "vae"\n',
            "odd.toml": b'[[runs]]\nmethod = 5\nbeta = { low = "a" }\n',
            "date.toml": b'name = "x"\ndata = 1979-05-27\n[[runs]]\nmethod = "vae"\nx = 1979-05-27\n',
            "a.csv": b"=1+1,b\n1\n",
            "b.jsonl": b'{"text"',
            "x.png": b"\x89PNG\r\n",
            "x.zip": b"PK\3\4",
            "x.gz": b"\x1f\x8b",
            "x.tar": b"0" * 600,
        }
        for name, content in contents.items():
            (self.root / name).write_bytes(content)
            yield self.root / name
        arrays: dict[str, Any] = {
            "complex.npy": np.ones((9, 3), complex),
            "huge.npy": np.full((9, 3), 1e300),
            "scalar.npy": np.float64(3),
            "none.npy": np.zeros((0, 3)),
            "text.npy": np.array(["a", "b"] * 9),
            "dates.npy": np.zeros(9, "datetime64[s]"),
            "five.npy": np.zeros((9, 2, 2, 2, 2)),
            "equal.npy": np.ones((40, 3)),
            "fields.npy": np.zeros(9, [("a", "f4")]),
            "nan.npy": np.full((40, 3), np.nan),
            "wide.npy": np.zeros((9, 5, 5, 7)),
            "bool.npy": np.ones((40, 4, 4), bool),
        }
        for name, array in arrays.items():
            np.save(self.root / name, array)
            yield self.root / name
        columns: dict[str, Any] = {
            "bytes.npz": np.array([b"a", b"b"] * 20),
            "fields.npz": np.zeros(40, [("a", "i4")]),
            "many.npz": np.zeros((3, 40)),
            "halves.npz": np.arange(40) / 2,
            "names.npz": np.array(["\ud800", "b"] * 20),
            "complex.npz": np.ones(40, complex),
        }
        for name, column in columns.items():
            np.savez(self.root / name, x=np.load(self.root / "x.npy"), y=column)
            yield self.root / name
        with zipfile.ZipFile(self.root / "lying.npz", "w") as archive:
            archive.writestr("x.npy", header.replace(b"(40, 8, 8), ", b"(99999999, 99, 9), ")[:128] + whole[128:])
        with (
            zipfile.ZipFile(self.root / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive,
            archive.open("x.npy", "w") as file,
        ):
            file.write(header + bytes(1 << 24))
        with zipfile.ZipFile(self.root / "odd.npz", "w") as archive:
            archive.writestr("../x.npy", whole)
            archive.writestr("readme", "text")
        for folder in ("nothing", "images", "file-as-run"):
            (self.root / folder).mkdir()
        (self.root / "images" / "a.png").write_bytes(b"\x89PNG\r\n")
        (self.root / "images" / "b.png").write_bytes(b"GIF89a")
        (self.root / "file-as-run" / "spec.json").mkdir()
        yield from (
            self.root / n for n in ("lying.npz", "bomb.npz", "odd.npz", "nothing", "images", "file-as-run", "no-such")
        )


LEFT_OUT = {"chat": "reads the standard input until that ends"}


def starts(bench: Bench) -> list[list[str]]:
    """A good line of every command, to be spoiled."""
    root, out = bench.root, str(bench.root / "out")
    image, text, style, reply = map(str, (bench.image, bench.text, bench.style, bench.reply))
    x, words, study = str(root / "x.npy"), str(root / "words.txt"), str(root / "study")
    short = ["--steps", "1", "--batch-size", "8", "--latent", "2", "--threads", "1"]
    return [
        ["train", "vae", "--data", x, "--out", out, *short],
        ["train", "vae", "--data", words, "--out", out, "--embed", "4", "--hidden", "5", *short],
        ["resume", image, "--steps", "1"],
        ["eval", image, "--samples", "2", "--most", "10", "--iw-most", "5"],
        ["eval", text, "--metrics", "likelihood", "--samples", "2", "--most", "10", "--iw-most", "5"],
        ["eval", image, "--metrics", "mig", "--smaller"],
        ["doctor", image, "--most", "20"],
        ["encode", image, "--out", f"{out}.npy"],
        ["sample", image, "--n", "4", "--out", f"{out}.png"],
        ["sample", image, "--n", "4", "--sampler", "gmm", "--components", "2", "--out", f"{out}.png"],
        ["sample", text, "--n", "2", "--temperature", "1", "--top-k", "3", "--top-p", "0.9"],
        ["reconstruct", image, "--n", "2", "--out", f"{out}.png"],
        ["traverse", image, "--points", "3", "--reach", "2", "--out", f"{out}.png"],
        ["interpolate", text, "--n", "1", "--points", "3"],
        ["analogy", text, "w1 w2", "w3", "w4", "--strength", "1"],
        ["transfer", style, "w1 w2", "--to", "m1", "--strength", "1", "--beam", "2"],
        ["edit", style, "w1 w2", "--to", "m1", "--by", "fgim", "--strength", "1"],
        ["generate", reply, "w1 ?", "--n", "2", "--temperature", "1"],
        ["report", image, "--out", f"{out}.html"],
        ["explore", image, "--port", "0", "--points", "20", "--no-browser"],
        ["plot", "curves", image, "--out", f"{out}.png"],
        ["plot", "list"],
        ["export", image, "--to", "projector", "--out", out],
        ["export", image, "--to", "onnx", "--out", out],
        ["push", image, f"{out}-pushed", "--weights"],
        ["pull", image, "--out", f"{out}-pulled"],
        ["compare", str(root / "v.npy"), str(root / "v.npy"), "--permutations", "5", "--kernel", "rbf"],
        ["recommend", "--data", x, "--for", "samples"],
        ["methods"],
        ["recipes"],
        ["recipes", str(root / "bad.toml")],
        ["data", "list"],
        ["data", "show", x],
        ["data", "get", "mnist", "--source", "http://127.0.0.1:9/x"],
        ["data", "check", "mnist"],
        ["study", "presets"],
        ["study", "status", study],
        ["study", "table", study, "--by", "method", "--format", "csv"],
        ["study", "query", study, "SELECT count(*) FROM results"],
        ["study", "plan", str(root / "no.toml")],
        ["study", "run", str(root / "seeds.toml"), "--out", out, "--workers", "1"],
        ["study", "report", study, "--out", f"{out}.html"],
    ]


SQL = (
    "",
    ";",
    "SELECT",
    "DROP TABLE results",
    "SELECT 'nan'::DOUBLE",
    "COPY results TO 'x.csv'",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT 1; SELECT 2",
    "\ud800",
    "SELECT * FROM range(3000000)",
    "-- x",
    "EXPLAIN SELECT 1",
    "SELECT x'00'::BLOB",
    "PRAGMA database_list",
    "ATTACH 'x.db'",
    "SELECT 1 AS a, 2 AS a",
    "VALUES (NULL)",
    "SELECT [1, NULL]",
    "INSTALL httpfs",
    "SET threads = 0",
)


def spoiled(line: list[str], bench: Bench, rng: random.Random, options: dict[str, list[str]]) -> list[str]:
    """A line with one to three things wrong with it."""
    words = list(line)
    values = [at for at in range(1, len(words)) if words[at - 1].startswith("--") or words[at].startswith("/")]
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if values and rng.random() < 0.4:  # what is of the right kind goes furthest
            at = min(rng.choice(values), len(words) - 1)
            numeric = words[at].replace(".", "").isdigit()
            words[at] = rng.choice(NUMBERS if numeric else [str(rng.choice(bench.files)), rng.choice(ODD)])
            continue
        if rng.random() < 0.3:
            words += [rng.choice(options.get(words[0], ["--json"])), rng.choice(NUMBERS)]
            continue
        place, kind = rng.randrange(1, len(words)) if len(words) > 1 else 0, rng.random()
        if kind < 0.35:
            words[place] = rng.choice(ODD)
        elif kind < 0.55:
            words[place] = str(rng.choice(bench.files))
        elif kind < 0.85:
            flag = rng.choice(options.get(words[0], ["--json"]) or ["--json"])
            words += [flag, rng.choice(ODD) if rng.random() < 0.7 else str(rng.choice(bench.files))]
        elif kind < 0.9 and "query" in words:
            words[-1] = rng.choice(SQL)
        elif kind < 0.95 and len(words) > 2:
            words.pop(place)
        else:
            words.insert(place, rng.choice(words))
    return ["--memory", "2", *words] if words[0] not in ("--memory",) else words


def flags() -> dict[str, list[str]]:
    """Every flag of every command."""
    shared = [f"--{flag.name.replace('_', '-')}" for flags in catalogue.shared().values() for flag in flags]
    found = {
        "train": [*shared, "--data", "--size", "--labels", "--label-kinds", "--out", "--from", "--base", "--logger"]
    }
    found["resume"] = ["--steps", "--base", "--logger"]
    for name in COMMANDS.keys() - found.keys() - {"data", "study"} - LEFT_OUT.keys():
        said = elbo(name, "--help").stdout
        found[name] = sorted({word.strip(",") for word in said.split() if word.startswith("--")} - {"--help"})
    found["study"] = [
        "--out",
        "--steps",
        "--seeds",
        "--workers",
        "--by",
        "--metric",
        "--estimator",
        "--format",
        "--engine",
        "--address",
        "--gpus",
    ]
    found["data"] = ["--folder", "--source", "--against", "--size", "--labels", "--label-kinds", "--json"]
    return found


def verdict(done: Done, words: list[str]) -> str:
    """What is wrong with how a command ended, or nothing: 0 without a complaint, 2 with one sentence at the end of stderr.

    1 is of `study run` alone, some of whose runs have failed.
    """
    if "Traceback" in done.stderr:
        return "a traceback"
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    said = [line for line in lines if line.startswith("elbo: ") and not line.startswith("elbo: warning")]
    if done.returncode == 2:
        return "" if len(said) == 1 and said[0] == lines[-1] and len(said[0]) < 2000 else f"{len(said)} sentences"
    if done.returncode == 1 and {"study", "run"} <= {*words}:
        return ""
    return f"exit code {done.returncode}" if done.returncode else "a complaint" if said else ""


class Long(BaseException):
    """A command that is still at work."""


def _long(*_: object) -> None:
    raise Long


def _closed(made: serve.Explorer) -> None:
    """In the place of serving, which has no end."""
    made.socket.close()


@patch.object(serve.Explorer, "serve", _closed)
@patch.object(serve, "show", lambda url: None)
def attack(count: int, seed: int, processes: int, say: Callable[[str], None] = print) -> list[str]:
    """Runs so many spoiled lines; those that ended badly."""
    rng, wrong, codes = random.Random(seed), list[str](), Counter[int]()
    before, long = Path.cwd(), 0
    with tempfile.TemporaryDirectory() as root:
        os.chdir(root)
        try:
            bench, options = Bench(Path(root)), flags()
            good = starts(bench)
            good += 5 * good[:2]  # which have most options
            signal.signal(signal.SIGPROF, _long)
            for number in range(count):
                bench.clear()
                words = spoiled(rng.choice(good), bench, rng, options)
                try:
                    signal.setitimer(signal.ITIMER_PROF, PATIENCE)
                    found = elbo(*words)
                except Long:  # a billion steps are no mistake
                    long += 1
                    continue
                except BaseException:
                    found = Done(70, "", traceback.format_exc()[-1500:])
                finally:
                    signal.setitimer(signal.ITIMER_PROF, 0)
                torch.set_num_threads(1)
                if number % 200 == 199:
                    say(f"{number + 1:,} so far, {len(wrong)} ended badly")
                codes[found.returncode] += 1
                if bad := verdict(found, words):
                    wrong.append(f"{bad}: {words!r}\n{found.stderr[-1500:]}")
                    say(wrong[-1])
                alone = "explore" not in words and not any("\0" in w or "\ud800" in w for w in words)
                if number < processes and alone:
                    made = subprocess.run(
                        [sys.executable, "-m", "elboroom", *words],
                        capture_output=True,
                        text=True,
                        check=False,
                        stdin=subprocess.DEVNULL,
                    )
                    if bad := verdict(Done(made.returncode, made.stdout, made.stderr), words):
                        wrong.append(f"process, {bad}: {words!r}\n{made.stderr[-1500:]}")
                        say(wrong[-1])
        finally:
            os.chdir(before)
    say(
        f"{count:,} command lines, codes {dict(sorted(codes.items()))}, {long} at work after {PATIENCE} s: "
        f"{len(wrong)} ended badly"
    )
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=0, help="how many of them also as processes of their own")
    said = parser.parse_args()
    sys.exit(1 if attack(said.count, said.seed, said.processes, lambda text: print(text, flush=True)) else 0)


if __name__ == "__main__":
    main()
