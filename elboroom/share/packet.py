"""What of a run is shared, and what is taken of one that was: files of known names, checked like any stranger's folder."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from elboroom.core.files import MOST, refuse_links, write
from elboroom.core.memory import require
from elboroom.core.problem import Problem
from elboroom.data.tokens import TOKENISER, kept
from elboroom.share.card import FILE as CARD
from elboroom.share.card import card, nameless, paths
from elboroom.share.places import ALLOWED, DEEP, Entry, Place
from elboroom.training.base import CARRIED, carried, own_files
from elboroom.training.checkpoint import Checkpoints
from elboroom.training.spec import Spec

if TYPE_CHECKING:
    from elboroom.runs.run import Run

NEEDED = ("spec.json",)
LEFT = ("report.html",)  # a page of a stranger, which a browser would run


def packed(run: Run, address: str, weights: bool = False) -> dict[str, bytes]:
    """The files of a run that are shared, with its card; nothing else in its folder is.

    weights: without what optimisers remember, which is two thirds of a checkpoint and of use to `resume` alone.
    """
    folder = run.folder
    files = _model(folder, run.spec, weights)
    for name in ("metrics.json", "report.html"):
        if (folder / name).is_file():
            files[name] = _without((folder / name).read_bytes(), [*paths(run.spec), str(folder.resolve())])
    files[CARD] = card(run, nameless(run.spec), address).encode()
    return files


def _model(folder: Path, spec: Spec, weights: bool, deep: int = 0) -> dict[str, bytes]:
    """What a run is loaded from, and in a folder of its own the run that it stands on."""
    if deep > DEEP:
        raise Problem(f"{folder} is run {deep} of those that stand on one another, and {DEEP} of them are sent at most")
    stem = _stem(folder, best=spec.fit.looks)
    names = [
        TOKENISER,
        *own_files(spec.about).values(),
        *(f"checkpoints/{stem}.{end}" for end in ("safetensors", "json")),
    ]
    files = {name: (folder / name).read_bytes() for name in names if (folder / name).is_file()}
    if weights:
        files |= _weights(folder, stem)
    files["spec.json"] = (json.dumps(nameless(spec).model_dump(), indent=1) + "\n").encode()
    if spec.base is not None:
        base = carried(folder, spec) or Path(spec.base.folder)
        under = _model(base, Spec.read(base), True, deep + 1)
        files |= {f"{CARRIED}/{name}": content for name, content in under.items()}
    return files


def _without(content: bytes, said: list[str]) -> bytes:
    """A file without the paths of its maker's machine, of which the last part stays, however it writes them."""
    for path in said:
        last = Path(path).name
        for written in (str, escape, lambda text: json.dumps(text)[1:-1]):
            content = content.replace(written(path).encode(), written(last).encode())
    return content


def _weights(folder: Path, stem: str) -> dict[str, bytes]:
    """A checkpoint without what optimisers remember."""
    whole = Checkpoints(folder / "checkpoints").read(stem)
    state = {name: tensor for name, tensor in whole.state.items() if "optimiser/" not in name}
    with tempfile.TemporaryDirectory() as made:
        shutil.copy(folder / "spec.json", made)  # by which a checkpoint knows its run
        Checkpoints(Path(made) / "checkpoints").save(whole.step, state, stem)
        return {f"checkpoints/{path.name}": path.read_bytes() for path in Path(made, "checkpoints").iterdir()}


def _stem(folder: Path, best: bool) -> str:
    """The checkpoint that `load` takes."""
    checkpoints = Checkpoints(folder / "checkpoints")
    if best and (checkpoints.folder / "best.json").is_file():
        return "best"
    found = checkpoints.newest()
    if found is None:
        raise Problem(f"{folder} has no checkpoint yet: elbo resume {folder}")
    return f"step-{found.step:09d}"


def taken(place: Place, folder: Path) -> None:
    """Brings a run from elsewhere into a new folder, which is there whole and checked, or not at all."""
    listing = place.listing()
    wanted = [entry for entry in listing if ALLOWED.fullmatch(entry.name) and entry.name not in LEFT]
    missing = {*NEEDED} - {entry.name for entry in wanted}
    if missing or not any(entry.name.startswith("checkpoints/") for entry in wanted):
        raise Problem(f"{place.address} has no run: it has no {', '.join(missing) or 'checkpoint'}")
    _refuse_large(wanted, place.address)
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".part", dir=folder.parent))
    try:
        for entry in wanted:
            to = part / entry.name
            to.parent.mkdir(parents=True, exist_ok=True)
            write(to, place.read(entry.name))
        check(part, place.address)
        part.chmod(0o755)
        part.rename(folder)
    except OSError as error:
        raise Problem(f"cannot write {folder}: {error.strerror}") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _refuse_large(entries: Iterable[Entry], address: str) -> None:
    for entry in entries:
        if entry.size > MOST and not entry.name.endswith(".safetensors"):
            raise Problem(f"{entry.name} of {address} has more than {MOST >> 20} MB, which none of ours has")
        require(2 * entry.size, f"{entry.name} of {address}")


def check(folder: Path, address: str) -> None:
    """Refuses a folder that is no whole run: its spec, checkpoints and tokenisers are read as a run's own are."""
    try:
        refuse_links(folder)
        spec = Spec.read(folder)
        for path in sorted((folder / "checkpoints").glob("*.json")):
            Checkpoints(folder / "checkpoints").read(path.stem)
        if spec.about.kind == "tokens":
            for name in (TOKENISER, *own_files(spec.about).values()):
                kept(folder / name)
        if base := carried(folder, spec):
            check(base, f"{address}/{CARRIED}")
    except Problem as problem:
        raise Problem(str(problem).replace(str(folder), address)) from problem
