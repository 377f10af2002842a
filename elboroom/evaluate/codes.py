"""The code table: every example of a data set encoded once, for all metrics to draw from."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from elboroom.core.files import remade
from elboroom.core.law import capabilities
from elboroom.core.model import LatentModel
from elboroom.core.problem import Problem
from elboroom.data.archives import UNREADABLE
from elboroom.data.dataset import DataSet
from elboroom.data.fields import FieldKind
from elboroom.data.stores import chunks
from elboroom.evaluate.disentanglement.factors import Kind
from elboroom.evaluate.disentanglement.source import Grid, Rows, Source
from elboroom.training.batches import batch_of
from elboroom.training.checkpoint import write_json

Progress = Callable[[int, int], None]
ARRAYS = ("mu", "logvar")


class Encoded(Protocol):
    """What a run offers here."""

    @property
    def folder(self) -> Path: ...
    @property
    def model(self) -> LatentModel: ...
    @property
    def data(self) -> DataSet: ...
    @property
    def given(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class CodeTable:
    """mu and log sigma^2 of q(z|x) for every row of a data set, (N, J) float32, beside its labels."""

    mu: NDArray[np.float32]
    logvar: NDArray[np.float32] | None  # None where q is no diagonal Gaussian
    labels: NDArray[np.int64]  # (N, K)
    sizes: dict[str, int]  # number of values by name of label
    kinds: dict[str, FieldKind] = field(default_factory=dict)  # of labels by name
    allow_smaller: bool = False  # whether a protocol may take fewer rows than it asks for

    def __len__(self) -> int:
        return len(self.mu)

    @property
    def is_grid(self) -> bool:
        """Whether the rows are all combinations of the labels, the last varying fastest."""
        shape = tuple(self.sizes.values())
        if not shape or math.prod(shape) != len(self):
            return False
        return bool(np.array_equal(np.ravel_multi_index(tuple(self.labels.T), shape), np.arange(len(self))))

    @cached_property
    def source(self) -> Source:
        """Where metrics draw from: the grid of factors, or the rows as they are."""
        names = tuple(self.sizes)
        kinds: list[Kind] = ["ordinal" if self.kinds[name] == "ordinal" else "categorical" for name in names]
        if self.is_grid:
            return Grid(self.mu, self.logvar, tuple(self.sizes.values()), names, kinds=kinds)
        if not names or bool(np.all(self.labels == self.labels[:1])):  # nothing to tell, but codes there are
            return Rows(self.mu, None, logvar=self.logvar, allow_smaller=self.allow_smaller)
        return Rows(self.mu, self.labels, kinds, names, self.logvar, allow_smaller=self.allow_smaller)


def code_table(
    run: Encoded, progress: Progress | None = None, batch: int = 256, allow_smaller: bool = False
) -> CodeTable:
    """The code table of a run, kept in its folder; made again where the weights or the data have changed."""
    folder, data = run.folder / "codes", run.data
    seal = {
        "weights": weights_hash(run.model),  # a refined posterior reads prior and decoder too
        "data": data.hash,
        "given": list(run.given),
        "rows": len(data),
    }
    found = _kept(folder, seal)
    if found is None:
        _encode(run, folder, seal, progress, batch)
        found = _kept(folder, seal)
    if found is None:
        raise Problem(f"the codes in {folder} cannot be read; delete them and run again")
    about = data.about
    return replace(found, labels=data.labels, sizes=dict(about.labels), kinds=about.kinds, allow_smaller=allow_smaller)


def weights_hash(module: nn.Module) -> str:
    """SHA-256 of all parameters and buffers with their names."""
    digest = hashlib.sha256()
    for name, tensor in module.state_dict().items():
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        array = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
        for part in chunks(array):
            digest.update(part)
    return digest.hexdigest()


def _kept(folder: Path, seal: dict[str, Any]) -> CodeTable | None:
    """The codes in a folder if they are whole and of these weights and data."""
    try:
        said = remade(folder / "codes.json")
        if {name: said.get(name) for name in seal} != seal:
            return None
        files = [
            np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)
            for name in said["arrays"]
            if name in ARRAYS
        ]
    except UNREADABLE:
        return None
    if not files or any(file.shape != (seal["rows"], said["latent"]) or file.dtype != np.float32 for file in files):
        return None
    return CodeTable(files[0], files[1] if len(files) > 1 else None, np.zeros((len(files[0]), 0), np.int64), {})


def _encode(run: Encoded, folder: Path, seal: dict[str, Any], progress: Progress | None, size: int) -> None:
    """Writes mu.npy, logvar.npy and the seal that vouches for them."""
    for name, module in run.model.posterior.named_modules():
        if module.training and isinstance(module, _BatchNorm | _DropoutNd):
            raise Problem(
                f"'{name}' of the encoder is in training mode, so codes depend on the batch; call eval() first"
            )
    n, device = len(run.data), next(run.model.parameters()).device
    parts = [np.arange(start, min(n, start + size)) for start in range(0, n, size)]
    files: dict[str, Any] = {}  # mapped arrays

    @torch.inference_mode()
    def encoded(rows: NDArray[np.int64]) -> dict[str, NDArray[np.float32]]:
        q = run.model.q(batch_of(run.data, rows, run.given, device))
        found = {"mu": q.mean} | ({"logvar": q.logvar} if capabilities(q).diagonal else {})
        return {name: tensor.float().flatten(1).cpu().numpy() for name, tensor in found.items()}  # (B, J)

    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "codes.json").unlink(missing_ok=True)
        with side_by_side(device) as each:
            for rows, found in zip(parts, each(encoded, parts), strict=True):
                for name, values in found.items():
                    if name not in files:
                        shape = (n, values.shape[1])
                        files[name] = np.lib.format.open_memmap(_part(folder, name), "w+", np.float32, shape)
                    files[name][rows] = values
                if progress is not None:
                    progress(int(rows[-1]) + 1, n)
        for name, file in files.items():
            file.flush()
            os.replace(_part(folder, name), folder / f"{name}.npy")
        write_json(folder / "codes.json", {**seal, "arrays": list(files), "latent": files["mu"].shape[1]})
    except OSError as error:
        raise Problem(f"cannot write the codes to {folder}: {error.strerror or error}") from error
    finally:
        for name in files:
            _part(folder, name).unlink(missing_ok=True)


@contextmanager
def side_by_side(device: torch.device) -> Iterator[Callable[..., Iterable[Any]]]:
    """A map over batches on a CPU's threads, each batch on one of them: layers wait for one another, batches do not."""
    threads = torch.get_num_threads()
    if device.type != "cpu" or threads == 1:
        yield map
        return
    pool = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))
    try:
        yield pool.map
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)


def _part(folder: Path, name: str) -> Path:
    """The name of a file that is being written."""
    return folder / f".{name}.{os.getpid()}.part"
