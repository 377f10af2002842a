"""What of a run is shared, and what is taken of one that was: files of known names, checked like any stranger's folder."""

from __future__ import annotations

import json
import re
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
from elboroom.share.places import Entry, Place
from elboroom.training.base import own_files
from elboroom.training.checkpoint import Checkpoints
from elboroom.training.spec import Spec

if TYPE_CHECKING:
    from elboroom.runs.run import Run

NEEDED = ("spec.json",)
ALLOWED = re.compile(
    r"spec\.json|metrics\.json|report\.html|tokeniser(-[a-z]+)?\.json|README\.md"
    r"|checkpoints/(best|step-\d{1,12})\.(safetensors|json)"
)


def packed(run: Run, address: str, weights: bool = False) -> dict[str, bytes]:
    """The files of a run that are shared, with its card; nothing else in its folder is.

    weights: without what optimisers remember, which is two thirds of a checkpoint and of use to `resume` alone.
    """
    spec, folder = nameless(run.spec), run.folder
    stem = _stem(folder, best=run.spec.fit.looks)
    names = [TOKENISER, *own_files(spec.about).values(), "metrics.json", "report.html"]
    kept = [f"checkpoints/{stem}.safetensors", f"checkpoints/{stem}.json"]
    files = {name: (folder / name).read_bytes() for name in (*names, *kept) if (folder / name).is_file()}
    if weights:
        files |= _weights(folder, stem)
    for name in ("metrics.json", "report.html"):
        if name in files:
            files[name] = _without(files[name], [*paths(run.spec), str(folder.resolve())])
    files["spec.json"] = (json.dumps(spec.model_dump(), indent=1) + "\n").encode()
    files[CARD] = card(run, spec, address).encode()
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
    wanted = [entry for entry in listing if ALLOWED.fullmatch(entry.name)]
    missing = {*NEEDED} - {entry.name for entry in wanted}
    if missing or not any(entry.name.startswith("checkpoints/") for entry in wanted):
        raise Problem(f"{place.address} has no run: it has no {', '.join(missing) or 'checkpoint'}")
    _refuse_large(wanted, place.address)
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".part", dir=folder.parent))
    try:
        for entry in wanted:
            to = part / entry.name
            to.parent.mkdir(exist_ok=True)
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
    except Problem as problem:
        raise Problem(str(problem).replace(str(folder), address)) from problem
