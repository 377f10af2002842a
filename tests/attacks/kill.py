"""The kill campaign: `python -m tests.attacks.kill --minutes N [--seed S] [--totals FILE]`.

Small runs are trained in processes that die by SIGKILL, at moments that are aimed (between any two operations on files: a
file is made, written, synced, renamed, removed) or random, and are taken up again until they end. Weights and log must then
be those of a run that nobody killed, and at no time may there be a folder that neither `train` nor `resume` accepts. `eval` and
`report` are killed too, and numbers must be those of one that was not; so is a study, and its table. A line a class of
moment; totals in a JSON file, which a campaign that is started again adds to.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import torch
from small_studies import Here

import elboroom
from elboroom.core.files import write
from elboroom.studies import Study, run_study
from elboroom.training.checkpoint import Checkpoints

STEPS = 12
SMALL: dict[str, Any] = {
    "steps": STEPS, "batch_size": 8, "latent": 3, "log_every": 3, "checkpoint_every": 2, "threads": 1, "device": "cpu",
}  # fmt: skip
MOODS = {"text_column": "text", "label_column": "mood"}
TALK = {"text_column": "reply", "context_column": "before"}
# Every kind of memory: none, a controller, multipliers, a capacity, critics with their optimisers, batch statistics, a learned
# prior, a posterior that is sampled alone, an average, stages, a plateau and a patience that keep the best, bases that stay as
# they are, the means of optimisation together, and text by words and by pieces, with styles and with a context.
RUNS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "vae": ("vae", "pixels", {}),
    "control-vae": ("control-vae", "pixels", {}),
    "mdr-vae": ("mdr-vae", "pixels", {}),
    "aae": ("aae", "pixels", {}),
    "avb": ("avb", "pixels", {}),
    "implicit-vae": ("implicit-vae", "pixels", {}),
    "vae, patience": ("vae", "pixels", {"patience": 2, "look_every": 3}),
    "emb2emb": ("emb2emb", "labelled", {"base": "base", "to": "1", "width": 4, "latent": None}),
    "beta-vae-capacity": ("beta-vae-capacity", "pixels", {}),
    "factor-vae": ("factor-vae", "pixels", {}),
    "bn-vae": ("bn-vae", "pixels", {}),
    "vae, prior vamp": ("vae", "pixels", {"prior": "vamp", "pseudo_inputs": 5}),
    "vae, average": ("vae", "pixels", {"average": 0.9}),
    "vae, plateau": ("vae", "pixels", {"decay": "plateau", "look_every": 3}),
    "ae-pretrained-free-bits": ("ae-pretrained-free-bits", "pixels", {"pretraining": 0.5, "target": 0.01}),
    "probe": ("probe", "labelled", {"base": "base", "latent": None}),
    "vae, sgd, plateau, accumulate": (
        "vae",
        "pixels",
        {
            **{"optimiser": "sgd", "lr": 0.1, "momentum": 0.5, "clip": 1.0, "accumulate": 2},
            **{"decay": "plateau", "look_every": 3, "decay_patience": 1, "decay_times": 99},
        },
    ),
    "vae, adamw, cosine, average": (
        "vae",
        "pixels",
        {"optimiser": "adamw", "weight_decay": 0.1, "decay": "cosine", "warmup_steps": 3, "average": 0.9},
    ),
    "style-vae": (
        "style-vae",
        "moods",
        {"embed": 4, "hidden": 5, "style_size": 2, "content_size": 2, "latent": None, **MOODS},
    ),
    "cvae": ("cvae", "talk", {"embed": 4, "hidden": 5, **TALK}),
    "vae of words": ("vae", "words", {"embed": 4, "hidden": 5}),
    "vae of pieces": ("vae", "words", {"embed": 4, "hidden": 5, "tokens": "bpe", "vocabulary": 270}),
    "lagging-vae of words": ("lagging-vae", "words", {"embed": 4, "hidden": 5}),
}

REPORTED = ("vae", "vae of words")  # whose report is killed too: it takes a while
Verb = tuple[str, Callable[[], None], Callable[[], bool]]  # its name, what it does, and whether it is done


def data(folder: Path) -> dict[str, str]:
    """Small data sets, and a run that others stand on."""
    rng = np.random.default_rng(0)
    np.save(folder / "x.npy", rng.integers(0, 256, (48, 8, 8)).astype(np.uint8))
    (folder / "words.txt").write_text("".join(f"w{i % 7} w{i % 5} w{i % 3}\n" for i in range(60)))
    np.savez(folder / "xy.npz", x=np.load(folder / "x.npy"), y=np.arange(48) % 3)
    (folder / "moods.tsv").write_text("text\tmood\n" + "".join(f"w{i % 7} w{i % 5}\tm{i % 2}\n" for i in range(60)))
    (folder / "talk.tsv").write_text("before\treply\n" + "".join(f"w{i % 7} ?\tw{i % 5}\n" for i in range(60)))
    files = {"pixels": "x.npy", "labelled": "xy.npz", "words": "words.txt", "moods": "moods.tsv", "talk": "talk.tsv"}
    sets = {name: str(folder / file) for name, file in files.items()}
    return sets | {"base": str(elboroom.train("vae", sets["labelled"], folder / "base", **SMALL).folder)}


def go_on(name: str, sets: dict[str, str], folder: Path) -> None:
    """Trains a run, or goes on with it, as a user would after a crash."""
    method, kind, options = RUNS[name]
    if (folder / "spec.json").exists():
        if not complete(folder):
            elboroom.resume(folder)
    else:
        said = {**SMALL, **options, **({"base": sets["base"]} if "base" in options else {})}
        elboroom.train(method, sets[kind], folder, **{key: value for key, value in said.items() if value is not None})


def complete(folder: Path) -> bool:
    """Whether a run has come to its end."""
    newest = Checkpoints(folder / "checkpoints").newest() if (folder / "spec.json").exists() else None
    return newest is not None and newest.step >= STEPS


@contextmanager
def dying(after: int) -> Iterator[None]:
    """Kills this process at the operation on files that comes after so many others."""
    left = [after]

    def watch(event: str, args: tuple[Any, ...]) -> None:
        if event in WATCHED and left[0] >= 0:
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    for operation in ("fsync", "replace"):  # which no audit hook tells, and what comes right after each
        setattr(os, operation, _between(getattr(os, operation), lambda: watch("between", ())))
    yield


WATCHED = ("open", "os.rename", "os.remove", "os.mkdir", "os.chmod", "os.truncate", "shutil.rmtree", "between")


def _between(real: Callable[..., Any], look: Callable[[], None]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        look()
        done = real(*args, **kwargs)
        look()
        return done

    return call


def forked(work: Callable[[], None], aimed: int | None, wait: float | None) -> tuple[bool, str]:
    """Does the work in a process that is killed; whether it was, and what it said if it failed by itself."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        warnings.simplefilter("ignore")
        try:
            if aimed is not None:
                with dying(aimed):
                    work()
            else:
                work()
        except BaseException:
            os.write(writing, traceback.format_exc().encode()[-3000:])
            os._exit(1)
        os._exit(0)
    os.close(writing)
    if wait is not None:
        time.sleep(wait)
        os.kill(child, signal.SIGKILL)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read().decode(errors="replace")
    status = os.waitpid(child, 0)[1]
    return os.WIFSIGNALED(status), said


