"""elbo compare."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from elboroom.commands.output import Json, Seed, figure_file, print_json


def compare(
    a: Annotated[str, typer.Argument(metavar="A.npy", help="a sample, one row per example")],
    b: Annotated[str, typer.Argument(metavar="B.npy", help="the other sample")],
    out: Annotated[
        Path | None, typer.Option("--out", help="a figure of the witness function: .png, .svg or .pdf")
    ] = None,
    kernel: Annotated[str, typer.Option("--kernel", help="rbf or imq")] = "rbf",
    permutations: Annotated[int, typer.Option("--permutations", min=1)] = 1000,
    divergences: Annotated[
        str, typer.Option("--divergences", help="f-divergences to bound as well, comma-separated")
    ] = "",
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Test whether two samples differ: MMD with a permutation test, and a figure of where."""
    from elboroom.divergences import compare as compared
    from elboroom.plots.style import save
    from elboroom.plots.witness import witness

    path = None if out is None else figure_file(out)
    also = [name.strip() for name in divergences.split(",") if name.strip()]
    x, y = _sample(a), _sample(b)
    found = compared(x, y, kernel=kernel, permutations=permutations, divergences=also, seed=seed, names=(a, b))
    if path is not None:
        save(witness(found), path)
    if json:
        return print_json(found.to_json())
    print(found.verdict)
    for name, value in found.divergences.items():
        print(f"{name}: {value}")


def _sample(path: str) -> Any:
    import numpy as np

    from elboroom.data import registry

    data = registry.load(Path(path))
    return data.x(np.arange(len(data))).flatten(1).numpy()
