"""How well a latent space tells factors apart: every file of this folder registers its metrics by being imported."""

from importlib import import_module
from pkgutil import iter_modules

from elboroom.evaluate.disentanglement.registry import evaluate, metrics, score
from elboroom.evaluate.disentanglement.source import Grid, Rows, Source

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = ["Grid", "Rows", "Source", "evaluate", "metrics", "score"]
