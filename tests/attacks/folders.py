"""Damaged run folders: `python -m tests.attacks.folders --count 2000 [--seed S]`.

Small runs of images and text, with a base, with styles, with a context, with stages, with laws and attributes that they keep,
and a small study are copied and damaged: files are cut, emptied, filled with noise, swapped,
removed, made folders or links; tensors become others, with a checksum that is right; any value deep in any JSON of ours becomes
another. Each is then loaded, resumed, measured or
reported, and that must succeed or end in a Problem of one sentence, and nothing is written through a link.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import os
import random
import shutil
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors import torch as tensors

import elboroom
from elboroom import Problem
from elboroom.report.numbers import headline, measured, score_table, table
from elboroom.runs.measure import metrics
from elboroom.runs.run import Run
from elboroom.studies import Study, query, results, run_study
from elboroom.studies.engines.work import attempt
from elboroom.studies.store.index import Index

SMALL: dict[str, Any] = {"steps": 2, "batch_size": 8, "latent": 2, "checkpoint_every": 1, "threads": 1, "device": "cpu"}
VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        0,
        -1,
        1.5,
        5,
        10**6,
        2**31,
        2**63,
        10**40,
        1e308,
        "",
        "x",
        "../../x",
        "\ud800",
        "a\0b",
        "é",
        "x" * 2000,
    ),
    *(
        [],
        {},
        [1],
        ["x"],
        [[]],
        {"x": 1},
        {"": {}},
        [None],
        "nan",
        "auto",
        "tokens",
        "pixels",
        "vae",
        "cuda",
        [0, 0],
        [-1, 8],
    ),
)
DAMAGED, MINE = "damaged", "mine"  # the folder that is used, and beside it a file of the user to which links lead
NOISE = b"\0\xff\xfe{[\"'\n"


class Here:
    """The engine of this process."""

    name = "here"

    def run(self, cells: Iterator[Any], root: Path, measure: Any) -> Iterator[Any]:
        for cell in cells:
            yield cell, {"state": "started"}
            yield cell, attempt(cell, root, measure)

    def close(self) -> None: ...


def originals(root: Path) -> dict[str, Path]:
    """Runs and a study that are whole."""
    rng = np.random.default_rng(0)
    np.savez(root / "x.npz", x=rng.integers(0, 256, (40, 8, 8)).astype(np.uint8), y=np.arange(40) % 3)
    (root / "words.txt").write_text("".join(f"w{i % 7} w{i % 5} w{i % 3}\n" for i in range(60)))
    image = elboroom.train("vae", str(root / "x.npz"), root / "image", **SMALL)
    metrics(image, ["likelihood", "mig"], samples=2, most=20, iw_most=5, smaller=True)
    sentences = {**SMALL, "embed": 4, "hidden": 5}
    pieces = {"tokens": "bpe", "vocabulary": 264}
    text = elboroom.train("vae", str(root / "words.txt"), root / "text", **sentences, **pieces)
    text.evaluate(samples=2, most=20, iw_most=5)
    every = {key: value for key, value in SMALL.items() if key != "device"}
    made = {"image": image, "text": text} | _others(root, image.folder, sentences)
    tables = {
        "data": str(root / "x.npz"),
        "every": every,
        "runs": [{"method": "vae"}],
        "measure": {"samples": 2, "most": 20},
    }
    run_study(Study.of(tables), root / "study", Here(), quiet=True)
    return {name: run.folder for name, run in made.items()} | {"study": root / "study"}


def _others(root: Path, base: Path, sentences: dict[str, Any]) -> dict[str, Run]:
    """A run on a base, one of styles, one that answers, one of two stages, and one that keeps laws and an attribute."""
    (root / "moods.tsv").write_text("text\tmood\n" + "".join(f"w{i % 7} w{i % 5}\tm{i % 2}\n" for i in range(60)))
    (root / "talk.tsv").write_text("before\treply\n" + "".join(f"w{i % 7} ?\tw{i % 5}\n" for i in range(60)))
    based = {name: value for name, value in SMALL.items() if name != "latent"}
    styled = {**based, "embed": 4, "hidden": 5, "style_size": 2, "content_size": 2}
    columns = {"text_column": "text", "label_column": "mood"}
    answering = {name: value for name, value in sentences.items() if name != "latent"}
    pairs = {"text_column": "reply", "context_column": "before"}
    images, moods, talk = str(root / "x.npz"), str(root / "moods.tsv"), str(root / "talk.tsv")
    made = {
        "probe": elboroom.train("probe", images, root / "probe", base=base, **based),
        "map": elboroom.train("emb2emb", images, root / "map", base=base, to="1", width=4, **based),
        "style": elboroom.train("style-vae", moods, root / "style", **styled, **columns),
        "answers": elboroom.train("seq2seq", talk, root / "answers", **answering, **pairs),
        "stages": elboroom.train("ae-pretrained-free-bits", images, root / "stages", **SMALL),
        "kept": elboroom.train("vae", images, root / "kept", **SMALL),
    }
    for name in ("map", "style", "kept"):
        made[name].attribute()
    for name in ("gmm", "kmeans"):
        made["kept"].sample(1, sampler=name, components=2)
    return made


def damage(folder: Path, rng: random.Random) -> str:
    """Damages one file of a folder; what was done to it."""
    files = sorted(path for path in folder.rglob("*") if _whole(path) and not path.name.startswith(".lock"))
    small = [path for path in files if path.suffix in (".json", ".jsonl")]
    forged = [path for path in files if path.suffix == ".safetensors"]
    if forged and rng.random() < 0.25:
        path = rng.choice(forged)
        return f"{_forge(path, rng)} in {path.relative_to(folder)}"
    path = rng.choice(small if rng.random() < 0.8 else files)
    ways: list[Callable[[Path, random.Random], None]] = [_cut, _noise, _swap, _remove, _folder, _link]
    way = rng.choice(ways) if path.suffix != ".json" or rng.random() < 0.25 else _value
    way(path, rng)
    return f"{way.__name__[1:]} {path.relative_to(folder)}"


def _whole(path: Path) -> bool:
    """Whether it is a file still: what a damage before it made a link or a folder of is not written to."""
    return path.is_file() and not path.is_symlink()


def _cut(path: Path, rng: random.Random) -> None:
    path.write_bytes(path.read_bytes()[: rng.randrange(path.stat().st_size + 1)])


def _noise(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes() or b"x")
    for _ in range(rng.choice((1, 3, 30))):
        content[rng.randrange(len(content))] = rng.choice(NOISE)
    path.write_bytes(bytes(content))


def _swap(path: Path, rng: random.Random) -> None:
    other = rng.choice(sorted(p for p in path.parent.rglob("*") if p.is_file()))
    path.write_bytes(other.read_bytes())


def _remove(path: Path, rng: random.Random) -> None:
    path.unlink()


def _folder(path: Path, rng: random.Random) -> None:
    path.unlink()
    path.mkdir()


def _link(path: Path, rng: random.Random) -> None:
    path.unlink()
    path.symlink_to(next(place for place in path.parents if place.name == DAMAGED).with_name(MINE))


TENSORS: dict[str, Callable[[torch.Tensor], torch.Tensor | None]] = {
    "nan": lambda tensor: torch.full_like(tensor, torch.nan),
    "infinite": lambda tensor: torch.full_like(tensor, -torch.inf),
    "huge": lambda tensor: torch.full_like(tensor, torch.finfo(tensor.dtype).max),
    "large": lambda tensor: tensor * 1e20,
    "zero": torch.zeros_like,
    "below zero": lambda tensor: -tensor.abs() - 1,
    "another type": lambda tensor: tensor.double() if tensor.dtype == torch.float32 else tensor.float(),
    "whole numbers": lambda tensor: tensor.long(),
    "another shape": lambda tensor: tensor[..., None].contiguous(),
    "none of it": lambda tensor: tensor.flatten()[:0].clone(),
    "no": lambda tensor: None,
}

FLOATS = ("nan", "infinite", "huge", "large", "below zero")


def _forge(path: Path, rng: random.Random) -> str:
    """Other tensors with a checksum that is right, as an attacker would write them; what was done."""
    beside = path.with_suffix(".json")
    try:
        state = tensors.load(path.read_bytes())
    except SafetensorError:  # damaged already
        return "nothing"
    with safe_open(path, "pt") as file:
        about = file.metadata()
    how, name = rng.choice(sorted(TENSORS)), rng.choice(sorted(state))
    changed = TENSORS[how](state[name].float() if how in FLOATS else state[name])
    content = tensors.save(
        {key: tensor for key, tensor in (state | {name: changed}).items() if tensor is not None}, about
    )
    path.write_bytes(content)
    if _whole(beside):
        said = {"sha256": hashlib.sha256(content).hexdigest()}
        try:
            vouch = json.loads(beside.read_text())
        except ValueError:  # damaged already
            return f"{how} {name}"
        beside.write_text(json.dumps(vouch | said | ({"bytes": len(content)} if "bytes" in vouch else {})))
    return f"{how} {name}"


def _value(path: Path, rng: random.Random) -> None:
    """Another value, or none, at a place deep in a JSON file."""
    try:
        content = json.loads(path.read_text())
    except ValueError:  # damaged already
        return _noise(path, rng)
    places: list[tuple[Any, Any]] = []

    def walk(inner: Any) -> None:
        for key in inner if isinstance(inner, dict) else range(len(inner)) if isinstance(inner, list) else ():
            places.append((inner, key))
            walk(inner[key])

    walk(content)
    if not places:
        return _noise(path, rng)
    inner, key = rng.choice(places[:400])
    kind = rng.random()
    if kind < 0.15 and isinstance(inner, dict):
        del inner[key]
    elif kind < 0.25 and isinstance(inner, dict):
        inner[str(rng.choice(VALUES))[:50]] = copy.deepcopy(rng.choice(VALUES))
    else:
        inner[key] = copy.deepcopy(rng.choice(VALUES))
    path.write_text(json.dumps(content))


def use(kind: str, folder: Path, rng: random.Random) -> str:
    """One of the things that a user does with a run or study."""
    if kind == "study":
        verb = rng.choice(("results", "query", "run", "status"))
        if verb == "run":
            run_study(Study.read(folder), folder, Here(), quiet=True)
        elif verb == "status":
            list(Index(folder).read().values())
            Study.read(folder).cells()
        else:
            query(folder, "SELECT * FROM results") if verb == "query" else results(folder)
        return verb
    verb = rng.choice(("load", "resume", "resume", "evaluate", "metrics", "numbers", *ALSO.get(kind, ())))
    run = elboroom.resume(folder, steps=1) if verb == "resume" else elboroom.load(folder)
    if verb == "load":
        run.sample(2)
        run.encode(run.examples(2))
        str(run.spec.command)
    elif verb == "evaluate":
        run.evaluate(samples=2, most=10, iw_most=5)
    elif verb == "metrics":
        metrics(run, METRICS.get(kind, ["mig"]), samples=2, most=10, iw_most=5, smaller=True)
    elif verb == "numbers":
        found = measured(run)
        headline(found), table(found), score_table(found)
    elif verb == "sampler":
        run.sample(2, sampler=rng.choice(("gmm", "kmeans")), components=2)
    elif verb == "attribute":
        run.edit(
            run.sentences(2) if kind == "style" else run.examples(2), to="m1" if kind == "style" else "1", by="fgim"
        )
    elif verb == "transfer":
        run.transfer(run.sentences(2), {"mood": "m1"})
    elif verb == "generate":
        run.generate(["w1 ?"], n=2)
    return verb


ALSO = {  # what a user does with these beside
    "kept": ("sampler", "sampler", "attribute"), "map": ("attribute",), "style": ("transfer", "attribute"),
    "answers": ("generate", "generate"),
}  # fmt: skip
METRICS = {"text": ["likelihood"], "style": ["likelihood"], "answers": ["likelihood"], "probe": ["accuracy"]}


def attack(count: int, seed: int, say: Callable[[str], None] = print) -> list[str]:
    """Damages and uses so many folders; what ended otherwise than it should."""
    rng, wrong, ends = random.Random(seed), list[str](), Counter[str]()
    with tempfile.TemporaryDirectory() as root, warnings.catch_warnings():
        mine = Path(root) / MINE
        warnings.simplefilter("ignore")
        kept = originals(Path(root))
        for number in range(count):
            kind = rng.choice(sorted(kept))
            folder = Path(root) / DAMAGED
            mine.write_text("mine")
            shutil.copytree(kept[kind], folder)
            done = [damage(folder, rng) for _ in range(rng.choice((1, 1, 2)))]
            try:
                use(kind, folder, rng)
                ends["went well"] += 1
            except Problem as problem:
                ends["a sentence"] += 1
                if "\n" in str(problem) or len(str(problem)) > 1500:
                    wrong.append(f"{number}: {kind}, {done}: no sentence: {str(problem)[:300]}")
                    say(wrong[-1])
            except Exception:
                wrong.append(f"{number}: {kind}, {done}\n{traceback.format_exc()[-1500:]}")
                say(wrong[-1])
            if mine.read_text() != "mine":
                wrong.append(f"{number}: {kind}, {done}: something was written through a link")
                say(wrong[-1])
            torch.set_num_threads(1)
            if number % 200 == 199:
                say(f"{number + 1:,} so far, {len(wrong)} ended badly")
            shutil.rmtree(folder)
    say(f"{count:,} damaged folders, {dict(ends)}: {len(wrong)} ended badly")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    said = parser.parse_args()
    sys.exit(1 if attack(said.count, said.seed, lambda text: print(text, flush=True)) else 0)


if __name__ == "__main__":
    main()