class Campaign:
    """Kills, counts, and compares."""

    def __init__(self, totals: Path, seed: int, say: Callable[[str], None] = print) -> None:
        self.totals, self.rng, self.say = totals, random.Random(seed), say
        self.folder = Path(tempfile.mkdtemp(prefix="kill-"))
        self.begun = 0
        self.sets, self.alone = data(self.folder), dict[str, tuple[dict[str, torch.Tensor], str, str]]()
        self.counts: dict[str, Any] = json.loads(totals.read_text()) if totals.exists() else {}
        for key in ("kills", "runs", "different", "stuck"):
            self.counts.setdefault(key, 0)
        self.counts.setdefault("classes", {})
        self.counts.setdefault("failures", [])

    def left(self, name: str) -> tuple[dict[str, torch.Tensor], str, str]:
        """What a run leaves that nobody kills: weights, log and numbers."""
        if name not in self.alone:
            folder = self.folder / f"alone-{len(self.alone)}"
            go_on(name, self.sets, folder)
            measure(folder)
            self.alone[name] = result(folder)
        return self.alone[name]

    def round(self, name: str) -> None:
        """One run, killed again and again until it is at its end and measured."""
        self.left(name)
        folder = self._another()
        verbs: list[Verb] = [
            ("train", lambda: go_on(name, self.sets, folder), lambda: complete(folder)),
            ("eval", lambda: measure(folder), lambda: (folder / "metrics.json").exists()),
        ]
        if name in REPORTED:
            verbs.append(("report", lambda: report(folder), lambda: (folder / "report.html").exists()))
        if not all(self._killed(name, RUNS[name][1], *verb, most=40 if verb[0] != "report" else 8) for verb in verbs):
            return
        work = lambda: (go_on(name, self.sets, folder), measure(folder))  # noqa: E731
        if said := forked(work, None, None)[1]:
            return self._failed("stuck", name, "end", said)
        self.counts["runs"] += 1
        mine, theirs = result(folder), self.alone[name]
        same = mine[0].keys() == theirs[0].keys() and all(torch.equal(mine[0][k], theirs[0][k]) for k in mine[0])
        for what, equal in (("weights", same), ("log", mine[1] == theirs[1]), ("numbers", mine[2] == theirs[2])):
            if not equal:
                self._failed("different", name, what, str(folder))
                return
        shutil.rmtree(folder)
        self.keep()

    def study(self) -> None:
        """A study of two runs, killed again and again until it is at its end."""
        folder, alone = self._another(), self.folder / "alone-study"
        if not alone.exists():
            study(self.sets, alone)
        ended = lambda: (folder / "table.csv").exists()  # noqa: E731
        if not self._killed("study", "pixels", "study", lambda: study(self.sets, folder), ended, most=20):
            return
        if said := forked(lambda: study(self.sets, folder), None, None)[1]:
            return self._failed("stuck", "study", "end", said)
        self.counts["runs"] += 1
        if (folder / "table.csv").read_bytes() != (alone / "table.csv").read_bytes():
            return self._failed("different", "study", "table", str(folder))
        shutil.rmtree(folder)
        self.keep()

    def _another(self) -> Path:
        """A folder for one run, whatever becomes of it."""
        self.begun += 1
        return self.folder / f"killed-{self.begun}"

    def _killed(
        self, name: str, kind: str, verb: str, work: Callable[[], None], ended: Callable[[], bool], most: int
    ) -> bool:
        """Kills one piece of work until it is done; whether it could always be taken up again."""
        for attempt in range(most):
            aimed = int(self.rng.expovariate(1 / 60)) if attempt < most - 2 and self.rng.random() < 0.7 else None
            wait = None if aimed is not None else self.rng.random() * 0.6 if attempt < most - 2 else 30.0
            killed, said = forked(work, aimed, wait)
            self._count(f"{verb}, {kind}, {'aimed at files' if aimed is not None else 'at random'}", killed)
            if said:
                self._failed("stuck", name, verb, said)
                return False
            if not killed or ended():
                break
        return True

    def _count(self, moment: str, killed: bool) -> None:
        known = self.counts["classes"].setdefault(moment, {"kills": 0, "ended before": 0})
        known["kills" if killed else "ended before"] += 1
        self.counts["kills"] += killed

    def _failed(self, how: str, name: str, where: str, said: str) -> None:
        self.counts[how] += 1
        self.counts["failures"].append({"how": how, "run": name, "where": where, "said": said[-1500:]})
        self.say(f"{how}: {name}, {where}: {said.strip().splitlines()[-1] if said.strip() else ''}")
        self.keep()

    def keep(self) -> None:
        """Keeps the totals."""
        write(self.totals, (json.dumps(self.counts, indent=1) + "\n").encode())

    def tell(self) -> None:
        """A line a class of moment, and the sum."""
        for moment, known in sorted(self.counts["classes"].items()):
            self.say(f"{moment}: {known['kills']:,} kills, {known['ended before']:,} ended before")
        c = self.counts
        self.say(
            f"{c['kills']:,} kills, {c['runs']:,} runs: {c['different']} differ, {c['stuck']} cannot be taken up again"
        )

    def close(self) -> None:
        """Removes what it made, unless something was wrong with it."""
        if not self.counts["failures"]:
            shutil.rmtree(self.folder, ignore_errors=True)


