"""Imports point one way, nothing is unpickled, and no name of a method decides anything outside methods/."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import elboroom
from elboroom.methods import cards

ROOT = Path(elboroom.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
METHODS = frozenset(cards())

# From the bottom to the top. A room may import itself and the rooms of lower levels. Beside that, terms may read
# divergences, which know the core alone, and `run.plot()`, `run.report()`, `run.explore()`, `run.export()` and `load` of an
# address open the rooms above when they are asked to.
LEVELS = (
    {"core"},
    {"geometry"},
    {"nets", "families", "terms", "weights", "data", "divergences", "latent"},
    {"build"},
    {"methods"},
    {"training"},
    {"evaluate", "loggers"},
    {"runs"},
    {"plots"},
    {"studies", "explorer"},
    {"report"},
    {"share"},
    {"commands"},
    {"cli"},
    {"__main__"},
)
LEVEL = {room: level for level, rooms in enumerate(LEVELS) for room in rooms}
BY_FILE = {("studies/__init__.py", "report"): "`elboroom.studies.write_report`, loaded when it is asked for"}
FOREIGN = {"build/plugins.py": "modules of the user, by the name that they give"}  # what imports no room of ours
UNKNOWN = "elboroom.?"
ALSO = {("terms", "divergences"), ("runs", "explorer"), ("runs", "plots"), ("runs", "report"), ("runs", "share")}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def room_of(path: Path) -> str:
    return path.relative_to(ROOT).with_suffix("").parts[0]


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


def imports(path: Path) -> Iterator[str]:
    """Every module that a file imports, as a full name; imports inside functions and for types count."""
    package = ["elboroom", *path.relative_to(ROOT).parent.parts]
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*start, *([node.module] if node.module else [])])
            yield from (f"{module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            yield from dynamic(tree(path), node.args[0], ".".join(package))


def dynamic(code: ast.Module, asked: ast.expr, package: str) -> Iterator[str]:
    """What a call may import: of `f"elboroom.{name}"` every module that a string of the file names; else it is not known."""
    parts = asked.values if isinstance(asked, ast.JoinedStr) else [asked]
    start = ast.unparse(parts[0].value) if isinstance(parts[0], ast.FormattedValue) else next(texts(parts[0]), "")
    if len(parts) == 1 and isinstance(asked, ast.Constant):
        yield start
    elif start == "__name__":
        yield package
    elif start == "elboroom.":
        yield from (f"elboroom.{text}" for text in texts(code) if is_module(text))
    else:
        yield start if isinstance(asked, ast.JoinedStr) and start.startswith("elboroom.") else UNKNOWN


def is_module(name: str) -> bool:
    """Whether a string names a module of the package, or a room."""
    path = ROOT.joinpath(*name.split("."))
    return bool(re.fullmatch(r"\w+(\.\w+)*", name)) and (path.with_suffix(".py").is_file() or path.is_dir())


def rooms_used(path: Path) -> Iterator[str]:
    """The rooms of the package that a file imports from."""
    for module in imports(path):
        parts = module.split(".")
        if parts[0] == "elboroom":
            yield parts[1] if len(parts) > 1 else "the package itself"


def may_import(room: str, other: str) -> bool:
    return other == room or (room, other) in ALSO or LEVEL[other] < LEVEL[room]


INSIDE = [path for path in FILES if path != ROOT / "__init__.py"]


def test_imports_point_one_way() -> None:
    wrong = []
    for path in INSIDE:
        room = room_of(path)
        assert room in LEVEL, f"say in LEVELS where the room '{room}' stands"
        for other in rooms_used(path):
            if other == "?":
                assert name_of(path) in FOREIGN, f"{name_of(path)} imports what no string says: name it, or say why"
                continue
            assert other in LEVEL, f"{name_of(path)} imports '{other}' of the package: import from its room"
            if not may_import(room, other) and (name_of(path), other) not in BY_FILE:
                wrong.append(f"{name_of(path)}: {room} may not import {other}")
    assert not wrong


def test_the_rule_sees_a_wrong_import() -> None:
    assert may_import("methods", "terms")
    assert may_import("commands", "report")
    assert may_import("terms", "divergences")
    assert not may_import("terms", "families")
    assert not may_import("divergences", "terms")
    assert not may_import("divergences", "data")
    assert not may_import("core", "terms")
    assert not may_import("training", "runs")
    assert not may_import("evaluate", "plots")
    assert not may_import("studies", "report")


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ('import_module("elboroom.report.study")', {"elboroom.report.study"}),
        ('import_module(f"elboroom.{name}")', {"elboroom.report.study", "elboroom.runs"}),
        ('import_module(f"elboroom.commands.{name}")', {"elboroom.commands."}),
        ('import_module(f"{__name__}.{name}")', {"elboroom.here"}),
        ('import_module(name)', {UNKNOWN}),
        ('import_module(NAMES["report.study"])', {UNKNOWN}),
    ],
)  # fmt: skip
def test_the_rule_sees_an_import_by_name(call: str, found: set[str]) -> None:
    code = ast.parse(f'NAMES = {{"a": ("report.study", "write"), "b": "runs", "c": "no.module", "d": "a b"}}\n{call}')
    asked = code.body[-1].value.args[0]  # type: ignore[attr-defined]
    assert set(dynamic(code, asked, "elboroom.here")) == found


def test_what_is_allowed_of_a_file_is_of_use() -> None:
    used = {(name_of(path), other) for path in INSIDE for other in rooms_used(path)}
    assert used >= BY_FILE.keys()
    assert {name for name, other in used if other == "?"} == FOREIGN.keys()


@pytest.mark.unhurried
def test_the_package_itself_loads_nothing_heavy_and_its_verbs_stay_callable() -> None:
    """`import elboroom` and the first `elbo --help` do not wait for torch; a verb shadows no module, nor the reverse."""
    for node in tree(ROOT / "__init__.py").body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            assert "elboroom" not in ast.unparse(node)
    code = """
