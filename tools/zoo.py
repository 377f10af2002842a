"""A zoo: ten small runs of the results, trained again from their specs and shared with weights of less than 5 MB each.

    python tools/zoo.py zoo                    # all ten, each into zoo/NAME: about half an hour each on two cores
    python tools/zoo.py hf://user/             # or to the Hub
    python tools/zoo.py zoo sentences-bn-vae-0.6 --steps 50

A run that is there already is left out.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from elboroom.core.problem import Problem, unknown
from elboroom.runs.lifecycle import load
from elboroom.share.packet import packed
from elboroom.share.places import place
from elboroom.share.sharing import push
from elboroom.training.spec import Spec

RUNS = Path(__file__).parents[1] / "docs" / "results" / "runs"
MOST = 5_000_000  # bytes of weights
NAMES = (
    "sentences-bn-vae-0.6",
    "sentences-free-bits-12",
    "dsprites-beta-vae-1-s0",
    "dsprites-beta-vae-4-s0",
    "dsprites-beta-tcvae-6-s0",
    "dsprites-capacity-25-s0",
    "dsprites-control-18-s0",
    "dsprites-dip-vae-i-s0",
    "dsprites-dip-vae-ii-s0",
    "binarized-mnist-vae",
)


def command(name: str, out: Path, steps: int | None = None) -> list[str]:
    """The words that train a run of the results again."""
    spec = Spec.read(RUNS / name)
    if steps is not None:
        spec = spec.model_copy(update={"fit": spec.fit.model_copy(update={"steps": steps})})
    return [sys.executable, "-m", "elboroom", *shlex.split(spec.command)[1:], "--out", str(out)]


def make(name: str, address: str, steps: int | None = None) -> dict[str, Any] | None:
    """Trains a run and shares it; None where it is shared already."""
    to = f"{address.rstrip('/')}/{name}"
    try:
        if any(entry.name == "spec.json" for entry in place(to).listing()):
            return None
    except Problem as problem:
        if "is not there" not in str(problem):
            raise
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / name
        subprocess.run(command(name, run, steps), check=True)
        heavy = sum(
            len(content) for file, content in packed(load(run), to, True).items() if file.endswith(".safetensors")
        )
        if heavy > MOST:
            raise Problem(f"{name} has {heavy:,} bytes of weights, more than {MOST:,}")
        return push(run, to, weights=True)


def main(words: list[str]) -> int:
    """Makes those that are asked for."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("to", help="a folder, or any address that elbo push takes")
    asked.add_argument("names", nargs="*", default=NAMES)
    asked.add_argument("--steps", type=int, default=None, help="fewer steps than the results have, to try it")
    said = asked.parse_args(words)
    address = said.to if "://" in said.to else str(Path(said.to).absolute())
    try:
        for name in said.names:
            if name not in NAMES:
                raise unknown("run of the zoo", name, NAMES)
            done = make(name, address, said.steps)
            print(f"{name}: {'there already' if done is None else done['url']}")
    except Problem as problem:
        print(problem, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
