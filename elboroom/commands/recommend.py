"""elbo recommend."""

from __future__ import annotations

import json as json_
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from elboroom.commands.output import Json, harmless, print_json
from elboroom.core.problem import Problem, unknown

if TYPE_CHECKING:
    from elboroom.data.dataset import About

FILE = Path(__file__).parents[1] / "recommend.json"  # written by docs/results/leaderboard.py from the records of runs
PURPOSES = ("likelihood", "disentangling", "editing", "samples", "style")
FEW = 1_000  # training examples below which a model learns some by heart
LABEL = "LABEL"  # in options: a label of the data
KINDS = {"pixels": "images", "tokens": "text", "vectors": "vectors"}


def recommend(
    data: Annotated[str, typer.Option("--data", help="what --data of elbo train takes")],
    purpose: Annotated[str, typer.Option("--for", help=f"{', '.join(PURPOSES[:-1])} or {PURPOSES[-1]}")],
    size: Annotated[int | None, typer.Option("--size", help="of the images of a folder")] = None,
    json: Json = False,
) -> None:
    """Say which method suits a purpose, with which options and why: by the records of runs, where there are any."""
    if purpose not in PURPOSES:
        raise unknown("purpose", purpose, PURPOSES)
    from elboroom.data import registry

    about = registry.load(data, size).draft
    found = labelled(advice(purpose, about.kind), about)
    command = f"elbo train {found['method']} --data {shlex.quote(data)}" + (f" --size {size}" if size else "")
    command = " ".join([command, *filter(None, [found["options"]]), *(["--patience 3"] if about.n < FEW else [])])
    if json:
        return print_json({"data": data, "kind": about.kind, "examples": about.n, "command": command} | found)
    lines = [command, "", *why(found)]
    if about.n < FEW:
        lines.append(f"{about.n:,} training examples are few: --patience 3 stops where held-out data is best.")
    lines.append("What is not said (net, likelihood, steps) is chosen for the data; afterwards: elbo doctor RUN.")
    print(harmless("\n".join(lines)))


def advice(purpose: str, kind: str) -> dict[str, Any]:
    """The entry for a purpose; of vectors that of images, which is the nearest that was measured."""
    known = json_.loads(FILE.read_text(encoding="utf-8"))
    for entry in known:
        if entry["purpose"] == purpose and entry["kind"] == ("pixels" if kind == "vectors" else kind):
            return dict(entry) | ({"nearest": KINDS["pixels"]} if kind == "vectors" else {})
    raise Problem(f"there is neither a record nor a suggestion for {purpose} of {KINDS[kind]}")


def labelled(found: dict[str, Any], about: About) -> dict[str, Any]:
    """The same entry with a label of the data where its options name one; refuses data that has none to change."""
    if LABEL not in found["options"]:
        return found
    names = [name for name, size in about.labels.items() if size > 1 and name.strip() == name and "," not in name]
    if not names:
        remedy = (
            "put one beside each sentence (label TAB text, or a column that --label-column names)"
            if about.kind == "tokens"
            else f"hand in a table of them: elbo train {found['method']} --data ... --labels TABLE --given NAME"
        )
        raise Problem(f"{about.name} has no label with two values or more, so there is no style to change; {remedy}")
    return found | {"options": found["options"].replace(LABEL, shlex.quote(names[0])), "labels": names}


def why(found: dict[str, Any]) -> list[str]:
    """The reasons in sentences."""
    told = []
    if "nearest" in found:
        told.append(f"Vectors were not measured; this is of {found['nearest']}.")
    if "suggested" in found:
        told.append(
            f"No records rank methods for this purpose. The documents suggest it: {found['suggested']} ({found['page']})."
        )
        if len(names := found.get("labels", ())) > 1:
            told.append(f"The labels that can be changed are {', '.join(names)}; this names the first.")
        return told
    won = f"It has the best {found['title'].lower()} of {found['runs']} runs on {found['data']}: {found['value']:.4g}"
    told.append(f"{won}, {found['lead']:.3g} before {found['next']} ({found['page']}).")
    if found["noise"] is None:
        told.append("Each has one seed, and how far seeds scatter was not measured.")
    elif found["lead"] <= 2 * found["noise"]:
        told.append(
            f"That lead is within the noise, {found['noise']:.2g} by {found['noise_of']}: {found['next']} may do as well."
        )
    else:
        told.append(f"The noise is {found['noise']:.2g}, by {found['noise_of']}.")
    if found.get("minutes") is not None:
        told.append(f"It took {found['minutes']:,} minute{'s' * (found['minutes'] != 1)} on two cores.")
    return told
