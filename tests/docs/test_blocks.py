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

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
STANDS_FOR = {  # what is small, or at hand
    '"dsprites"': '"dsprites.npz"',
    '"hf://ada/bn-vae-ptb@v2"': '"runs/bn-vae-ptb-0"',
    'VAE("beta-vae", beta=4)': 'VAE("beta-vae", beta=4, steps=2)',
}


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


@pytest.mark.slow
@pytest.mark.parametrize("page", ["README.md", "docs/site/index.md", "docs/doctor.md", "docs/sharing.md"])
def test_the_blocks_of_a_page_run(page: str, execute: ModuleType, names: dict[str, Any]) -> None:
    if page == "docs/doctor.md":
        trained("RUN", "dsprites.npz", "--net", "mlp-300")
    if page == "docs/sharing.md":
        trained("runs/bn-vae-ptb-0", "sentences.txt", "--embed", "4", "--hidden", "4")
    blocks = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    assert blocks
    for code in blocks:
        for said, meant in STANDS_FOR.items():
            code = code.replace(said, meant)
        execute._python(execute.shortened(code, "2"), names)
