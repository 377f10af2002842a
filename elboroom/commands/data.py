"""elbo data list, show, get, check."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from elboroom.commands.output import Json, print_json, print_table, say
from elboroom.core.problem import Problem, unknown

if TYPE_CHECKING:
    from elboroom.data.dataset import DataSet

LABELS = typer.Option(
    "--labels",
    help="a table of labels: .csv, .tsv or list_attr_celeba.txt, with one row per image of a folder or per example of an "
    "array; none: ignore a table in the folder",
)
LABEL_KINDS = typer.Option(
    "--label-kinds", help="kinds of labels: categorical, ordinal or binary, as in male=binary,age=ordinal"
)
LEVELS = typer.Option(
    "--levels",
    min=2,
    help="how many values the pixels of an array of whole numbers may have, from 0 for black, where they do not tell: 256 "
    "for bytes",
)
SHOWN = 8  # classes of a label

data_app = typer.Typer(
    help="Data sets: list, show, get, check.", add_completion=False, no_args_is_help=True, rich_markup_mode=None
)


@data_app.command("list")
def data_list(json: Json = False) -> None:
    """List the data sets, and where each was found."""
    from elboroom.data import registry

    rows = registry.listing()
    if json:
        return print_json(rows)
    shown = [row | {"counts": ", ".join(f"{n:,} {split}" for split, n in row["counts"].items())} for row in rows]
    print_table(list(rows[0]), [list(row.values()) for row in shown])


@data_app.command("show")
def data_show(
    data: Annotated[str, typer.Argument(help="as in --data of elbo train")],
    size: Annotated[int | None, typer.Option("--size", help="resize the images of a folder to SIZE x SIZE")] = None,
    labels: Annotated[str | None, LABELS] = None,
    label_kinds: Annotated[str | None, LABEL_KINDS] = None,
    levels: Annotated[int | None, LEVELS] = None,
    text_column: Annotated[str, typer.Option("--text-column", help="the column of a table that holds the text")] = "",
    label_column: Annotated[str, typer.Option("--label-column", help="its label columns, comma-separated")] = "",
    target_column: Annotated[str, typer.Option("--target-column", help="its column of paired targets")] = "",
    context_column: Annotated[str, typer.Option("--context-column", help="its column of contexts")] = "",
    turn_separator: Annotated[
        str, typer.Option("--turn-separator", help="what stands between two turns of a context", show_default="a TAB")
    ] = "",
    dialogue_column: Annotated[
        str, typer.Option("--dialogue-column", help="its column of what rows belong together")
    ] = "",
    style_words: Annotated[
        str,
        typer.Option("--style-words", metavar="LABEL", help="list the words of the training text that tell this label"),
    ] = "",
    encoding: Annotated[str, typer.Option("--encoding", help="of text files, e.g. latin-1")] = "utf-8",
    background: Annotated[str, typer.Option("--background", help="colour behind transparent pixels")] = "white",
    crop: Annotated[
        str, typer.Option("--crop", help="none, or centre: the square in the middle of a picture")
    ] = "none",
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="leave out images that cannot be read")] = False,
    json: Json = False,
) -> None:
    """Read data as elbo train does, and show what it has."""
    from elboroom.build.registry import checked
    from elboroom.data import registry
    from elboroom.data.photos import Photos
    from elboroom.data.text import Reading

    columns = {"text": text_column, "label": label_column, "target": target_column, "context": context_column}
    columns["dialogue"] = dialogue_column
    said = {"turn_separator": turn_separator, "encoding": encoding}
    reading = checked(Reading, {f"{name}_column": column for name, column in columns.items()} | said)
    photos = checked(Photos, {"background": background, "crop": crop, "skip_bad": skip_bad})
    found = registry.load(data, size, None, reading, labels, label_kinds, levels, photos)
    about = found.about
    values = {0: "real", 2: "black and white", 256: "bytes"}.get(about.levels, f"{about.levels:,} levels")
    told: dict[str, Any] = {
        "name": about.name,
        "kind": about.kind,
        "examples": len(found),
        "shape": list(about.shape),
        "values": f"vocabulary of {about.levels:,}" if about.kind == "tokens" else values,
        "splits": {name: len(rows) for name, rows in found.splits.items()},
        "hash": found.hash,
    }
    telling = _style_words(found, style_words) if style_words else None
    fields = [vars(field) for field in found.fields.values() if field.kind != "sequence"]
    if json:
        sequences = {name: vars(sequence) for name, sequence in about.sequences.items()}
        words = {"style_words": telling} if telling is not None else {}
        return print_json(told | {"labels": fields} | ({"sequences": sequences} if sequences else {}) | words)
    splits = ", ".join(f"{count:,} {name}" for name, count in told["splits"].items())
    shape = " x ".join(map(str, about.shape)) if about.kind != "tokens" else f"up to {about.shape[0]} tokens"
    shown = told | {"examples": f"{len(found):,}", "shape": shape, "splits": splits}
    print_table(["data", ""], [[name, value] for name, value in shown.items()])
    if fields:
        labelled = [found.fields[name] for name in about.labels]
        rows = [[f.name, f.kind, f.size, _few(f.classes or range(f.size))] for f in labelled]
        print_table(["label", "kind", "values", "classes"], rows)
    if about.sequences:
        beside: list[list[object]] = [
            [n, f"{s.size:,}", s.longest, s.turns, "x" if s.shared else "its own"] for n, s in about.sequences.items()
        ]
        print_table(["sequence", "vocabulary", "most tokens", "most turns", "tokens of"], beside)
    if telling is not None:
        print_table(
            [style_words, "words that tell it, the surest first"], [[v, ", ".join(w)] for v, w in telling.items()]
        )


def _style_words(data: DataSet, label: str) -> dict[str, list[str]]:
    """The words of the training text that tell each value of a label, the surest first."""
    from elboroom.data.words import style_words

    if data.about.kind != "tokens":
        raise Problem(f"--style-words is for text, but {data.about.name} is {data.about.kind}")
    if label not in data.about.labels:
        raise unknown("label", label, data.about.labels, data.about.name)
    rows, column, named = data.splits["train"], list(data.about.labels).index(label), data.fields[label]
    found = style_words(data.sentences(rows), data.labels[rows, column], named.size)
    values = named.classes or range(named.size)
    return {str(name): [entry.word for entry in found if entry.value == at] for at, name in enumerate(values)}


def _few(classes: Sequence[object]) -> str:
    return ", ".join(map(str, classes[:SHOWN])) + (", ..." if len(classes) > SHOWN else "")


@data_app.command("get")
def data_get(
    name: str,
    to: Annotated[
        Path | None, typer.Option("--to", help="the folder to download it to", show_default="the cache")
    ] = None,
    source: Annotated[str | None, typer.Option("--source", help="another web address of the same files")] = None,
    json: Json = False,
) -> None:
    """Find a data set, or download it, with resume and checksum."""
    from rich.console import Console
    from rich.progress import Progress

    from elboroom.data import registry

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=None)
        found = registry.get(name, to, lambda done, total: bar.update(task, completed=done, total=total), source)
    print_json(found) if json else say(f"{name}: {found['state']}, {found['folder']}")


@data_app.command("check")
def data_check(
    name: str,
    against: Annotated[Path | None, typer.Option("--against", help="the original .npz file")] = None,
    json: Json = False,
) -> None:
    """Compare a data set with its original, or its files with their checksums."""
    from elboroom.data import registry

    found = registry.check(name, against)
    print_json(found) if json else say("  ".join(f"{key} {value}" for key, value in found.items()))
