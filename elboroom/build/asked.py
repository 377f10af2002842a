"""Options that remember whether anything asked for them: one that nothing uses is a mistake, and is said to be one."""

from __future__ import annotations

from typing import Any

from elboroom.build.parts import Choices
from elboroom.core.problem import Problem
from elboroom.data.dataset import Kind

_READ_BY = {"given_names": "given"}


class Asked:
    """Stands in for Choices while a method is built."""

    def __init__(self, choices: Choices) -> None:
        self._choices, self._names = choices, set[str]()

    def __getattr__(self, name: str) -> Any:
        self._names.add(_READ_BY.get(name, name))
        return getattr(self._choices, name)

    def refuse_idle(self, method: str, kind: Kind) -> None:
        """Refuses an option that was set to something else than its default and that nothing asked for."""
        usual = Choices().for_kind(kind)
        for name in Choices.model_fields:
            value = getattr(self._choices, name)
            if name not in self._names and value != getattr(usual, name):
                flag = "--" + name.replace("_", "-") + ("" if isinstance(value, bool) else f" {value}")
                raise Problem(f"{method} with these choices has no use for {flag}: leave it out")
