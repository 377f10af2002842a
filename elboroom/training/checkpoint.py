"""Checkpoints: safetensors + JSON, atomic and checksummed. No pickle, so loading a stranger's run runs no code."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import warnings
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError
from safetensors import torch as tensors
from torch import Tensor

from elboroom.core.problem import Problem


class Checkpoint(NamedTuple):
    """The state of a run at a step."""

    step: int
    state: dict[str, Tensor]


def write(path: Path, content: bytes) -> None:
    """Writes a file under a temporary name, syncs it and renames it: it is there whole, or not at all."""
    temporary = path.with_name(f".{path.name}.part")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise Problem(_reason(path, error)) from error


def write_json(path: Path, content: Any) -> None:
    """The same for JSON."""
    write(path, (json.dumps(content, indent=1, allow_nan=False) + "\n").encode())


def _reason(path: Path, error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"no space left to write {path}: what was there before is kept; free some, then go on with elbo resume"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"no permission to write {path}"
    return f"cannot write {path}: {error.strerror}"


class Checkpoints:
    """The checkpoints of a run: the newest two, and the best where a watch has named one."""

    keep = 2

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, step: int, state: dict[str, Tensor], name: str | None = None) -> None:
        """Writes the state, then the JSON that vouches for it, then drops what is too old."""
        self.folder.mkdir(exist_ok=True)
        whole, alias = _once_each(state)
        content = tensors.save(whole)
        stem = name or f"step-{step:09d}"
        write(self.folder / f"{stem}.safetensors", content)
        vouch = {"step": step, "sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content), "alias": alias}
        write_json(self.folder / f"{stem}.json", vouch)
        for old in self._stems()[self.keep :]:
            (self.folder / f"{old}.json").unlink(missing_ok=True)
            (self.folder / f"{old}.safetensors").unlink(missing_ok=True)

    def newest(self) -> Checkpoint | None:
        """The newest one that is whole; a damaged one is reported and the one before it used. None if there is none."""
        stems = self._stems()
        for stem in stems:
            try:
                return self.read(stem)
            except Problem as problem:
                warnings.warn(f"{problem}; using the one before it", stacklevel=2)
        if stems:
            raise Problem(f"every checkpoint in {self.folder} is damaged: train again into another folder")
        return None

    def best(self) -> Checkpoint | None:
        """The one that a watch called best, if there is one."""
        return self.read("best") if (self.folder / "best.json").exists() else None

    def read(self, stem: str) -> Checkpoint:
        """One checkpoint, verified."""
        path = self.folder / f"{stem}.safetensors"
        try:
            vouch = json.loads((self.folder / f"{stem}.json").read_text())
            content = path.read_bytes()
            if hashlib.sha256(content).hexdigest() != vouch["sha256"]:
                raise Problem(f"checkpoint {path} is damaged (its checksum differs)")
            state = tensors.load(content)
            state.update({name: state[kept] for name, kept in vouch["alias"].items()})
            return Checkpoint(int(vouch["step"]), state)
        except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
            raise Problem(f"checkpoint {path} is damaged ({error})") from error

    def _stems(self) -> list[str]:
        return sorted((path.stem for path in self.folder.glob("step-*.json")), reverse=True)


def _once_each(state: dict[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors that are one (a shared encoder, a tied embedding) are kept once; the other names become aliases."""
    whole: dict[str, Tensor] = {}
    alias: dict[str, str] = {}
    place: dict[tuple[Any, ...], str] = {}
    for name, tensor in state.items():
        key = (tensor.untyped_storage().data_ptr(), tensor.storage_offset(), tensor.shape, tensor.stride())
        if tensor.numel() and key in place:
            alias[name] = place[key]
        else:
            place[key] = name
            whole[name] = tensor.detach().cpu().contiguous()
    return whole, alias


def newest(folder: Path, best: bool = False) -> Checkpoint:
    """The best checkpoint of a run if asked for and there, else the newest."""
    checkpoints = Checkpoints(folder / "checkpoints")
    found = (checkpoints.best() if best else None) or checkpoints.newest()
    if found is None:
        raise Problem(f"{folder} has no checkpoint yet: elbo resume {folder}")
    return found
