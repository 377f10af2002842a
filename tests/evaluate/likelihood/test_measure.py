"""Every number against a model in which it is known."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from elboroom.build.parts import Choices, Parts
from elboroom.core.batch import Batch
from elboroom.core.draw import Draw
from elboroom.core.model import LatentModel
from elboroom.core.problem import Problem
from elboroom.data import arrays
from elboroom.data.dataset import DataSet
from elboroom.evaluate import likelihood
from elboroom.evaluate.likelihood import weighted
from elboroom.evaluate.result import Result
from elboroom.evaluate.split import Split
from elboroom.families.ball import normal
from elboroom.families.gaussian import Gaussian, StandardNormal
from elboroom.families.implicit import SharedGaussian
from elboroom.families.sphere import PowerSpherical, VonMisesFisher
from elboroom.geometry.ball import Ball
from elboroom.methods import card
from elboroom.runs.lifecycle import train


def split_of(known: Any, seed: int = 0, n: int = 200) -> Split:
    data = arrays.dataset(known.x[:n].numpy().astype(np.float32))
    return Split(known.model, data, "train", np.arange(n), seed=seed)


class Table(nn.Module):
    """q(z|x_n) of rows of tensors, by the index of the example."""

    def __init__(self, law: Callable[..., Any], *rows: Tensor) -> None:
        super().__init__()
        self.law, self.rows = law, nn.ParameterList(rows)
        self.family = type(law(*rows))

    def forward(self, batch: Batch) -> Any:
        assert batch.index is not None
        return self.law(*(row[batch.index] for row in self.rows))


def table(loc: Tensor, *others: Tensor, law: Callable[..., Any] = Gaussian) -> Split:
    """Rows with these posteriors."""
    model = LatentModel(Table(law, loc, *others), StandardNormal(loc.shape[1]), nn.Identity())
    data = arrays.dataset(np.zeros((len(loc), 3), np.float32))
    return Split(model, data, "train", np.arange(len(loc)))


# -- the ELBO ----------------------------------------------------------------------------------------------------------


def test_distortion_rate_and_elbo_of_ppca(ppca: Any) -> None:
    """q is exact, so the ELBO is log p(x) up to its one sample; the rate is closed, per dimension and in all."""
    known = ppca()
    found = likelihood.evidence(split_of(known), samples=64)
    truth = known.log_p(known.x)
    q = known.model.posterior(Batch(known.x))
    rates = 0.5 * (q.loc**2 + q.variance - q.logvar - 1)
    assert found["rate"].value == pytest.approx(rates.sum(1).mean().item(), rel=1e-9)
    assert found["rate_per_dim"].parts["dims"] == pytest.approx(rates.mean(0).tolist(), rel=1e-9)
    assert found["rate_per_dim"].value == pytest.approx(found["rate"].value)
    assert found["elbo"].value == pytest.approx(-(found["distortion"].value + found["rate"].value))
    noise = draws_error(known, 64)
    assert abs(found["elbo"].value - truth.mean().item()) < 4 * noise
    assert found["elbo"].errors.keys() == {"sampling"}
    assert found["elbo"].errors["sampling"] == pytest.approx(truth.std().item() / math.sqrt(200), rel=0.1)
    said = {"data": "array", "split": "train", "n": 200, "seed": 0, "samples": 64}
    assert found["elbo"].settings == said | {"rows": found["rate"].settings["rows"]}


def draws_error(known: Any, samples: int) -> float:
    """The standard error of the mean nll over 200 rows of `samples` draws each."""
    nll = known.draw(known.x, samples=400).nll
    return (nll.var(0).mean().sqrt() / math.sqrt(200 * samples)).item()


@pytest.mark.parametrize("n", [2, 255, 256, 257, 700])
def test_every_batch_counts_once(n: int, ppca: Any) -> None:
    """Fault 10: means are over examples, whatever the last batch holds; a peer divided by the number of batches."""
    known = ppca()
    x = known.x.repeat(4, 1)[:n]
    split = Split(known.model, arrays.dataset(x.numpy().astype(np.float32)), "train", np.arange(n))
    q = known.model.posterior(Batch(x))
    found = likelihood.evidence(split)
    assert found["rate"].value == pytest.approx((0.5 * (q.loc**2 + q.variance - q.logvar - 1)).sum(1).mean().item())
    assert likelihood.log_likelihood(split, 2).value == pytest.approx(known.log_p(x).mean().item(), abs=1e-9)


def test_the_weight_is_one_whatever_trained(pixels: DataSet, tmp_path: Path) -> None:
    run = train(
        "beta-vae", pixels, tmp_path / "run", beta=50, steps=3, batch_size=8, latent=3, net="mlp-300", threads=1
    )
    split = run.split("test")
    found = likelihood.evidence(split)
    torch.set_grad_enabled(False)
    try:
        (batch,) = split.batches()
        draw = Draw(run.model, batch)
        nll, rate = draw.nll.mean().item(), draw.rate.sum(-1).mean().item()
    finally:
        torch.set_grad_enabled(True)
    assert found["elbo"].value == pytest.approx(-(nll + rate), rel=1e-6)
    assert run.elbo("test").value == found["elbo"].value
    assert run.log[-1]["loss"] == pytest.approx(run.log[-1]["nll"] + 50 * run.log[-1]["kl"], rel=1e-5)
    assert likelihood.evidence(split)["elbo"] == found["elbo"], "the same question has the same answer"


def test_squared_error_is_that_of_the_mean_image(ppca: Any) -> None:
    known = ppca()
    known.model.posterior.net.logvar.data.fill_(-80.0)
    found = likelihood.evidence(split_of(known))["squared_error"]
    q = known.model.posterior(Batch(known.x))
    by_hand = (known.model.likelihood.net(q.loc) - known.x).square().sum(1)
    assert found.value == pytest.approx(by_hand.mean().item(), rel=1e-9)


@pytest.mark.parametrize(
    ("kind", "choice", "bits"),
    [
        ("binary", "bernoulli", True),
        ("pixels", "logistic", True),
        ("pixels", "gaussian", False),
        ("pixels", "bernoulli", False),  # grey targets: no probability of 256 levels
    ],
)
def test_bits_per_dimension_are_of_probabilities(
    kind: str, choice: Any, bits: bool, request: pytest.FixtureRequest
) -> None:
    data: DataSet = request.getfixturevalue(kind)
    method = card("vae").build(Parts(data.about, Choices(latent=2, net="mlp-300", likelihood=choice)), {})
    found = likelihood.evidence(Split.of(method.model.eval(), data, "train", (), 20))
    assert ("bits_per_dim" in found) == bits
    if bits:
        assert found["bits_per_dim"].value == pytest.approx(-found["elbo"].value / math.log(2) / 256)


# -- IW-K --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("samples", [1, 7, 100, 1500])
def test_with_the_exact_posterior_iw_is_log_p(samples: int, ppca: Any) -> None:
    """Every weight is p(x), so any K gives it with no noise; 1,500 are drawn in pieces."""
    known = ppca()
    found = likelihood.log_likelihood(split_of(known, n=30), samples)
    truth = known.log_p(known.x[:30])
    assert found.value == pytest.approx(truth.mean().item(), abs=1e-9)
    assert found.estimator == f"iw-{samples}"
    assert found.settings["K"] == samples
    assert found.parts["effective_samples"] == pytest.approx(samples, rel=1e-9)
    assert found.errors["sampling"] == pytest.approx(truth.std().item() / math.sqrt(30), rel=1e-9)
    assert found.errors.get("importance_noise", 0.0) == pytest.approx(0.0, abs=1e-9)


def test_iw_is_log_p_within_its_error(ppca: Any) -> None:
    known = ppca(widen=2.0)
    found = likelihood.log_likelihood(split_of(known, n=100), 1000)
    assert found.errors.keys() == {"sampling", "importance_noise"}
    assert abs(found.value - known.log_p(known.x[:100]).mean().item()) < 4 * found.errors["importance_noise"]
    assert found.errors["importance_noise"] < 0.1 * found.errors["sampling"]
    assert 1 < found.parts["effective_samples"] < 1000


def test_the_importance_noise_is_what_other_draws_change(ppca: Any) -> None:
    known = ppca(widen=1.5)
    found = [likelihood.log_likelihood(split_of(known, seed, n=40), 50) for seed in range(40)]
    spread = float(np.std([number.value for number in found], ddof=1))
    said = float(np.mean([number.errors["importance_noise"] for number in found]))
    assert said == pytest.approx(spread, rel=4 / math.sqrt(2 * 39))
    assert len({number.value for number in found}) == 40


def test_the_importance_noise_holds_where_few_weights_dominate(ppca: Any) -> None:
    """A proposal that is too wide in twenty dimensions: some of a hundred draws count, and the number says so."""
    known = ppca(pixels=24, latent=20, widen=4.0)
    found = [likelihood.log_likelihood(split_of(known, seed, n=40), 100) for seed in range(40)]
    assert found[0].parts["effective_samples"] < 10
    spread = float(np.std([number.value for number in found], ddof=1))
    said = float(np.mean([number.errors["importance_noise"] for number in found]))
    assert said == pytest.approx(spread, rel=4 / math.sqrt(2 * 39))
    missing = known.log_p(known.x[:40]).mean().item() - np.mean([number.value for number in found])
    assert 0.1 < found[0].parts["gain_of_doubling"] < missing
    assert re.search(r"draws effective, loose by [0-9.]+ nats or more", str(found[0]))


def test_draws_go_on_until_they_change_little(ppca: Any) -> None:
    known = ppca(widen=4.0)
    split = split_of(known, n=40)
    few, many = likelihood.log_likelihood(split, 4), likelihood.log_likelihood(split, 4, until=0.01)
    draws = many.settings["K"]
    assert draws in {8 * 2**k for k in range(1, 10)}
    assert many.estimator == f"iw-{draws}"
    assert many.parts["gain_of_doubling"] < 0.01 < few.parts["gain_of_doubling"]
    assert few.note
    assert not many.note
    assert abs(many.value - known.log_p(known.x[:40]).mean().item()) < 0.02 + 4 * many.errors["importance_noise"]
    assert many == likelihood.log_likelihood(split, 4, until=0.01)
    with pytest.raises(Problem, match="never end"):
        likelihood.log_likelihood(split, 4, until=0.0)


def test_draws_end_somewhere(ppca: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weighted, "MOST_DRAWS", 40)
    found = likelihood.log_likelihood(split_of(ppca(pixels=24, latent=20, widen=4.0), n=4), 10, until=1e-6)
    assert found.settings["K"] == 40
    assert found.note


def test_iw_rises_with_k_from_the_elbo(ppca: Any) -> None:
    known = ppca(widen=5.0)
    values = [likelihood.log_likelihood(split_of(known), k).value for k in (1, 5, 50, 500)]
    assert values == sorted(values)
    assert values[-1] == pytest.approx(known.log_p(known.x).mean().item(), abs=0.02)


# -- mutual information ------------------------------------------------------------------------------------------------


def test_identical_posteriors_tell_nothing() -> None:
    found = likelihood.mutual_information(table(torch.ones(50, 3), torch.zeros(50, 3)))
    assert found.value == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("m", [10, 1500])
def test_far_apart_posteriors_tell_log_m(m: int) -> None:
    found = likelihood.mutual_information(table(torch.arange(m).float().unsqueeze(1) * 50, torch.zeros(m, 1)))
    assert found.value == pytest.approx(math.log(m), abs=1e-6)
    assert found.parts["ceiling"] == pytest.approx(math.log(m))
    assert found.settings["M"] == m
    assert found.estimator == "split"


def test_a_missing_prior_is_not_called_a_missing_posterior(pixels: DataSet, tmp_path: Path) -> None:
    run = train("ae", pixels, tmp_path / "run", steps=2, posterior="gaussian", latent=3, net="mlp-300")
    found = run.evaluate(samples=2)
    assert found["elbo"]["reason"] == "not a bound: the model has no prior"
    assert found["run"]["parameters"] == sum(p.numel() for p in run.model.parameters())
    with pytest.raises(Problem, match="no KL per dimension: the model has no prior"):
        run.kl_per_dim()


def test_the_error_of_the_aggregate_rate_is_that_of_a_difference() -> None:
    """Far-apart posteriors all tell log M: what varies is the rate."""
    rate = Result(3.0, "rate", "nats", each=np.array([1.0, 2.0, 6.0]))
    told = Result(1.0, "split", "nats", errors={"sampling": 0.0}, each=np.ones(3))
    found = likelihood.aggregate_rate(rate, told)
    assert found.value == pytest.approx(2.0)
    assert found.errors["sampling"] == pytest.approx(np.std([1, 2, 6], ddof=1) / np.sqrt(3))


def test_mutual_information_is_that_of_all_pairs() -> None:
    loc, logvar = torch.randn(2, 1200, 4)
    split = table(loc, logvar - 2)
    found = likelihood.mutual_information(split)
    q = Gaussian(loc.double(), (logvar - 2).double())
    torch.manual_seed(split.seed)
    z = q.loc + q.stddev * torch.randn_like(q.loc)
    aggregate = torch.logsumexp(q.log_prob(z.unsqueeze(1)), 1) - math.log(1200)
    assert found.value == pytest.approx((q.log_prob(z) - aggregate).mean().item(), rel=1e-9)


def test_mutual_information_of_a_gaussian_channel() -> None:
    """mu ~ N(0, 1), q = N(mu, s^2): I = 1/2 log(1 + 1/s^2), up to the finite M."""
    loc = torch.randn(5000, 1)
    found = likelihood.mutual_information(table(loc, torch.full_like(loc, math.log(0.25))))
    assert found.value == pytest.approx(0.5 * math.log(5), abs=5 * found.errors["sampling"] + 0.02)


@pytest.mark.parametrize("reach", [3.0, 20.0])
def test_mutual_information_holds_beyond_what_coordinates_on_the_ball_tell(reach: float) -> None:
    """Wide laws in many dimensions, all the same or far apart: what their draws carry is enough to know them by."""
    ball = Ball()

    def law(loc: Tensor) -> Any:
        return normal(ball, ball.clip(ball.exp0(loc.double())), torch.full_like(loc, math.log(reach)))

    same = likelihood.mutual_information(table(torch.zeros(60, 16), law=law))
    assert same.value == pytest.approx(0.0, abs=1e-6)
    apart = likelihood.mutual_information(table(5 * torch.eye(16), law=law))
    assert 0 < apart.value <= math.log(16) + 1e-9


@pytest.mark.parametrize("name", ["vmf", "power-spherical", "wrapped", "linear"])
def test_mutual_information_of_other_families(name: str) -> None:
    """Of the same laws none, of laws far apart the log of their number, between them what all pairs give."""
    ball, kappa = Ball(), torch.tensor(20.0)
    laws: dict[str, Callable[[Tensor], Any]] = {
        "vmf": lambda loc: VonMisesFisher(functional.normalize(loc, dim=-1), kappa),
        "power-spherical": lambda loc: PowerSpherical(functional.normalize(loc, dim=-1), kappa),
        "wrapped": lambda loc: normal(ball, ball.exp0(loc.double() / 4), torch.full_like(loc, -3.0)),
        "linear": lambda loc: SharedGaussian(loc, torch.tensor([[0.3, 0.1, 0.0], [0.0, 0.2, 0.2], [0.1, 0.0, 0.4]])),
    }
    law = laws[name]
    nothing = likelihood.mutual_information(table(torch.ones(300, 3), law=law))
    assert nothing.value == pytest.approx(0.0, abs=1e-5)
    corners = torch.cat([torch.eye(3), -torch.eye(3)]) * 9
    if name in ("vmf", "power-spherical"):
        kappa.fill_(500.0)
    assert likelihood.mutual_information(table(corners, law=law)).value == pytest.approx(math.log(6), abs=1e-3)
    kappa.fill_(20.0)
    loc = torch.randn(600, 3, generator=torch.Generator().manual_seed(5))
    found = likelihood.mutual_information(table(loc, law=law))
    q = law(loc)
    z = q.sample((4,)).flatten(0, 1)
    each = q.log_prob(z.unsqueeze(1).expand(-1, 600, -1)).double()
    own = each[torch.arange(2400), torch.arange(2400) % 600]
    wanted = own - torch.logsumexp(each, 1) + math.log(600)
    assert 0.2 < wanted.mean() < 6
    assert found.value == pytest.approx(wanted.mean().item(), abs=5 * found.errors["sampling"])
    assert found.estimator == "split"
    assert found.parts["ceiling"] == pytest.approx(math.log(600))


def test_a_flow_would_take_too_long(pixels: DataSet, tmp_path: Path) -> None:
    run = train("vae-iaf", pixels, tmp_path / "run", steps=2, batch_size=8, latent=3, net="mlp-300", threads=1)
    found = likelihood.mutual_information(run.split("test"))
    assert found.value is None
    assert "too long" in found.reason


# -- active units ------------------------------------------------------------------------------------------------------


def test_active_units_count_means_that_move() -> None:
    spread = torch.tensor([0.0, 0.05, 0.2, 1.0])  # variances 0, 0.0025, 0.04, 1
    base = torch.linspace(-1, 1, 101).unsqueeze(1)
    found = likelihood.active_units(table(base / base.std() * spread + 3, torch.zeros(101, 4)))
    assert found.value == 2
    assert found.unit == "of 4"
    assert found.parts["variances"] == pytest.approx([0, 0.0025, 0.04, 1], abs=1e-6)
    assert likelihood.active_units(table(base / base.std() * spread, torch.zeros(101, 4)), 1e-3).value == 3


# -- refusals and settings ---------------------------------------------------------------------------------------------


def test_a_point_posterior_has_no_elbo(pixels: DataSet, tmp_path: Path) -> None:
    run = train("ae", pixels, tmp_path / "run", steps=2, batch_size=8, latent=3, net="mlp-300", threads=1)
    found = likelihood.evaluate(run.split("test"), samples=3)
    for name in ("elbo", "rate", "log_likelihood"):
        assert found[name].value is None
        assert "no density" in found[name].reason
    assert found["mutual_information"].value is None
    assert "no density" in found["mutual_information"].reason
    assert found["distortion"].value is not None
    assert found["squared_error"].value is not None
    assert found["active_units"].value is not None
    with pytest.raises(Problem, match="no density"):
        run.kl_per_dim()


def test_every_number_carries_its_estimator_and_settings(ppca: Any) -> None:
    for name, number in likelihood.evaluate(split_of(ppca()), samples=5).items():
        assert number.estimator, name
        assert {"data", "split", "n", "seed"} <= number.settings.keys(), name
        assert number.to_json()["value"] == number.value


def test_a_split_is_the_same_rows_every_time(pixels: DataSet) -> None:
    model = LatentModel(nn.Identity(), nn.Identity(), nn.Identity())
    one, two = (Split.of(model, pixels, "train", (), 20) for _ in range(2))
    assert np.array_equal(one.rows, two.rows)
    assert len(set(one.rows)) == 20
    assert len(one.few(5).rows) == 5
    with pytest.raises(Problem, match="has no split 'tset'"):
        Split.of(model, pixels, "tset", ())
    with pytest.raises(Problem, match="at least one example"):
        Split.of(model, pixels, "train", (), 0)


@pytest.mark.parametrize("most", [5, 50])
def test_few_are_some_of_the_same_rows(pixels: DataSet, most: int) -> None:
    model = LatentModel(nn.Identity(), nn.Identity(), nn.Identity())
    split = Split.of(model, pixels, "train", (), 20)
    few = split.few(most)
    assert len(few.rows) <= 20
    assert set(few.rows) <= set(split.rows)


def test_a_rate_that_cannot_be_is_not_told(ppca: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Densities that are not those of their samples: neither ELBO nor likelihood, and a reason."""
    split = split_of(ppca())
    monkeypatch.setattr(Draw, "rate", property(lambda self: torch.full((len(self.batch.x), 2), -3.0)))
    found = likelihood.evaluate(split, samples=2)
    for name in ("elbo", "rate", "log_likelihood", "aggregate_rate"):
        assert found[name].value is None, name
        assert "the mean KL is -6 nats, and a KL is never below 0" in found[name].reason
