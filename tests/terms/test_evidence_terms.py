"""Distortion, rate and the importance-weighted bound where their values are known."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from elboroom.build.parts import Choices, Parts
from elboroom.core.batch import Batch
from elboroom.core.draw import Draw
from elboroom.core.model import LatentModel
from elboroom.core.objective import Objective
from elboroom.core.problem import Problem
from elboroom.data import arrays
from elboroom.families.gaussian import GaussianPosterior, StandardNormal
from elboroom.families.pixels import BernoulliLikelihood, GaussianLikelihood
from elboroom.families.point import PointPosterior
from elboroom.methods import card
from elboroom.terms.evidence import iw_bound, kl, log_weights, nll, nll_of_mean

Exact = Callable[[Draw], Draw]


class Net(nn.Module):
    """A linear net that ignores u."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs).double()

    def forward(self, x: Tensor, u: Tensor | None = None) -> Tensor:
        out: Tensor = self.linear(x.flatten(1))
        return out


def test_the_distortion_of_a_mean_is_that_of_a_point() -> None:
    torch.manual_seed(0)
    net, batch = Net(4, 6), Batch(torch.rand(5, 4, dtype=torch.float64))
    likelihood = GaussianLikelihood(Net(3, 4), 1, 1.0)
    wide = Draw(LatentModel(GaussianPosterior(net), StandardNormal(3), likelihood), batch)
    point = Draw(LatentModel(PointPosterior(lambda x, u: net(x)[:, :3]), StandardNormal(3), likelihood), batch)  # type: ignore[arg-type]
    torch.testing.assert_close(nll_of_mean()(wide), nll()(point))
    assert not torch.allclose(nll_of_mean()(wide), nll()(wide))
    torch.testing.assert_close(nll_of_mean()(point), nll()(point))


# -- the ELBO ----------------------------------------------------------------------------------------------------------


def test_the_elbo_of_ppca_is_its_log_marginal(ppca: Any, exact: Exact) -> None:
    known = ppca()
    draw = exact(known.draw(known.x))
    torch.testing.assert_close(-(nll()(draw) + kl()(draw).sum(-1)), known.log_p(known.x), atol=1e-10, rtol=0)


def test_with_another_posterior_the_elbo_is_less_by_its_kl(ppca: Any, exact: Exact) -> None:
    """log p(x) - ELBO = KL(q || p(z|x)); here the variance is 1.7 times too wide in each of two dimensions."""
    known = ppca(widen=1.7)
    draw = exact(known.draw(known.x))
    gap = known.log_p(known.x) + nll()(draw) + kl()(draw).sum(-1)
    torch.testing.assert_close(gap, torch.full_like(gap, 2 * 0.5 * (1.7 - math.log(1.7) - 1)), atol=1e-10, rtol=0)


def test_a_term_is_in_nats_per_example(ppca: Any) -> None:
    """Summed over dimensions, averaged over the batch."""
    known = ppca()
    draw = known.draw(known.x)
    assert kl()(draw).shape == (200, 2)
    torch.testing.assert_close(kl().mean(draw), kl()(draw).sum() / 200)
    torch.testing.assert_close(nll().mean(draw), draw.nll.sum() / 200)
    twice = known.draw(torch.cat([known.x, known.x]))
    torch.testing.assert_close(kl().mean(twice), kl().mean(draw))


def test_bernoulli_logits_zero_cost_d_log_two() -> None:
    decoder = Net(2, 9)
    nn.init.zeros_(decoder.linear.weight)
    nn.init.zeros_(decoder.linear.bias)
    model = LatentModel(GaussianPosterior(Net(9, 4)), StandardNormal(2), BernoulliLikelihood(decoder, 1))
    x = torch.rand(6, 9, dtype=torch.float64)
    assert nll().mean(Draw(model, Batch(x), samples=3)).item() == pytest.approx(9 * math.log(2), rel=1e-14)


