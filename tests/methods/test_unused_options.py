"""Options that nothing uses are refused when a run begins, and never when one is looked at.

What a posterior, prior, likelihood or net says that it uses is what it reads.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import elboroom
from elboroom import nets
from elboroom.build import choices
from elboroom.build.axes import POSTERIORS, PRIORS, Posterior, Prior
from elboroom.build.choices import Choices
from elboroom.build.parts import Parts
from elboroom.core.problem import Problem
from elboroom.data.dataset import DataSet
from elboroom.nets import sentences as text_nets
from elboroom.training import session
from elboroom.training.session import Own
from elboroom.training.spec import specify

SENTENCES = ["a dog runs", "a cat sleeps", "the dog sleeps", "the cat runs", "a bird sings", "the bird runs"] * 4
TINY: dict[str, Any] = {"steps": 1, "batch_size": 4, "threads": 1}


@pytest.mark.parametrize(
    ("method", "options", "flag"),
    [
        ("vae", {"kappa": 5.0}, "--kappa 5.0"),
        ("vae", {"kappa_learned": True}, "--kappa-learned"),
        ("vae", {"sigma": 0.5, "likelihood": "bernoulli"}, "--sigma 0.5"),
        ("vae", {"embed": 8}, "--embed 8"),
        ("vae", {"components": 3}, "--components 3"),
        ("vae", {"posterior": "iaf", "curvature": 2.0}, "--curvature 2.0"),
        ("mog-vae", {"pseudo_inputs": 7}, "--pseudo-inputs 7"),
        ("vmf-vae", {"flow_steps": 2}, "--flow-steps 2"),
    ],
)
def test_an_option_without_use_is_refused(
    method: str, options: dict[str, Any], flag: str, pixels: DataSet, tmp_path: Path
) -> None:
    with pytest.raises(Problem, match=rf"^{flag} has no effect here; remove it$"):
        elboroom.train(method, pixels, tmp_path / "run", latent=3, net="mlp-300", **TINY, **options)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("vmf-vae", {"kappa": 5.0, "kappa_learned": True}),
        ("vae", {"likelihood": "gaussian", "sigma": 0.5, "init": "glorot"}),
        ("vae", {"posterior": "nsf", "flow_steps": 2, "prior": "mog", "components": 3}),
        ("p-vae", {"curvature": 2.0, "curvature_learned": True}),
        ("apo-vae-vamp", {"pseudo_inputs": 7}),
        ("alpha-beta-vae", {"prior": "sparse", "sparse_share": 0.5}),
        ("alpha-beta-vae", {"prior": "clustered", "clusters": 5, "cluster_variance": 0.1}),
        ("info-vae", {"prior_sigma": 2.0}),
    ],
)
def test_an_option_of_use_is_not(method: str, options: dict[str, Any], pixels: DataSet) -> None:
    given = {"latent": 3, "net": "mlp-300", **TINY, **options}
    session.build(specify(method, pixels, "array", None, given), Own(pixels), pixels, new=True)


def test_text_has_options_of_its_own(tmp_path: Path) -> None:
    small = {"embed": 4, "hidden": 4, **TINY}
    with pytest.raises(Problem, match="--latent 5 has no effect here; remove it"):
        elboroom.train("lm", SENTENCES, tmp_path / "lm", latent=5, **small)
    with pytest.raises(Problem, match=r"--sigma 2\.0 has no effect here; remove it"):
        elboroom.train("vae", SENTENCES, tmp_path / "vae", sigma=2.0, **small)
    words = {"word_dropout": 0.2, "dropout": 0.1, "inject": "state", "layers": 2, "trunk": "b"}
    assert elboroom.train("vae", SENTENCES, tmp_path / "own", latent=5, **small, **words).step == 1


def test_a_run_that_has_one_is_still_looked_at(pixels: DataSet, tmp_path: Path) -> None:
    run = elboroom.train("vae", pixels, tmp_path / "run", latent=3, net="mlp-300", **TINY)
    run.spec.model_copy(update={"model": run.spec.model.model_copy(update={"kappa": 5.0})}).write(run.folder)
    again = elboroom.load(run.folder, data=pixels)
    assert again.spec.model.kappa == 5.0
    assert np.array_equal(again.encode(pixels.x(np.arange(3))), run.encode(pixels.x(np.arange(3))))


class Read(Choices):
    """Choices that take note of the options that are read."""

    def __getattribute__(self, name: str) -> Any:
        if name in Choices.model_fields:
            super().__getattribute__("__dict__").setdefault("_read", set()).add(name)
        return super().__getattribute__(name)

    @property
    def read(self) -> set[str]:
        return set(self.__dict__.get("_read", ()))


def _options(entry: Posterior | Prior) -> set[str]:
    return set(entry.options)


MODEL = {"standardise", "latent", "given", "net", "init", "posterior", "prior", "likelihood"}
BALL = {"curvature", "curvature_learned"}


@pytest.mark.parametrize(
    ("q", "p"),
    [
        *((q, entry.space.prior) for q, entry in POSTERIORS.items()),
        *(("gaussian", p) for p, entry in PRIORS.items() if entry.space in (None, POSTERIORS["gaussian"].space)),
    ],
)
def test_a_posterior_and_a_prior_use_what_they_list(q: str, p: str, pixels: DataSet) -> None:
    read = Read(latent=3, net="mlp-300", posterior=q, prior=p)
    parts = Parts(pixels.about, read, data=pixels)
    parts.vae()
    listed = _options(POSTERIORS[q]) | _options(PRIORS[p])
    assert read.read == parts.used == MODEL | listed | (BALL if "wrapped" in q else set())


@pytest.mark.parametrize(
    ("likelihood", "listed"),
    [("bernoulli", set()), ("gaussian", {"sigma"}), ("gaussian-learned", {"sigma"}), ("logistic", set())],
)
def test_a_likelihood_uses_what_it_lists(likelihood: str, listed: set[str], pixels: DataSet) -> None:
    read = Read(latent=3, net="mlp-300", likelihood=likelihood)
    parts = Parts(pixels.about, read, data=pixels)
    parts.likelihood()
    assert read.read == parts.used == MODEL - {"posterior", "prior"} | listed


def test_nets_of_text_use_what_they_list(sentences: DataSet) -> None:
    read = Read(latent=3, embed=4, hidden=4)
    parts = Parts(sentences.about, read)
    parts.features(5)
    assert read.read == parts.used == {"net", "given", "embed", "hidden", "trunk"}
    parts.writer(2)
    more = {"likelihood", "layers", "dropout", "word_dropout", "inject"}
    assert read.read == parts.used == {"net", "given", "embed", "hidden", "trunk"} | more


def test_names_are_those_that_are_defined() -> None:
    assert choices.NETS == nets.NETS
    assert choices.TEXT_NETS == text_nets.NETS
    assert choices.INJECTIONS == text_nets.INJECTIONS
    assert tuple(POSTERIORS) == choices.POSTERIORS
    assert tuple(PRIORS) == choices.PRIORS


def test_choices_are_read_without_torch() -> None:
    code = "import sys; from elboroom.build.choices import Choices; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
