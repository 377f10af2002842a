"""The explorer as a process and as a page of a notebook."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from shell import elbo

from elboroom.explorer.guard import host_of
from elboroom.explorer.serve import Explorer, bound, explorer
from elboroom.runs.lifecycle import load


def test_a_notebook_gets_a_frame_of_the_same_page(pictures: Path) -> None:
    shown = load(pictures).explore(points=50)
    try:
        html = shown._repr_html_()
        assert html.startswith('<iframe src="http://127.0.0.1:')
        with urlopen(Request(shown.url, headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "iframe"})) as page:
            assert b"explorer" in page.read()
            assert "frame-ancestors" not in page.headers["content-security-policy"]
    finally:
        shown.stop()


def test_answers_do_not_wait_for_their_other_half() -> None:
    """Where its socket does not say that it is TCP, asyncio leaves Nagle's delay on: 40 ms an answer."""
    with bound("127.0.0.1", 0) as listening:
        assert listening.proto == socket.IPPROTO_TCP


def test_an_address_for_others_is_one_that_they_reach(pictures: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            asked.connect(("192.0.2.1", 9))
            own = asked.getsockname()[0]
        except OSError:
            own = "127.0.0.1"
    made = explorer([pictures], "0.0.0.0", 0)
    made.socket.close()
    assert made.url.startswith(f"http://{own}:")


def test_a_name_of_a_host_is_known_however_it_is_written(pictures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elboroom.explorer.serve._listening", lambda host, number: socket.socket())
    made = explorer([pictures], "Box.lan", 0)
    made.socket.close()
    assert made.server.config.app.guard._knows(host_of("Box.LAN:8421"))


def test_two_runs_that_are_named_stand_side_by_side(
    pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Explorer, "serve", lambda self: self.socket.close())
    other = shutil.copytree(pictures, tmp_path / "other")
    said = ["--no-browser", "--port", 0]
    assert elbo("explore", pictures, other, *said).stdout.strip().endswith("#run=0&with=1")
    assert elbo("explore", pictures, other, *said, "--view", "run=1").stdout.strip().endswith("#run=1")
    assert "#" not in elbo("explore", pictures, *said).stdout


@pytest.mark.slow
def test_no_other_command_loads_the_server() -> None:
    code = """
import sys
import elboroom.commands.explore, elboroom.commands.latent, elboroom.report, elboroom.explorer.frames
assert not {"starlette", "uvicorn"} & sys.modules.keys()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_is_missing_is_told(pictures: Path) -> None:
    code = f"""
import sys
sys.modules["uvicorn"] = None
from elboroom.cli import main
sys.argv = ["elbo", "explore", {str(pictures)!r}]
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert "pip install 'elboroom[explore]'" in done.stderr


@pytest.mark.slow
def test_ctrl_c_ends_it_at_once_and_leaves_no_process(pictures: Path) -> None:
    words = [sys.executable, "-m", "elboroom", "explore", str(pictures), "--no-browser", "--port", "0"]
    started = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert started.stdout is not None
    assert started.stderr is not None
    url = started.stdout.readline().strip()
    with urlopen(url) as page:
        assert page.status == 200
    begun = time.monotonic()
    os.killpg(started.pid, signal.SIGINT)
    assert started.wait(10) == 130
    assert time.monotonic() - begun < 3
    assert "stopped" in started.stderr.read()
    with pytest.raises(ProcessLookupError):
        os.killpg(started.pid, 0)


@pytest.mark.slow
def test_another_address_says_what_that_means(pictures: Path) -> None:
    words = [
        sys.executable,
        "-m",
        "elboroom",
        "explore",
        str(pictures),
        "--no-browser",
        "--port",
        "0",
        "--host",
        "0.0.0.0",
    ]
    started = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert started.stdout is not None
    assert started.stderr is not None
    started.stdout.readline()
    assert "whoever reaches this machine" in started.stderr.readline()
    started.kill()
    started.wait(10)
