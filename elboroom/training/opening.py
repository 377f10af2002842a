"""What is said at the start of a run: what was read, what the model is, and what was chosen for the data, and why."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elboroom.build.suited import COPY_DROPOUT, FEW, FLAT, LINEAR, TEXT_BATCH
from elboroom.data.dataset import About, DataSet
from elboroom.training.base import latent_of
from elboroom.training.spec import Spec, flag

if TYPE_CHECKING:
    from elboroom.training.session import Prepared

SHOWN = 5  # values of a label
NETS = {"pixels": "burgess", "vectors": "mlp-300", "tokens": "lstm"}  # of --net auto
DROPOUT, TRANSFORMER_DROPOUT = 0.5, 0.2  # of decoders of text (nets/sentences.py), where nobody says
FALLS = "the learning rate falls over the run"


def opening(ready: Prepared) -> list[str]:
    """The lines before the first step."""
    spec, method = ready.spec, ready.method
    learned = sum(parameter.numel() for parameter in method.parameters() if parameter.requires_grad)
    lines = [f"data: {_read(spec, ready.data)}"]
    if spec.about.labels:
        lines.append(f"labels: {', '.join(_label(spec, name) for name in spec.about.labels)}")
    latent = latent_of(spec, method.model)
    lines.append(f"model: {_model(spec, latent)}, {learned:,} parameters")
    if ready.carried:
        lines.append(f"weights: {ready.carried}")
    return [*lines, *_chosen(spec)]


def _read(spec: Spec, data: DataSet) -> str:
    """Examples, shape, values and splits."""
    about = spec.about
    name = Path(about.name).name or about.name
    splits = ", ".join(f"{count:,} to {_purpose(split)}" for split, count in spec.data["splits"].items())
    text = f"{name}: {sum(spec.data['splits'].values()):,} {_examples(about, spec.reading.tokens)}; {splits}"
    unknown = data.unknown(data.splits["test"]) if "test" in data.splits else 0.0
    return text + (f" ({unknown:.1%} of whose words are unknown)" if unknown else "")


def _purpose(split: str) -> str:
    return {"train": "train on", "valid": "validate on", "test": "test on"}.get(split, split)


def _examples(about: About, tokens: str) -> str:
    """What the examples are, in a few words."""
    if about.kind == "tokens":
        unit = {"words": "words", "bpe": "pieces of words", "bytes": "bytes"}[tokens]
        return f"sentences of up to {about.shape[0]:,} tokens, {about.levels:,} different {unit}"
    if about.kind == "vectors":
        return f"vectors of {about.shape[0]:,} numbers"
    top = about.levels - 1
    values = {
        0: "values in [0, 1]",
        2: "black and white",
        256: "values from 0 to 255",
    }.get(about.levels, f"values from 0 to {top} (if {top} is not white, say --levels)")
    return f"images of {' x '.join(map(str, about.shape))}, {values}"


def _label(spec: Spec, name: str) -> str:
    """A label, and what its values are called."""
    size, classes = spec.about.labels[name], spec.data["classes"].get(name, ())
    more = ", ..." if size > SHOWN else ""
    named = f": {', '.join(map(str, classes[:SHOWN]))}{more}" if classes else ""
    return f"{name} ({size:,} values{named})"


def _model(spec: Spec, latent: int) -> str:
    """The method with its net, likelihood and dimensions."""
    about, choices = spec.about, spec.model
    net = NETS[about.kind] if choices.net == "auto" else choices.net
    parts = [spec.title, "nets of your own" if {"encoder", "decoder"} & {*spec.own} else f"net {net}"]
    if about.kind != "tokens":
        usual = "bernoulli" if about.levels else "gaussian"
        parts.append(f"likelihood {usual if choices.likelihood == 'auto' else choices.likelihood}")
    parts.append(f"{latent or 'no'} latent dimension{'s' * (latent != 1)}")
    return ", ".join(parts + ([f"given {choices.given}"] if choices.given else []))


def _chosen(spec: Spec) -> list[str]:
    """What nobody said and was chosen for the data, a line for each reason."""
    values, chosen = spec.model.model_dump() | spec.fit.model_dump(), {*spec.suited}
    text = spec.about.kind == "tokens"
    if text and values["dropout"] is None and not spec.base and not {"encoder", "decoder"} & {*spec.own}:
        values["dropout"] = TRANSFORMER_DROPOUT if values["net"] == "transformer" else DROPOUT
        chosen.add("dropout")
    if not chosen:
        return []
    why = _reasons_of_text(spec, values) if text else _reasons(spec, values)
    rows = [([name for name in names if name in chosen], reason) for names, reason in why.items()]
    told = [(" ".join(flag(name, values[name]) for name in names), reason) for names, reason in rows if names]
    return ["chosen for this data, since you did not say (docs/defaults.md):", *_columns(told)]


Reasons = dict[tuple[str, ...], str]  # options that are chosen together, and why


def _reasons(spec: Spec, values: dict[str, Any]) -> Reasons:
    """Why images and vectors have these options."""
    about, size, net = spec.about, prod(spec.about.shape), str(values["net"])
    flat = about.kind == "vectors" or size <= FLAT
    few = about.n < FEW and "batch_size" in spec.suited
    return {
        ("likelihood",): "its sigma follows the error, so that rate and distortion are in balance",
        ("standardise",): "nets work in units of the data; nats stay those of the data",
        ("net",): (
            f"{size:,} values are few enough for full layers" if flat else "convolutions, since the images are large"
        ) + ("; the linear map beside them is what PCA has" if net.endswith(LINEAR) else ""),
        ("init",): "begins as PCA" if values["init"] == "principal" else "begins with codes near the prior",
        ("batch_size", "steps"): _passes(spec) + f"; small batches, for fewer than {FEW:,} examples" * few,
        ("lr", "decay", "lr_end"): FALLS,
    }  # fmt: skip


def _reasons_of_text(spec: Spec, values: dict[str, Any]) -> Reasons:
    """Why text has these options, by the figures of docs/defaults.md."""
    measured = "; on PTB 3 nats better than a constant 1e-3" * ({"lr", "decay"} <= {*spec.suited})
    return {
        ("trunk",): "nets begin so that codes lie in 7 directions, where those of a and b lay in one",
        ("dropout",): (
            "an autoencoder reads the next word from its code"
            if values["dropout"] == COPY_DROPOUT
            else "a decoder that guesses words, as a language model does, needs it"
        ),
        ("batch_size",): (
            "on PTB 3.5 nats ahead of 64, early and at equal data"
            if values["batch_size"] == TEXT_BATCH
            else "there are no more training examples"
        ),
        ("steps",): _passes(spec),
        ("lr", "decay", "lr_end"): (FALLS if "decay" in spec.suited else "of text under Adam") + measured,
    }  # fmt: skip


def _passes(spec: Spec) -> str:
    """How often the run sees the data."""
    passes = spec.fit.steps * spec.fit.batch_size / max(1, spec.about.n)
    told = f"{passes:.0f} passes" if passes >= 1.5 else "one pass" if passes >= 0.95 else f"{passes:.1g} of a pass"
    return f"{told} over the data"


def _columns(rows: Sequence[tuple[str, str]]) -> list[str]:
    wide = max(len(left) for left, _ in rows)
    return [f"  {left:<{wide}}  {right}" for left, right in rows]
