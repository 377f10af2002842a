"""Methods in files of the user's own: trained, measured, refused where they cannot be."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from elboroom import Problem, cli, load
from elboroom.build import plugins, registry

MINE = """
from elboroom import method
from elboroom.core.method import Method, descend
from elboroom.build.parts import Parts
from elboroom.build.registry import NonNegative
from elboroom.terms.evidence import kl, nll


@method("NAME", "nll + 2 beta kl", paper="this file")
def mine(parts: Parts, beta: NonNegative = 1.0) -> Method:
    "A VAE whose rate costs twice as much as it says."
    return descend(parts.vae(), nll() + 2 * beta * kl())
"""


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is registered here is gone afterwards."""
    monkeypatch.setattr(registry, "_CARDS", dict(registry._CARDS))
    monkeypatch.setenv(plugins.VARIABLE, "")
    monkeypatch.delitem(sys.modules, "mine_of_a_test", raising=False)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine_of_a_test.py"
    path.write_text(MINE.replace("NAME", "mine"))
    return path


def elbo(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    monkeypatch.setattr(sys, "argv", ["elbo", *map(str, words)])
    try:
        cli.main()
    except SystemExit as leave:
        return int(leave.code or 0)
    return 0


def test_a_file_of_ones_own_trains_and_its_run_asks_for_it(
    mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    x, out = tmp_path / "x.npy", tmp_path / "run"
    np.save(x, np.random.default_rng(0).normal(size=(40, 3)))
    said = ["--data", x, "--steps", 3, "--batch-size", 8, "--latent", 2, "--threads", 1, "--beta", 3, "--out", out]
    assert elbo(monkeypatch, "--with", mine, "train", "mine", *said) == 0
    line = load(out).log[-1]
    assert line["loss"] == pytest.approx(line["nll"] + 6 * line["kl"], rel=1e-5)
    assert str(mine) in os.environ[plugins.VARIABLE]  # for the processes of a study
    registry._CARDS.pop("mine")
    capsys.readouterr()
    assert elbo(monkeypatch, "eval", out) == 2
    assert "elbo --with FILE" in capsys.readouterr().err


def test_what_the_environment_names_is_there(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(plugins.VARIABLE, str(mine))
    plugins.announced()
    assert registry.card("mine").formula == "nll + 2 beta kl"


def test_a_package_announces_its_methods(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = mine.parent / "announcing-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: announcing\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text("[elboroom.methods]\nmine = mine_of_a_test\n")
    monkeypatch.syspath_prepend(mine.parent)
    plugins.announced()
    assert "mine" in registry.cards()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (MINE.replace("NAME", "beta-vae"), "a method 'beta-vae' exists already"),
        ("import nothing_of_the_kind", "cannot be imported .ModuleNotFoundError"),
        ("1 / 0", "cannot be imported .ZeroDivisionError"),
    ],
)
def test_what_cannot_be_is_said(mine: Path, content: str, said: str) -> None:
    mine.write_text(content)
    with pytest.raises(Problem, match=said):
        plugins.named(str(mine))


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(Problem, match=r"--with nowhere\.py cannot be imported"):
        plugins.named("nowhere.py")
