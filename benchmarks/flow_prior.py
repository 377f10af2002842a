"""What a learned prior costs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from benchmarks import work
from benchmarks.measure import Result, in_turns, measurement, timed
from elboroom.core.method import adam
from elboroom.data.dataset import About, Bits, DataSet
from elboroom.training.batches import Batches
from elboroom.training.loop import Loop
from elboroom.training.session import Own, build
from elboroom.training.spec import specify


def epoch(method: str, **options: object) -> Callable[[], None]:
    """One epoch of a method on dSprites by the loop, nothing written."""
    images = work.sprites()
    about = About("sprites", "pixels", work.SHAPE, len(images), {}, levels=2)
    data = DataSet(about, Bits(np.packbits(images.reshape(len(images), -1), axis=1), work.SHAPE))
    shared = {"latent": work.LATENT, "net": "burgess", "lr": work.RATE, "batch_size": work.BATCH}
    made = build(specify(method, data, "array", None, {**shared, **options}), Own(data)).train()
    made.prepare(adam(work.RATE), 0.0)
    loop = Loop(made, Batches(data, "train", work.BATCH, 0, (), torch.device("cpu")), 0)
    steps = iter(range(10**9))

    def run() -> None:
        for _ in range(work.IMAGES // work.BATCH):
            loop.step(next(steps))

    return run


@measurement("flow-prior")
def flow_prior() -> Result:
    """flow-prior with one sample on dSprites, burgess nets, batch 64; against the VAE (0.77 or more is 1.3 times a step)."""
    sides = {"flow": timed(epoch("flow-prior", samples=1)), "vae": timed(epoch("vae"))}
    seconds = in_turns(sides, repetitions=7)
    ours, reference = (work.IMAGES / seconds[side] for side in ("flow", "vae"))
    return Result(ours, "images/s", reference, ours / reference)
