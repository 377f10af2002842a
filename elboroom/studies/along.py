"""The studies that come along."""

from __future__ import annotations

from importlib.resources import files


def presets() -> dict[str, str]:
    """The studies that come along, with the comment that each begins with."""
    found = (entry for entry in (files("elboroom.studies") / "presets").iterdir() if entry.name.endswith(".toml"))
    texts = {entry.name.removesuffix(".toml"): entry.read_text(encoding="utf-8") for entry in found}
    return {name: text.splitlines()[0].removeprefix("# ") for name, text in sorted(texts.items())}
