"""elboroom: one workbench for latent-variable models of images and text."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType

    from elboroom.build.registry import method as method
    from elboroom.core.problem import Problem as Problem
    from elboroom.runs.estimator import VAE as VAE
    from elboroom.runs.lifecycle import load as load
    from elboroom.runs.lifecycle import resume as resume
    from elboroom.runs.lifecycle import train as train
    from elboroom.runs.run import Run as Run
    from elboroom.terms.penalties import register as penalty
    from elboroom.training.recipe import recipes as recipes

_ROOMS = {
    "train": ("elboroom.runs.lifecycle", "train"),
    "resume": ("elboroom.runs.lifecycle", "resume"),
    "load": ("elboroom.runs.lifecycle", "load"),
    "Run": ("elboroom.runs.run", "Run"),
    "VAE": ("elboroom.runs.estimator", "VAE"),
    "Problem": ("elboroom.core.problem", "Problem"),
    "method": ("elboroom.build.registry", "method"),
    "recipes": ("elboroom.training.recipe", "recipes"),
    "penalty": ("elboroom.terms.penalties", "register"),
}
_MOVED = {
    "elboroom.methods.parts": "elboroom.build.parts",
    "elboroom.methods.registry": "elboroom.build.registry",
    "elboroom.methods.axes": "elboroom.build.axes",
    "elboroom.run": "elboroom.runs.run",
    "elboroom.estimator": "elboroom.runs.estimator",
    "elboroom.measures": "elboroom.runs.measure",
    "elboroom.medium": "elboroom.runs.media",
}
__all__ = ["VAE", "Problem", "Run", "load", "method", "penalty", "recipes", "resume", "train"]


def __getattr__(name: str) -> Any:
    """Loads what is asked for when it is asked for: `elbo --help` should not wait for torch."""
    if name in _ROOMS:
        room, thing = _ROOMS[name]
        return getattr(import_module(room), thing)
    raise AttributeError(f"module 'elboroom' has no attribute '{name}'")


class _Moved:
    """Finds modules under the names that they once had; asked last, when there is no file of that name."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        loader: Any = _Moved()
        return ModuleSpec(name, loader) if name in _MOVED else None

    @staticmethod
    def create_module(spec: ModuleSpec) -> ModuleType | None:
        return None

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        sys.modules[module.__name__] = import_module(_MOVED[module.__name__])


sys.meta_path.append(_Moved)
