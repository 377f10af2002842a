"""elbo edit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from elboroom.commands.latent import EMPTY, AllowUnk, As, Given, decoding_of, labels_of, tell_unknown
from elboroom.commands.output import Folder, Handed, Json, Seed, SplitName, print_json, warn
from elboroom.core.problem import Problem

if TYPE_CHECKING:
    from elboroom.runs.run import Run


def edit(
    folder: Folder,
    given: Given = None,
    file: Annotated[Path | None, typer.Option("--file", help="sentences, one per line")] = None,
    label: Annotated[str, typer.Option("--label", help="the label that is to change", show_default="the only one")] = "",
    to: Annotated[str | None, typer.Option("--to", metavar="VALUE", help="the value that it is to have")] = None,
    by: Annotated[
        str | None,
        typer.Option("--by", help="offset: add the difference of class means; fgim: gradient steps on the code until a "
                     "classifier is sure; map: the map of an emb2emb run; map+fgim: both",
                     show_default="map where there is one, else offset"),
    ] = None,
    strength: Annotated[float, typer.Option("--strength", help="0 reconstructs, 1 goes all the way, more goes on")] = 1.0,
    beam: Annotated[
        int | None, typer.Option("--beam", min=1, help="width of a beam search", show_default="greedy")
    ] = None,
    n: Annotated[
        int | None, typer.Option("--n", min=1, help="examples of the data, where none are given", show_default="10")
    ] = None,
    split: SplitName = None,
    out: Annotated[Path | None, typer.Option("--out", help="of images: a .png or .gif file, or .npy; of tables .csv")] = None,
    allow_unk: AllowUnk = False,
    labels: As = "",
    data: Handed = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:  # fmt: skip
    """Give sentences or images another value of a label; of images, show what is given above what becomes of it."""
    import numpy as np

    from elboroom.commands.latent import arrays, images, pairs
    from elboroom.commands.transfer import sentences_of
    from elboroom.runs.lifecycle import load

    run = load(folder, data=data)
    how: dict[str, Any] = {"to": to, "label": label, "by": by, "strength": strength}
    if run.tokeniser is None:
        for flag, said in (("file", file), ("beam", beam), ("allow-unk", allow_unk or None)):
            if said is not None:
                raise Problem(f"--{flag} is for sentences; this model is of images or vectors")
        x, shown = images(run, given, n, split, seed, 10)
        u = labels_of(run, labels, len(shown))
        grid = np.stack([shown, run.edit(x, u=u, **how)])
        _tell_missed(run, grid[1], label, to, u)
        return arrays(run, grid, out, "edit", json, axes=pairs(grid, "edited"))
    if out is not None:
        raise Problem("--out is for images; sentences go to standard output")
    own = sentences_of(given, file, n, split)
    before = own or run.sentences(n or 10, split, seed)
    u = labels_of(run, labels, len(before))
    reads = run.model.conditioner is not None and not own  # of which the context is needed too
    rows = run.examples(n or 10, split, seed) if reads else before
    made = run.edit(rows, u=u, decoding=decoding_of(None, beam, "greedy" if allow_unk else None), **how)
    tell_unknown(run, own)
    _tell_missed(run, made, label, to, u)
    if json:
        return print_json([{"input": a, "output": b} for a, b in zip(before, made, strict=True)])
    made = [text or EMPTY for text in made]
    print("\n".join(made) if own else "\n\n".join(f"{a}\n{b}" for a, b in zip(before, made, strict=True)))


def _tell_missed(run: Run, made: Any, label: str, to: str | None, u: Any) -> None:
    """Says how many edits did not take."""
    from elboroom.runs.edit import missed

    count, value = missed(run, made, label, to, u)
    if count:
        warn(
            f"{count} of {len(made)}, read again, are not told as {value} by the classifier of codes: try --strength 1.5 or "
            "another --by"
        )
