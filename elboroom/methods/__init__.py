"""Methods: every file of this folder registers its own by being imported."""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

import_module(f"{__name__}.plugins").announced()
