"""Pages: templates that are filled in with every text escaped, into one HTML file that needs nothing else."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from elboroom.core.problem import Problem
from elboroom.training.checkpoint import write


def render(template: str, **data: Any) -> str:
    """A template filled in; what is put into it is text, and escaped."""
    return _templates().get_template(template).render(data)


def page_at(path: str | Path | None, folder: Path) -> Path:
    """Where the page of a folder goes, as said or into it; refuses a folder before anything is measured for the page."""
    if path is not None and Path(path).is_dir():
        raise Problem(f"--out '{path}' is a folder; name the file, as in --out report.html")
    return folder / "report.html" if path is None else Path(path)


def write_page(path: Path, template: str, **data: Any) -> Path:
    """Writes a page, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, render(template, **data).encode())
    return path


@cache
def _templates() -> Environment:
    loader = PackageLoader("elboroom.report")
    found = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True,
    )  # fmt: skip
    found.globals["asset"] = _asset
    return found


def _asset(name: str) -> Markup:
    """A file of the package as it stands. Nothing else is put into a page without being escaped."""
    return Markup((files("elboroom.report") / name).read_text(encoding="utf-8"))
