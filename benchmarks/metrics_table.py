"""Whole evaluations per hour."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from benchmarks import work
from benchmarks.measure import Result, in_turns, measurement, timed
from elboroom.core.problem import Problem
from elboroom.data.dataset import DataSet
from elboroom.evaluate.codes import code_table
from elboroom.evaluate.disentanglement import Source, evaluate, metrics
from elboroom.evaluate.disentanglement.factors import Ints
from elboroom.evaluate.disentanglement.source import Stream

LENGTH = 64  # points in a batch of the protocol
BATCHES, POINTS = (
    15_000,
    70_000,
)  # batches of beta-VAE and of FactorVAE; points of its variances and of all other metrics
SHARE = 50  # the usual way is timed on a 50th of its encodings, and what that takes is multiplied
HOUR = 3600


@measurement("metrics-table")
def metrics_table() -> Result:
    """All dlib metrics but DCI, locatello net, dSprites: by the code table; against encoding all 2,950,000 draws, a 50th timed.

    The usual way draws, looks up, encodes 64 images at a time in PyTorch's own layers, and then does the same arithmetic.
    """
    run = work.trained()
    names = [name for name, metric in metrics().items() if "dlib" in metric.modes and name != "dci"]

    def table() -> None:
        shutil.rmtree(run.folder / "codes", ignore_errors=True)
        code_table(run)

    table()
    source = code_table(run).source
    net = work.plain(run.model.posterior)
    drawn = draws(source)
    if not np.allclose(encoded(net, run.data, drawn[0]), source.mu[drawn[0]], atol=1e-4):
        raise Problem("the plain layers and the table differ, so that their times do not compare")
    sides: dict[str, Callable[[], object]] = {
        "table": table,
        "arithmetic": lambda: evaluate(source, names, "dlib"),
        "usual": lambda: [encoded(net, run.data, rows) for rows in drawn],
    }
    seconds = in_turns({name: timed(side) for name, side in sides.items()}, repetitions=3)
    ours = seconds["table"] + seconds["arithmetic"]
    usual = SHARE * seconds["usual"] + seconds["arithmetic"]
    return Result(HOUR / ours, "evaluations/h", HOUR / usual, usual / ours, target=8.0)


def draws(source: Source) -> list[Ints]:
    """A share of what the protocol draws, 64 rows at a time: two sides of pairs, votes, and points."""
    rng, count = Stream(0), BATCHES // SHARE
    batches = np.concatenate([*source.pairs(rng, count, LENGTH)[1:], source.votes(rng, count, LENGTH)[1]])
    points = source.draw(rng, POINTS // SHARE)
    return [*batches, *np.split(points, range(LENGTH, len(points), LENGTH))]


@torch.inference_mode()
def encoded(net: nn.Module, data: DataSet, rows: Ints) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """The means of q(z|x) at some rows."""
    return np.asarray(net(data.x(rows)).chunk(2, 1)[0].numpy())
