"""The explorer as a process and as a page of a notebook."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from elboroom.explorer.serve import bound
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