def test_twice_the_pixels_leave_kl_untouched(ppca: Any) -> None:
    """Fault 7, on the model: the same codes for an image that is there twice."""
    known = ppca()
    encoder = known.model.posterior

    class First(nn.Module):
        family = encoder.family

        def forward(self, batch: Batch) -> Any:
            return encoder(Batch(batch.x[:, : batch.x.shape[1] // 2]))

    decoder = known.model.likelihood.net

    class Twice(nn.Module):
        def forward(self, z: Tensor, u: Tensor | None = None) -> Tensor:
            return decoder(z).repeat(1, 2)

    likelihood = GaussianLikelihood(Twice(), 1, 0.6).double()
    once = known.draw(known.x)
    double = Draw(LatentModel(First(), known.model.prior, likelihood), Batch(known.x.repeat(1, 2)))
    double.__dict__["z"] = once.z
    torch.testing.assert_close(nll()(double), 2 * nll()(once))
    assert torch.equal(kl()(double), kl()(once))


# -- beta --------------------------------------------------------------------------------------------------------------


def slopes(objective: Objective, draw: Draw, parameters: list[Tensor]) -> list[Tensor]:
    return list(torch.autograd.grad(objective(draw).total, parameters))


@pytest.mark.parametrize(("sigma", "beta"), [(0.5, 4.0), (2.0, 0.3)])
def test_sigma_and_beta_are_one_choice(sigma: float, beta: float, ppca: Any, exact: Exact) -> None:
    """Std s with weight beta descends as unit std with weight beta s^2; pixel-mean MSE with w as unit std with w D / 2."""
    narrow, unit = ppca(sigma=sigma, widen=1.3), ppca(sigma=1.0)
    variance = float(narrow.variance)
    unit.model.posterior = narrow.model.posterior
    unit.model.likelihood.net = narrow.model.likelihood.net
    parameters = [*narrow.model.parameters()]
    left = slopes(nll() + beta * kl(), exact(narrow.draw(narrow.x)), parameters)
    right = slopes(nll() + beta * variance * kl(), exact(unit.draw(narrow.x)), parameters)
    for a, b in zip(left, right, strict=True):
        torch.testing.assert_close(variance * a, b, rtol=1e-9, atol=1e-12)

    draw, pixels, w = exact(unit.draw(narrow.x)), narrow.x.shape[1], 0.00025
    mse = (draw.px.mean - narrow.x).square().mean((0, 1, 2))
    theirs = torch.autograd.grad(mse + w * kl().mean(draw), parameters)
    ours = slopes(nll() + (w * pixels / 2) * kl(), exact(unit.draw(narrow.x)), parameters)
    for a, b in zip(theirs, ours, strict=True):
        torch.testing.assert_close(pixels / 2 * a, b, rtol=1e-9, atol=1e-12)


def test_the_conversion_that_users_ask_for() -> None:
    assert pytest.approx(1.54, abs=5e-3) == 0.00025 * 64 * 64 * 3 / 2


@pytest.mark.parametrize("beta", [0.5, 1.0, 4.0, 30.0])
def test_beta_vae_is_stationary_where_it_should(beta: float, exact: Exact, ppca: Any) -> None:
    """p(x|z) = N(wz, s^2): var = 1/(1 + w^2/(beta s^2)), mean = var w x/(beta s^2)."""
    known = ppca(pixels=1, latent=1)
    w, s2 = known.w.item(), float(known.variance)
    var = 1 / (1 + w * w / (beta * s2))
    encoder = known.model.posterior.net
    encoder.gain.data.fill_(var * w / (beta * s2))
    encoder.logvar.data.fill_(math.log(var))
    heads = [encoder.gain, encoder.logvar]
    assert all(g.abs().max() < 1e-12 for g in slopes(nll() + beta * kl(), exact(known.draw(known.x)), heads))
    encoder.logvar.data.add_(0.1)
    assert slopes(nll() + beta * kl(), exact(known.draw(known.x)), heads)[1].abs().max() > 1e-3


@pytest.mark.parametrize("beta", [1.0, 6.0])
def test_beta_vae_does_not_see_a_rotation(beta: float, ppca: Any, exact: Exact) -> None:
    """L(R mu, R S R') = L(mu, S) for a decoder turned back; S = s^2 I, so that it stays diagonal."""
    known = ppca(latent=2)
    known.model.posterior.net.logvar.data.fill_(-0.7)
    before = (nll() + beta * kl())(exact(known.draw(known.x))).total
    angle = torch.tensor(0.9, dtype=torch.float64)
    turn = torch.stack([torch.stack([angle.cos(), -angle.sin()]), torch.stack([angle.sin(), angle.cos()])])
    encoder, decoder = known.model.posterior.net, known.model.likelihood.net
    encoder.gain.data = turn @ encoder.gain.data
    decoder.weight.data = decoder.weight.data @ turn.T
    after = (nll() + beta * kl())(exact(known.draw(known.x))).total
    torch.testing.assert_close(after, before)


# -- importance weights ------------------------------------------------------------------------------------------------


def test_with_the_exact_posterior_every_weight_is_the_likelihood(ppca: Any) -> None:
    known = ppca()
    log_w = log_weights(known.draw(known.x, samples=50))
    torch.testing.assert_close(log_w, known.log_p(known.x).expand(50, -1), atol=1e-10, rtol=0)
    for k in (1, 5, 50):
        bound = iw_bound(k)(known.draw(known.x, samples=k))
        torch.testing.assert_close(-bound, known.log_p(known.x), atol=1e-10, rtol=0)


def test_one_sample_is_the_sampled_elbo(ppca: Any) -> None:
    known = ppca(widen=2.0)
    draw = known.draw(known.x)
    by_hand = draw.nll[0] + draw.q.log_prob(draw.z[0]) - draw.p.log_prob(draw.z[0])
    torch.testing.assert_close(iw_bound(1)(draw), by_hand)


def test_the_logged_bound_is_the_log_of_the_mean_weight(ppca: Any) -> None:
    """Fault 14: not the weighted sum of log-weights whose gradient it shares."""
    known = ppca(widen=3.0)
    draw = known.draw(known.x, samples=5)
    loss = (1.0 * iw_bound(5))(draw)
    log_w = log_weights(draw).detach()
    by_numpy = -np.log(np.exp(log_w.numpy()).mean(0)).mean()
    assert float(loss.logged["iw_bound"]) == pytest.approx(by_numpy, rel=1e-12)
    assert float(loss.logged["loss"]) == pytest.approx(by_numpy, rel=1e-12)
    surrogate = -(torch.softmax(log_w, 0) * log_weights(draw)).sum(0).mean()
    assert abs(surrogate.item() - by_numpy) > 1e-2
    parameters = list(known.model.parameters())
    ours = torch.autograd.grad(loss.total, parameters, retain_graph=True)
    for a, b in zip(ours, torch.autograd.grad(surrogate, parameters), strict=True):
        torch.testing.assert_close(a, b)


def test_the_bound_tightens_with_k(ppca: Any) -> None:
    known = ppca(widen=4.0)
    x = known.x[:20]
    with torch.no_grad():
        log_w = log_weights(known.draw(x, samples=50 * 400)).view(400, 50, 20)
    bounds = [(torch.logsumexp(log_w[:, :k], 1) - math.log(k)).mean().item() for k in (1, 5, 50)]
    assert bounds[0] < bounds[1] < bounds[2] < known.log_p(x).mean().item() + 1e-3


def test_far_out_weights_do_not_underflow(ppca: Any) -> None:
    known = ppca(sigma=0.01)
    assert torch.isfinite(iw_bound(5)(known.draw(known.x + 100.0, samples=5))).all()


def test_the_bound_reads_its_own_k_beside_a_term_with_more(ppca: Any) -> None:
    known = ppca()
    loss = (0.5 * iw_bound(2) + 0.5 * replace(iw_bound(8), name="more"))(known.draw(known.x, samples=8))
    assert loss.total.item() == pytest.approx(-known.log_p(known.x).mean().item(), rel=1e-9)


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("term", [kl(), iw_bound(5)])
def test_a_point_posterior_is_refused_in_a_sentence(term: Any) -> None:
    model = LatentModel(PointPosterior(Net(3, 2)), StandardNormal(2), BernoulliLikelihood(Net(2, 3), 1))
    with pytest.raises(Problem, match="--posterior gaussian"):
        term.check(model)
    nll().check(model)


# -- the autoencoder ---------------------------------------------------------------------------------------------------


def test_a_linear_autoencoder_is_pca() -> None:
    """At the optimum mean |x - xhat|^2 is the sum of the trailing eigenvalues of the covariance."""
    rng, latent = np.random.default_rng(0), 2
    x = (rng.normal(size=(120, 6)) @ rng.normal(size=(6, 6)) + 3).astype(np.float32)
    data = arrays.dataset(x)
    x = x.astype(np.float64)
    trailing = np.linalg.eigvalsh(np.cov(x.T, ddof=0))[: 6 - latent].sum()
    choices = Choices(latent=latent, likelihood="gaussian")
    parts = Parts(data.about, choices, 10, encoder=Net(6, latent), decoder=Net(latent, 6))
    method = card("ae").build(parts, {}).double()
    batch, parameters = Batch(torch.from_numpy(x)), list(method.model.parameters())
    optimiser = torch.optim.LBFGS(parameters, max_iter=2000, line_search_fn="strong_wolfe", tolerance_grad=1e-9)

    def closure() -> Tensor:
        optimiser.zero_grad()
        loss = method.players[0].objective(Draw(method.model, batch)).total
        loss.backward()
        return loss

    optimiser.step(closure)
    squared = 2 * (closure().item() - 6 / 2 * math.log(2 * math.pi))
    assert squared == pytest.approx(trailing, rel=1e-5)
