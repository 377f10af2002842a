"""elboroom: one workbench for latent-variable models of images and text."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elboroom.core.problem import Problem as Problem
    from elboroom.estimator import VAE as VAE
    from elboroom.run import Run as Run
    from elboroom.run import load as load
    from elboroom.run import resume as resume
    from elboroom.run import train as train

_ROOMS = {
    "train": "elboroom.run",
    "resume": "elboroom.run",
    "load": "elboroom.run",
    "Run": "elboroom.run",
    "VAE": "elboroom.estimator",
    "Problem": "elboroom.core.problem",
}
__all__ = ["VAE", "Problem", "Run", "load", "resume", "train"]


def __getattr__(name: str) -> Any:
    """Loads what is asked for when it is asked for: `elbo --help` should not wait for torch."""
    if name in _ROOMS:
        return getattr(import_module(_ROOMS[name]), name)
    raise AttributeError(f"module 'elboroom' has no attribute '{name}'")
