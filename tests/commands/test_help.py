"""What `elbo train METHOD --help` says."""

from __future__ import annotations

import pytest
from shell import elbo


def test_help_has_formula_and_citation() -> None:
    done = elbo("train", "factor-vae", "--help")
    text = " ".join(done.stdout.split())
    assert done.returncode == 0
    for part in ("nll + kl + gamma tc", "Kim & Mnih 2018", "--gamma", "--latent", "--batch-size"):
        assert part in text


def test_help_has_every_bound_and_every_name_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    done = elbo("train", "vmf-vae", "--help")
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
