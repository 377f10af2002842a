"""elbo encode, sample, reconstruct, traverse, interpolate, report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from elboroom.commands.shown import Folder, Json, Picture, Seed, SplitName, print_json, say
from elboroom.core.problem import Problem


def encode(
    folder: Folder,
    data: Annotated[str | None, typer.Option("--data", help="what to encode", show_default="the run's data")] = None,
    out: Annotated[Path, typer.Option("--out", help="an .npy file")] = Path("codes.npy"),
    json: Json = False,
) -> None:
    """Write the codes E[z|x] of a data set, one row an example."""
    import numpy as np

    from elboroom.data import registry
    from elboroom.run import load

    run = load(folder)
    codes = run.encode(run.data if data is None else registry.load(data, size=run.spec.data["size"]))
    try:
        with out.open("wb") as file:
            np.save(file, codes)
    except OSError as error:
        raise Problem(f"cannot write {out}: {error.strerror}") from error
    print_json({"out": str(out), "shape": list(codes.shape)}) if json else say(f"{out}: codes of shape {codes.shape}")


def sample(folder: Folder, out: Picture = Path("samples.png"), n: Annotated[int, typer.Option("--n", min=1)] = 25,
           seed: Seed = 0, json: Json = False) -> None:  # fmt: skip
    """Draw images from the prior."""
    from elboroom.run import load

    images = load(folder).sample(n, seed)
    _picture(_rows(images, round(len(images) ** 0.5)), out, json)


def reconstruct(folder: Folder, out: Picture = Path("reconstructions.png"), n: Annotated[int, typer.Option("--n", min=1)] = 10,
                split: SplitName = None, seed: Seed = 0, json: Json = False) -> None:  # fmt: skip
    """Draw inputs above what the model makes of them."""
    import numpy as np

    from elboroom.run import load

    run = load(folder)
    batch = run.examples(n, split, seed)
    _picture(np.stack([batch.x.numpy(), run.reconstruct(batch)]), out, json)


def traverse(folder: Folder, out: Picture = Path("traversal.png"), points: Annotated[int, typer.Option("--points", min=2)] = 10,
             reach: Annotated[float, typer.Option("--reach", help="from -REACH to REACH")] = 3.0,
             seed: Seed = 0, json: Json = False) -> None:  # fmt: skip
    """Move along one dimension at a time, those of the highest rate first."""
    from elboroom.run import load

    run = load(folder)
    _picture(run.traverse(run.examples(1, seed=seed), points=points, reach=reach), out, json)


def interpolate(folder: Folder, out: Picture = Path("interpolation.png"), n: Annotated[int, typer.Option("--n", min=1)] = 5,
                points: Annotated[int, typer.Option("--points", min=2)] = 10,
                spherical: Annotated[bool, typer.Option("--spherical", help="along the great circle")] = False,
                seed: Seed = 0, json: Json = False) -> None:  # fmt: skip
    """Go from one example to another through the latent space."""
    from elboroom.run import load

    run = load(folder)
    _picture(run.interpolate(run.examples(n, seed=seed), run.examples(n, seed=seed + 1), points, spherical), out, json)


def _rows(images: Any, columns: int) -> Any:
    """(n, C, H, W) as rows of `columns`; what is missing stays blank."""
    import numpy as np

    rows = -(-len(images) // columns)
    grid = np.ones((rows * columns, *images.shape[1:]), images.dtype)
    grid[: len(images)] = images
    return grid.reshape(rows, columns, *images.shape[1:])


def _picture(grid: Any, out: Path, json: bool) -> None:
    """(rows, columns, C, H, W) as a .png, or column by column as a .gif."""
    from elboroom.plots import save_gif, save_grid

    if grid.ndim != 5:
        raise Problem("pictures are for images; this model is of vectors")
    if out.suffix not in (".png", ".gif"):
        raise Problem(f"--out {out}: a picture is a .png or .gif file")
    save_gif(grid, out) if out.suffix == ".gif" else save_grid(grid, out)
    print_json({"out": str(out), "shape": list(grid.shape)}) if json else say(f"{out}")


def report(folder: Folder, out: Annotated[Path | None, typer.Option("--out", show_default="DIR/report.html")] = None,
           json: Json = False) -> None:  # fmt: skip
    """Write report.html: one file, with every figure and number of a run."""
    from elboroom.report import write_report
    from elboroom.run import load

    path = write_report(load(folder), out)
    print_json({"out": str(path)}) if json else say(str(path))
