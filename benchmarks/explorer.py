"""The explorer: how soon a slider is answered, and how fast the map pans in a browser."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import parse_qs, urlparse

import numpy as np

from benchmarks.measure import Result, measurement
from elboroom.core.problem import Problem
from elboroom.explorer.guard import TOKEN
from elboroom.runs.lifecycle import train

MOVES = 300
POINTS = 100_000
PAN = """async () => {
  const map = window.elboroom.panels[0].map.code, begun = performance.now();
  for (let k = 0; k < 90; k++) {
    map.pan(k % 30 < 15 ? 6 : -6, 3);
    await new Promise(requestAnimationFrame);
  }
  return [map.n, 90000 / (performance.now() - begun)];
}"""


@contextmanager
def served(method: str, data: str, *words: str, **options: Any) -> Iterator[str]:
    """The address of an explorer of a run after a moment of training, in a process of its own with one thread."""
    with TemporaryDirectory() as folder:
        run = train(method, data, Path(folder) / "run", steps=50, threads=1, **options)
        command = [sys.executable, "-m", "elboroom", "explore", str(run.folder), "--no-browser", "--port", "0", *words]
        started = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        try:
            assert started.stdout is not None
            yield started.stdout.readline().strip()
        finally:
            started.kill()
            started.wait()


def slow_seconds(url: str) -> float:
    """The seconds within which 95 % of slider moves are answered."""
    where = urlparse(url)
    headers = {TOKEN: parse_qs(where.query)["token"][0], "content-type": "application/json"}
    line = http.client.HTTPConnection(where.netloc)

    def ask(verb: str, **asked: Any) -> dict[str, Any]:
        line.request("POST", f"/api/runs/0/{verb}", json.dumps(asked), headers)
        content = line.getresponse().read()
        (length,) = struct.unpack("<I", content[:4])
        facts: dict[str, Any] = json.loads(content[4 : 4 + length])
        return facts

    sheet, z = ask("sheet"), ask("example")["z"]
    dims, seconds = sheet["dimensions"], []
    for k in range(MOVES + 20):
        dim = dims[k % len(dims)]
        value = dim["low"] + (dim["high"] - dim["low"]) * (k % 50) / 50
        begun = time.perf_counter()
        z = ask("move", z=z, dim=dim["index"], value=value)["z"]
        seconds.append(time.perf_counter() - begun)
    return float(np.quantile(seconds[20:], 0.95))


def answered(url: str, within: float) -> Result:
    """Moves a second at the 95th percentile, against those that must be."""
    rate, needed = 1 / slow_seconds(url), 1 / within
    return Result(rate, "moves/s", needed, rate / needed, target=1.0)


@measurement("explorer-image")
def image() -> Result:
    """Slider moves of the explorer, burgess net at 64x64, one thread, 95th percentile; against 50 ms (1 or more)."""
    with served("beta-vae", "dsprites", "--points", "100", net="burgess", latent=10) as url:
        return answered(url, 0.050)


@measurement("explorer-sentence")
def sentence() -> Result:
    """The same of sentences, LSTM of 256 with 32 dimensions; against 100 ms (1 or more)."""
    with served("bn-vae", "sentences", "--points", "100", embed=256, hidden=256, latent=32) as url:
        return answered(url, 0.100)


@measurement("explorer-map")
def pan() -> Result:
    """Frames of panning the map of 100,000 codes in headless chromium; against 30 a second (1 or more)."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise Problem("explorer-map needs chromium")
    from playwright.sync_api import sync_playwright

    with (
        served("beta-vae", "dsprites", "--points", str(POINTS), net="mlp-300", latent=10) as url,
        sync_playwright() as playwright,
    ):
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
        browser = playwright.chromium.launch(executable_path=chromium, args=flags)
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(url)
        page.wait_for_selector("text=Point to decode", timeout=300_000)
        page.wait_for_timeout(1000)
        count, rate = page.evaluate(PAN)
        browser.close()
    assert count == POINTS
    return Result(rate, "frames/s", 30.0, rate / 30.0, target=1.0)
