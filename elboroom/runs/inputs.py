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
    batch = run.medium().batch(x)
    return replace(batch, u=run.labels_of(u, len(batch.x)))


def of_files(run: Run, paths: Sequence[str | Path]) -> NDArray[np.float32]:
    """Pictures in files, read as the data of the run was, (n, C, H, W); black and white where that is."""
    about, photos = run.spec.about, run.spec.photos
    photos = Photos() if type(photos) is OldPhotos else photos
    if about.kind != "pixels":
        raise Problem(f"this model is of {'sentences' if about.kind == 'tokens' else 'vectors'}, not of images")
    found, bad = [], dict[Path, str]()
    for path in map(Path, paths):
        if not path.is_file():
            raise Problem(f"{path} is no file; give the image files of your own")
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
            raise unknown(name, str(labels[name]), known)
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
