"""Every block of Python of these pages runs, with a budget of two steps and small data; tutorials have their own test."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from shell import elbo

import elboroom

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
STANDS_FOR = {  # what is small, or at hand
    '"dsprites"': '"dsprites.npz"',
    '"hf://ada/bn-vae-ptb@v2"': '"runs/bn-vae-ptb-0"',
    'VAE("beta-vae", beta=4)': 'VAE("beta-vae", beta=4, steps=2)',
    "tensorboard,wandb": "tensorboard",  # the other asks who one is
    'load("RUN")': 'load("runs/images")',
    'train("vae", data="dsprites.npz"': 'train("vae", data="dsprites.npz", steps=2, net="mlp-300"',
    "run.folder, 5000": "run.folder, 1",
    'run.edit(images, label="digit", to="7")': "None",  # of another run than the line above it
    "steps=5000, seeds=3": "seeds=1",
}
PAGES = (
    "README.md", "docs/site/index.md", "docs/doctor.md", "docs/sharing.md", "docs/samplers.md", "docs/training.md",
    "docs/style.md", "docs/maps.md", "docs/studies.md",
)  # fmt: skip
STUDY = """
data = "dsprites.npz"
[every]
steps = 2
net = "mlp-300"
latent = 3
batch_size = 8
[[runs]]
method = "beta-vae"
beta = [1, 4]
[measure]
metrics = ["mig"]
smaller = true
samples = 2
most = 40
codes = 40
"""


@pytest.fixture(scope="module")
def execute() -> ModuleType:
    spec = importlib.util.spec_from_file_location("execute", ROOT / "docs" / "site" / "execute.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A folder with what the pages speak of, and the arrays that they leave to the reader."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, (120, 64, 64)).astype(np.uint8)
    np.savez("dsprites.npz", x=x, shape=rng.integers(0, 3, 120))
    Path("sentences.txt").write_text("".join(f"a man plays the guitar . two dogs run w{i % 7} .\n" for i in range(80)))
    return {"X": x[:20], "V": rng.normal(size=(60, 5))}


def trained(out: str, data: str, *more: str) -> None:
    small = ("--steps", "2", "--batch-size", "8", "--threads", "1", *more)
    left = elbo("train", "vae", "--data", data, "--out", out, *small)
    assert left.returncode == 0, left.stderr


def styled() -> dict[str, Any]:
    """A run of style on reviews, and images with digits, as the pages have them."""
    said = {"positive": "the food was great", "negative": "the food was awful , my new favorite place !"}
    lines = [f"{mood}\t{line} w{i % 5}\n" for i in range(40) for mood, line in said.items()]
    Path("reviews.tsv").write_text("sentiment\ttext\n" + "".join(lines))
    columns = {"text_column": "text", "label_column": "sentiment"}
    small = {"steps": 2, "batch_size": 8, "embed": 4, "hidden": 4, "threads": 1}
    return {"run": elboroom.train("style-vae", "reviews.tsv", "runs/style", **columns, **small)}


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_run(page: str, execute: ModuleType, names: dict[str, Any]) -> None:
    names["elboroom"] = elboroom
    if page == "docs/doctor.md":
        trained("runs/images", "dsprites.npz", "--net", "mlp-300")
    if page == "docs/samplers.md":
        trained("runs/images", "dsprites.npz", "--net", "mlp-300", "--latent", "3")
    if page in ("docs/style.md", "docs/maps.md"):
        names |= styled()
    if page == "docs/studies.md":
        Path("study.toml").write_text(STUDY)
    if page == "docs/sharing.md":
        trained("runs/bn-vae-ptb-0", "sentences.txt", "--embed", "4", "--hidden", "4")
    blocks = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    assert blocks
    for code in blocks:
        for said, meant in STANDS_FOR.items():
            code = code.replace(said, meant)
        execute._python(execute.shortened(code, "2"), names)
