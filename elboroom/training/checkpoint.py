"""Checkpoints: safetensors + JSON, atomic and checksummed. No pickle, so loading a stranger's run runs no code."""

from __future__ import annotations

import hashlib
import re
import warnings
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from pydantic import BaseModel, ConfigDict, Field
from safetensors import SafetensorError
from safetensors import torch as tensors
from torch import Tensor

from elboroom.core.files import read_json
from elboroom.core.files import write as write
from elboroom.core.files import write_json as write_json
from elboroom.core.memory import require
from elboroom.core.method import Method
from elboroom.core.optimiser import memory_of
from elboroom.core.problem import Problem
from elboroom.core.stages import AVERAGE, STAGES, Stages, Trainable, learnt

_WATCH = re.compile(rf"(({'|'.join(STAGES)})\.)?memory\.\d+\..+")  # what a run looks with while it trains


class Pending(BaseModel):
    """What was seen since the last line of the log, where a run was stopped between two: its steps, and a row for each.

    A number that was a tensor comes with its type, so that the mean that is logged later has the same bits.
    """

    model_config = ConfigDict(extra="forbid")

    steps: list[int] = Field(default_factory=list)
    rows: list[dict[str, float | tuple[float, Literal["float32", "float64", "bfloat16"]]]] = Field(default_factory=list)


class Checkpoint(NamedTuple):
    """The state of a run at a step."""

    step: int
    state: dict[str, Tensor]
    pending: Pending = Pending()


class Checkpoints:
    """The checkpoints of a run: the newest two, and the best where a watch has named one."""

    keep = 2

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def run(self) -> str:
        """The identifier of the run, by its spec.json; empty where it was made before runs had one."""
        try:
            return str(read_json(self.folder.parent / "spec.json").get("id", ""))
        except Problem:
            return ""

    def save(
        self, step: int, state: dict[str, Tensor], name: str | None = None, pending: Pending | None = None
    ) -> None:
        """Writes the state, then the JSON that vouches for it, then drops what is too old."""
        self.folder.mkdir(exist_ok=True)
        whole, alias = _once_each(state)
        content = tensors.save(whole)
        stem = name or f"step-{step:09d}"
        write(self.folder / f"{stem}.safetensors", content)
        digest = hashlib.sha256(content).hexdigest()
        vouch = {"step": step, "sha256": digest, "bytes": len(content), "alias": alias, "run": self.run}
        if pending is not None and pending.steps:
            vouch["pending"] = pending.model_dump()
        write_json(self.folder / f"{stem}.json", vouch)
        for old in self._stems()[self.keep :]:
            (self.folder / f"{old}.json").unlink(missing_ok=True)
            (self.folder / f"{old}.safetensors").unlink(missing_ok=True)

    def sweep(self) -> None:
        """Removes weights that nothing vouches for: a crash came between the two, or while old ones were dropped."""
        for path in self.folder.glob("*.safetensors"):
            if not path.with_suffix(".json").exists():
                path.unlink(missing_ok=True)

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
            vouch = read_json(self.folder / f"{stem}.json")
            size = path.stat().st_size
            if size != vouch.get("bytes", size):
                raise ValueError(f"it has {size:,} bytes, not {vouch['bytes']:,}")
            require(2 * size, f"checkpoint {path}")  # as it is read, and as tensors
            content = path.read_bytes()
            if hashlib.sha256(content).hexdigest() != vouch["sha256"]:
                raise Problem(f"checkpoint {path} is damaged (its checksum differs)")
            if vouch.get("run", "") != self.run:
                raise Problem(f"checkpoint {path} belongs to another run: its identifier is not that of spec.json")
            state = tensors.load(content)
            state.update({name: state[kept] for name, kept in vouch["alias"].items()})
            if "stage" in state and (state["stage"].shape != () or state["stage"].dtype != torch.bool):
                raise ValueError("it does not say which stage it is in")
            if not isinstance(vouch["step"], int) or vouch["step"] < 0:
                raise ValueError("it does not say its step")
            return Checkpoint(vouch["step"], state, Pending(**vouch.get("pending", {})))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, SafetensorError) as error:
            raise Problem(f"checkpoint {path} is damaged ({error})") from error

    def _stems(self) -> list[str]:
        return sorted((path.stem for path in self.folder.glob("step-*.json")), reverse=True)


