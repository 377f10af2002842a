"""docs/reproduce.md: every command of it is run, shortened and on made-up files of the same form."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from shell import elbo

from elboroom.plots import manifold
from elboroom.studies import Study
from elboroom.studies.along import presets

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reproduce.md").read_text()
SHORT = ["--steps", "3", "--net", "mlp-300", "--latent", "3", "--batch-size", "8", "--threads", "1", "--log-every", "1"]
STUDY = """
name = "{name}"
data = "{data}"
seeds = 2
{more}
steps = 3
net = "mlp-300"
latent = 3
batch_size = 8
log_every = 1
[[runs]]
method = "beta-vae"
beta = [1, 4]
[[runs]]
method = "dip-vae-ii"
zip = {{ off = [1, 10], diag = [1, 10] }}
[measure]
metrics = ["beta-vae", "factor-vae", "mig", "sap"]
mode = {{ beta-vae = "paper-dip", sap = "paper" }}
smaller = true
samples = 2
most = 40
flips = true
labels = [10, 100]
predictor = "logistic"
codes = 40
"""


def commands() -> list[list[str]]:
    """The commands of the page, in its order: the lines of its blocks, then what stands in its tables."""
    found = []
    for section in PAGE.split("\n## ")[1:]:
        block = re.search(r"```sh\n(.*?)```", section, re.DOTALL)
        lines = block.group(1).splitlines() if block else []
        lines += re.findall(r"`((?:elbo|python) [^`]+)`", section.replace(block.group(0) if block else "", ""))
        found += [shlex.split(line) for line in lines]
    return found


def faces(folder: Path) -> None:
    """CelebA in small: img_align_celeba and its table of attributes, 1 and -1."""
    rng, names = np.random.default_rng(0), [f"{i:06d}.jpg" for i in range(1, 61)]
    (folder / "img_align_celeba").mkdir()
    bright = rng.integers(0, 2, (60, 2)) * 2 - 1
    for name, (one, _) in zip(names, bright, strict=True):
        pixels = np.clip(rng.normal(120 + 60 * one, 30, (22, 18, 3)), 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(folder / "img_align_celeba" / name)
    rows = [f"{name} {a:2d} {b:2d}" for name, (a, b) in zip(names, bright, strict=True)]
    (folder / "list_attr_celeba.txt").write_text("60\nBright Wearing_Hat\n" + "\n".join(rows) + "\n")


def chairs(folder: Path) -> None:
    """The chairs in small: a folder of renders for each model, dark on white."""
    for model in range(10):
        place = folder / "rendered_chairs" / f"model{model}" / "renders"
        place.mkdir(parents=True)
        for view in range(3):
            image = np.full((60, 60, 3), 255, np.uint8)
            image[20 : 40 + model, 15 + 3 * view : 45] = 90
            Image.fromarray(image).save(place / f"image_{view:03d}.png")


def sprites(path: Path) -> Path:
    """dSprites in small: black and white, four factors."""
    rng = np.random.default_rng(0)
    size, left, top, kind = (rng.integers(0, n, 260) for n in (3, 4, 4, 2))
    x = np.zeros((260, 16, 16), np.uint8)
    for i in range(260):
        x[i, 2 * top[i] : 2 * top[i] + 4 + size[i], 2 * left[i] : 2 * left[i] + 4 + 2 * kind[i]] = 1
    np.savez(path, x=x, shape=kind, scale=size, posX=left, posY=top)
    return path


def shortened(words: list[str], small: Path) -> list[str]:
    """A command that takes moments: few steps, small nets, small data in place of dSprites and MNIST."""
    if words[1] == "train" and "--help" not in words:
        words = [w for i, w in enumerate(words) if not _replaced(words, i)]
        own = "img_align_celeba" in words or "chairs" in words
        size = ["--size", "16"] if own else []
        return [*words, *SHORT, *size, *([] if own else ["--data", str(small)])]
    if words[1] == "eval":
        fast = ["--mode", "logistic"] if "downstream" in words else []
        rows = ["--smaller"] if "sap" in words else []
        return [*words, *fast, *rows, *(["--samples", "2", "--most", "40"] if "--metrics" not in words else [])]
    if words[1] == "compare":
        words = [str(small) + ":x" if word == "mnist" else word for word in words]
        return [*words, "--permutations", "20", *(["--most", "60"] if "independence" not in words else [])]
    return words


def _replaced(words: list[str], i: int) -> bool:
    """Whether a word is an option that SHORT sets, or the value of one."""
    gone = {word for word in SHORT if word.startswith("--")} | {"--size"}
    data = words[i] == "--data" and words[i + 1] not in ("img_align_celeba", "chairs")
    before = i > 0 and (
        words[i - 1] in gone or (words[i - 1] == "--data" and words[i] not in ("img_align_celeba", "chairs"))
    )
    return words[i] in gone or data or before


@pytest.mark.slow
def test_every_command_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(manifold.ROLL, "steps", 20)
    monkeypatch.setattr(manifold, "POINTS", 150)
    faces(tmp_path)
    chairs(tmp_path)
    small, done = sprites(tmp_path / "small.npz"), 0
    for words in commands():
        if words[0] == "python":
            subprocess.run([sys.executable, ROOT / words[1], *words[2:]], check=True)
            assert len(list((tmp_path / "chairs" / "train").iterdir())) == 24
            assert len(list((tmp_path / "chairs" / "test").iterdir())) == 6
            continue
        if words[1:3] == ["study", "run"]:
            path = tmp_path / f"{words[3]}.toml"
            data, more = small, "[every]"
            if "celeba" in words[3]:  # where the preset has it
                tables = Study.read(words[3]).tables
                data, more = tables.data, f'size = 16\n[every]\nlabels = "{tables.every["labels"]}"'
            path.write_text(STUDY.format(name=words[3], data=data, more=more))
            words = [*words[:3], str(path), "--workers", "1"]
            assert Study.read(path.stem).count, "a preset of that name"
        elif words[1:3] == ["study", "plan"]:
            assert words[3] in presets()
            continue
        left = elbo(*shortened(words, small)[1:])
        assert left.returncode == 0, f"{shlex.join(words)}: {left.stderr}"
        done += 1
    assert done > 60
    written = {path.stem for path in (tmp_path / "studies" / "reference" / "figures").glob("*.png")}
    assert set(re.findall(r"`([\w-]+)\.png`", PAGE)) <= written


def test_the_page_has_every_item_of_the_documents() -> None:
    rows = [line.split("|")[1].strip() for line in PAGE.splitlines() if line.startswith("| ")]
    assert {f"5.{n}" for n in range(1, 20)} <= set(rows)
    assert {
        "3.2",
        "table 5.2",
        "table 5.3",
        "table 5.4",
        "table 5.6",
        "table 1, 2D Shapes",
        "table 1, CelebA",
        "table 2",
    } <= set(rows)
    assert all("`" in line for line in PAGE.splitlines() if re.match(r"\| (5\.|table)", line)), (
        "a command or a file each"
    )
