"""elbo generate, chat: answers of a model that reads a context."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from elboroom.commands.latent import (
    AllowUnk,
    As,
    Temperature,
    TopP,
    decoding_of,
    labels_of,
    print_sentences,
    tell_unknown,
)
from elboroom.commands.output import Folder, Json, Seed, say
from elboroom.core.problem import Problem

TAB = "\t"
Text = Annotated[str | None, typer.Argument(metavar="[TEXT]", help="a context; - reads them from standard input")]
File = Annotated[
    Path | None, typer.Option("--file", help="a file of contexts, one a line, with a TAB between two turns")
]
Out = Annotated[Path | None, typer.Option("--out", help="a .txt file", show_default="standard output")]
Number = Annotated[
    int | None,
    typer.Option("--n", min=1, help="answers to each", show_default="10, or 1 of a model of single sentences"),
]
Beam = Annotated[int | None, typer.Option("--beam", help="the width of a beam search", min=1)]


def generate(folder: Folder, text: Text = None, file: File = None, out: Out = None, n: Number = None,
             temperature: Temperature = None, top_p: TopP = None, beam: Beam = None, allow_unk: AllowUnk = False,
             labels: As = "", seed: Seed = 0, json: Json = False) -> None:  # fmt: skip
    """Write replies to a dialogue, translations or simplifications: whatever a model makes of a context."""
    from elboroom.data.sequences import CONTEXT
    from elboroom.runs.answers import default_number
    from elboroom.runs.lifecycle import load

    contexts = _contexts(text, file)
    run = load(folder)
    n = default_number(run) if n is None else n
    free = ("greedy" if n == 1 else "sample") if allow_unk else None
    how = decoding_of(None, beam, free, temperature=temperature, top_p=top_p)
    made = run.generate(contexts, n, how, seed, labels_of(run, labels, n * len(contexts)))
    tell_unknown(run, [turn for turns in contexts for turn in turns], CONTEXT)
    print_sentences(made, out, json)


def _contexts(text: str | None, file: Path | None) -> list[list[str]]:
    """The turns of what is to be answered: of an argument, a file or standard input."""
    if (text is None) == (file is None):
        raise Problem("say what is to be answered: a text, --file FILE, or - for standard input")
    if text is not None and text != "-":
        return [text.split(TAB)]
    if file is None:
        lines = sys.stdin.read().splitlines()
    else:
        from elboroom.data.lines import lines as read

        lines = [line.rstrip("\n") for _, line in read(file)]
    if not lines:
        raise Problem(f"{file or 'standard input'} is empty; write one context a line")
    return [line.split(TAB) for line in lines]


def chat(folder: Folder, temperature: Temperature = None, top_p: TopP = None, beam: Beam = None, labels: As = "",
         seed: Seed = 0) -> None:  # fmt: skip
    """Talk with a model of dialogues: it answers every line, and remembers the turns; a blank line begins anew."""
    from elboroom.data.sequences import CONTEXT
    from elboroom.runs.lifecycle import load

    run, how = load(folder), decoding_of(None, beam, None, temperature=temperature, top_p=top_p)
    if run.model.conditioner is None:
        raise Problem(f"{run.spec.method} of this run reads no context, so it cannot answer; use elbo sample")
    most, turns = run.spec.about.sequences[CONTEXT].turns, list[str]()
    if sys.stdin.isatty():
        say(f"{run.spec.method} answers; a blank line begins anew, Ctrl-D ends")
    for number, line in enumerate(sys.stdin):
        if not line.strip():
            turns = []
            continue
        turns.append(line.strip())
        (reply,) = run.generate(turns[-most:], 1, how, seed + number, labels_of(run, labels, 1))
        turns.append(reply)
        print(reply, flush=True)
