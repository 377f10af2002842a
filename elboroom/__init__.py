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
# Where modules are by now, those that were put into several with all of these.
_MOVED = {
    "commands.measures": "commands.evaluate commands.methods commands.plot commands.compare",
    "commands.pictures": "commands.latent commands.report",
    "commands.shown": "commands.output",
    "commands.training": "commands.train",
    "core.ball": "geometry.ball",
    "core.marks": "core.vocabulary",
    "core.pairs": "core.kl",
    "core.ranks": "core.distributed",
    "core.sequel": "core.stages",
    "estimator": "runs.estimator",
    "evaluate.disentanglement.boosting": "evaluate.boosting evaluate.boosting.stages",
    "evaluate.disentanglement.growth": "evaluate.boosting.growth",
    "evaluate.disentanglement.score": "evaluate.disentanglement.factors",
    "evaluate.dual": "evaluate.likelihood.dual",
    "evaluate.number": "evaluate.result",
    "evaluate.posthoc": "evaluate.likelihood.posthoc",
    "evaluate.proposal": "evaluate.likelihood.proposal",
    "evaluate.text.probe": "evaluate.probe",
    "evaluate.weighted": "evaluate.likelihood.weighted",
    "flags": "commands.flags",
    "latent.paths": "geometry.paths",
    "latent.robustness": "evaluate.robustness",
    "latent.spaces": "geometry.spaces",
    "measures": "runs.measure",
    "medium": "runs.media",
    "methods.axes": "build.axes",
    "methods.parts": "build.parts",
    "methods.plugins": "build.plugins",
    "methods.pseudo": "build.pseudo",
    "methods.registry": "build.registry",
    "nets.background": "nets.fast.background",
    "nets.crossentropy": "nets.fast.crossentropy",
    "nets.halving": "nets.fast.halving",
    "nets.lstm": "nets.fast.lstm",
    "nets.memory": "nets.fast.memory",
    "nets.packing": "nets.fast.packing",
    "nets.recurrence": "nets.fast.recurrence",
    "plots.gallery": "plots.figures plots.exhibit",
    "progress": "commands.progress",
    "run": "runs.run",
    "studies.charts": "studies.analysis.charts",
    "studies.cluster": "studies.engines.ray",
    "studies.conduct": "studies.run",
    "studies.disk": "studies.store.disk",
    "studies.exhibits": "studies.analysis.exhibits",
    "studies.gather": "studies.store.remote",
    "studies.index": "studies.store.index",
    "studies.page": "report.study",
    "studies.pictures": "studies.analysis.pictures",
    "studies.pool": "studies.engines.pool",
    "studies.relations": "studies.analysis.relations",
    "studies.scores": "studies.analysis.scores",
    "studies.summary": "studies.analysis.summary",
    "studies.table": "studies.analysis.table",
    "studies.tables": "studies.schema",
    "studies.watching": "studies.progress",
    "studies.work": "studies.engines.work",
    "studies.worker": "studies.engines.worker",
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
        room, _, rest = name.partition(".")
        return ModuleSpec(name, loader) if room == __name__ and rest in _MOVED else None

    @staticmethod
    def create_module(spec: ModuleSpec) -> ModuleType | None:
        return None

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        places = _MOVED[module.__name__.partition(".")[2]].split()
        first, *others = (import_module(f"{__name__}.{place}") for place in places)
        if not others:
            sys.modules[module.__name__] = first
        for part in (*reversed(others), first) if others else ():  # of several, the first that has a name gives it
            vars(module).update({name: thing for name, thing in vars(part).items() if not name.startswith("__")})


sys.meta_path.append(_Moved)
