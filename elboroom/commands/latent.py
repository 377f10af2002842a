"""elbo encode, sample, reconstruct, traverse, interpolate, analogy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from elboroom.commands.output import (
    Components,
    Folder,
    Handed,
    Json,
    SamplerName,
    Seed,
    SplitName,
    print_json,
    sampler_of,
    say,
    warn,
)
from elboroom.commands.rows import numbered, write_csv
from elboroom.core.problem import Problem, unknown

if TYPE_CHECKING:
    from elboroom.runs.run import Run

Picture = Annotated[
    Path | None,
    typer.Option(
        "--out",
        help="a .png or .gif file, .npy for the values; for text .txt, for tables .csv",
        show_default="by command",
    ),
]
Given = Annotated[
    list[str] | None,
    typer.Argument(metavar="[OWN]...", help="your own sentences, or files of your own: images, tables"),
]
Decode = Annotated[str | None, typer.Option("--decode", help="greedy, sample or beam, for text")]
Temperature = Annotated[float | None, typer.Option("--temperature", help="for --decode sample; default 1", min=0.01)]
TopK = Annotated[int | None, typer.Option("--top-k", help="sample from the K most likely words; 0 is all", min=0)]
TopP = Annotated[
    float | None,
    typer.Option(
        "--top-p", help="sample from the most likely words with total probability P (nucleus)", min=0.01, max=1.0
    ),
]
As = Annotated[
    str, typer.Option("--as", metavar="LABEL=VALUE,...", help="labels for a conditional model", show_default=False)
]
AllowUnk = Annotated[bool, typer.Option("--allow-unk", help="may write <unk>, for text")]
EMPTY = "(empty)"  # a sentence without words
STRANGE = 5  # unknown words that are told
Width = Annotated[int | None, typer.Option("--beam", help="width for --decode beam; default 5", min=1)]


def encode(
    folder: Folder,
    data: Annotated[str | None, typer.Option("--data", help="what to encode", show_default="the run's data")] = None,
    out: Annotated[Path, typer.Option("--out", help="an .npy or .csv file")] = Path("codes.npy"),
    json: Json = False,
) -> None:
    """Write the codes E[z|x] of a data set, one row per example."""
    import numpy as np

    from elboroom.runs.lifecycle import load

    if out.suffix not in (".npy", ".csv"):
        raise Problem(f"--out {out}: must be a .npy or .csv file")
    run = load(folder)
    codes = run.encode(run.data if data is None else _to_encode(run, data))
    if out.suffix == ".csv":
        write_csv(out, numbered("z", codes.shape[1]), codes)
    else:
        try:
            with out.open("wb") as file:
                np.save(file, codes)
        except OSError as error:
            raise Problem(f"cannot write {out}: {error.strerror}") from error
    print_json({"out": str(out), "shape": list(codes.shape)}) if json else say(f"{out}: codes of shape {codes.shape}")


def _to_encode(run: Run, data: str) -> Any:
    """Another data set, read as that of the run was; of a table the columns that the model knows, by name."""
    from elboroom.data import registry
    from elboroom.data.lines import TABLES
    from elboroom.runs.inputs import of_tables

    if run.spec.about.kind == "vectors" and not run.given and Path(data).suffix.lower() in TABLES:
        return of_tables(run, [data])
    reading = run.spec.reading if run.tokeniser is not None else None
    sized = Path(data).is_dir() or data == run.spec.data["source"]
    size, photos = (run.spec.data["size"], run.spec.photos) if sized else (None, None)
    return registry.load(data, size, reading=reading, photos=photos)


def sample(folder: Folder, out: Picture = None, n: Annotated[int, typer.Option("--n", min=1)] = 25,
           decode: Decode = None, temperature: Temperature = None, top_k: TopK = None, top_p: TopP = None, beam: Width = None,
           allow_unk: AllowUnk = False, labels: As = "", sampler: SamplerName = "prior", components: Components = None,
           data: Handed = None, seed: Seed = 0, json: Json = False) -> None:  # fmt: skip
    """Sample images or sentences from the prior, or from a law that is fitted to the codes (--sampler)."""
    from elboroom.commands.progress import Measuring
    from elboroom.runs.lifecycle import load

    run, law = load(folder, data=data), sampler_of(sampler)
    how = decoding_of(decode, beam, "sample" if allow_unk else None, temperature=temperature, top_k=top_k, top_p=top_p)
    with Measuring():
        made = run.sample(n, seed, labels_of(run, labels, n), how, law, components)
    if run.tokeniser is not None:
        return print_sentences([[sentence] for sentence in made], out, json)
    arrays(run, made, out, "samples", json, grid=_rows(made, round(len(made) ** 0.5)))


def reconstruct(folder: Folder, given: Given = None, out: Picture = None,
                n: Annotated[int | None, typer.Option("--n", min=1, help="number of examples", show_default="10")] = None,
                split: SplitName = None, decode: Decode = None,
                temperature: Temperature = None, top_k: TopK = None, top_p: TopP = None, beam: Width = None,
                allow_unk: AllowUnk = False, labels: As = "", data: Handed = None, seed: Seed = 0,
                json: Json = False) -> None:  # fmt: skip
    """Show inputs above their reconstructions: your own images or sentences, or examples of the data."""
    import numpy as np

    from elboroom.runs.lifecycle import load
    from elboroom.training.batches import reseed

    run = load(folder, data=data)
    how = decoding_of(decode, beam, "greedy" if allow_unk else None, temperature=temperature, top_k=top_k, top_p=top_p)
    if run.tokeniser is not None:
        asked, read = _asked(run, given, n, split, seed, 10)
        reseed(seed)
        made = run.reconstruct(asked, labels_of(run, labels, len(read)), how)
        tell_unknown(run, given or [])
        return print_sentences([[a, b] for a, b in zip(read, made, strict=True)], out, json)
    x, shown = images(run, given, n, split, seed, 10)
    grid = np.stack([shown, run.reconstruct(x, labels_of(run, labels, len(shown)), how)])
    arrays(run, grid, out, "reconstructions", json, axes=pairs(grid, "reconstruction"))


def traverse(folder: Folder, given: Given = None, out: Picture = None,
             points: Annotated[int, typer.Option("--points", min=2)] = 10,
             reach: Annotated[float, typer.Option("--reach", help="from -REACH to REACH; on the sphere at most 1")] = 3.0,
             allow_unk: AllowUnk = False, labels: As = "", data: Handed = None, seed: Seed = 0,
             json: Json = False) -> None:  # fmt: skip
    """Traverse one latent dimension at a time, highest KL first, from an example of the data or of your own."""
    from elboroom.runs.lifecycle import load

    run, how = load(folder, data=data), decoding_of(None, None, "greedy" if allow_unk else None)
    u = labels_of(run, labels, 1)
    if given and len(given) != 1:
        raise Problem(f"a traversal needs 1 example; you gave {len(given)}")
    if run.tokeniser is not None:
        asked, _ = _asked(run, given, None, None, seed, 1)
        made, ends = run.traverse(asked, None, points, reach, u, how), run.space.reach(reach)
        tell_unknown(run, given or [])
        marks = [f"{(2 * i / (points - 1) - 1) * ends:+.2f}  " for i in range(points)]
        return print_sentences(made, out, json, [f"z{j}" for j in run.order], marks)
    x, shown = images(run, given, None, None, seed, 1)
    if len(shown) != 1:
        raise Problem(f"a traversal needs 1 example; {(given or [''])[0]} has {len(shown)} rows")
    grid = run.traverse(x, None, points, reach, u, how)
    steps = [round((2 * i / (points - 1) - 1) * run.space.reach(reach), 6) for i in range(points)]
    arrays(run, grid, out, "traversal", json, axes={"dimension": [f"z{j}" for j in run.order], "at": steps})


def interpolate(folder: Folder, given: Given = None, out: Picture = None,
                n: Annotated[int | None, typer.Option("--n", min=1, help="number of examples", show_default="5")] = None,
                points: Annotated[int, typer.Option("--points", min=2)] = 10,
                spherical: Annotated[bool, typer.Option("--spherical", help="along the great circle")] = False,
                decode: Decode = None, beam: Width = None, allow_unk: AllowUnk = False, labels: As = "",
                data: Handed = None, seed: Seed = 0, json: Json = False) -> None:  # fmt: skip
    """Interpolate between examples in the latent space: of the data, or two images or sentences of your own."""
    from elboroom.runs.lifecycle import load
    from elboroom.training.batches import reseed

    run, how = load(folder, data=data), decoding_of(decode, beam, "greedy" if allow_unk else None)
    if given and len(given) != 2:
        raise Problem(f"an interpolation needs 2 examples; you gave {len(given)}")
    ends = [(given or [])[i : i + 1] for i in (0, 1)]
    if run.tokeniser is not None:
        asked = [_asked(run, ends[i], n, None, seed + i, 5) for i in (0, 1)]
        left, right, u = asked[0][0], asked[1][0], labels_of(run, labels, len(asked[0][1]))
        reseed(seed)
        made = run.interpolate(left, right, points, spherical, how, u)
        tell_unknown(run, given or [])
        heads = [f"from: {a}\nto:   {b}" for a, b in zip(asked[0][1], asked[1][1], strict=True)]
        return print_sentences(made, out, json, heads, [f"{i / (points - 1):.2f}  " for i in range(points)])
    (left, shown), (right, _) = (images(run, ends[i], n, None, seed + i, 5) for i in (0, 1))
    grid = run.interpolate(left, right, points, spherical, how, labels_of(run, labels, len(shown)))
    along = [round(i / (points - 1), 6) for i in range(points)]
    arrays(run, grid, out, "interpolation", json, axes={"example": range(1, len(grid) + 1), "at": along})


def analogy(folder: Folder, a: Annotated[str, typer.Argument(metavar="A")], b: Annotated[str, typer.Argument(metavar="B")],
            c: Annotated[str, typer.Argument(metavar="C")],
            strength: Annotated[float, typer.Option("--strength", help="how much of a - b is added to c")] = 1.0,
            decode: Decode = None, beam: Width = None, allow_unk: AllowUnk = False, labels: As = "", out: Picture = None,
            seed: Seed = 0, json: Json = False) -> None:  # fmt: skip
    """Decode a - b + c, for the codes of three sentences or image files; of images, all four side by side."""
    import numpy as np

    from elboroom.runs.inputs import of_files
    from elboroom.runs.lifecycle import load
    from elboroom.training.batches import reseed

    run = load(folder)
    reseed(seed)
    how = decoding_of(decode, beam, "greedy" if allow_unk else None)
    if run.tokeniser is None:
        x = of_files(run, [a, b, c])
        made = run.analogy(x[:1], x[1:2], x[2:], strength, how, labels_of(run, labels, 1))
        grid = np.concatenate([x, made])[None]
        return arrays(run, grid, out, "analogy", json, axes={"analogy": [1], "what": ["a", "b", "c", "a - b + c"]})
    made = run.analogy([a], [b], [c], strength, how, labels_of(run, labels, 1))
    tell_unknown(run, [a, b, c])
    print_sentences([made], out, json)


def decoding_of(name: str | None, beam: int | None, free: str | None, **options: Any) -> Any:
    """How sentences are decoded, or None if no option is given; `free` is the way of one that may write <unk>."""
    from elboroom.families.decoding import Beam, Greedy, Sampling

    sampling = {option: value for option, value in options.items() if value is not None}
    name = name or ("beam" if beam is not None else "sample" if sampling else free)
    if name not in (None, "greedy", "sample", "beam"):
        raise unknown("decoding", str(name), ["greedy", "sample", "beam"])
    if sampling and name != "sample":
        raise Problem(f"--{next(iter(sampling)).replace('_', '-')} is for --decode sample, not {name}; remove it")
    if beam is not None and name != "beam":
        raise Problem(f"--beam is for --decode beam, not {name}; remove it")
    may = {"unknown": free is not None}
    ways: dict[str | None, Any] = {"greedy": Greedy(**may), "beam": Beam(width=beam or 5, **may)}
    return Sampling(**sampling, **may) if name == "sample" else ways.get(name)


def _asked(
    run: Run, sentences: list[str] | None, n: int | None, split: str | None, seed: int, default: int
) -> tuple[Any, list[str]]:
    """What is handed to a model of text, and how it is read: sentences that were given, or some of the data."""
    if sentences:
        _refuse_beside_own(n, split, "sentences")
        return sentences, [run.seen(sentence) for sentence in sentences]
    batch = run.examples(n or default, split, seed)
    assert batch.index is not None
    return batch, run.data.sentences(batch.index.numpy())


def tell_unknown(run: Run, sentences: Iterable[str], of: str = "x") -> None:
    """Says which words of a user's own sentences the model does not know, and so reads as <unk>."""
    from elboroom.data.tokens import UNK, UNKNOWN

    tokeniser = run.tokenisers.get(of)
    words = dict.fromkeys(word for sentence in sentences for word in sentence.split() if word != UNKNOWN)
    strange = [word for word in words if tokeniser is not None and UNK in tokeniser.encode(word)]
    if strange:
        more = f" and {len(strange) - STRANGE:,} more" if len(strange) > STRANGE else ""
        warn(f"unknown to this model: {', '.join(strange[:STRANGE])}{more}")


