"""Methods: every file of this folder registers its own by being imported; `cards()` has them all by name."""

from importlib import import_module
from pkgutil import iter_modules

from elboroom.build.plugins import announced
from elboroom.build.registry import card as card
from elboroom.build.registry import cards as cards

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

announced()
