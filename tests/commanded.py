"""What tests of the command share: how it is called in a test, and what a refusal looks like."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import typer

from elboroom import cli

TINY = ["--batch-size", "8", "--latent", "3", "--threads", "1", "--log-every", "2", "--checkpoint-every", "4"]
Elbo = Callable[..., tuple[int, str, str]]


def reals(path: Path) -> Path:
    np.save(path, np.random.default_rng(0).normal(size=(100, 4)))
    return path


def refused(answer: tuple[int, str, str], expected: str) -> None:
    code, _, err = answer
    assert code == 2, err
    assert expected in err
    assert len(err.splitlines()) == 1, err


def accept(words: Sequence[str]) -> None:
    """Reads the words behind `elbo` as the command line does, which refuses what is wrong, and does nothing."""
    rest, names, context = [*words], list[str](), None
    command = typer.main.get_command(cli.app)
    while True:
        context = command.make_context(" ".join(["elbo", *names]), [*rest], parent=context)
        if not hasattr(command, "get_command"):
            return
        name, command, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        names.append(name)