def check_state(method: Trainable, state: dict[str, Tensor]) -> None:
    """Refuses a state that is not of this method: every tensor has the name, shape and type that the method expects.

    Optimisers are checked too: a fused one reads as many numbers as its parameter has, whatever it was given.
    """
    if isinstance(method, Stages):
        if state.get("stage", method.stage[None]).shape != method.stage.shape:
            raise Problem("the checkpoint does not say which stage it is in")
        for name in STAGES:
            own = {k.removeprefix(f"{name}."): v for k, v in state.items() if k.startswith(f"{name}.")}
            _check_method(getattr(method, name), own)
    else:
        _check_method(method, state)


def _check_method(method: Method, state: dict[str, Tensor]) -> None:
    own = {name for name in state if not name.startswith("optimiser/")}
    _check_all({name: state[name] for name in own}, method)
    for name in sorted(state.keys() - own):
        group, number, key = ([*name.split("/"), "", "", ""])[1:4]
        parameters, known = (
            method.owned.get(group, []),
            memory_of(method.optimisers[group]) if group in method.owned else (),
        )
        if not number.isdecimal() or int(number) >= len(parameters) or key not in known:
            raise Problem(f"the checkpoint has an unknown tensor '{name}'")
        like = torch.zeros(()) if key == "step" else parameters[int(number)]
        _check_tensor(name, state[name], like)
        for beside in known:
            if (lacking := f"optimiser/{group}/{number}/{beside}") not in state:
                raise Problem(f"the checkpoint lacks '{lacking}'")


def check_learnt(method: Trainable, state: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights in a state, averaged where an average is, as a method takes them; refuses what is not of it.

    What optimisers remember, and watches that look while it trains alone, it need not have.
    """
    expected, found = dict(method.state_dict()), learnt(state)
    _check_all({name: found[name] for name in found if name in expected or not _WATCH.fullmatch(name)}, method)
    averaged = {f"{name[1] or ''}model.{name[2].replace('/', '.')}" for name in map(AVERAGE.fullmatch, state) if name}
    for stage in {name.partition("model.")[0] for name in averaged}:
        for name in sorted({name for name in expected if name.startswith(f"{stage}model.")} - averaged):
            raise Problem(f"the checkpoint has no average of '{name}', and has others")
    return {name: found[name] for name in expected}


def _check_all(state: dict[str, Tensor], method: Trainable) -> None:
    """Refuses other names, shapes, types or numbers than its own; a buffer that begins infinite, a best value, may be so."""
    expected, trained = method.state_dict(), {name for name, _ in method.named_parameters(remove_duplicate=False)}
    for name in sorted(state.keys() ^ expected.keys()):
        raise Problem(f"the checkpoint {'lacks' if name in expected else 'has an unknown tensor'} '{name}'")
    for name, like in expected.items():
        _check_tensor(name, state[name], like, finite=name in trained or bool(torch.isfinite(like).all()))


def _check_tensor(name: str, tensor: Tensor, like: Tensor, finite: bool = True) -> None:
    """Refuses another shape or type, and numbers that are none."""
    for what, found, wanted in (("shape", tuple(tensor.shape), tuple(like.shape)), ("type", tensor.dtype, like.dtype)):
        if found != wanted:
            raise Problem(f"the checkpoint's tensor '{name}' has {what} {found}; this run needs {wanted}")
    if finite and not torch.isfinite(tensor).all():
        raise Problem(f"the checkpoint's tensor '{name}' has values that are NaN or infinite")


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
