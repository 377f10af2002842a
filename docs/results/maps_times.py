"""How long an edit takes, and a step of training: CPU time in one process and one thread, all in turns, medians of nine."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

sys.path.append(str(Path(__file__).parents[2]))

from benchmarks.measure import in_turns, timed
from elboroom.families.decoding import Greedy
from elboroom.families.recalled import Recalled
from elboroom.runs.attribute import codes_of
from elboroom.runs.edit import moved
from elboroom.runs.inputs import as_batch
from elboroom.runs.run import Run
from elboroom.training.base import in_order
from elboroom.training.batches import Batches
from elboroom.training.loop import Loop
from elboroom.training.session import Own, prepare
from elboroom.training.spec import Spec

TURNS = 9
SENTENCES = 256  # edited at once
STEPS = 10  # of training in a turn
CPU = torch.device("cpu")
SETTINGS = {"clock": "CPU time of the process", "threads": 1, "turns": TURNS, "warm_up": 1, "statistic": "median"}
Work = Callable[[], object]


def of_edits(ways: dict[str, tuple[Run, str]], texts: list[str], label: str, to: str) -> dict[str, Any]:
    """Seconds a sentence of encoding, moving and decoding, by way; classifiers are fitted and read before."""
    torch.set_num_threads(1)
    sides = {
        (title, part): work for title, (run, way) in ways.items() for part, work in parts(run, way, texts, label, to)
    }
    took = _medians({" / ".join(names): work for names, work in sides.items()})
    told: dict[str, dict[str, float]] = {title: {} for title in ways}
    for title, part in sides:
        told[title][part] = took[f"{title} / {part}"] / len(texts)
    return {"settings": SETTINGS | {"batch": len(texts), "unit": "seconds a sentence"}, "ways": told}


def parts(run: Run, way: str, texts: list[str], label: str, to: str) -> list[tuple[str, Work]]:
    """The three parts of an edit, each from what the one before it made."""
    codes = codes_of(run, as_batch(run, texts, None))
    there = moved(run, codes, label, to, way)  # which fits what it asks, once
    return [
        ("encode", lambda: codes_of(run, as_batch(run, texts, None))),
        ("move", lambda: moved(run, codes, label, to, way)),
        ("decode", lambda: run.decode(there.numpy(), None, Greedy(unknown=False))),
    ]


def negatives(run: Run, label: str, to: str, count: int = SENTENCES) -> list[str]:
    """The first sentences of the test split that have another value of a label."""
    rows = run.rows("test")[1]
    column, value = list(run.spec.about.labels).index(label), run.attribute(label).index(to)
    return run.data.sentences(rows[run.data.labels[rows, column] != value][:count])


def of_steps(folders: dict[str, Path]) -> dict[str, Any]:
    """Seconds of a step of training by run, and of what is encoded once before the first."""
    torch.set_num_threads(1)
    loops, encoding = dict[str, Loop](), dict[str, float]()
    for name, folder in folders.items():
        loops[name], encoding[name] = _loop(Spec.read(folder))
    at = dict.fromkeys(loops, 0)

    def some(name: str) -> None:
        for _ in range(STEPS):
            loops[name].step(at[name])
            at[name] += 1

    took = _medians({name: lambda name=name: some(name) for name in loops})  # type: ignore[misc]
    told = {name: {"step": took[name] / STEPS, "encoding": encoding[name]} for name in loops}
    return {"settings": SETTINGS | {"steps": STEPS, "unit": "seconds"}, "runs": told}


def _loop(spec: Spec) -> tuple[Loop, float]:
    """The loop of a run from its first step, and how long it took to work out its codes."""
    ready = prepare(spec, Own())
    data, method, fit = ready.data, ready.method.train(), spec.fit
    method.prepare(fit.make_optimiser(), fit.clip, fit.average)

    def fill() -> None:
        for module in (module for module in method.modules() if isinstance(module, Recalled)):
            module.fill(in_order(data, "train", spec.model.given_names, CPU), len(data))

    encoding = timed(fill, time.process_time)()
    order = fit.order(spec.about.kind, method.couples)
    batches = Batches(data, "train", fit.batch_size, fit.seed, spec.model.given_names, CPU, order)
    return Loop(method, batches, fit.seed), encoding


def _medians(sides: dict[str, Work]) -> dict[str, float]:
    return in_turns({name: timed(work, time.process_time) for name, work in sides.items()}, TURNS)


def keep(path: Path, told: dict[str, Any]) -> None:
    """Writes the record."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(told, indent=1) + "\n")
