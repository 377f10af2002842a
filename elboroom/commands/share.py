"""elbo export | push | pull."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from elboroom.commands.output import Folder, Handed, Json, print_json, print_table, say


def export(
    folder: Folder,
    to: Annotated[str, typer.Option("--to", help="onnx, or projector for TensorBoard")] = "onnx",
    out: Annotated[
        Path | None, typer.Option("--out", help="a folder", show_default="DIR/onnx or DIR/projector")
    ] = None,
    data: Handed = None,
    json: Json = False,
) -> None:
    """Write a run for programs without torch: ONNX graphs, or codes for TensorBoard's projector."""
    from elboroom.runs.lifecycle import load
    from elboroom.share.export import export as written

    done = written(load(folder, data=data), to, out)
    if json:
        return print_json(done)
    if "apart" in done:
        rows = [
            [f"{name}.onnx", f"{done['bytes'][f'{name}.onnx']:,}", f"{far:.1e}"] for name, far in done["apart"].items()
        ]
        print_table(["graph", "bytes", "differs from torch by"], [list(row) for row in rows])
    say(done["out"])


def push(
    folder: Folder,
    address: Annotated[
        str,
        typer.Argument(metavar="ADDRESS", help="user/name on the Hub; ./folder, file://, s3://, gs:// ... elsewhere"),
    ],
    private: Annotated[bool, typer.Option("--private", help="on the Hub, for yourself alone")] = False,
    revision: Annotated[
        str | None, typer.Option("--revision", help="a branch of the repository", show_default="main")
    ] = None,
    weights: Annotated[
        bool, typer.Option("--weights", help="without what optimisers remember: a third of the size, not to be resumed")
    ] = False,
    json: Json = False,
) -> None:
    """Share a run: its spec, tokeniser, weights, numbers and report, with a card that says what it is."""
    from elboroom.share.sharing import push as send

    done = send(folder, address, private, revision, weights)
    print_json(done) if json else say(str(done["url"]))


def pull(
    address: Annotated[
        str,
        typer.Argument(metavar="ADDRESS", help="user/name on the Hub; ./folder, file://, s3://, gs:// ... elsewhere"),
    ],
    revision: Annotated[
        str | None, typer.Option("--revision", help="a branch, tag or commit", show_default="the newest")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="a new folder", show_default="runs/NAME")] = None,
    json: Json = False,
) -> None:
    """Bring a run that was shared into a folder; nothing of it is executed, and all of it is checked."""
    from elboroom.share.sharing import pull as bring

    where = bring(address, revision, out)
    print_json({"out": str(where)}) if json else say(str(where))
