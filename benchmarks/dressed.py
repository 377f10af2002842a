"""dSprites in colour: values per second of batches, against those of the plain ones."""

from __future__ import annotations

import numpy as np

from benchmarks.measure import Result, in_turns, measurement, timed
from elboroom.data import dressed, dsprites
from elboroom.nets.fast.memory import keep_memory

BATCH, BATCHES = 64, 100


@measurement("dsprites-colour")
def dsprites_colour() -> Result:
    """Batches of 64 images of dsprites-colour, three channels each: values a second (images: a third) against dsprites."""
    keep_memory()  # as in training
    rows = np.random.default_rng(0).integers(0, dsprites.COUNT, (BATCHES, BATCH))
    data = {"ours": dressed.colour(), "plain": dsprites.load()}
    values = {side: BATCHES * BATCH * int(np.prod(found.about.shape)) for side, found in data.items()}
    sides = {side: timed(lambda found=found: [found.x(some) for some in rows]) for side, found in data.items()}
    seconds = in_turns(sides, repetitions=9)
    value, reference = (values[side] / seconds[side] for side in ("ours", "plain"))
    return Result(value, "values/s", reference, value / reference, target=1.0)
