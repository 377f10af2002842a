"""Runs for the explorer, small, on files of their own, with HTML where a stranger would put it."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from starlette.testclient import TestClient

from elboroom.explorer.app import application
from elboroom.explorer.guard import TOKEN, Guard
from elboroom.explorer.shelf import Shelf
from elboroom.runs.lifecycle import train
from elboroom.runs.run import Run

HTML = "<img src=x onerror=alert(1)>"
SMALL: dict[str, Any] = {"batch_size": 32, "threads": 1, "device": "cpu"}
Ask = Callable[..., tuple[dict[str, Any], bytes]]


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on 300 discs of 16 x 16 with two labels, one of whose values is HTML."""
    folder, rng = tmp_path_factory.mktemp("pictures"), np.random.default_rng(0)
    centre, grid = (
        rng.uniform(4, 12, (300, 2, 1, 1)),
        np.stack(np.meshgrid(np.arange(16), np.arange(16), indexing="ij")),
    )
    far = np.sqrt(((grid - centre) ** 2).sum(1))
    np.save(folder / "discs.npy", (255 / (1 + np.exp(far - 4))).round().astype(np.uint8))
    rows = [f"{'low' if y > 8 else HTML},{int(x)}" for y, x in centre[..., 0, 0]]
    (folder / "labels.csv").write_text("half,place\n" + "\n".join(rows) + "\n")
    torch.set_num_threads(1)
    options = {**SMALL, "steps": 150, "latent": 4, "net": "mlp-300", "lr": 2e-3}
    train("beta-vae", str(folder / "discs.npy"), folder / "run", labels=folder / "labels.csv", **options)
    return folder / "run"


@pytest.fixture(scope="session")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on sentences of three words, one of which is HTML, after a moment of training."""
    folder, rng = tmp_path_factory.mktemp("words"), np.random.default_rng(0)
    some = [
        [*rng.choice(["he", "she", HTML.replace(" ", "_")], 1), *rng.choice(["sees", "likes"], 1), "it"]
        for _ in range(300)
    ]
    (folder / "said.txt").write_text("".join(" ".join(s) + "\n" for s in some))
    torch.set_num_threads(1)
    options = {**SMALL, "steps": 20, "latent": 2, "embed": 16, "hidden": 32, "lr": 1e-2, "dropout": 0.5}
    train("ae", str(folder / "said.txt"), folder / "run", **options)
    return folder / "run"


@pytest.fixture(scope="session")
def speaking(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run on the sentences of a tiny grammar, which end in HTML, trained until it writes what it reads."""
    folder, rng = tmp_path_factory.mktemp("speaking"), np.random.default_rng(0)
    some = zip(rng.choice(["he", "she"], 300), rng.choice(["sees", "likes"], 300), strict=True)
    (folder / "said.txt").write_text("".join(f"{who} {does} {HTML}\n" for who, does in some))
    torch.set_num_threads(1)
    options = {
        **SMALL,
        "steps": 500,
        "latent": 2,
        "embed": 16,
        "hidden": 32,
        "lr": 5e-3,
        "dropout": 0.0,
        "net": "bigru",
    }
    run = train("beta-vae", str(folder / "said.txt"), folder / "run", beta=0.1, **options)
    every = [f"{who} {does} {HTML}" for who in ("he", "she") for does in ("sees", "likes")]
    assert run.reconstruct(every) == every, "it listens to z"
    return run


@pytest.fixture(scope="session")
def styled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of style-vae on sentences of two sentiments, after a moment of training."""
    folder = tmp_path_factory.mktemp("styled")
    said = {"good": "very fine", "bad": "quite awful"}
    lines = [f"{mood}\tthe {what} is {how}\n" for mood, how in said.items() for what in ("food", "room", "staff")] * 40
    (folder / "said.tsv").write_text("mood\ttext\n" + "".join(lines))
    torch.set_num_threads(1)
    options = {**SMALL, "steps": 30, "style_size": 2, "content_size": 3, "embed": 8, "hidden": 12, "lr": 1e-2}
    train("style-vae", str(folder / "said.tsv"), folder / "run", text_column="text", label_column="mood", **options)
    return folder / "run"


@pytest.fixture(scope="session")
def answering(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of cvae on replies, after a moment of training."""
    folder = tmp_path_factory.mktemp("answering")
    lines = [f"how is {who} ?\the is {how}\n" for who in ("he", "the man") for how in ("fine", "ill", "late")] * 40
    (folder / "talk.tsv").write_text("before\treply\n" + "".join(lines))
    torch.set_num_threads(1)
    options = {**SMALL, "steps": 20, "latent": 2, "embed": 8, "hidden": 12}
    train("cvae", str(folder / "talk.tsv"), folder / "run", text_column="reply", context_column="before", **options)
    return folder / "run"


@pytest.fixture(scope="session")
def guard() -> Guard:
    return Guard()


def client_of(folders: list[Path], guard: Guard, points: int = 200) -> TestClient:
    return TestClient(application(Shelf(folders, points), guard), "http://127.0.0.1:8421", headers={TOKEN: guard.token})


@pytest.fixture
def client(pictures: Path, words: Path, guard: Guard) -> TestClient:
    """What a browser is to the explorer of both."""
    return client_of([pictures, words], guard)


@pytest.fixture
def more_runs(styled: Path, answering: Path, guard: Guard) -> TestClient:
    """A client of the run of style, number 0, and of the one that answers, number 1."""
    return client_of([styled, answering], guard)


@pytest.fixture
def ask_more(more_runs: TestClient) -> Ask:
    """Asks these."""
    return asking(more_runs)


@pytest.fixture
def read_message() -> Callable[[bytes], tuple[dict[str, Any], bytes]]:
    """Opens a message."""
    return read


def read(content: bytes) -> tuple[dict[str, Any], bytes]:
    """The facts and the bytes of a message."""
    (length,) = struct.unpack("<I", content[:4])
    return json.loads(content[4 : 4 + length]), content[4 + length :]


@pytest.fixture
def ask(client: TestClient) -> Ask:
    """Asks a run by its number, and opens the answer."""
    return asking(client)


def asking(client: TestClient) -> Ask:
    """The questions of a client, each with its answer opened."""

    def asked(number: int, verb: str, **told: Any) -> tuple[dict[str, Any], bytes]:
        response = client.post(f"/api/runs/{number}/{verb}", json=told)
        assert response.status_code == 200, response.text
        return read(response.content)

    return asked