def measure(folder: Path) -> None:
    """Numbers of a run, as `elbo eval` has them."""
    elboroom.load(folder).evaluate(samples=2, most=20, iw_most=5)


def report(folder: Path) -> None:
    """The page of a run, as `elbo report` writes it."""
    elboroom.load(folder).report()


def study(sets: dict[str, str], folder: Path) -> None:
    """A study, as `elbo study run` does it, in this process."""
    every = {key: value for key, value in SMALL.items() if key not in ("device", "threads")}
    measures = {"samples": 2, "most": 20, "codes": 0}
    tables = {"data": sets["pixels"], "seeds": 2, "every": every, "runs": [{"method": "vae"}], "measure": measures}
    run_study(Study.of(tables), folder, Here(), quiet=True)


def result(folder: Path) -> tuple[dict[str, torch.Tensor], str, str]:
    """Weights, log and numbers of a finished run."""
    newest = Checkpoints(folder / "checkpoints").newest()
    assert newest is not None
    return newest.state, (folder / "log.jsonl").read_text(), (folder / "metrics.json").read_text()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=None, help="of the moments; another each time if not said")
    parser.add_argument("--totals", type=Path, default=Path("runs/kill.json"))
    said = parser.parse_args()
    said.totals.parent.mkdir(parents=True, exist_ok=True)
    seed = int(time.time()) if said.seed is None else said.seed
    campaign = Campaign(said.totals, seed, lambda text: print(text, flush=True))
    torch.set_num_threads(1)
    end, told, number = time.monotonic() + 60 * said.minutes, time.monotonic(), 0
    names = [*RUNS, "study"]
    while time.monotonic() < end:
        name = names[number % len(names)]
        campaign.study() if name == "study" else campaign.round(name)
        number += 1
        if time.monotonic() - told > 300:
            told = time.monotonic()
            campaign.tell()
    campaign.keep()
    campaign.tell()
    campaign.close()
    sys.exit(1 if campaign.counts["failures"] else 0)


if __name__ == "__main__":
    main()
