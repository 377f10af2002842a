"""What the loggers of a run are shown at its end: reconstructions, samples, traversals, and its evidence."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elboroom.core.problem import Problem
from elboroom.evaluate import likelihood
from elboroom.loggers import Logs
from elboroom.runs.run import Run

SHOWN, SIDE, POINTS, DIMS, ROWS = 10, 5, 9, 10, 1000  # examples, side of the samples, of traversals; rows measured


def show(run: Run, logs: Logs) -> None:
    """Tells the loggers of a trained run what it does; its numbers of at most 1,000 held-out examples are quick."""
    if not logs.names:
        return
    step = int(run.log[-1]["step"]) if run.log else run.step
    with suppress(Problem):  # of a model that has none
        found = likelihood.evidence(run.split(most=ROWS))
        found.pop("rate_per_dim", None)  # the rate again
        logs.numbers(finite({f"evidence/{name}": number.value for name, number in found.items()}), step)
    kinds: dict[str, Callable[[Run], Any]] = {"samples": _samples}
    if run.latent:
        kinds |= {"reconstructions": _reconstructions, "traversals": _traversals}
    for name, make in kinds.items() if run.spec.about.kind != "vectors" else ():
        try:
            rows = make(run)
        except Problem as problem:
            warnings.warn(f"no {name} for the loggers: {problem}", stacklevel=2)
            continue
        if run.tokeniser is not None:
            logs.text(name, [" | ".join(row) for row in rows], step)
        else:
            logs.picture(name, sheet(run, rows), step)


def finite(numbers: dict[str, float | None]) -> dict[str, float]:
    """Those that have a value."""
    return {name: value for name, value in numbers.items() if value is not None and math.isfinite(value)}


def _samples(run: Run) -> Any:
    drawn = run.sample(SIDE * SIDE)
    return (
        [drawn[at : at + SIDE] for at in range(0, len(drawn), SIDE)] if run.tokeniser is None else [[s] for s in drawn]
    )


def _reconstructions(run: Run) -> Any:
    batch = run.examples(SHOWN)
    made = run.reconstruct(batch)
    if run.tokeniser is None:
        return [batch.x.numpy(), made]
    return list(zip(run.sentences(SHOWN), made, strict=True))


def _traversals(run: Run) -> Any:
    return run.traverse(dims=run.order[:DIMS], points=POINTS)


def sheet(run: Run, rows: Any) -> NDArray[np.uint8]:
    """Images (rows, columns, C, H, W) side by side, a line of one pixel between them, (height, width, 3)."""
    images = np.asarray(rows, dtype=np.float32)
    seen = images if not run.spec.about.levels else np.array([0.0, 1.0])
    shade = np.clip((images - seen.min()) / max(float(seen.max() - seen.min()), 1e-12), 0, 1)
    shade = shade if shade.shape[2] in (1, 3) else shade.mean(2, keepdims=True)
    framed = np.pad(shade, ((0, 0), (0, 0), (0, 0), (0, 1), (0, 1)), constant_values=0.8)
    n, m, c, high, wide = framed.shape
    whole = framed.transpose(0, 3, 1, 4, 2).reshape(n * high, m * wide, c)
    return np.broadcast_to(np.rint(255 * whole), (n * high, m * wide, 3)).astype(np.uint8)
