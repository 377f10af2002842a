"""The zoo is made from the specs of the results."""

from __future__ import annotations

import importlib.util
import shlex
from pathlib import Path
from types import ModuleType

import pytest

import elboroom
from elboroom.training.spec import Spec

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def zoo() -> ModuleType:
    spec = importlib.util.spec_from_file_location("zoo", ROOT / "tools" / "zoo.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_ten_small_runs_each_from_its_spec(zoo: ModuleType, tmp_path: Path) -> None:
    assert len(set(zoo.NAMES)) == 10
    for name in zoo.NAMES:
        spec, words = Spec.read(zoo.RUNS / name), zoo.command(name, tmp_path / "run")
        assert words[3:5] == ["train", spec.method]
        assert shlex.join(words[2:]).count(f"--steps {spec.fit.steps}") == 1


@pytest.mark.slow
def test_one_of_them_with_few_steps(zoo: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [str(tmp_path / "zoo"), "sentences-bn-vae-0.6", "--steps", "2"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zoo, "MOST", 1000)
        assert zoo.main(words) == 2
    assert "more than 1,000" in capsys.readouterr().err
    assert not (tmp_path / "zoo").exists(), "nothing was shared"
    assert zoo.main(words) == 0
    run = elboroom.load(tmp_path / "zoo" / "sentences-bn-vae-0.6")
    assert run.step == 2
    assert run.encode(["the dog runs ."]).shape == (1, run.latent)
    assert zoo.main(words) == 0
    assert "there already" in capsys.readouterr().out
    assert zoo.main([str(tmp_path / "zoo"), "no-such-run"]) == 2
