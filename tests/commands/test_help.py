"""What `elbo train METHOD --help` says."""

from __future__ import annotations

import os
import subprocess
import sys


def test_help_has_formula_and_citation() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "elboroom.cli", "train", "factor-vae", "--help"], capture_output=True, text=True
    )
    text = " ".join(done.stdout.split())
    assert done.returncode == 0
    for part in ("nll + kl + gamma tc", "Kim & Mnih 2018", "--gamma", "--latent", "--batch-size"):
        assert part in text


def test_help_has_every_bound_and_every_name_whole() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "elboroom.cli", "train", "vmf-vae", "--help"],
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "80"},
    )
    told = " ".join(done.stdout.split())
    assert "spherical; above 0, at most 1e+06 [default: (35)]" in told
    assert "--pseudo-inputs <int> components" in told
    assert "[default: (varies)]" in told
    assert "--variances-learned / --no-variances-learned" in told
    assert [line for line in done.stdout.splitlines() if line in ("Model:", "Training:", "Text:")] == [
        "Model:",
        "Training:",
        "Text:",
    ]
