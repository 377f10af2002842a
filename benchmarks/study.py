"""What a second worker is worth in a study."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks import work
from benchmarks.measure import Result, in_turns, measurement, timed
from elboroom.studies import Study, run_study
from elboroom.studies.engines.pool import Pool

SEEDS, STEPS = 3, 20


@measurement("study-efficiency")
def study_efficiency() -> Result:
    """24 short runs on the pool, start-up included, by 2 workers of one thread; against 1 worker of one thread, per worker."""
    with TemporaryDirectory() as folder:
        sides = {f"{workers}": timed(conducted(Path(folder), workers)) for workers in (2, 1)}
        seconds = in_turns(sides, repetitions=2)
    runs = 8 * SEEDS
    two, one = 60 * runs / seconds["2"] / 2, 60 * runs / seconds["1"]
    return Result(two, "runs/min/worker", one, two / one)


def conducted(folder: Path, workers: int) -> Callable[[], None]:
    """A whole study: four methods, two strengths, three seeds, burgess nets on 4,096 sprites."""
    data = folder / "sprites.npy"
    np.save(data, 255 * work.sprites()[:, 0])
    every = {"steps": STEPS, "batch_size": work.BATCH, "net": "burgess", "latent": work.LATENT, "log_every": 10}
    runs = [
        {"method": "beta-vae", "beta": [1, 4]},
        {"method": "beta-tcvae", "beta": [2, 6]},
        {"method": "dip-vae-i", "off": [1, 10]},
        {"method": "dip-vae-ii", "off": [1, 10]},
    ]
    measure = {"samples": 5, "most": 200, "codes": 0}
    study = Study.of({"data": str(data), "seeds": SEEDS, "every": every, "runs": runs, "measure": measure})
    number = itertools.count()

    def conduct() -> None:
        counts = run_study(study, folder / f"{workers}-{next(number)}", Pool(workers), quiet=True)
        assert counts == {"done": 8 * SEEDS, "failed": 0}

    return conduct
