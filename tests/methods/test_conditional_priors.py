"""Priors of labels, batches of mixed lengths, gradients: what a loss cannot teach is not learned, or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import elboroom
from elboroom.build.parts import Choices, Parts
from elboroom.core.batch import Batch
from elboroom.core.method import adam
from elboroom.core.problem import Problem
from elboroom.data.dataset import DataSet
from elboroom.families.gaussian import ConditionalNormal
from elboroom.families.structured import SpikeAndSlab
from elboroom.methods import card
from elboroom.training.loop import move

SMALL: dict[str, Any] = {"steps": 3, "batch_size": 16, "latent": 3, "threads": 1}


def built(name: str, data: DataSet, choices: dict[str, Any] | None = None, **options: Any) -> Any:
    """A method on data, with choices of the model."""
    entry, kind = card(name), data.about.kind
    parts = Parts(data.about, Choices(**(choices or {})).for_kind(kind), 100, data)
    return entry.build(parts, entry.validate(options, kind))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("wae-mmd", {}),
        ("wae-d", {}),
        ("wae-s", {}),
        ("mmd-vae", {}),
        ("beta-tcvae", {}),
        ("info-vae", {"alpha": 1.0}),
        ("alpha-beta-vae", {"beta": 0.0}),
        ("alpha-beta-vae", {"divergence": "inclusive-kl"}),
        ("f-vae", {"beta": 0.0}),
        ("regularised-vae", {"lam1": -1.0}),
    ],
)
def test_a_prior_that_no_loss_ties_to_labels_is_the_same_for_all(pixels: DataSet, name: str, options: Any) -> None:
    assert not isinstance(built(name, pixels, {"given": "label"}, **options).model.prior, ConditionalNormal)


def test_a_rate_ties_a_prior_to_its_labels(pixels: DataSet) -> None:
    for name in ("vae", "info-vae", "alpha-beta-vae", "f-vae", "factor-vae"):
        assert isinstance(built(name, pixels, {"given": "label"}).model.prior, ConditionalNormal)
    with pytest.raises(Problem, match="needs a single prior"):
        built("regularised-vae", pixels, {"given": "label"}, r2="inclusive-kl")


@pytest.mark.parametrize(("name", "mixed"), [("factor-vae", True), ("beta-vae-capacity", True), ("beta-vae", False)])
def test_batches_are_of_mixed_lengths_where_a_loss_looks_across_them(
    sentences: DataSet, name: str, mixed: bool
) -> None:
    assert built(name, sentences).couples is mixed


@pytest.mark.parametrize("likelihood", ["gaussian-learned", "gaussian-per-pixel", "logistic"])
def test_a_squared_error_has_no_sigma_to_learn(pixels: DataSet, likelihood: str) -> None:
    for name in ("wae-mmd", "wae-gan"):
        with pytest.raises(Problem, match="cannot learn sigma"):
            built(name, pixels, {"likelihood": likelihood})
    built("wae-mmd", pixels, {"likelihood": likelihood}, reconstruction="nll")


def test_a_model_without_a_prior_has_no_bound_of_its_own(pixels: DataSet, tmp_path: Path) -> None:
    run = elboroom.train("ae", pixels, tmp_path / "run", posterior="gaussian", patience=1, **SMALL)
    found = run.evaluate(samples=3)
    for name in ("elbo", "rate", "log_likelihood"):
        assert found[name]["value"] is None, name
    assert found["log_likelihood_posthoc"]["settings"]["prior"] == "gaussian of codes"


def test_one_norm_for_all_that_moves_together(pixels: DataSet) -> None:
    """So a lagging VAE that does not lag is the VAE, clipped or not."""
    method = built("lagging-vae", pixels)
    method.prepare(adam(1e-3), clip=0.05)
    player, seen = method.players[0], []
    assert len(player.moves) == 2

    class Look:
        def __init__(self, name: str) -> None:
            self.name = name

        def step(self) -> None:
            seen.append(torch.cat([p.grad.flatten() for p in method.owned[self.name] if p.grad is not None]))

    method.optimisers |= {name: Look(name) for name in player.moves}
    draw = method.draw(player, Batch(pixels.x(range(8))))
    move(method, player, player.objective(draw).total)
    assert torch.cat(seen).norm() == pytest.approx(0.05, rel=1e-3)


def test_combinations_that_mean_nothing_are_refused(sentences: DataSet, pixels: DataSet) -> None:
    for choices in ({"posterior": "vmf"}, {"prior": "mog"}):
        with pytest.raises(Problem, match="has no z"):
            built("lm", sentences, choices)
    with pytest.raises(Problem, match="needs a posterior on the same space"):
        built("svi", pixels, {"prior": "wrapped", "given": "label"})
    built("wae-gan", pixels, {"posterior": "wrapped"})


def test_spikes_have_second_derivatives_everywhere() -> None:
    z = torch.tensor([0.0, 0.1, 1.0, 5.0], dtype=torch.float32, requires_grad=True)
    slope = torch.autograd.grad(
        SpikeAndSlab(torch.zeros(4), 0.8, 0.05).log_prob_per_dim(z).sum(), z, create_graph=True
    )[0]
    assert torch.isfinite(torch.autograd.grad(slope.sum(), z)[0]).all()
