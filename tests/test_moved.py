"""Modules are found under the names that they once had, and are the same ones."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import elboroom


@pytest.mark.parametrize(("old", "new"), elboroom._MOVED.items())
def test_the_old_name_is_the_same_module(old: str, new: str) -> None:
    module = importlib.import_module(old)
    assert module is importlib.import_module(new)
    assert (module.__name__, module.__spec__ and module.__spec__.name) == (new, new)


@pytest.mark.slow
def test_what_users_were_told_to_import() -> None:
    code = (
        "from elboroom.methods.parts import Parts\n"
        "from elboroom.methods.registry import NonNegative, cards\n"
        "from elboroom.build import parts, registry\n"
        "assert Parts is parts.Parts and NonNegative is registry.NonNegative and 'vae' in cards()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_other_names_are_not_found() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'elboroom\.nowhere'"):
        importlib.import_module("elboroom.nowhere")
