"""elbo transfer."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elboroom.commands.latent import EMPTY, AllowUnk, As, decoding_of, labels_of, tell_unknown
from elboroom.commands.output import Folder, Json, Seed, SplitName, print_json
from elboroom.core.problem import Problem

if TYPE_CHECKING:
    from elboroom.runs.run import Run

STDIN = "-"


def transfer(
    folder: Folder,
    text: Annotated[
        list[str] | None, typer.Argument(metavar="[TEXT]...", help="your own sentences; - reads them from standard input")
    ] = None,
    file: Annotated[Path | None, typer.Option("--file", help="sentences, one per line")] = None,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="STYLE", help="the value of the label, or LABEL=VALUE, several comma-separated",
                     show_default="of two styles the other one"),
    ] = None,
    like: Annotated[str | None, typer.Option("--like", metavar="TEXT", help="take the style of this sentence")] = None,
    strength: Annotated[
        float, typer.Option("--strength", help="0 reconstructs, 1 is the style as it is, more exaggerates it")
    ] = 1.0,
    by: Annotated[
        str, typer.Option("--by", help="style: as the method does; offset, fgim, map, map+fgim: as elbo edit")
    ] = "style",
    beam: Annotated[
        int | None, typer.Option("--beam", min=1, help="width of a beam search", show_default="greedy")
    ] = None,
    through: Annotated[
        Path | None,
        typer.Option("--through", metavar="RUN", help="of bst: the run that translates your sentences to the pivot, beam 5"),
    ] = None,
    n: Annotated[
        int | None, typer.Option("--n", min=1, help="examples of the data, where no text is given", show_default="10")
    ] = None,
    split: SplitName = None,
    out: Annotated[Path | None, typer.Option("--out", help="of images: a .png or .gif file, or .npy; of tables .csv")] = None,
    allow_unk: AllowUnk = False,
    labels: As = "",
    seed: Seed = 0,
    json: Json = False,
) -> None:  # fmt: skip
    """Say sentences in another style and keep their content; of images, show examples above what becomes of them."""
    from elboroom.evaluate.subject import reads_pivot
    from elboroom.runs.lifecycle import load

    run = load(folder)
    how = decoding_of(None, beam, "greedy" if allow_unk else None)
    if run.tokeniser is None:
        if allow_unk:
            raise Problem("--allow-unk is for sentences; this model is of images or vectors")
        return _images(run, text, file, to, strength, by, beam, like, n, split, out, seed, json)
    if out is not None:
        raise Problem("--out is for images; sentences go to standard output")
    given = sentences_of(text, file, n, split)
    own = bool(given)
    given = given or run.sentences(n or 10, split, seed)
    u = labels_of(run, labels, len(given))
    rows = run.examples(n or 10, split, seed) if not own and reads_pivot(run) and through is None else given
    made = run.transfer(rows, to, like, strength, by, how, u, None, through)  # type: ignore[arg-type]
    if own and not reads_pivot(run):
        tell_unknown(run, [*given, *([like] if like else [])])
    if json:
        return print_json([{"input": a, "output": b} for a, b in zip(given, made, strict=True)])
    made = [text or EMPTY for text in made]
    print("\n".join(made) if own else "\n\n".join(f"{a}\n{b}" for a, b in zip(given, made, strict=True)))


def sentences_of(text: list[str] | None, file: Path | None, n: int | None, split: str | None) -> list[str]:
    """The sentences that were given, by argument, file or standard input; none where examples of the data are meant."""
    if text and file is not None:
        raise Problem("sentences come from the command line or from --file; give one of them")
    if not text and file is None:
        return []
    for flag, said in (("n", n), ("split", split)):
        if said is not None:
            raise Problem(f"--{flag} has no effect when sentences are given; remove it")
    if text and text != [STDIN]:
        return text
    if file is not None:
        from elboroom.data.lines import lines

        found = [line.strip() for _, line in lines(file)]
    else:
        found = [line.strip() for line in sys.stdin]
    where = str(file or "standard input")
    if not found:
        raise Problem(f"{where} has no sentence")
    if "" in found:
        raise Problem(f"line {found.index('') + 1} of {where} is empty; write one sentence per line")
    return found


def _images(
    run: Run, text: list[str] | None, file: Path | None, to: str | None, strength: float, by: str, beam: int | None,
    like: str | None, n: int | None, split: str | None, out: Path | None, seed: int, json: bool,
) -> None:  # fmt: skip
    """Examples of the data above what becomes of them."""
    import numpy as np

    from elboroom.commands.latent import arrays, pairs

    for flag, said in (("file", file), ("beam", beam), ("like", like)):
        if said is not None:
            raise Problem(f"--{flag} is for sentences; this model is of images or vectors")
    if text:
        raise Problem("this model is for images or vectors; it takes no sentences")
    batch = run.examples(n or 10, split, seed)
    made = run.transfer(batch, to, strength=strength, by=by)  # type: ignore[arg-type]
    grid = np.stack([batch.x.numpy(), made])
    arrays(run, grid, out, "transfer", json, axes=pairs(grid, "transferred"))
