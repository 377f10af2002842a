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
# divergences, which know the core alone.
LEVELS = (
    {"core"},
    {"geometry"},
    {"nets", "families", "terms", "weights", "data", "divergences"},
    {"build"},
    {"methods"},
    {"training"},
    {"evaluate", "latent", "loggers"},
    {"runs"},
    {"plots"},
    {"report", "studies", "explorer"},
    {"commands"},
    {"cli"},
    {"__main__"},
)
LEVEL = {room: level for level, rooms in enumerate(LEVELS) for room in rooms}
ALSO = {("terms", "divergences")}


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
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            yield from (a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str))


def rooms_used(path: Path) -> Iterator[str]:
    """The rooms of the package that a file imports from."""
    for module in imports(path):
        parts = module.split(".")
        if parts[0] == "elboroom":
            yield parts[1] if len(parts) > 1 else "the package itself"


def may_import(room: str, other: str) -> bool:
    return other == room or (room, other) in ALSO or LEVEL[other] < LEVEL[room]


INSIDE = [path for path in FILES if path != ROOT / "__init__.py"]


@pytest.mark.parametrize("path", INSIDE, ids=name_of)
def test_imports_point_one_way(path: Path) -> None:
    room = room_of(path)
    assert room in LEVEL, f"say in LEVELS where the room '{room}' stands"
    for other in rooms_used(path):
        assert other in LEVEL, f"{name_of(path)} imports '{other}' of the package: import from its room"
        assert may_import(room, other), f"{room} may not import {other}"


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


def test_the_package_itself_loads_nothing_heavy() -> None:
    """`import elboroom` and the first `elbo --help` do not wait for torch."""
    for node in tree(ROOT / "__init__.py").body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            assert "elboroom" not in ast.unparse(node)
    code = "import elboroom, sys; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_verbs_stay_callable() -> None:
    code = "import elboroom; assert all(callable(elboroom.train) for _ in range(2)); assert callable(elboroom.train)"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_the_verbs_are_callable_after_one_another() -> None:
    code = "from elboroom import resume; from elboroom import train; assert callable(train)"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_nothing_is_unpickled(path: Path) -> None:
    forbidden = ("pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve")
    assert not [module for module in imports(path) if module.split(".")[0] in forbidden]
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            assert called not in ("torch.load", "torch.save", "eval", "exec", "np.fromfile"), f"line {node.lineno}"
            for keyword in node.keywords:
                if keyword.arg == "allow_pickle":
                    assert isinstance(keyword.value, ast.Constant), f"line {node.lineno}"
                    assert keyword.value.value is False, f"line {node.lineno}"
            if called in ("np.load", "numpy.load"):
                assert "allow_pickle" in {k.arg for k in node.keywords}, f"line {node.lineno}: say allow_pickle=False"


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


@pytest.mark.parametrize("path", [p for p in FILES if room_of(p) != "methods"], ids=name_of)
def test_no_method_is_asked_for_by_name(path: Path) -> None:
    assert not list(decisions(tree(path))), "which value would make the question go away?"


@pytest.mark.parametrize(
    "code", ["if name == 'ae': pass", "x = method in ('vae', 'dip-vae-i')", "match m:\n case 'iwae': pass", "'ae' != n"]
)
def test_the_rule_sees_a_question_by_name(code: str) -> None:
    assert list(decisions(ast.parse(code)))


CORE = [path for path in FILES if room_of(path) == "core"]


@pytest.mark.parametrize("path", CORE, ids=name_of)
def test_core_knows_no_method(path: Path) -> None:
    """Neither in a string nor in a comment nor as a word of a name."""
    names = "|".join(sorted(map(re.escape, METHODS), key=len, reverse=True))
    said = re.findall(rf"(?<![\w-])(?:{names})(?![\w-])", path.read_text())
    assert not said


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
