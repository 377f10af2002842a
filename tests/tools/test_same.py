"""tools/same.py tells one changed tensor, one changed line of a log, and one changed refusal."""

from __future__ import annotations

import copy
import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

ROOT = Path(__file__).parents[2]
Case = dict[str, Any]


@pytest.fixture(scope="module")
def same() -> ModuleType:
    spec = importlib.util.spec_from_file_location("same", ROOT / "tools" / "same.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def run(same: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Case]:
    """The folder and the result of a case."""
    folder = tmp_path_factory.mktemp("same")
    np.save(folder / "x.npy", np.random.default_rng(0).normal(size=(40, 3)))
    return folder / "run", same._one("vae", str(folder / "x.npy"), folder / "run", same.SMALL)


def test_one_changed_tensor(same: ModuleType, run: tuple[Path, Case]) -> None:
    folder, case = run
    assert same._difference(case, case | {"state": same._state(folder)}) == ""
    newest = max(folder.glob("checkpoints/step-*.safetensors"))
    state = load_file(newest)
    name = next(name for name in sorted(state) if name.startswith("model.") and state[name].is_floating_point())
    state[name].view(-1)[0] += 1e-3
    save_file(state, newest)
    told = same._difference(case, case | {"state": same._state(folder)})
    assert told == f"1 of {len(case['state'])} tensors differ, 1 are new"


def test_one_changed_line_of_the_log(same: ModuleType, run: tuple[Path, Case]) -> None:
    changed = copy.deepcopy(run[1])
    changed["log"][2]["kl"] = np.nextafter(changed["log"][2]["kl"], np.inf)
    assert same._difference(run[1], changed) == "the log differs"
    assert same._difference(run[1], run[1] | {"log": run[1]["log"][:-1]}) == "the log differs"


def test_one_changed_refusal(
    same: ModuleType, run: tuple[Path, Case], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any
) -> None:
    """What is trained now and was refused is a difference; other words for it are not, and are printed if asked for."""
    before = {"one": {"refused": "no"}, "two": {"refused": "no"}, "three": run[1]}
    monkeypatch.setattr(same, "KEPT", tmp_path)
    (tmp_path / "abc").mkdir()
    (tmp_path / "abc" / "cases.json").write_text(json.dumps(before))
    monkeypatch.setattr(same, "_train_all", lambda *_: before | {"one": run[1], "two": {"refused": "never"}})
    assert same.compare_cases("abc", wide=False, jobs=1, words=True) == 1
    said = capsys.readouterr().out
    assert "one: refused before, state now: no\n" in said
    assert "two\n  - no\n  + never\n" in said
