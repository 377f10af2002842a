"""elbo recommend."""

from __future__ import annotations

import json as json_
from pathlib import Path
from typing import Annotated, Any

import typer

from elboroom.commands.output import Json, harmless, print_json
from elboroom.core.problem import Problem, unknown

FILE = Path(__file__).parents[1] / "recommend.json"  # written by docs/results/leaderboard.py from the records of runs
PURPOSES = ("likelihood", "disentangling", "editing", "samples", "style")
FEW = 1_000  # training examples below which a model learns some by heart
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
    found = advice(purpose, about.kind)
    command = f"elbo train {found['method']} --data {data}" + (f" --size {size}" if size else "")
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


def why(found: dict[str, Any]) -> list[str]:
    """The reasons in sentences."""
    told = []
    if "nearest" in found:
        told.append(f"Vectors were not measured; this is of {found['nearest']}.")
    if "suggested" in found:
        told.append(
            f"No run was recorded for this purpose. The documents suggest it: {found['suggested']} ({found['page']})."
        )
        return told
    won = f"It has the best {found['title'].lower()} of {found['runs']} runs on {found['data']}: {found['value']:.4g}"
    told.append(f"{won}, {found['lead']:.3g} before {found['next']} ({found['page']}).")
    if found["lead"] <= 2 * found["noise"]:
        told.append(
            f"That lead is within the noise, {found['noise']:.2g} by {found['noise_of']}: {found['next']} may do as well."
        )
    else:
        told.append(f"The noise is {found['noise']:.2g}, by {found['noise_of']}.")
    if found.get("minutes") is not None:
        told.append(f"It took {found['minutes']:,} minutes on two cores.")
    return told
