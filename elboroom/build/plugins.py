"""Methods from elsewhere: of installed packages that announce them, and of files that the user names."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from elboroom.core.problem import Problem

GROUP = "elboroom.methods"  # of entry points
VARIABLE = "ELBOROOM_WITH"  # files and modules, as PATH has its folders; processes of a study inherit it


def present() -> bool:
    """Whether there are any, of which nothing is imported to say so."""
    return bool(os.environ.get(VARIABLE) or entry_points(group=GROUP))


def announced() -> None:
    """Imports the methods of installed packages, and what the environment names."""
    for entry in entry_points(group=GROUP):
        entry.load()
    for name in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
        named(name)


def named(name: str) -> None:
    """Imports a file, or a module by its name, for the methods and penalties that it registers."""
    try:
        if name.endswith(".py"):
            _file(Path(name))
        else:
            import_module(name)
    except Problem:
        raise
    except Exception as error:
        raise Problem(f"--with {name} cannot be imported ({type(error).__name__}: {error})") from error


def _file(path: Path) -> None:
    spec = spec_from_file_location(path.stem, path.resolve(strict=True))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    spec.loader.exec_module(module)


def inherited(names: list[str]) -> None:
    """Has processes that this one starts import the same."""
    full = [str(Path(name).resolve()) if name.endswith(".py") else name for name in names]
    os.environ[VARIABLE] = os.pathsep.join(filter(None, [os.environ.get(VARIABLE, ""), *full]))
