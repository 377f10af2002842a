"""Steps of a map of codes per second."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import elboroom
from benchmarks.measure import THREADS, Result, in_turns, measurement
from elboroom.data import sentences

SENTENCES, STEPS = 2_000, 100


@measurement("train-map")
def train_map() -> Result:
    """Examples of emb2emb on a frozen autoencoder of sentences, 256/256/32; against the same nets end to end by seq2seq."""
    with TemporaryDirectory() as place:
        folder = Path(place)
        rows = range(0, sentences.COUNT, sentences.COUNT // SENTENCES)
        texts = [sentences.render(sentences.factors(row)) for row in rows]  # type: ignore[arg-type]
        (folder / "pairs.tsv").write_text("from\tto\n" + "".join(f"{text}\t{text}\n" for text in texts))
        fit: dict[str, Any] = {"steps": STEPS, "batch_size": 64, "threads": THREADS, "text_column": "to"}
        base = elboroom.train("ae", folder / "pairs.tsv", folder / "base", **fit | {"steps": 5})

        def seconds(method: str) -> Callable[[], float]:
            def run() -> float:
                out, beside = folder / method, {"base": base.folder, "context_column": "from", "overwrite": True}
                elboroom.train(method, folder / "pairs.tsv", out, **fit, **beside)
                return float(json.loads((out / "timing.json").read_text())["seconds"])

            return run

        took = in_turns({method: seconds(method) for method in ("emb2emb", "seq2seq")}, repetitions=3)
    value, reference = (64 * STEPS / took[method] for method in ("emb2emb", "seq2seq"))
    return Result(value, "examples/s", reference, value / reference, target=3.7)
