"""Training images per second."""

from __future__ import annotations

import torch

from benchmarks import peers, work
from benchmarks.measure import Result, in_turns, measurement, sgemm, sgemm_rate, timed
from elboroom import nets


@measurement("train-conv")
def train_conv() -> Result:
    """beta-VAE on dSprites, burgess nets, batch 64, by the loop; against pythae 0.1.2, its trainer, the same nets."""
    with peers.pythae(work.sprites()) as theirs:
        seconds = in_turns({"ours": timed(work.looped()), "theirs": theirs, "sgemm": sgemm()}, repetitions=7)
    ours, reference = (work.IMAGES / seconds[side] for side in ("ours", "theirs"))
    forward = work.flops(nets.encoder("burgess", work.SHAPE, 2 * work.LATENT), torch.zeros(2, *work.SHAPE))
    forward += work.flops(nets.decoder("burgess", work.SHAPE, work.LATENT), torch.zeros(2, work.LATENT))
    return Result(ours, "images/s", reference, ours / reference, ours * 3 * forward / sgemm_rate(seconds["sgemm"]))
