"""The command `elbo`. Imports that pull in torch wait until a command needs them."""

from __future__ import annotations

import io
import os
import sys
import warnings
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from elboroom.commands.output import say, warn
from elboroom.core.problem import Problem, nearest, slip, unknown
from elboroom.core.tongue import typed

COMMANDS = {
    "resume": "train:resume",
    "eval": "evaluate:evaluate",
    "doctor": "doctor:doctor",
    "encode": "latent:encode",
    "sample": "latent:sample",
    "reconstruct": "latent:reconstruct",
    "traverse": "latent:traverse",
    "interpolate": "latent:interpolate",
    "analogy": "latent:analogy",
    "transfer": "transfer:transfer",
    "edit": "edit:edit",
    "generate": "answer:generate",
    "chat": "answer:chat",
    "report": "report:report",
    "explore": "explore:explore",
    "plot": "plot:plot",
    "export": "share:export",
    "push": "share:push",
    "pull": "share:pull",
    "compare": "compare:compare",
    "recommend": "recommend:recommend",
    "methods": "methods:methods",
    "recipes": "recipes:recipes",
    "train": "train:train_app",
    "data": "data:data_app",
    "study": "study:study_app",
}


ALIASES = {
    "--learning-rate": "--lr",
    "--num-epochs": "--epochs",
    "--n-epochs": "--epochs",
    "--max-epochs": "--epochs",
    "--num-steps": "--steps",
    "--max-steps": "--steps",
    "--iterations": "--steps",
    "--batchsize": "--batch-size",
    "--bs": "--batch-size",
    "--latent-dim": "--latent",
    "--latent-dims": "--latent",
    "--latent-size": "--latent",
    "--z-dim": "--latent",
    "--hidden-dim": "--hidden",
    "--hidden-size": "--hidden",
    "--embedding-dim": "--embed",
    "--optimizer": "--optimiser",
    "--dataset": "--data",
    "--output": "--out",
    "--output-dir": "--out",
    "--image-size": "--size",
    "--num-samples": "--n",
}  # what other programs call an option of ours


class Commands(TyperGroup):
    """The commands, each imported when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            raise unknown("command", cmd_name, COMMANDS)
        module, thing = COMMANDS[cmd_name].split(":")
        found = getattr(import_module(f"elboroom.commands.{module}"), thing)
        group = found if isinstance(found, typer.Typer) else typer.Typer(add_completion=False, rich_markup_mode=None)
        if group is not found:
            group.command(cmd_name)(found)
        command = typer.main.get_command(group)
        command.name = cmd_name
        return command


app = typer.Typer(
    cls=Commands,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _tell_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"elboroom {version('elboroom')}")
        raise typer.Exit


@app.callback()
def _elbo(
    version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="print the version")
    ] = False,
    beside: Annotated[
        list[str] | None,
        typer.Option("--with", metavar="FILE", help="a file (or module) with your own methods; may be repeated"),
    ] = None,
    memory: Annotated[
        float | None, typer.Option("--memory", metavar="GB", help="largest memory to ask for", show_default="all")
    ] = None,
) -> None:
    """One workbench for latent-variable models: train, measure, look into the latent space."""
    if memory is not None:
        if not 0 < memory < 1e9:
            raise Problem(f"--memory must be a number of GB, not {memory:g}")
        os.environ["ELBOROOM_MEMORY"] = repr(memory)
    if beside:
        from elboroom.build import plugins

        for name in beside:
            plugins.named(name)
        plugins.inherited(beside)


def _warn(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    if issubclass(category, UserWarning) and type(message) is UserWarning:
        warn(str(message))


def main() -> None:
    """Runs the command; a user's mistake ends in one sentence and exit code 2, a reader that has left in silence."""
    warnings.showwarning = _warn
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # what cannot be shown is spelled out
    try:
        with typed():
            _run()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _run() -> None:
    try:
        code = app(standalone_mode=False)  # an Exit is handed back as its code
        if isinstance(code, int) and code:
            sys.exit(code)
    except Problem as problem:
        _leave(str(problem), problem.code)
    except (KeyboardInterrupt, typer.Abort):
        _leave("stopped", 130)
    except BrokenPipeError:
        raise
    except Exception as error:
        if (slipped := slip(error)) is not None:
            _leave(str(slipped), 2)
        if not hasattr(error, "format_message"):
            raise
        if type(error).__name__ == "NoArgsIsHelpError":
            print(error.format_message())
            sys.exit(0)
        _leave(str(Problem(_usage(error))), 2)  # which shortens an endless word


def _usage(error: Any) -> str:
    """What is wrong with a command line, in a line, with the nearest flag."""
    text = " ".join(error.format_message().split())
    name = getattr(error, "option_name", None)
    if name is not None and getattr(error, "ctx", None) is not None:
        text = f"{error.ctx.command_path} has no option {name}{_hint(error.ctx, name)}"
    return text


def _hint(ctx: Any, name: str) -> str:
    """The option of this command that another program calls so, the methods that have it, or the nearest by its letters."""
    flags = [flag for parameter in ctx.command.params for flag in getattr(parameter, "opts", [])]
    if (ours := ALIASES.get(name.lower().replace("_", "-"))) in flags:
        return f"; did you mean '{ours}'?"
    if ctx.parent is not None and ctx.parent.info_name == "train":
        from elboroom.commands.catalogue import having

        if others := having(name.strip("-").replace("-", "_")):
            return f", which is an option of {', '.join(others[:3])}{' and others' if len(others) > 3 else ''}"
    return nearest(name.strip("-"), [flag.strip("-") for flag in flags]).replace("'", "'--", 1)


def _leave(sentence: str, code: int) -> None:
    say(f"elbo: {sentence}")
    sys.exit(code)


if __name__ == "__main__":
    main()
