"""The page of results on dSprites is made from records alone, and says what is not there by leaving it out."""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("dsprites_page", ROOT / "docs" / "results" / "dsprites_page.py")
    assert spec is not None
    assert spec.loader is not None
    monkeypatch.syspath_prepend(ROOT / "docs" / "results")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "dsprites_page", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "HERE", tmp_path)
    return module


def record(score: float, **more: Any) -> dict[str, Any]:
    names = ("beta-vae", "factor-vae", "mig", "sap")
    metrics: dict[str, Any] = {name: {"value": score, "mode": "dlib"} for name in names}
    metrics["dci"] = {"value": score, "mode": "dlib", "parts": {"completeness": 0.25, "informativeness": 0.5}}
    metrics["distortion"] = {"value": 50.25, "estimator": "nll"}
    metrics["squared_error"] = {"value": 8.192, "estimator": "squared error"}
    metrics["infoc"] = {"value": None, "mode": "paper", "reason": "one dimension"}
    return {"spec": {}, "metrics": {"run": {"method": "x"}} | metrics | more}


def test_runs_stand_beside_what_was_published_and_differences_are_named(made: ModuleType) -> None:
    records = {"dsprites-beta-vae-1-s0": record(0.2), "dsprites-factor-vae-10-s0": record(0.83)}
    page = made.page(records, 20_000)
    assert "| beta-vae-1-s0 | 50.25 | 8.19 |" in page
    assert "| Mushom 2020: beta 1, 10 seeds | 0.867 ± 0.079 |" in page
    assert "0.0020" in page, "the error per pixel is that of an image over 4,096"
    assert "MIG lower" not in page.split("beta-vae-1 against Mushom")[1].split("\n")[0], "0.2 is within 0.201 ± 0.070"
    assert "FactorVAE lower, 0.200 against 0.696 ± 0.065" in page
    assert "FactorVAE" not in page.split("factor-vae-10 against Lin")[1].split("There")[0], "0.83 is what was published"
    assert "critic's loss also reaches the encoder" in page
    assert "Downstream" not in page
    assert "Traversals" not in page
    assert all(
        len({row.count("|") for row in table.splitlines()}) == 1 for table in page.split("\n\n") if table[0] == "|"
    )


def test_an_old_error_of_a_bound_is_named_as_such(made: ModuleType) -> None:
    """Records of before the error held; those of today need no such word."""
    old = {"value": -80.0, "estimator": "iw-100", "errors": {"importance_noise": 0.0206}}
    parts = {"effective_samples": 3.54}
    page = made.page({"dsprites-beta-vae-1-s0": record(0.2, log_likelihood=old | {"parts": parts})}, 20_000)
    assert "| -80.00 | 3.5 |" in page
    assert "0.021 nats. These errors of the draws are by the delta method" in page
    assert "too small where" in page
    new = old | {"parts": parts | {"gain_of_doubling": 0.4}}
    page = made.page({"dsprites-beta-vae-1-s0": record(0.2, log_likelihood=new)}, 20_000)
    assert "0.021 nats" in page
    assert "delta method" not in page


def test_downstream_and_pictures_come_when_they_are_there(made: ModuleType, tmp_path: Path) -> None:
    parts = {"chance": [0.5, 0.25], "ceiling": [1.0, 0.975]}
    measured = {
        f"downstream-{n}": {"value": 0.1 * i, "mode": "boosting", "parts": parts} for i, n in enumerate(made.LABELS)
    }
    measured["efficiency-100"] = {"value": 0.5, "mode": "boosting"}
    records = {"dsprites-beta-vae-1-s0": record(0.2, **measured), "dsprites-factor-vae-10-s0": record(0.83)}
    assert made.best(records) == "dsprites-factor-vae-10-s0"
    made.picture("dsprites-factor-vae-10-s0").write_bytes(b"")
    page = made.page(records, 20_000)
    assert "orientation cannot exceed 0.975" in page
    assert "Chance is 0.375" in page
    assert "(dsprites-factor-vae-10-s0-traversals.png)" in page
    assert "the best run" in page


def test_no_record_no_number(made: ModuleType) -> None:
    assert made.best({}) is None
    assert "0 runs" in made.page({}, 20_000)


def test_the_page_of_the_pivot_says_what_was_not_run_and_shows_what_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs" / "results")
    pivot = importlib.import_module("pivot")
    monkeypatch.setattr(pivot, "KEPT", tmp_path)
    empty = pivot.page({}, {})
    assert "| bst | not yet run |" in empty
    assert "| cae | not yet run |" in empty
    assert "| style-vae, full objective | not yet run |" in empty
    (tmp_path / "pivot-bst").mkdir()
    (tmp_path / "pivot-bst" / pivot.SHOWN).write_text('[["humorous", "a dog", "romantic", "a loving dog"]]')
    told = {"value": 0.75, "estimator": "a judge", "parts": {"beside": {"copy of the input": 0.25}}}
    found = {"pivot-bst": {"metrics": {"transfer_accuracy": told}}}
    page = pivot.page(found, {"round_trip_bleu": 31.5, "unknown_english": 0.021, "unknown_french": 0.004})
    assert "| bst | 0.750 |" in page
    assert "| copy of the input | 0.250 |" in page
    assert "| BLEU of English to French to English, test split | 31.5 |" in page
    assert "| unknown words of the captions, to the translation to French | 2.1% |" in page
    assert "- humorous: a dog<br>*romantic: a loving dog*" in page


def test_words_that_stay_tell_the_rest_of_a_sentence_or_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs" / "results")
    style = importlib.import_module("style")
    end = "the old book at home ."
    assert style._told(f"the lady will keep {end}", {"will", "keep"}, "negation")
    assert not style._told(f"the ladies keep {end}", {"keep"}, "negation"), "it may be `will keep` as well"
    assert not style._told(f"the lady kept {end}", set(), "tense")
    assert style._told(f"the lady did not keep {end}", {"not", "keep"}, "tense")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "binarized_mnist",
        "dialogue",
        "dsprites",
        "faces",
        "labels",
        "maps",
        "multi30k",
        "pivot",
        "ptb",
        "sentences",
        "style",
        "translation",
    ],
)
def test_a_page_is_what_its_script_makes_of_the_records(name: str, tmp_path: Path) -> None:
    here, there = ROOT / "docs" / "results", tmp_path / "docs" / "results"
    shutil.copytree(here, there, ignore=shutil.ignore_patterns("study", "__pycache__"))
    page = f"{name.replace('_', '-')}.md"
    (there / page).unlink()
    beside = os.environ | {"PYTHONPATH": str(ROOT)}  # where the benchmarks are
    subprocess.run([sys.executable, there / f"{name}.py"], check=True, cwd=tmp_path, env=beside)
    assert (there / page).read_text(encoding="utf-8") == (here / page).read_text(encoding="utf-8")
