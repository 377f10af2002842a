"""What `elbo train METHOD --help` says, and that commands which compute nothing start at once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from elboroom.commands import catalogue
from elboroom.methods import cards


def test_help_has_formula_and_citation() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "elboroom.cli", "train", "factor-vae", "--help"], capture_output=True, text=True
    )
    text = " ".join(done.stdout.split())
    assert done.returncode == 0
    for part in ("nll + kl + gamma tc", "Kim & Mnih 2018", "--gamma", "--latent", "--batch-size"):
        assert part in text


def test_help_has_every_bound_and_every_name_whole() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "elboroom.cli", "train", "vmf-vae", "--help"],
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "80"},
    )
    told = " ".join(done.stdout.split())
    assert "spherical; above 0, at most 1e+06 [default: (35)]" in told
    assert "--pseudo-inputs <int> components" in told
    assert "[default: (varies)]" in told
    assert "--variances-learned / --no-variances-learned" in told
    assert [line for line in done.stdout.splitlines() if line in ("Model:", "Training:", "Text:")] == [
        "Model:",
        "Training:",
        "Text:",
    ]


HEAVY = ("torch", "numpy", "scipy", "matplotlib", "sklearn", "PIL", "lightning_fabric")
AT_ONCE = (
    ["methods"],
    ["methods", "vae", "--json"],
    ["recipes"],
    ["recipes", "lagging-ptb"],
    ["train", "--recipe", "burgess-dsprites", "--help"],
    ["train", "--help"],
    ["train", "beta-vae", "--help"],
    ["train", "vae", "--betta", "4"],
    ["plot", "list"],
    ["plot", "no-such-figure"],
    ["study", "presets"],
    ["eval", "--help"],
    ["--help"],
    ["--version"],
)


def elbo(*words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "elboroom", *words], capture_output=True, text=True, **more)


@pytest.mark.parametrize("words", AT_ONCE, ids=" ".join)
def test_commands_that_compute_nothing_start_at_once(words: list[str]) -> None:
    code = f"""
import sys
from elboroom.cli import main
sys.argv = ["elbo", *{words}]
try:
    main()
except SystemExit:
    pass
print("HEAVY", *({{*sys.modules}} & {{*{HEAVY}}}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1].split() == ["HEAVY"], done.stderr


def test_the_module_is_the_command() -> None:
    done = elbo("methods", "vae", "--json")
    assert done.returncode == 0, done.stderr
    assert [told["name"] for told in json.loads(done.stdout)] == ["vae"]
    assert elbo("trian").stderr == "elbo: unknown command 'trian'; did you mean 'train'?\n"


def test_the_catalogue_is_what_the_signatures_say() -> None:
    """If this fails, run `make docs`."""
    kept, derived = json.loads(catalogue.FILE.read_text(encoding="utf-8")), json.loads(catalogue.derived())
    for part in kept:
        assert kept[part] == derived[part], f"{part}: make docs"
    assert list(kept["methods"]) == list(cards()), "in the order of the registry"
    for name, card in cards().items():
        told = kept["methods"][name]
        flags = {flag["name"]: catalogue._flag(flag) for flag in told["flags"]}
        assert flags == {flag.name: flag for flag in catalogue._entry(card).flags}, name
        assert list(flags) == [option.name for option in card.options] == list(told["options"])


def test_what_is_read_and_what_is_derived_is_one_help(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = catalogue.shared()
    derived = {name: catalogue.entry(name) for name in cards()}
    monkeypatch.delitem(sys.modules, "elboroom.build.registry")
    assert catalogue._is_current()
    assert catalogue.shared() == shared
    assert {name: catalogue.entry(name) for name in catalogue.names()} == derived
    assert catalogue.figures() == catalogue._figures()


@pytest.mark.slow
def test_an_edited_method_is_shown_as_it_is_now(tmp_path: Path) -> None:
    root = Path(catalogue.__file__).parents[1]
    shutil.copytree(root, tmp_path / "elboroom", ignore=shutil.ignore_patterns("__pycache__"))
    file = tmp_path / "elboroom" / "methods" / "evidence.py"
    old = catalogue.entry("vae").summary
    assert file.read_text().count(old) == 1
    file.write_text(file.read_text().replace(old, "As it is now."))
    done = elbo("methods", "vae", "--json", env={**os.environ, "PYTHONPATH": str(tmp_path)}, cwd=tmp_path)
    assert json.loads(done.stdout)[0]["summary"] == "As it is now."


MINE = '''
from elboroom import method

@method("mine", formula="nll", paper="none")
def mine(parts, strength: float = 2.5):
    """One of my own."""
'''


@pytest.mark.slow
@pytest.mark.parametrize("way", ["--with", "environment", "entry point"])
def test_methods_from_elsewhere_are_shown(way: str, tmp_path: Path) -> None:
    (tmp_path / "mine_of_mine.py").write_text(MINE)
    env, words = dict(os.environ), ["train", "mine", "--help"]
    if way == "--with":
        words = ["--with", str(tmp_path / "mine_of_mine.py"), *words]
    elif way == "environment":
        env["ELBOROOM_WITH"] = str(tmp_path / "mine_of_mine.py")
    else:
        info = tmp_path / "mine-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[elboroom.methods]\nmine = mine_of_mine\n")
        env["PYTHONPATH"] = os.pathsep.join([str(tmp_path), *filter(None, [env.get("PYTHONPATH")])])
    done = elbo(*words, env=env)
    assert "One of my own." in done.stdout, done.stderr
    assert "--strength <float>" in done.stdout
