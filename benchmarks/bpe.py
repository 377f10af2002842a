"""Byte-pair encoding of text of one's own: how long is it to the first step, and how often are the tokens learnt?

    python -m benchmarks.bpe                   # two million generated lines
    python -m benchmarks.bpe --lines 200000

A line has 3 to 20 of 50,000 made-up words, frequent ones first as in any language. Seconds are of a new run, of its resume
and of a verb that needs the data, each from the call to its first step or row; nets are small and one thread trains.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import elboroom
from elboroom.data import text

WORDS, SYLLABLES = 50_000, [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
SMALL: dict[str, Any] = {"steps": 1, "embed": 16, "hidden": 16, "latent": 4, "threads": 1, "device": "cpu"}


def write(path: Path, lines: int) -> None:
    """Writes the lines."""
    rng = np.random.default_rng(0)
    words = np.array(["".join(rng.choice(SYLLABLES, rng.integers(1, 6))) for _ in range(WORDS)])
    share = 1 / np.arange(1, WORDS + 1)
    ends = np.cumsum(share / share.sum())
    with path.open("w") as file:
        for size in rng.integers(3, 21, lines):
            file.write(" ".join(words[np.searchsorted(ends, rng.random(size)).clip(max=WORDS - 1)]) + "\n")


@contextmanager
def learning() -> Iterator[list[float]]:
    """The seconds of every learning of tokens inside."""
    seconds, learn = list[float](), text.byte_pairs

    def timed(*given: Any) -> Any:
        began = time.perf_counter()
        found = learn(*given)
        seconds.append(time.perf_counter() - began)
        return found

    text.byte_pairs = timed
    try:
        yield seconds
    finally:
        text.byte_pairs = learn


class Started:
    """A progress bar that knows when the first step was done."""

    def __init__(self, ready: Any) -> None: ...

    def __call__(self, step: int, line: dict[str, float]) -> None:
        Started.at = time.perf_counter()

    def close(self) -> None: ...

    at = 0.0


def told(what: str, call: Callable[[], Any]) -> None:
    """Does it, and prints its seconds and those of learning tokens."""
    with learning() as seconds:
        began, Started.at = time.perf_counter(), 0.0
        call()
        took = (Started.at or time.perf_counter()) - began
    print(f"{what}: {took:.0f} s, of which {sum(seconds):.0f} s in {len(seconds)} learnings of tokens", flush=True)


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=2_000_000)
    lines = parser.parse_args().lines
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "lines.txt", Path(folder) / "run"
        write(path, lines)
        print(f"{lines:,} lines, {path.stat().st_size / 1e6:.0f} MB", flush=True)
        told("a new run", lambda: elboroom.train("vae", path, out, bar=Started, tokens="bpe", **SMALL))
        told("its resume", lambda: elboroom.resume(out, 1, bar=Started))
        told("a verb", lambda: elboroom.load(out).data.x(np.arange(2)))
        print(f"memory at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.1f} GB")


if __name__ == "__main__":
    main()
