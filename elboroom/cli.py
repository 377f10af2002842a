"""The command `elbo`. Imports that pull in torch wait until a command needs them."""

from __future__ import annotations

import json as json_
import os
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from typer.core import TyperGroup

from elboroom.core.problem import Problem, nearest

app = typer.Typer(
    help="One workbench for latent-variable models: train, measure, look into the latent space.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(help="Data sets: list, get, check.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(data_app, name="data")

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="the folder of a run")]
Json = Annotated[bool, typer.Option("--json", help="print as JSON")]
SplitName = Annotated[
    str | None, typer.Option("--split", help="train, valid or test", show_default="test if there is one")
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="of the examples and the noise")]
Picture = Annotated[Path, typer.Option("--out", help="a .png or .gif file")]


def say(text: str) -> None:
    """A line for the person at the terminal."""
    print(text, file=sys.stderr)


def print_json(content: Any) -> None:
    """The result for a program."""
    print(json_.dumps(content, indent=1, allow_nan=False, default=str))


class Methods(TyperGroup):
    """`elbo train`: one command a registered method, made when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        from elboroom.methods.registry import cards

        return list(cards())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        from elboroom.flags import command
        from elboroom.methods.registry import card

        return command(card(cmd_name), _train)


train_app = typer.Typer(
    cls=Methods,
    help="Train a method: elbo train METHOD --data NAME --steps N [--OPTION VALUE ...].",
    no_args_is_help=True,
    rich_markup_mode=None,
)
train_app.callback()(lambda: None)
app.add_typer(train_app, name="train", rich_help_panel=None)


def _train(method: str, own: dict[str, Any], options: dict[str, Any]) -> None:
    from elboroom import run as runs
    from elboroom.progress import Bar

    run = runs.train(method, own["data"], own["out"], size=own["size"], warm=own["warm"], bar=Bar, **options)
    _trained(run, own["json"])


@app.command()
def resume(
    folder: Folder,
    steps: Annotated[
        int | None, typer.Option("--steps", help="train this many steps beyond the end of the run")
    ] = None,
    json: Json = False,
) -> None:
    """Go on with a run where it stopped: bit for bit as if it had not."""
    from elboroom import run as runs
    from elboroom.progress import Bar

    run = runs.resume(folder, steps, bar=Bar)
    _trained(run, json)


def _trained(run: Any, json: bool) -> None:
    if json:
        last = run.log[-1] if run.log else {}
        print_json({"folder": str(run.folder), "method": run.spec.method, "step": run.step, "last": last})
    else:
        say(f"trained to step {run.step:,}: {run.folder}")
        say(f"next: elbo eval {run.folder}, elbo report {run.folder}")


@app.command("eval")
def evaluate(
    folder: Folder,
    split: SplitName = None,
    samples: Annotated[int, typer.Option("--samples", min=1, help="K of the importance-weighted bound")] = 100,
    most: Annotated[int, typer.Option("--most", min=2, help="at most this many examples")] = 10_000,
    json: Json = False,
) -> None:
    """Measure a run: ELBO and its parts, IW-K, active units, mutual information."""
    from elboroom.run import load

    found = load(folder).evaluate(split, samples, most)
    print_json(found) if json else _table(found)


def _table(found: dict[str, Any]) -> None:
    table = Table("measure", "value", "± (standard error)", "unit", "estimator", box=box.SIMPLE_HEAD)
    settings: dict[str, Any] = {}
    for name, number in found.items():
        if name == "run":
            continue
        settings = number.get("settings", settings)
        value = f"{number['value']:.4f}".rstrip("0").rstrip(".") if number["value"] is not None else "—"
        errors = ", ".join(f"{e:.2g} {kind.replace('_', ' ')}" for kind, e in number.get("errors", {}).items())
        ceiling = number.get("parts", {}).get("ceiling")
        unit = number["unit"] + (f" (at most {ceiling:.2f})" if ceiling else "")
        table.add_row(name.replace("_", " "), value, errors or number.get("reason", ""), unit, number["estimator"])
    run = found["run"]
    table.title = f"{run['method']}, step {run['step']:,}, on {settings.get('split')} of {settings.get('data')}"
    Console().print(table)


@app.command()
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


@app.command()
def sample(folder: Folder, out: Picture = Path("samples.png"), n: Annotated[int, typer.Option("--n", min=1)] = 25,
           seed: Seed = 0, json: Json = False) -> None:  # fmt: skip
    """Draw images from the prior."""
    from elboroom.run import load

    images = load(folder).sample(n, seed)
    _picture(_rows(images, round(len(images) ** 0.5)), out, json)


@app.command()
def reconstruct(folder: Folder, out: Picture = Path("reconstructions.png"), n: Annotated[int, typer.Option("--n", min=1)] = 10,
                split: SplitName = None, seed: Seed = 0, json: Json = False) -> None:  # fmt: skip
    """Draw inputs above what the model makes of them."""
    import numpy as np

    from elboroom.run import load

    run = load(folder)
    batch = run.examples(n, split, seed)
    _picture(np.stack([batch.x.numpy(), run.reconstruct(batch)]), out, json)


@app.command()
def traverse(folder: Folder, out: Picture = Path("traversal.png"), points: Annotated[int, typer.Option("--points", min=2)] = 10,
             reach: Annotated[float, typer.Option("--reach", help="from -REACH to REACH")] = 3.0,
             seed: Seed = 0, json: Json = False) -> None:  # fmt: skip
    """Move along one dimension at a time, those of the highest rate first."""
    from elboroom.run import load

    run = load(folder)
    _picture(run.traverse(run.examples(1, seed=seed), points=points, reach=reach), out, json)


@app.command()
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


@app.command()
def report(folder: Folder, out: Annotated[Path | None, typer.Option("--out", show_default="DIR/report.html")] = None,
           json: Json = False) -> None:  # fmt: skip
    """Write report.html: one file, with every figure and number of a run."""
    from elboroom.report import write_report
    from elboroom.run import load

    path = write_report(load(folder), out)
    print_json({"out": str(path)}) if json else say(str(path))


@app.command()
def methods(name: Annotated[str | None, typer.Argument(help="one method")] = None, json: Json = False) -> None:
    """List the methods with formula, citation and options."""
    from elboroom.methods.registry import ByData, card, cards

    chosen = [card(name)] if name else list(cards().values())
    if json:
        print_json(
            [
                {
                    "name": c.name,
                    "summary": c.summary,
                    "formula": c.formula,
                    "paper": c.paper,
                    "options": {
                        o.name: {"other": o.default.other, **o.default.kinds}
                        if isinstance(o.default, ByData)
                        else o.default
                        for o in c.options
                    },
                }
                for c in chosen
            ]
        )
        return
    table = Table("method", "loss", "paper", box=box.SIMPLE_HEAD)
    for c in chosen:
        table.add_row(c.name, c.formula, c.paper)
    Console().print(table)


@data_app.command("list")
def data_list(json: Json = False) -> None:
    """What can be had, and where it was found."""
    from elboroom.data import registry

    rows = registry.listing()
    if json:
        return print_json(rows)
    table = Table(*rows[0], box=box.SIMPLE_HEAD)
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    Console().print(table)


@data_app.command("get")
def data_get(
    name: str,
    to: Annotated[Path | None, typer.Option("--to", help="the folder to put it in", show_default="the cache")] = None,
    source: Annotated[str | None, typer.Option("--source", help="another web folder with the same files")] = None,
    json: Json = False,
) -> None:
    """Find a data set, or download it: with resume and checksum."""
    from rich.progress import Progress

    from elboroom.data import registry

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=None)
        found = registry.get(name, to, lambda done, total: bar.update(task, completed=done, total=total), source)
    print_json(found) if json else say(f"{name}: {found['state']}, {found['folder']}")


@data_app.command("check")
def data_check(
    name: str,
    against: Annotated[Path | None, typer.Option("--against", help="a .npz file of the original")] = None,
    json: Json = False,
) -> None:
    """Compare a data set with its original, or its files with their checksums."""
    from elboroom.data import registry

    found = registry.check(name, against)
    print_json(found) if json else say("  ".join(f"{key} {value}" for key, value in found.items()))


def _warn(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    if issubclass(category, UserWarning) and type(message) is UserWarning:
        say(f"elbo: warning: {message}")


def main() -> None:
    """Runs the command; a user's mistake ends in one sentence and exit code 2."""
    warnings.showwarning = _warn
    try:
        app(standalone_mode=False)
    except Problem as problem:
        _leave(str(problem), 130 if type(problem).__name__ == "Stopped" else 2)
    except typer.Exit as leave:
        sys.exit(leave.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        _leave("stopped", 130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        _leave(f"{error.filename}: {error.strerror}" if error.filename else str(error), 2)
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        if type(error).__name__ == "NoArgsIsHelpError":
            print(error.format_message())
            sys.exit(0)
        _leave(_usage(error), 2)


def _usage(error: Any) -> str:
    """What is wrong with a command line, in a line, with the nearest flag."""
    text = " ".join(error.format_message().split())
    name = getattr(error, "option_name", None)
    if name is not None and getattr(error, "ctx", None) is not None:
        flags = [flag for parameter in error.ctx.command.params for flag in getattr(parameter, "opts", [])]
        text = f"{error.ctx.command_path} has no option {name}{nearest(name, flags)}"
    return text


def _leave(sentence: str, code: int) -> None:
    say(f"elbo: {sentence}")
    sys.exit(code)


if __name__ == "__main__":
    main()
