"""The command as a shell would run it, in this process: a new one would load torch for seconds."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple
from unittest.mock import patch

from elboroom import cli


class Done(NamedTuple):
    """How a command left, and what it said."""

    returncode: int
    stdout: str
    stderr: str


def elbo(*words: object) -> Done:
    """`elbo WORDS`."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with redirect_stdout(out), redirect_stderr(err), patch.object(sys, "argv", ["elbo", *map(str, words)]):
        try:
            cli.main()
        except SystemExit as leave:
            code = int(leave.code or 0)
    return Done(code, out.getvalue(), err.getvalue())
