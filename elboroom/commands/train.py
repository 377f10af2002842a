"""elbo train, elbo resume."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from elboroom.commands import catalogue
from elboroom.commands.flags import command
from elboroom.commands.output import Folder, Handed, Json, Logger, print_json, say
from elboroom.training.recipe import find


class Methods(TyperGroup):
    """`elbo train`: one command a registered method, made when it is asked for."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """A recipe that names its method needs no other name: `elbo train --recipe NAME`."""
        if args and args[0].startswith("-") and (place := _recipe(args)) is not None:
            args = [find(place).usual_method(), *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        return catalogue.names()

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return command(catalogue.entry(cmd_name), catalogue.shared(), _train)


def _recipe(args: list[str]) -> str | None:
    """What `--recipe` says in a command line."""
    for word, following in zip(args, [*args[1:], None], strict=True):
        if word == "--recipe":
            return following
        if word.startswith("--recipe="):
            return word.removeprefix("--recipe=")
    return None


train_app = typer.Typer(
    cls=Methods,
    help="Train a method: elbo train METHOD --data NAME --steps N [--OPTION VALUE ...]. A recipe stands for all that you "
    "do not say, the method too if it is first: elbo train --recipe NAME (see elbo recipes).",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
)
train_app.callback()(lambda: None)


def _train(method: str, own: dict[str, Any], options: dict[str, Any]) -> None:
    from elboroom.commands.progress import Bar
    from elboroom.runs import lifecycle

    data, out, json = (own.pop(name) for name in ("data", "out", "json"))
    _trained(lifecycle.train(method, data, out, bar=Bar, **own, **options), json)


def resume(
    folder: Folder,
    steps: Annotated[int | None, typer.Option("--steps", help="train this many more steps")] = None,
    base: Annotated[
        Path | None, typer.Option("--base", help="where the run that stands frozen under it is now, if it has moved")
    ] = None,
    data: Handed = None,
    logger: Logger = "",
    json: Json = False,
) -> None:
    """Resume a run where it stopped, bit for bit as if it had not."""
    from elboroom.commands.progress import Bar
    from elboroom.runs import lifecycle

    run = lifecycle.resume(folder, steps, data=data, base=base, bar=Bar, logger=logger)
    _trained(run, json)


def _trained(run: Any, json: bool) -> None:
    from elboroom.runs.closing import closing

    if json:
        last = run.log[-1] if run.log else {}
        print_json({"folder": str(run.folder), "method": run.spec.method, "step": run.step, "last": last})
    else:
        last = max(run.step, run.log[-1]["step"] if run.log else 0)
        best = f", the best at step {run.step:,}" if run.step < last else ""
        say(f"trained to step {last:,}{best}: {run.folder}")
        for sentence in closing(run):
            say(sentence)
        say(f"next: {', '.join([f'elbo {verb} {run.folder}' for verb in ('eval', 'report', 'explore')] + _own(run))}")


def _own(run: Any) -> list[str]:
    """The commands that are for runs of this kind: another style, an answer, an edit."""
    from elboroom.runs.edit import has_map
    from elboroom.runs.transfer import means_of

    if run.styles() and (means_of(run) or run.given):
        label, values = next(iter(run.styles().items()))
        given = "" if run.tokeniser is None else ' "YOUR SENTENCE"'
        return [f"elbo transfer {run.folder}{given} --to {shlex.quote(f'{label}={values[-1]}')}"]
    if run.tokeniser is None:
        return []
    if run.model.conditioner is not None:
        return [f'elbo generate {run.folder} "YOUR TEXT"']
    return [f'elbo edit {run.folder} "YOUR SENTENCE"'] if has_map(run) else []
