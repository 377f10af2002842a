"""What every test shares: one thread, and data sets small enough to train on in a moment.

The cache is the user's own ($ELBOROOM_CACHE, or ~/.cache/elboroom), so that nothing is rendered or downloaded twice.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest
import torch
from commanded import Elbo
from contract import Bench
from linear import Ppca, at_sigma_points
from numpy.typing import NDArray

from elboroom import cli
from elboroom.build.parts import Parts
from elboroom.core.draw import Draw
from elboroom.core.tongue import typed
from elboroom.data import arrays
from elboroom.data.dataset import DataSet
from elboroom.data.text import gather

N, SIZE = 200, 16


@pytest.fixture(autouse=True)
def _quiet() -> None:
    """One thread and a known place for the noise of each test."""
    torch.set_num_threads(1)
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _typed(request: pytest.FixtureRequest) -> Iterator[None]:
    """Messages speak of flags, as they are written; those of tests marked `arguments` as a caller in Python reads them."""
    with nullcontext() if request.node.get_closest_marker("arguments") else typed():
        yield


def _blobs(width: float) -> NDArray[np.float64]:
    """N soft discs on a 16 x 16 grid, in [0, 1], their centres drawn once."""
    rng = np.random.default_rng(0)
    centre = rng.uniform(3, SIZE - 3, (N, 2, 1, 1))
    grid = np.stack(np.meshgrid(np.arange(SIZE), np.arange(SIZE), indexing="ij"))
    distance = np.sqrt(((grid - centre) ** 2).sum(1))
    return np.asarray(1 / (1 + np.exp((distance - 4) / width)))  # (N, 16, 16)


def _labels() -> NDArray[np.int64]:
    return np.arange(N) % 3


@pytest.fixture(scope="session")
def pixels() -> DataSet:
    """200 grey images of 16 x 16 with a label of three values."""
    return arrays.dataset((_blobs(1.0) * 255).round().astype(np.uint8), labels=_labels())


@pytest.fixture(scope="session")
def binary() -> DataSet:
    """The same in black and white."""
    return arrays.dataset((_blobs(1.0) > 0.5).astype(np.uint8), labels=_labels())


@pytest.fixture(scope="session")
def rgb() -> DataSet:
    """The same in colour."""
    bright = np.random.default_rng(1).uniform(0.2, 1, (N, 1, 1, 3))
    return arrays.dataset((_blobs(1.0)[..., None] * bright * 255).round().astype(np.uint8), labels=_labels())


@pytest.fixture(scope="session")
def vectors() -> DataSet:
    """200 real vectors of 6 correlated coordinates."""
    rng = np.random.default_rng(2)
    mixing = rng.normal(size=(6, 6))
    return arrays.dataset((rng.normal(size=(N, 6)) @ mixing + 1).astype(np.float32), labels=_labels())


@pytest.fixture(scope="session")
def ppca() -> type[Ppca]:
    """The linear Gaussian model in which everything is known."""
    return Ppca


@pytest.fixture(scope="session")
def exact() -> Callable[[Draw], Draw]:
    """Puts z of a Draw at points over which means of quadratics are exact."""
    return at_sigma_points


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Critics of 6 layers of 30 units in place of 1,000, which would take most of the time of a game."""
    monkeypatch.setattr(Parts.critic, "__defaults__", (1, 30, 6))


@pytest.fixture(scope="session")
def whole_runs(pixels: DataSet, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    torch.set_num_threads(1)
    return Bench(pixels, tmp_path_factory.mktemp("whole"), {"net": "mlp-300"})


@pytest.fixture
def bench(whole_runs: Bench, narrow: None) -> Bench:
    """Whole runs of every method on pixels, trained when first asked for."""
    return whole_runs


@pytest.fixture(scope="session")
def sentences() -> DataSet:
    """200 sentences of 2 to 8 words with a label of three values."""
    rng, words = np.random.default_rng(3), [f"w{i}" for i in range(20)]
    drawn = [" ".join(rng.choice(words, rng.integers(2, 9))) for _ in range(N)]
    return gather(
        "sentences", {"train": zip(drawn, ((str(y),) for y in _labels()), strict=True)}, {"label": None}, holdout=0.1
    )


@pytest.fixture(scope="session")
def whole_text_runs(sentences: DataSet, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(sentences, tmp_path_factory.mktemp("text"), {"embed": 6, "hidden": 7, "latent": 4})


@pytest.fixture
def text_bench(whole_text_runs: Bench, narrow: None) -> Bench:
    """Whole runs of every method on sentences, trained when first asked for."""
    return whole_text_runs


@pytest.fixture
def elbo(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Elbo:
    """Runs the command in this process: (exit code, stdout, stderr)."""

    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["elbo", *map(str, words)])
        code: Any = 0
        try:
            cli.main()
        except SystemExit as leave:
            code = leave.code or 0
        out, err = capsys.readouterr()
        return int(code), out, err

    return run


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """A tmpfs with options of one's choice."""
    place = tmp_path / "disk"
    place.mkdir()

    def mount(options: str) -> Path:
        if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", place]).returncode:
            pytest.skip("a tmpfs can be mounted by root only")
        return place

    yield mount
    subprocess.run(["umount", "-l", place], capture_output=True)


# The rooms that train no whole run to be tested: what is neither slow nor unhurried there is `fast`.
FAST = ("core", "geometry", "nets", "families", "terms", "weights", "data", "divergences", "build", "latent")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks what is fast. What looks at whole runs comes first and method by method: no two workers train the same."""
    for item in items:
        room = item.path.relative_to(config.rootpath / "tests").parts[0]
        whole = {"bench", "text_bench"} & set(getattr(item, "fixturenames", ()))
        takes_time = any(item.get_closest_marker(name) for name in ("slow", "unhurried"))
        if not whole and not takes_time and (room in FAST or room.startswith("test_")):
            item.add_marker("fast")

    def place(item: pytest.Item) -> tuple[bool, bool, str]:
        on = {"bench", "text_bench"} & set(getattr(item, "fixturenames", ()))
        name = str(item.callspec.params.get("name", "")) if hasattr(item, "callspec") else ""
        return not on, "text_bench" not in on, name if on else ""

    items.sort(key=place)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Says what a machine without a browser leaves out."""
    if not any(shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome")):
        terminalreporter.write_line(
            "there is no chromium here: tests of reports and of the explorer in a browser are skipped"
        )
