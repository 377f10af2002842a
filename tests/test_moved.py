"""Modules are found under the names that they once had, and are the same ones."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

# Paths of modules that there once were, each with a public name of it: written down, not taken from the package.
NAMES = {
    "commands.measures": "compare",
    "commands.pictures": "report",
    "commands.shown": "print_table",
    "commands.training": "resume",
    "core.ball": "Ball",
    "core.marks": "PAD",
    "core.pairs": "has_density",
    "core.ranks": "world",
    "core.sequel": "model_state",
    "estimator": "VAE",
    "evaluate.disentanglement.boosting": "Boosting",
    "evaluate.disentanglement.growth": "Growth",
    "evaluate.disentanglement.score": "Factors",
    "evaluate.dual": "dual_values",
    "evaluate.number": "mean",
    "evaluate.posthoc": "posthoc",
    "evaluate.proposal": "fitted",
    "evaluate.text.probe": "probe",
    "evaluate.weighted": "Weighted",
    "flags": "Sectioned",
    "latent.paths": "arc",
    "latent.robustness": "respond",
    "latent.spaces": "space_of",
    "measures": "agreement",
    "medium": "Medium",
    "methods.axes": "POSTERIORS",
    "methods.parts": "Parts",
    "methods.plugins": "announced",
    "methods.pseudo": "pseudo_inputs",
    "methods.registry": "cards",
    "nets.background": "around_objects",
    "nets.crossentropy": "Head",
    "nets.halving": "Halve",
    "nets.lstm": "library",
    "nets.memory": "flush_denormals",
    "nets.packing": "Packing",
    "nets.recurrence": "recurrence",
    "plots.gallery": "Exhibit",
    "progress": "Bar",
    "run": "Run",
    "studies.charts": "violins",
    "studies.cluster": "Cluster",
    "studies.conduct": "run_study",
    "studies.disk": "is_full",
    "studies.exhibits": "exhibits",
    "studies.gather": "Mirror",
    "studies.index": "Index",
    "studies.page": "write_report",
    "studies.pictures": "traversal",
    "studies.pool": "Pool",
    "studies.relations": "correlations",
    "studies.scores": "Scores",
    "studies.summary": "summary",
    "studies.table": "results",
    "studies.tables": "Measure",
    "studies.watching": "Board",
    "studies.work": "perform",
    "studies.worker": "main",
}
PARTED = (
    "commands.measures",
    "commands.pictures",
    "plots.gallery",
    "evaluate.disentanglement.boosting",
)  # into several


@pytest.mark.parametrize(("old", "name"), NAMES.items())
def test_a_name_is_found_where_it_once_was(old: str, name: str) -> None:
    module = importlib.import_module(f"elboroom.{old}")
    found = getattr(module, name)
    assert getattr(found, "__module__", "elboroom.").startswith("elboroom.")
    if old not in PARTED:
        assert module.__name__ != f"elboroom.{old}"
        assert module is importlib.import_module(module.__name__), "one module under two names"


def test_what_went_into_several_modules_has_the_names_of_all() -> None:
    from elboroom.commands import compare, evaluate

    old = importlib.import_module("elboroom.commands.measures")
    assert (old.compare, old.evaluate) == (compare.compare, evaluate.evaluate)


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
    for name in ("medium", "other.medium"):
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(name)
