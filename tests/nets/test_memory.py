"""What a convolutional step frees is kept for the next one."""

from __future__ import annotations

import os
import subprocess
import sys

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


@pytest.mark.skipif(sys.platform != "linux", reason="glibc only")
def test_steps_after_the_first_have_few_page_faults() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "LD_PRELOAD"))}
    run = subprocess.run([sys.executable, "-c", STEP], env=environment, capture_output=True, text=True, check=True)
    assert int(run.stdout) < 2000  # thousands otherwise
