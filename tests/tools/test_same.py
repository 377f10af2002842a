"""tools/same.py tells one changed tensor, one changed line of a log, and one changed refusal."""

from __future__ import annotations

import copy
import importlib.util
import json
import subprocess
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
    same._kept("abc", False).write_text(json.dumps(before))
    monkeypatch.setattr(same, "_train_all", lambda *_: before | {"one": run[1], "two": {"refused": "never"}})
    assert same.compare_cases("abc", wide=False, jobs=1, words=True) == 1
    said = capsys.readouterr().out
    assert "one: refused before, state now: no\n" in said
    assert "two\n  - no\n  + never\n" in said


STANDS = {  # on a base, reads a context or pairs
    "pixels/probe": ("probe", "pixels", {}),
    "tokens/emb2emb/given": ("emb2emb", "tokens", {"given": "label"}),
    "pairs/emb2emb": ("emb2emb", "pairs", {"to": None, "pretraining": None}),
    "replies/bst": ("bst", "replies", {}),
    "replies/bn-cvae": ("bn-cvae", "replies", {}),
}


@pytest.mark.filterwarnings("ignore")
def test_what_needs_a_base_a_context_or_pairs_is_trained(
    same: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And once more with the options that it had then: to the same bits."""
    first, again = tmp_path / "first", tmp_path / "again"
    found = []
    for folder in (first, again):
        folder.mkdir()
        monkeypatch.chdir(folder)
        bench = same.Bench(folder, found[0] if found else {})
        found.append({case: bench.train(case, *rest) for case, rest in STANDS.items()})
    assert [result for result in found[0].values() if "state" not in result] == []
    assert [told for case in STANDS if (told := same._difference(found[0][case], found[1][case]))] == []


def test_every_method_has_a_case_that_could_train_it(same: ModuleType) -> None:
    kinds = {(method, kind) for _, method, kind, _ in same._cases(False)}
    assert {"cvae", "cvae-bow", "bn-cvae", "seq2seq", "bst"} <= {m for m, kind in kinds if kind == "replies"}
    assert same._never_trained({"a/one": {"refused": ""}, "b/one": {"state": []}, "a/two": {"refused": ""}}) == ["two"]


def test_a_difference_that_is_meant_is_told_and_not_counted(
    same: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    assert same.EXCEPTIONS.keys() == {name for name, reason in same.EXCEPTIONS.items() if reason}
    monkeypatch.setattr(same, "EXCEPTIONS", {"tokens/*": "dropout is drawn anew"})
    assert same._meant({"tokens/vae": "the log differs", "pixels/vae": "gone"}) == {"pixels/vae": "gone"}
    assert "tokens/vae: the log differs (meant: dropout is drawn anew)" in capsys.readouterr().out


def test_make_same_runs_both_halves_and_fails_where_one_did(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    python, said = tmp_path / "bin" / "python", tmp_path / "said"
    python.write_text(f'#!/bin/sh\necho "$@" >> {said}\ncase "$*" in *--words*) exit 1;; esac\n')
    python.chmod(0o755)
    (tmp_path / ".ready").touch()
    done = subprocess.run(["make", "same", "BASE=abc", f"VENV={tmp_path}"], cwd=ROOT, capture_output=True)
    assert done.returncode != 0
    assert said.read_text().splitlines() == ["tools/same.py abc --words", "tools/same.py abc --runs"]
