"""Training tokens per second."""

from __future__ import annotations

from benchmarks import text
from benchmarks.measure import Result, in_turns, measurement, timed


@measurement("train-text")
def train_text() -> Result:
    """LSTM-VAE on PTB, 256/256/32, buckets of 64, by the loop; against a plain loop, batches of 32 of one length."""
    (ours, tokens), (theirs, others) = text.looped(), text.plain()
    seconds = in_turns({"ours": timed(ours), "plain": timed(theirs)}, repetitions=9)
    value, reference = tokens / seconds["ours"], others / seconds["plain"]
    return Result(value, "tokens/s", reference, value / reference, target=1.15)


@measurement("train-text-products")
def train_text_products() -> Result:
    """Steps of that LSTM-VAE by the loop; against their own matrix products alone, at their own shapes."""
    ours, tokens = text.looped()
    seconds = in_turns({"ours": timed(ours), "products": timed(text.products(ours))}, repetitions=25)
    value, reference = tokens / seconds["ours"], tokens / seconds["products"]
    return Result(value, "tokens/s", reference, value / reference, target=0.75)
