"""The package as a stranger gets it: built, checked, installed into an empty environment, used from another folder."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import threading
import tomllib
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
NEEDED = ("pyproject.toml", "README.md", "LICENSE", "elboroom")
UNIX = {"fcntl", "pwd", "grp", "resource", "termios", "pty", "tty"}  # modules that Windows has not
LATE = {ROOT / "elboroom" / "explorer" / name for name in ("app.py", "guard.py", "serve.py")}  # of the extra explore


def settings() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_metadata_is_complete() -> None:
    project = settings()["project"]
    for key in ("description", "readme", "requires-python", "license", "authors", "keywords", "classifiers", "urls"):
        assert project[key], key
    extras = project["optional-dependencies"]
    assert {"explore", "hub", "onnx", "datasets", "parquet", "ray", "optuna", "dev"} <= extras.keys()
    asked = [
        re.split(r"[><=\[; ]", name)[0] for listed in extras.values() for name in listed if "elboroom[" not in name
    ]
    asked += [re.split(r"[><=\[; ]", name)[0] for name in project["dependencies"]]
    pinned = {
        line.split("==")[0].lower().replace("_", "-")
        for line in (ROOT / "constraints.txt").read_text().splitlines()[1:]
    }
    assert not {name for name in asked if name.lower().replace("_", "-") not in pinned}, (
        "constraints.txt names them all"
    )


def test_nothing_is_imported_that_other_systems_have_not() -> None:
    """Of macOS and Windows this is all that is tested: that no module of POSIX is imported at the top, and none forks."""
    for path in sorted((ROOT / "elboroom").rglob("*.py")):
        code = ast.parse(path.read_text(encoding="utf-8"))
        for node in code.body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
            assert not UNIX & {name.split(".")[0] for name in names}, path
        attributes = [n for n in ast.walk(code) if isinstance(n, ast.Attribute) and n.attr in ("fork", "forkpty")]
        assert not attributes, path


def declared(*listed: list[str]) -> set[str]:
    """The distributions that requirements name, as the index spells them."""
    return {_plain(re.split(r"[><=\[; ]", name)[0]) for some in listed for name in some if "elboroom[" not in name}


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def imported(path: Path) -> Iterator[tuple[str, bool]]:
    """The modules that a file imports from outside, and whether only once something of it is called or may fail."""

    def within(node: ast.AST, late: bool) -> Iterator[tuple[str, bool]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from ((alias.name, late) for alias in child.names)
            elif isinstance(child, ast.ImportFrom) and not child.level:
                yield from ((f"{child.module}.{alias.name}", late) for alias in child.names)
            elif not (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)):
                yield from within(child, late or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Try))

    yield from within(ast.parse(path.read_text(encoding="utf-8")), False)


def test_all_that_is_imported_is_declared_and_extras_are_imported_late() -> None:
    """The empty environment below borrows what the tests have, so that it cannot see what nobody declared."""
    project, files = settings()["project"], sorted((ROOT / "elboroom").rglob("*.py"))
    needed, extras = declared(project["dependencies"]), declared(*project["optional-dependencies"].values())
    owners = {module: {_plain(name) for name in names} for module, names in packages_distributions().items()}
    wrong = []
    for path, (module, late) in ((file, found) for file in files for found in imported(file)):
        top, where = module.split(".")[0], path.relative_to(ROOT)
        if top in sys.stdlib_module_names or top == "elboroom":
            continue
        of = owners.get(top, {_plain(top)})
        if not of & (needed | extras):
            wrong.append(f"{where} imports {top}, which pyproject.toml does not name")
        elif not late and not of & needed and path not in LATE:
            wrong.append(f"{where} imports {top} at its top, which only an extra has")
    assert not wrong, "\n".join(dict.fromkeys(wrong))


def test_files_that_stand_on_an_extra_are_imported_late() -> None:
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in LATE}
    for path in sorted((ROOT / "elboroom").rglob("*.py")):
        early = {
            name
            for name in names
            for module, late in imported(path)
            if not late and f"{module}.".startswith(f"{name}.")
        }
        assert path in LATE or not early, f"{path} imports {early} at its top"


def test_the_image_of_docker_is_written_as_it_should_be() -> None:
    """What a linter asks for; the image itself is not built by any test."""
    lines = [line for line in (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]
    text = "\n".join(lines)
    known = {"FROM", "RUN", "COPY", "WORKDIR", "USER", "ENV", "ENTRYPOINT", "CMD", "ARG", "VOLUME"}
    joined = re.sub(r"\\\n\s*", "", text).splitlines()
    assert {line.split()[0] for line in joined} <= known
    assert re.fullmatch(r"FROM python:3\.\d+(\.\d+)?-slim", joined[0]), "a tag that is pinned"
    assert "--no-cache-dir" in text
    assert "-c constraints.txt" in text
    assert joined.index(next(line for line in joined if line.startswith("USER"))) < len(joined) - 1, "not as root"
    assert text.count("ENTRYPOINT [") == 1
    for copied in re.findall(r"^COPY (?:--\S+ )*(.+) \S+$", "\n".join(joined), re.MULTILINE):
        assert all((ROOT / name).exists() for name in copied.split()), copied


def ran(*command: object, **more: Any) -> str:
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, env=env, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel and an archive of the sources, made from a copy of what they are made of."""
    folder = tmp_path_factory.mktemp("package")
    (folder / "tree").mkdir()
    for name in NEEDED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, folder / "tree" / name)
    ran(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", folder / "tree")
    return folder / "dist"


@pytest.mark.slow
def test_wheel_and_sources_are_whole_and_pass_the_check(built: Path) -> None:
    assert ran(sys.executable, "-m", "twine", "check", "--strict", *built.iterdir()).count("PASSED") == 2
    (wheel,) = built.glob("*.whl")
    (archive,) = built.glob("*.tar.gz")
    inside = set(zipfile.ZipFile(wheel).namelist())
    with tarfile.open(archive) as sources:
        packed = {name.partition("/")[2] for name in sources.getnames()}
    for path in (ROOT / "elboroom").rglob("*"):
        if path.is_file() and path.suffix not in (".pyc",) and path.name != "jsconfig.json":
            name = path.relative_to(ROOT).as_posix()
            assert name in inside, "package-data in pyproject.toml leaves it out"
            assert name in packed


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """An environment without elboroom; what elboroom needs is read from where the tests have it, and nothing is fetched."""
    ran(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv")
    place = next((tmp_path / "venv").glob("[lL]ib/**/site-packages"))
    (place / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return tmp_path / "venv"


def installed(python: Path, *words: object) -> None:
    """Installs into an environment; what lies beside it is neither believed nor touched."""
    pip = (sys.executable, "-m", "pip", "--isolated", "--python", python)
    ran(*pip, "install", "--no-deps", "--ignore-installed", *words)


def binary(venv: Path, name: str) -> Path:
    return venv / ("Scripts" if os.name == "nt" else "bin") / name


@pytest.mark.slow
def test_the_wheel_works_in_an_empty_environment_from_another_folder(built: Path, empty: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    python, elbo = binary(empty, "python"), binary(empty, "elbo")
    installed(python, "--no-index", wheel)
    ran(sys.executable, "-m", "pip", "--isolated", "--python", python, "check")  # what it declares is there
    away = tmp_path / "away"
    away.mkdir()
    where = ran(python, "-c", "import elboroom; print(elboroom.__file__)", cwd=away).strip()
    assert Path(where).is_relative_to(empty)
    assert ran(elbo, "--version", cwd=away).strip() == f"elboroom {settings()['project']['version']}"
    np.save(away / "x.npy", np.random.default_rng(0).random((60, 5)).astype(np.float32))
    ran(
        elbo,
        "train",
        "vae",
        "--data",
        "x.npy",
        "--steps",
        3,
        "--batch-size",
        8,
        "--latent",
        2,
        "--out",
        "run",
        cwd=away,
    )
    ran(elbo, "eval", "run", "--samples", 5, cwd=away)
    ran(elbo, "report", "run", cwd=away)
    ran(elbo, "export", "run", cwd=away)
    assert "decoded (3, 5)" in ran(python, away / "run" / "onnx" / "example.py", cwd=tmp_path)
    assert "burgess-dsprites" in ran(elbo, "recipes", cwd=away)


class _Index(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def index(built: Path, tmp_path: Path) -> Iterator[str]:
    """A package index of this machine: a folder of names, each with its files."""
    place = tmp_path / "index" / "simple" / "elboroom"
    shutil.copytree(built, place)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Index, directory=str(tmp_path / "index")))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/simple/"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.slow
def test_pip_installs_it_by_its_name_from_an_index(index: str, empty: Path, tmp_path: Path) -> None:
    python = binary(empty, "python")
    installed(python, "--index-url", index, "elboroom")
    assert "beta-vae" in ran(binary(empty, "elbo"), "methods", cwd=tmp_path)