def labels_of(run: Run, labels: str, n: int) -> Any:
    """u of n examples with the given labels, or None without labels."""
    pairs = [pair.partition("=") for pair in labels.split(",") if pair.strip()]
    if any(not (name.strip() and sign) for name, sign, _ in pairs):
        raise Problem(f"--as {labels}: must be LABEL=VALUE, comma-separated")
    return run.labelled(n, **{name.strip(): value.strip() for name, _, value in pairs}) if pairs else None


def images(
    run: Run, files: list[str] | None, n: int | None, split: str | None, seed: int, default: int
) -> tuple[Any, Any]:
    """What is handed to a model of images or vectors, and its values: files that were given, or some of the data."""
    from elboroom.runs.inputs import of_files

    if files:
        _refuse_beside_own(n, split, "images" if run.spec.about.kind == "pixels" else "tables")
        x = of_files(run, files)
        return x, x
    batch = run.examples(n or default, split, seed)
    return batch, batch.x.numpy()


def _refuse_beside_own(n: int | None, split: str | None, what: str) -> None:
    for flag, said in (("n", n), ("split", split)):
        if said is not None:
            raise Problem(f"--{flag} has no effect when {what} are given; remove it")


def print_sentences(
    rows: list[list[str]], out: Path | None, json: bool, heads: list[str] | None = None, marks: list[str] | None = None
) -> None:
    """Rows of sentences, one a line and a blank line between rows of several; what is above a row, and before each line."""
    gap = "\n\n" if any(len(row) > 1 for row in rows) else "\n"
    tops, before = [f"{head}\n" for head in heads or []] or [""] * len(rows), marks or [""] * max(map(len, rows))
    lines = [[mark + (sentence or EMPTY) for mark, sentence in zip(before, row, strict=False)] for row in rows]
    text = gap.join(top + "\n".join(row) for top, row in zip(tops, lines, strict=True))
    if out is not None:
        if out.suffix in (".png", ".gif"):
            raise Problem(f"--out {out}: must be a .txt file for sentences")
        out.write_text(text + "\n", encoding="utf-8")
        return print_json({"out": str(out), "rows": len(rows)}) if json else say(str(out))
    print_json(rows) if json else print(text)