import sys
import elboroom
assert "torch" not in sys.modules
assert callable(elboroom.train) and callable(elboroom.train)
from elboroom import resume
from elboroom import train
assert callable(train) and callable(resume)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


PICKLES = ("pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve")


def unpickles(code: ast.AST) -> Iterator[tuple[int, str]]:
    """Calls that run or may run what a file holds."""
    for node in ast.walk(code):
        if not isinstance(node, ast.Call):
            continue
        called, given = ast.unparse(node.func), {k.arg: ast.unparse(k.value) for k in node.keywords}
        allowed = given.get("allow_pickle", "None" if called in ("np.load", "numpy.load") else "False")
        if called in ("torch.load", "torch.save", "eval", "exec", "np.fromfile") or allowed != "False":
            yield node.lineno, f"{called}: say allow_pickle=False" if allowed != "False" else called


def test_nothing_is_unpickled() -> None:
    assert not [(name_of(f), module) for f in FILES for module in imports(f) if module.split(".")[0] in PICKLES]
    assert not [(name_of(file), *found) for file in FILES for found in unpickles(tree(file))]


@pytest.mark.parametrize(
    "code", ["torch.load(f)", "np.load(f)", "np.load(f, allow_pickle=True)", "save(allow_pickle=x)"]
)
def test_the_rule_sees_what_unpickles(code: str) -> None:
    assert list(unpickles(ast.parse(code)))
    assert not list(unpickles(ast.parse("np.load(f, allow_pickle=False)")))


def texts(node: ast.AST) -> Iterator[str]:
    """The strings in a node, those of a tuple, list or set too."""
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value


def decisions(code: ast.AST) -> Iterator[tuple[int, str]]:
    """Comparisons and match cases with the name of a registered method."""
    for node in ast.walk(code):
        sides: list[ast.AST] = []
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchValue):
            sides = [node.value]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            sides = list(node.args) if node.func.attr in ("startswith", "endswith") else []
        for side in sides:
            yield from ((getattr(node, "lineno", 0), text) for text in texts(side) if text in METHODS)


def test_no_method_is_asked_for_by_name() -> None:
    elsewhere = [file for file in FILES if room_of(file) != "methods"]
    asked = [(name_of(file), *found) for file in elsewhere for found in decisions(tree(file))]
    assert not asked, "which value would make the question go away?"


@pytest.mark.parametrize(
    "code", ["if name == 'ae': pass", "x = method in ('vae', 'dip-vae-i')", "match m:\n case 'iwae': pass", "'ae' != n"]
)
def test_the_rule_sees_a_question_by_name(code: str) -> None:
    assert list(decisions(ast.parse(code)))


def test_core_knows_no_method() -> None:
    """Neither in a string nor in a comment nor as a word of a name."""
    names = "|".join(sorted(map(re.escape, METHODS), key=len, reverse=True))
    core = {name_of(file): file.read_text() for file in FILES if room_of(file) == "core"}
    said = {name: re.findall(rf"(?<![\w-])(?:{names})(?![\w-])", text) for name, text in core.items()}
    assert core
    assert not {name: found for name, found in said.items() if found}


def test_every_file_says_what_it_is() -> None:
    """A docstring for every file that has code, and for every public class and function."""
    missing = []
    for path in FILES:
        code = tree(path)
        if code.body and ast.get_docstring(code) is None:
            missing.append(name_of(path))
        for node in code.body:
            public = isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
            if public and ast.get_docstring(node) is None:  # type: ignore[arg-type]
                missing.append(f"{name_of(path)}:{node.name}")  # type: ignore[union-attr]
    assert not missing
