"""The card of a run that is shared: what it is, its data and numbers, how to use it and make it again, and its limits."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elboroom.data.sources import SOURCES
from elboroom.evaluate.verdicts import of_metrics
from elboroom.report.numbers import score_table, table
from elboroom.training.spec import Spec

if TYPE_CHECKING:
    from elboroom.runs.run import Run

FILE = "README.md"
UNTOLD = ("data", "rows", "hash", "tokeniser", "tokens", "words", "seed")


def card(run: Run, spec: Spec, address: str) -> str:
    """The card as Markdown; `spec` is the run's own as it is shared."""
    about, method = spec.about, spec.card
    parts = [
        _front(spec),
        f"# {_plain(spec.title)} on {_plain(about.name)}",
        f"{_plain(method.summary)} A latent-variable model trained with elboroom: "
        f"{run.parameters:,} parameters, {run.latent} latent dimensions, step {run.step:,}.",
        f"- loss: `{_code(method.formula)}` ({_plain(method.paper)})",
        "## Data",
        f"{_plain(about.name)}: {about.n:,} training examples, {_shape(spec)}. {_licence(spec)}",
        "## Numbers",
        _numbers(run),
        "## How to use it",
        f"```sh\npip install 'elboroom[hub]'\nelbo pull {_code(address)} --out run\nelbo explore run\n```",
        f"```python\nimport elboroom\n\nrun = elboroom.load({address!r})\n{_use(run)}\n```",
        "Loading it runs no code of this repository: weights are safetensors, all else is JSON, and every tensor is checked.",
        "## How to make it again",
        f"```sh\n{_code(spec.command)}\n```",
        f"With {', '.join(f'{name} {_plain(v)}' for name, v in spec.versions.items())}, seed {spec.fit.seed}.",
        "## Limits",
        _limits(run, spec),
    ]
    return "\n\n".join(parts) + "\n"


def _front(spec: Spec) -> str:
    tags = [
        "elboroom",
        "vae",
        "latent-variable-model",
        {"tokens": "text", "pixels": "images"}.get(spec.about.kind, "vectors"),
    ]
    return "\n".join(["---", "library_name: elboroom", "tags:", *(f"- {tag}" for tag in tags), "---"])


def _shape(spec: Spec) -> str:
    about = spec.about
    if about.kind == "tokens":
        return f"sentences in a vocabulary of {about.levels:,}"
    return f"{'images' if about.kind == 'pixels' else 'vectors'} of shape {' x '.join(map(str, about.shape))}"


def _licence(spec: Spec) -> str:
    known = SOURCES.get(spec.data["source"])
    if known is None:
        return (
            "These are data of its maker's own, whose licence is not known here; they are not part of this repository."
        )
    return f"Licence of the data, as its source states it: {known.licence}. They are not part of this repository."


def _numbers(run: Run) -> str:
    measured = {name: _brief(entry) for name, entry in run.measured.items()}
    rows = [row for row in (*table(measured), *score_table(measured)) if row.value != "—"]
    if not rows:
        return "None was measured: `elbo eval run` does."
    head = ["| what | value | errors | estimator | settings |", "| --- | --- | --- | --- | --- |"]
    cells = (
        (row.title, f"{row.value} {row.unit}".strip(), ", ".join(row.errors), row.estimator, row.settings)
        for row in rows
    )
    return "\n".join([*head, *("| " + " | ".join(_plain(cell) for cell in line) + " |" for line in cells)])


def _brief(entry: Any) -> Any:
    """A number without those of its settings that only a program compares."""
    if not isinstance(entry, dict) or not isinstance(entry.get("settings"), dict):
        return entry
    return {**entry, "settings": {name: value for name, value in entry["settings"].items() if name not in UNTOLD}}


def _use(run: Run) -> str:
    if not run.latent:
        return "run.sample(5)"
    if run.tokeniser is not None:
        return 'codes = run.encode(["a sentence of your own"])\nrun.sample(5)'
    shape = ", ".join(map(str, run.spec.about.shape))
    return f"codes = run.encode(x)  # x of shape (n, {shape})\nrun.sample(25)"


def _limits(run: Run, spec: Spec) -> str:
    told = [
        "One run with one seed: another seed gives other numbers.",
        "It models what it was trained on, with what that leaves out and prefers; it was not tested for any use.",
        *of_metrics(run.measured),
    ]
    if "data" in spec.own:
        told.append("The data was handed in from Python and is not shared: what measures it needs the data again.")
    if spec.base is not None:
        told.append("The run that it stands on is in its folder `base`, without what its optimisers remember.")
    if spec.own and {"encoder", "decoder"} & set(spec.own):
        told.append("Its nets are its maker's own code, which has to be handed in again to load it.")
    return "\n".join(f"- {_plain(sentence)}" for sentence in told)


def _plain(text: Any) -> str:
    """A text as one line in which nothing is markup."""
    return re.sub(r"([\\`*_|<>\[\]#])", r"\\\1", " ".join(str(text).split()))


def _code(text: str) -> str:
    """A text as it may stand in code."""
    return " ".join(text.split()).replace("`", "'")


def paths(spec: Spec) -> list[str]:
    """The paths on the machine of its maker that a spec has, the longest first."""
    said = [spec.data["source"], spec.data["about"]["name"], spec.data.get("labels"), spec.warm, spec.recipe]
    said += [spec.base.folder] if spec.base else []
    return sorted({path for path in said if path and _last(path) != path}, key=len, reverse=True)


def nameless(spec: Spec) -> Spec:
    """The spec as it is shared: of paths on the machine of its maker the last part alone."""
    data = dict(spec.data)
    data["source"] = _last(data["source"])
    data["about"] = {**data["about"], "name": _last(data["about"]["name"])}
    data |= {"labels": _last(data["labels"])} if isinstance(data.get("labels"), str) else {}
    base = spec.base.model_copy(update={"folder": _last(spec.base.folder)}) if spec.base else None
    update = {"data": data, "warm": _last(spec.warm), "base": base, "recipe": _last(spec.recipe)}
    return spec.model_copy(update=update)


def _last(path: str) -> str:
    return Path(path).name if "/" in path.replace("\\", "/") and "://" not in path else path