def _rows(images: Any, columns: int) -> Any:
    """(n, C, H, W) as rows of `columns`; what is missing stays blank."""
    import numpy as np

    rows = -(-len(images) // columns)
    grid = np.ones((rows * columns, *images.shape[1:]), images.dtype)
    grid[: len(images)] = images
    return grid.reshape(rows, columns, *images.shape[1:])


def pairs(grid: Any, made: str) -> dict[str, Sequence[object]]:
    """The axes of examples above what is made of them."""
    return {"what": ["input", made], "example": range(1, grid.shape[1] + 1)}


def arrays(
    run: Run,
    values: Any,
    out: Path | None,
    name: str,
    json: bool,
    grid: Any = None,
    axes: Mapping[str, Sequence[object]] | None = None,
) -> None:
    """Values as .npy; images (rows, columns, C, H, W) as a .png, which is their default, or column by column as a .gif.

    Vectors may be a .csv, a row each after its places on the axes.
    """
    import numpy as np

    from elboroom.plots import save_gif, save_grid
    from elboroom.runs.inputs import columns

    grid = values if grid is None else grid
    images = grid.ndim == 5
    out = out or Path(f"{name}.{'png' if images else 'npy'}")
    if out.suffix == ".npy":
        with out.open("wb") as file:
            np.save(file, values)
    elif not images and out.suffix == ".csv":
        write_csv(out, columns(run), values, axes)
    elif not images:
        raise Problem(f"--out {out}: this model is for vectors; use a .npy or .csv file")
    elif out.suffix == ".png":
        save_grid(grid, out)
    elif out.suffix == ".gif":
        save_gif(grid, out)
    else:
        raise Problem(f"--out {out}: must be .png or .gif for a picture, .npy for values")
    shape = list((values if out.suffix in (".npy", ".csv") else grid).shape)
    print_json({"out": str(out), "shape": shape}) if json else say(f"{out}")
