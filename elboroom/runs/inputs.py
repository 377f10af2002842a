"""Inputs: examples and labels that a caller hands in, as batches of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from elboroom.core.batch import Batch
from elboroom.core.problem import Problem, unknown
from elboroom.data import lines
from elboroom.data.dataset import DataSet
from elboroom.data.photos import UNREADABLE, OldPhotos, Photos, opened, reason
from elboroom.runs.media import real
from elboroom.training.batches import batch_of

if TYPE_CHECKING:
    from elboroom.runs.run import Run


def as_batch(run: Run, x: Any, u: ArrayLike | None) -> Batch:
    """Examples as a user has them, with the labels that the model is given."""
    if isinstance(x, Batch):
        return x if u is None else replace(x, u=run.labels_of(u, len(x.x)))
    if run.model.conditioner is not None:
        raise Problem(
            "this model reads a context, which these sentences have not; use examples of its data, or generate"
        )
    batch = run.medium().batch(handed(run, x))
    return replace(batch, u=run.labels_of(u, len(batch.x)))


def handed(run: Run, x: Any) -> Any:
    """Examples as they were handed in, but for files of images or tables, which are read; of text all is sentences."""
    if run.tokeniser is not None:
        return x
    paths = [x] if isinstance(x, str | Path) else x
    named = isinstance(paths, list | tuple) and bool(paths) and all(isinstance(path, str | Path) for path in paths)
    return of_files(run, paths) if named else x


def columns(run: Run) -> list[str]:
    """What the coordinates of a vector are called: the columns of the table that it was trained on, or x0, x1, ..."""
    found = lines.header(Path(run.spec.data["source"]), run.spec.reading.encoding)
    names, count = [name for name in found if name not in run.spec.about.labels], run.spec.about.shape[0]
    return names if len(names) == count else [f"x{place}" for place in range(count)]


def of_tables(run: Run, paths: Sequence[str | Path]) -> NDArray[np.float32]:
    """The rows of tables with the columns of the model, by name where they are named, (n, D)."""
    found = []
    for path in map(Path, paths):
        if path.suffix.lower() not in lines.TABLES:
            raise Problem(f"this model is of vectors, not of images: give a table (.csv, .tsv), not {path}")
        _require_file(path)
        found.append(_of_table(path, columns(run), run.spec.reading.encoding))
    return np.concatenate(found)


def _of_table(path: Path, wanted: Sequence[str], encoding: str) -> NDArray[np.float32]:
    try:
        rows, names = list(lines.table(path, encoding)), lines.header(path, encoding)
    except lines.Undecodable:
        raise Problem(
            f"{path} is not {encoding.upper()} text, which the data of this run is; save it in that encoding"
        ) from None
    if set(wanted) <= set(names):
        places = [names.index(name) for name in wanted]
    elif len(rows[0][1]) == len(wanted) and (not names or wanted[0] == "x0"):
        places = list(range(len(wanted)))
    else:
        missing = [name for name in wanted if name not in names]
        raise Problem(f"{path} has no column {', '.join(missing)}; this model takes {', '.join(wanted)}")
    body = rows[bool(names) :]
    if not body:
        raise Problem(f"{path} has no rows")
    return np.array([[_number(cells[place], line, path) for place in places] for line, cells in body], np.float32)


def _number(cell: str, line: int, path: Path) -> float:
    if not lines.is_number(cell):
        raise Problem(
            f"line {line} of {path} has {repr(cell.strip()) if cell.strip() else 'an empty cell'}, not a number"
        )
    return float(cell)


def _require_file(path: Path) -> None:
    if not path.is_file():
        raise Problem(f"{path} is a folder; give the files in it" if path.is_dir() else f"{path} does not exist")


def of_files(run: Run, paths: Sequence[str | Path]) -> NDArray[np.float32]:
    """Pictures in files, read as the data of the run was, (n, C, H, W); black and white where that is; rows of tables."""
    about, photos = run.spec.about, run.spec.photos
    photos = Photos() if type(photos) is OldPhotos else photos
    if about.kind == "tokens":
        raise Problem("this model is of sentences, not of images")
    if about.kind == "vectors":
        return of_tables(run, paths)
    found, bad = [], dict[Path, str]()
    for path in map(Path, paths):
        _require_file(path)
        try:
            found.append(opened(path, about.shape, photos))
        except UNREADABLE as error:
            bad[path] = reason(error, path)
    if bad:
        raise Problem(f"{'; '.join(f'{path} cannot be read as an image ({why})' for path, why in bad.items())}")
    x = np.stack(found).astype(np.float32) / 255
    return np.asarray(np.rint(x) if about.levels == 2 else x, np.float32)


def of_rows(run: Run, data: DataSet, rows: NDArray[np.int64]) -> Batch:
    """Rows of any data set, its sentences in the words of this model."""
    for name in run.given:
        mine, theirs = (tuple(c.get(name, ())) for c in (run.spec.data.get("classes", {}), data.classes))
        if name in data.about.labels and mine != theirs:
            raise Problem(f"{name} is {', '.join(theirs)} in {data.about.name}, and this model knows {', '.join(mine)}")
    if run.model.conditioner is not None and run.tokeniser is not None:
        own = {name: words for name, words in run.tokenisers.items() if words is not run.tokeniser}
        return batch_of(data.read_with(run.tokeniser, own), rows, run.given)
    batch = batch_of(data, rows, run.given)
    return batch if run.tokeniser is None else as_batch(run, data.sentences(rows), batch.u)


def require_alike(run: Run, data: DataSet) -> None:
    """Refuses a data set of another kind or shape than the model takes."""
    mine, other = (
        "text" if about.kind == "tokens" else f"{about.kind} of shape {about.shape}"
        for about in (run.spec.about, data.about)
    )
    if mine != other:
        raise Problem(f"this model takes {mine}, not {other}")


def labelled(run: Run, n: int, labels: Mapping[str, str | int]) -> Tensor:
    """u of n examples that all have these labels, by name or by number, (n, U)."""
    classes, parts = run.spec.data.get("classes", {}), []
    if unused := set(labels) - set(run.given):
        raise Problem(f"this model is not conditional on {', '.join(sorted(unused))}")
    for name in run.given:
        if name not in labels:
            raise Problem(f"this model is conditional on {', '.join(run.given)}; set {name} too")
        count, known = run.spec.about.labels[name], [str(c) for c in classes.get(name, ())]
        known = known or [str(i) for i in range(count)]
        if str(labels[name]) not in known:
            raise unknown("value", str(labels[name]), known, name)
        hot = torch.zeros(n, count)
        hot[:, known.index(str(labels[name]))] = 1
        parts.append(hot)
    return torch.cat(parts, 1)


def labels_of(run: Run, u: ArrayLike | Tensor | None, n: int) -> Tensor | None:
    """The labels of n examples as they are given, checked; None of a model that is given none."""
    width = sum(run.spec.about.labels[name] for name in run.given)
    if not width:
        return None
    if u is None:
        raise Problem(
            f"this model is conditional on {', '.join(run.given)}; set it with --as {run.given[0]}=..., or pass u of "
            f"shape ({n}, {width})"
        )
    tensor = u if isinstance(u, Tensor) else torch.from_numpy(real(u, "u"))
    if tuple(tensor.shape) != (n, width):
        raise Problem(f"u has shape ({n}, {width}), not {tuple(tensor.shape)}")
    return tensor
