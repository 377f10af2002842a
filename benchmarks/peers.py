"""Other systems, each in a process of its own with an environment of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.measure import THREADS
from elboroom.core.problem import Problem

HERE = Path(__file__).parent
ENVIRONMENT = HERE.parent / ".bench-venv"


def python() -> Path:
    """The interpreter of the peers, made and filled when first asked for."""
    interpreter, ready = ENVIRONMENT / "bin" / "python", ENVIRONMENT / ".ready"
    wanted = (HERE / "peers.txt").read_text()
    if not ready.exists() or ready.read_text() != wanted:
        print(f"making {ENVIRONMENT.name} for the peers")
        subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=True)
        with TemporaryDirectory() as folder:
            pin = Path(folder) / "constraints.txt"  # the very build of torch that we run on, so that no other one comes
            pin.write_text(f"torch=={torch.__version__}\n")
            install = [str(interpreter), "-m", "pip", "install", "-q", "-c", str(pin), "-r", str(HERE / "peers.txt")]
            done = subprocess.run(install, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise Problem(f"the peers could not be installed: {done.stderr.strip().splitlines()[-1]}")
        ready.write_text(wanted)
    return interpreter


@contextmanager
def pythae(images: NDArray[np.uint8]) -> Iterator[Callable[[], float]]:
    """pythae's BetaVAE under its own trainer, which waits; every call lets it train one epoch, returns its seconds."""
    interpreter = python()
    with TemporaryDirectory() as folder:
        np.save(Path(folder) / "images.npy", images)
        command = [str(interpreter), str(HERE / "pythae_peer.py"), folder]
        environment = {**os.environ, "OMP_NUM_THREADS": str(THREADS)}
        said = Path(folder) / "stderr.txt"
        with (
            said.open("w") as errors,
            subprocess.Popen(
                command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            ) as peer,
        ):

            def epoch() -> float:
                assert peer.stdin is not None
                assert peer.stdout is not None
                peer.stdin.write("go\n")
                peer.stdin.flush()
                line = peer.stdout.readline()
                if not line:
                    raise Problem(f"pythae did not finish its epoch: {said.read_text().strip().splitlines()[-1:]}")
                return float(json.loads(line)["seconds"])

            try:
                yield epoch
            finally:
                peer.kill()
