"""What the loop costs."""

from __future__ import annotations

from benchmarks import work
from benchmarks.measure import Result, in_turns, measurement, timed


@measurement("loop-overhead")
def loop_overhead() -> Result:
    """beta-VAE by the loop, with batches and log; against a bare step of the same net (0.97 is 3 % overhead)."""
    seconds = in_turns({"ours": timed(work.looped()), "bare": timed(work.bare())}, repetitions=9)
    ours, reference = (work.IMAGES / seconds[side] for side in ("ours", "bare"))
    return Result(ours, "images/s", reference, ours / reference)
