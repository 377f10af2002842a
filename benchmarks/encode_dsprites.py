"""Encoded images per second."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from benchmarks import work
from benchmarks.measure import Result, in_turns, measurement, sgemm, sgemm_rate, timed
from elboroom import nets
from elboroom.data import dsprites

COUNT = dsprites.COUNT // 36  # a 36th of dSprites, drawn at random
BATCH = 256


@measurement("encode-dsprites")
def encode_dsprites() -> Result:
    """A 36th of dSprites from packed bits through the burgess encoder; against its plain layers in PyTorch."""
    packed = np.packbits(work.sprites(COUNT).reshape(COUNT, -1), axis=1)
    ours = nets.encoder("burgess", work.SHAPE, 2 * work.LATENT)

    def encode(net: nn.Module) -> Callable[[], None]:
        def run() -> None:
            with torch.inference_mode():
                for start in range(0, COUNT, BATCH):
                    bits = np.unpackbits(packed[start : start + BATCH], axis=1)
                    net(torch.from_numpy(bits).float().view(-1, *work.SHAPE))

        return run

    sides = {"ours": timed(encode(ours)), "plain": timed(encode(work.plain(ours))), "sgemm": sgemm()}
    seconds = in_turns(sides, repetitions=7)
    value, reference = (COUNT / seconds[side] for side in ("ours", "plain"))
    forward = work.flops(ours, torch.zeros(2, *work.SHAPE))
    return Result(value, "images/s", reference, value / reference, value * forward / sgemm_rate(seconds["sgemm"]))
