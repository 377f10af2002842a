"""Tongue: a message speaks of options as flags to who types commands, and as arguments to who calls functions.

Messages are written with flags, `--batch-size 64`; at the border of Python they become `batch_size=64`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_typed: ContextVar[bool] = ContextVar("typed", default=False)

SWITCHES = (
    "overwrite",
    "skip-bad",
    "standardise",
    "allow-unk",
    "smaller",
    "spherical",
    "kappa-learned",
    "curvature-learned",
)
VALUES = (
    "none",
    "auto",
    "centre",
    "cosine",
    "linear",
    "plateau",
    "adam",
    "adamw",
    "sgd",
    "mixed",
    "buckets",
    "constant",
    "words",
    "bpe",
    "bytes",
    "cpu",
    "cuda",
    "greedy",
    "sample",
    "beam",
    "style",
    "offset",
    "bernoulli",
    "logistic",
    "gaussian",
    "gaussian-optimal",
    "gaussian-learned",
    "normal",
    "vmf",
    "vamp",
    "flow",
    "mog",
    "ar1",
    "sphere",
    "iaf",
    "nsf",
    "point",
    "wrapped",
    "implicit",
    "sampled",
    "mean",
    "burgess",
    "latin-1",
    "utf-8",
)
FLAG = re.compile(
    r"--(no-)?([a-z][a-z0-9-]*[a-z0-9])"
    rf"(?: (\d[\d.,]*\d|\d|[A-Z]{{2,}}[\w.]*|(?:{'|'.join(map(re.escape, VALUES))})(?![\w-])))?"
)
HINT = re.compile(r"( has no option \w+; did you mean )'([a-z0-9-]+)'")


@contextmanager
def typed() -> Iterator[None]:
    """Messages within are read at a command line."""
    before = _typed.set(True)
    try:
        yield
    finally:
        _typed.reset(before)


def spoken(text: str) -> str:
    """A message as its reader knows the options."""
    if _typed.get() or "--" not in text:
        return text
    return HINT.sub(lambda found: f"{found[1]}'{found[2].replace('-', '_')}'", FLAG.sub(_argument, text))


def _argument(found: re.Match[str]) -> str:
    no, name, value = found.groups()
    argument = name.replace("-", "_")
    if no:
        return f"{argument}=False"
    if value is None:
        return f"{argument}=True" if name in SWITCHES else argument
    quoted = value if value[0].isdigit() or value.isupper() or value[0].isupper() else repr(value)
    return f"{argument}={quoted}"
