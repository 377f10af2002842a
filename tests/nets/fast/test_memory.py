"""What a convolutional step frees is kept for the next one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

STEP = """
import resource, torch
from elboroom.nets import decoder, encoder
torch.set_num_threads(1)
e, d = encoder("burgess", (1, 64, 64), 20), decoder("burgess", (1, 64, 64), 10)
x = torch.rand(64, 1, 64, 64)
def step():
    d(e(x)[:, :10]).square().sum().backward()
for _ in range(4):
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(4):
    step()
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) // 4)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="glibc only")
def test_steps_after_the_first_have_few_page_faults() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "LD_PRELOAD"))}
    run = subprocess.run([sys.executable, "-c", STEP], env=environment, capture_output=True, text=True, check=True)
    assert int(run.stdout) < 2000  # thousands otherwise


TINY = """
import torch, elboroom
torch.set_num_threads(2)
elboroom.train("vae", torch.rand(64, 1, 16, 16).numpy(), "{out}", steps=1, batch_size=8, threads=2)
print(int((torch.full((1 << 22,), 1e-30) * 1e-10).count_nonzero()))
"""


@pytest.mark.slow
def test_numbers_next_to_zero_are_zero_on_every_thread_once_a_method_is_built(tmp_path: Path) -> None:
    script = TINY.format(out=tmp_path / "run")
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(run.stdout) == 0
