"""Graphs in onnxruntime: how soon a code is there, against torch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from benchmarks.measure import THREADS, Result, in_turns, measurement, timed
from elboroom.runs.lifecycle import train
from elboroom.runs.run import Run

TIMES = 50  # calls in one measurement


def encoded(run: Run, ours: Callable[[Any], object], theirs: Callable[[], object]) -> Result:
    """Codes a second of one example at a time, by the graph and by the model."""
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = THREADS
    with TemporaryDirectory() as folder:
        graph = run.export("onnx", Path(folder) / "onnx") / "encoder.onnx"
        session = onnxruntime.InferenceSession(str(graph), settings)
    sides = {
        "onnx": timed(lambda: [ours(session) for _ in range(TIMES)]),
        "torch": timed(lambda: [theirs() for _ in range(TIMES)]),
    }
    seconds = in_turns(sides, 9)
    rates = {side: TIMES / taken for side, taken in seconds.items()}
    return Result(rates["onnx"], "codes/s", rates["torch"], rates["onnx"] / rates["torch"])


@measurement("onnx-image")
def image() -> Result:
    """Codes of single images by the ONNX encoder, burgess net at 64x64; against torch, run.encode."""
    with TemporaryDirectory() as folder:
        run = train("beta-vae", "dsprites", Path(folder) / "run", steps=2, net="burgess", latent=10)
        x = (run.examples(1).x.numpy()).astype(np.uint8)
        with torch.inference_mode():
            return encoded(run, lambda session: session.run(None, {"x": x}), lambda: run.encode(x))


@measurement("onnx-sentence")
def sentence() -> Result:
    """Codes of single sentences by the ONNX encoder, LSTM of 256; against torch, run.encode."""
    with TemporaryDirectory() as folder:
        run = train("vae", "sentences", Path(folder) / "run", steps=2, embed=256, hidden=256, latent=32)
        batch = run.examples(1)
        assert batch.lengths is not None
        handed = {"tokens": batch.x.numpy(), "lengths": batch.lengths.numpy() + 1}
        with torch.inference_mode():
            return encoded(run, lambda session: session.run(None, handed), lambda: run.encode(batch))
