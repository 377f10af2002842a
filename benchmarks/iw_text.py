"""Sentences evaluated per second."""

from __future__ import annotations

import torch

from benchmarks import text
from benchmarks.measure import Result, in_turns, measurement, timed
from elboroom.core.draw import Draw
from elboroom.terms.evidence import log_weights

SENTENCES, SAMPLES = 40, 100


@measurement("iw-text")
def iw_text() -> Result:
    """IW-100 of the LSTM-VAE on PTB, 256/256/32; against its own matrix products alone, at their own shapes."""
    model, batches = text.model().eval(), list(text.rows(SENTENCES))

    @torch.no_grad()
    def ours() -> None:
        for batch in batches:
            log_weights(Draw(model, batch, SAMPLES))

    seconds = in_turns({"ours": timed(ours), "products": timed(text.products(ours))}, repetitions=5)
    value, reference = SENTENCES / seconds["ours"], SENTENCES / seconds["products"]
    return Result(value, "sentences/s", reference, value / reference, target=0.75)
