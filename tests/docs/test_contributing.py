"""What CONTRIBUTING shows runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import elboroom
from elboroom.build import plugins, registry
from elboroom.core.problem import Problem
from elboroom.terms.evidence import kl, nll

ROOT = Path(__file__).parents[2]


@pytest.mark.unhurried
def test_a_term_of_ones_own_trains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_CARDS", dict(registry._CARDS))  # what is registered here is gone afterwards
    monkeypatch.setenv(plugins.VARIABLE, "")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL)
    (shown,) = [block for block in blocks if "shell-vae" in block]
    (tmp_path / "mine.py").write_text(shown)
    plugins.named(str(tmp_path / "mine.py"))
    x = np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32)
    run = elboroom.train("shell-vae", x, tmp_path / "run", steps=3, latent=4, threads=1, weight=0.5)
    assert np.isfinite(run.log[-1]["length"])
    with pytest.raises(Problem, match="density"):
        elboroom.train("shell-vae", x, tmp_path / "other", steps=3, threads=1, posterior="implicit")


def test_a_product_of_terms_is_one_sentence_and_a_number_may_stand_behind() -> None:
    with pytest.raises(Problem, match=r"^kl \* kl is no loss: .* a term of your own"):
        kl() * kl()  # type: ignore[operator]
    with pytest.raises(Problem, match=r"kl \* nll \+ kl is no loss"):
        (nll() + kl()) * kl()  # type: ignore[operator]
    assert str(kl() * 2) == str(2 * kl())
    assert str((nll() + kl()) * 2) == str(2 * (nll() + kl()))
