"""Posteriors refined by gradient steps: the steps, the gradient through them, and what evaluation makes of them."""

from __future__ import annotations

import math
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
from contract import FIT, Bench
from linear import Ppca
from torch import Tensor, nn
from torch.func import functional_call

from elboroom.core import distributed
from elboroom.core.batch import Batch
from elboroom.core.draw import Draw
from elboroom.core.kl import kl_divergence
from elboroom.core.method import Method, adam
from elboroom.core.model import LatentModel
from elboroom.core.problem import Problem
from elboroom.data.dataset import DataSet
from elboroom.evaluate.codes import code_table
from elboroom.families.gaussian import Gaussian, GaussianPosterior, StandardNormal
from elboroom.families.mixture import GaussianVampPrior
from elboroom.families.pixels import BernoulliLikelihood
from elboroom.families.point import PointPosterior
from elboroom.families.pseudo import PseudoInputs
from elboroom.families.refined import Origin, Refined, Through, twice_differentiable
from elboroom.methods import card
from elboroom.runs.lifecycle import load, train
from elboroom.terms.evidence import kl, log_weights, nll
from elboroom.terms.refinement import amortised, unrefined
from elboroom.training import session
from elboroom.training.batches import Batches, reseed
from elboroom.training.session import Own
from elboroom.training.spec import specify
from elboroom.weights.schedules import Linear

B, D, J = 3, 5, 2


class Net(nn.Module):
    """A small smooth net with a dropout of its own."""

    def __init__(self, inputs: int, outputs: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(inputs, 4), nn.Tanh(), nn.Dropout(dropout), nn.Linear(4, outputs))

    def forward(self, x: Tensor, u: Tensor | None = None) -> Tensor:
        out: Tensor = self.layers(x)
        return out


def refined(model: LatentModel, **options: Any) -> LatentModel:
    """The same model with a refined posterior, in training."""
    posterior = Refined(model.posterior, model.prior, model.likelihood, **options)
    return LatentModel(posterior, model.prior, model.likelihood).double().train()


def curved(dropout: float = 0.0, **options: Any) -> LatentModel:
    """A model whose decoder is no linear map."""
    torch.manual_seed(2)
    first, px = GaussianPosterior(Net(D, 2 * J)), BernoulliLikelihood(Net(J, D, dropout), 1)
    return refined(LatentModel(first, StandardNormal(J), px), **options)


def linear(**options: Any) -> LatentModel:
    """Linear encoder, linear decoder."""
    return refined(Ppca(widen=3.0).model, **options)


def data() -> Batch:
    return Batch(torch.rand(B, D, generator=torch.Generator().manual_seed(1), dtype=torch.float64))


def loss(model: LatentModel, batch: Batch | None = None) -> Tensor:
    """The objective with the same noise every time."""
    reseed(3)
    return (nll() + 0.7 * kl())(Draw(model, batch or data())).total


def gradient(model: LatentModel, batch: Batch | None = None) -> list[Tensor]:
    return list(torch.autograd.grad(loss(model, batch), list(model.parameters())))


# -- the steps -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("through", ["exact", "difference", "nothing"])
def test_the_steps_are_those_of_sgd_with_momentum(through: Through, monkeypatch: pytest.MonkeyPatch) -> None:
    """On nll + w kl, summed over examples, with noise of its own in every step."""
    steps, lr = 4, 0.05
    noises = torch.randn(steps, B, J).double()
    left = iter(noises)
    monkeypatch.setattr(distributed, "normal", lambda shape, like, rows: next(left))
    model = curved(steps=steps, lr=lr, momentum=0.5, clip=0.0, weight=Linear(0.2, 1.0, 10), through=through)
    batch = Batch(data().x, step=5)
    q = model.posterior(batch)
    at = [t.detach().clone().requires_grad_() for t in (q.first.loc, q.first.logvar)]
    sgd = torch.optim.SGD(at, lr=lr, momentum=0.5)
    for noise in noises:
        now, z = Gaussian(*at), at[0] + (0.5 * at[1]).exp() * noise
        rate = kl_divergence(now, model.prior(batch), lambda: torch.empty(0)).sum()
        sgd.zero_grad()
        (0.6 * rate - model.likelihood(z.unsqueeze(0), batch).log_prob(batch.x).sum()).backward()
        sgd.step()
    torch.testing.assert_close(q.loc, at[0])
    torch.testing.assert_close(q.logvar, at[1])


def test_a_gradient_is_clipped_for_each_example_alone() -> None:
    posterior = linear(steps=1, lr=1.0, clip=0.5).posterior
    batch = data()
    reseed(3)
    q = posterior(batch)
    for now, first in ((q.loc, q.first.loc), (q.logvar, q.first.logvar)):
        norms = (now - first).norm(dim=1)
        assert (norms <= 0.5 + 1e-12).all()
    assert torch.isclose((q.loc - q.first.loc).norm(dim=1), torch.tensor(0.5).double()).any()
    slope = torch.tensor([[3.0, 4.0], [0.03, 0.04], [0.0, 0.0]]).double()
    torch.testing.assert_close(posterior.clipped(slope)[0], slope[0] / 10)
    assert torch.equal(posterior.clipped(slope)[1:], slope[1:])


@pytest.mark.parametrize("through", ["exact", "difference", "nothing"])
def test_each_step_has_noise_of_its_own(through: Through, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Tensor] = []
    normal = distributed.normal

    def kept(*given: Any) -> Tensor:
        drawn.append(normal(*given))
        return drawn[-1]

    monkeypatch.setattr(distributed, "normal", kept)
    gradient(curved(steps=3, through=through)) if through != "nothing" else loss(curved(steps=3, through=through))
    assert len(drawn) == 4, "three steps and the sample of the loss, none drawn again for the gradient"
    assert len({noise.sum().item() for noise in drawn}) == 4


# -- the gradient through them -------------------------------------------------------------------------------------


@pytest.mark.parametrize("clip", [0.0, 0.5])
@pytest.mark.parametrize("make", [linear, curved])
def test_the_exact_gradient_is_that_of_finite_differences(make: Any, clip: float) -> None:
    """Of the loss at lambda_K in encoder, decoder and prior, through every step."""
    model = make(steps=3, lr=0.1, momentum=0.5, clip=clip)
    names = [name for name, _ in model.named_parameters()]

    class Value(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self) -> Tensor:
            return loss(self.model)

    value = Value()

    def run(*tensors: Tensor) -> Tensor:
        made: Tensor = functional_call(value, {f"model.{n}": t for n, t in zip(names, tensors, strict=True)}, ())
        return made

    assert torch.autograd.gradcheck(run, tuple(p.detach().clone().requires_grad_() for p in model.parameters()))


def test_the_difference_agrees_where_the_prior_is_made_of_the_encoder() -> None:
    """A VampPrior reads the encoder in every inner step: its weights get a gradient from there too."""
    torch.manual_seed(2)
    first, px = GaussianPosterior(Net(D, 2 * J)), BernoulliLikelihood(Net(J, D), 1)
    prior = GaussianVampPrior(first, PseudoInputs(torch.rand(4, D)))
    models = [
        refined(LatentModel(first, prior, px), steps=3, lr=0.3, clip=0.0, through=through)
        for through in ("exact", "difference")
    ]
    found = [gradient(model) for model in models]
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("clip", [0.0, 0.5])
def test_the_difference_agrees_with_the_exact_gradient(clip: float, dropout: float) -> None:
    """The same dropout, too, in each step and when it is gone through again."""
    options: dict[str, Any] = {"dropout": dropout, "steps": 4, "lr": 0.1, "clip": clip}
    exact, difference = (curved(**options, through=through) for through in ("exact", "difference"))
    assert loss(exact).item() == loss(difference).item()
    for a, b in zip(gradient(exact), gradient(difference), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-8)


def test_the_gradient_through_the_steps_is_another_than_the_direct_one() -> None:
    exact = gradient(curved(steps=4, lr=0.1))
    model = curved(steps=4, lr=0.1, through="nothing")
    direct = torch.autograd.grad(loss(model), list(model.likelihood.parameters()))
    through = exact[-len(direct) :]
    assert all(not torch.allclose(a, b, rtol=1e-3) for a, b in zip(direct, through, strict=True))


def test_nothing_comes_back_where_nothing_should() -> None:
    """The direct gradient alone: that of the loss with q held where it is, and none for the encoder."""
    model = curved(steps=3, through="nothing")
    total = loss(model)
    grads = torch.autograd.grad(total, list(model.parameters()), allow_unused=True)
    reseed(3)
    held = model.posterior(data())
    assert not held.loc.requires_grad
    draw = Draw(model, data())
    draw.q = held
    direct = torch.autograd.grad((nll() + 0.7 * kl())(draw).total, list(model.likelihood.parameters()))
    encoder = len(list(model.posterior.parameters()))
    assert all(g is None for g in grads[:encoder])
    for a, b in zip(grads[encoder:], direct, strict=True):
        assert torch.equal(a, b)


def test_kernels_without_a_second_derivative_are_avoided() -> None:
    """Fused attention has none; the plain one is taken while a step is made that will be gone through again."""

    class Attends(Net):
        def forward(self, x: Tensor, u: Tensor | None = None) -> Tensor:
            h = x.view(1, 1, len(x), -1)
            own = nn.functional.scaled_dot_product_attention(h, h, h, attn_mask=torch.eye(len(x), dtype=torch.bool))
            return super().forward(own.view(x.shape))

    px = BernoulliLikelihood(Attends(J, D), 1)
    model = refined(LatentModel(GaussianPosterior(Net(D, 2 * J)), StandardNormal(J), px), steps=2)
    assert all(torch.isfinite(g).all() for g in gradient(model))


def of_sentences(sentences: DataSet, net: str, order: Any, **options: Any) -> tuple[LatentModel, Batch]:
    """A model of sentences in double precision, as far from linear as a trained one, and a batch."""
    small = {"latent": J, "embed": 6, "hidden": 6, "dropout": 0.0, "net": net, "inner_steps": 4, "inner_lr": 0.1}
    model = session.build(specify("sa-vae", sentences, "array", None, small | options), Own(sentences)).model.double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(10)
    return model.train(), Batches(sentences, "train", 8, 0, (), torch.device("cpu"), order)(0)


NETS = [("lstm", "mixed"), ("lstm", "constant"), ("gru", "mixed"), ("transformer", "mixed")]


@pytest.mark.parametrize(("net", "order"), NETS)
def test_through_a_decoder_of_sentences(sentences: DataSet, net: str, order: Any) -> None:
    found = [gradient(*of_sentences(sentences, net, order, through=through)) for through in ("exact", "difference")]
    exact, difference = (torch.cat([g.flatten() for g in grads]) for grads in found)
    assert (exact - difference).norm() < 1e-5 * exact.norm()


@pytest.mark.parametrize(("net", "order"), NETS)
def test_a_gradient_that_can_be_differentiated_again_is_the_same_gradient(
    sentences: DataSet, net: str, order: Any
) -> None:
    """Also where codes depend on the weights of the decoder, as they do after a step: each path is counted once."""
    model, batch = of_sentences(sentences, net, order)
    weights = [p for p in model.likelihood.parameters() if p.requires_grad]
    made = torch.stack([p.mean() for p in weights]).sum() * torch.randn(1, 8, J).double()
    with twice_differentiable(model.likelihood, True):
        total = model.likelihood(made, batch).log_prob(batch.x).sum()
    once = torch.autograd.grad(total, weights, retain_graph=True)
    again = torch.autograd.grad(total, weights, create_graph=True)
    for a, b in zip(once, again, strict=True):
        torch.testing.assert_close(a, b)


# -- methods -------------------------------------------------------------------------------------------------------


def ready(bench: Bench, name: str, **options: Any) -> Method:
    method = session.build(specify(name, bench.data, "array", None, {**FIT, **options}), Own(bench.data))
    assert isinstance(method, Method)
    method.prepare(adam(FIT["lr"]))
    return method


def test_without_steps_it_is_the_vae_bit_for_bit(bench: Bench) -> None:
    ends = []
    for name, options in (("sa-vae", {"inner_steps": 0}), ("vae", {})):
        method = ready(bench, name, **options)
        loop = bench.loop(method)
        for step in range(3):
            loop.step(step)
        ends.append({key.replace(".first.", "."): value for key, value in method.model.state_dict().items()})
    assert ends[0].keys() == ends[1].keys()
    assert all(torch.equal(ends[0][key], ends[1][key]) for key in ends[0])


def test_vae_svi_teaches_the_encoder_by_its_own_elbo_and_the_decoder_by_the_refined_one(bench: Bench) -> None:
    method = ready(bench, "vae-svi", inner_steps=2)
    batch = bench.loop(method).batches(0)
    decoder, encoder = method.players
    reseed(1)
    draw = method.draw(encoder, batch)
    q, first = draw.q, draw.q.first
    reseed(2)
    found = torch.autograd.grad(encoder.objective(draw).total, method.owned["encoder"])
    reseed(2)
    plain = Draw(LatentModel(method.model.posterior.first, method.model.prior, method.model.likelihood), batch)
    expected = torch.autograd.grad((nll() + 1.0 * kl())(plain).total, method.owned["encoder"])
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    assert not torch.equal(q.loc, first.loc)
    total = decoder.objective(draw).total
    assert all(g is None for g in torch.autograd.grad(total, method.owned["encoder"], allow_unused=True))


def test_vae_svi_kl_draws_the_encoder_to_the_refined_posterior(bench: Bench) -> None:
    method = ready(bench, "vae-svi-kl", inner_steps=2)
    draw = method.draw(method.players[1], bench.loop(method).batches(0))
    q, first = draw.q, draw.q.first
    value = amortised()(draw)
    by_hand = 0.5 * ((first.loc - q.loc) ** 2 / q.variance + first.variance / q.variance - first.logvar + q.logvar - 1)
    torch.testing.assert_close(value, by_hand)
    assert value.sum() > 0
    grads = torch.autograd.grad(
        method.players[1].objective(draw).total, list(method.model.parameters()), allow_unused=True
    )
    encoder = {id(p) for p in method.owned["encoder"]}
    for parameter, grad in zip(method.model.parameters(), grads, strict=True):
        assert (grad is not None) == (id(parameter) in encoder)


def test_svi_has_no_encoder(bench: Bench, pixels: DataSet) -> None:
    method = ready(bench, "svi")
    assert not list(method.model.posterior.parameters())
    q = method.model.posterior(bench.loop(method).batches(0))
    assert not q.first.loc.any()
    assert not q.first.logvar.any()
    assert q.loc.abs().min() > 0
    with pytest.raises(Problem, match="remove --posterior"):
        session.build(specify("svi", pixels, "array", None, {"posterior": "iaf"}), Own(pixels))
    with pytest.raises(Problem, match="this method has no encoder"):
        session.build(specify("svi", pixels, "array", None, {}), Own(pixels, encoder=nn.Identity()))


def test_only_gaussians_are_refined() -> None:
    with pytest.raises(Problem, match="use --posterior gaussian"):
        Refined(PointPosterior(nn.Identity()), StandardNormal(J), nn.Identity())


def test_the_terms_have_names_of_their_own() -> None:
    assert [t.name for t in (unrefined(nll()), unrefined(kl()), amortised())] == ["nll_first", "kl_first", "kl_refined"]
    assert card("vae-svi").options[0].name == "inner_steps"


# -- evaluation ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_it_refines_where_gradients_are_off(mode: Any) -> None:
    model = curved(steps=5, lr=0.1).eval()
    expected = model.posterior(data())
    with mode():
        batch = Batch(data().x + 0, index=torch.arange(B))
        q = model.posterior(batch)
        draw = Draw(model, batch, samples=4)
        assert torch.isfinite(log_weights(draw)).all()
    assert torch.equal(q.loc, expected.loc)
    assert not q.loc.requires_grad
    assert not torch.equal(q.loc, q.first.loc)


def test_in_evaluation_a_code_depends_on_nothing_but_x() -> None:
    """Neither on its batch nor on the noise, the step or the weight of the moment."""
    model = curved(steps=5, lr=0.1, weight=Linear(0.0, 1.0, 100)).eval()
    q = model.posterior(data())
    torch.manual_seed(77)
    again = model.posterior(Batch(data().x, step=50))
    assert torch.equal(q.loc, again.loc)
    one = model.posterior(Batch(data().x[1:2]))
    torch.testing.assert_close(one.loc[0], q.loc[1])
    torch.testing.assert_close(one.logvar[0], q.logvar[1])
    whole = deepcopy(model)
    whole.posterior.weight = Linear(1.0, 1.0, 1)
    assert torch.equal(whole.posterior(data()).loc, q.loc), "the weight of evaluation is 1"


def test_the_bound_rises_to_the_evidence() -> None:
    """A spoilt posterior of probabilistic PCA comes back to the exact one; the bound never passes log p(x)."""
    spoilt = Ppca(widen=9.0)
    elbo = {}
    for steps in (0, 5, 40):
        model = refined(spoilt.model, steps=steps, lr=0.02, momentum=0.5).eval()
        with torch.no_grad():
            draw = Draw(model, Batch(spoilt.x), samples=200)
            elbo[steps] = log_weights(draw).mean().item()
    evidence = spoilt.log_p(spoilt.x).mean().item()
    assert elbo[0] < elbo[5] < elbo[40] < evidence
    assert evidence - elbo[40] < 0.25 * (evidence - elbo[0])


def test_the_density_is_that_of_the_last_gaussian_so_that_importance_weights_are_right() -> None:
    """1/K sum_k p(x, z_k) / q(z_k|x) is an unbiased p(x) under any proposal with a density."""
    spoilt = Ppca(widen=2.0)
    model = refined(spoilt.model, steps=3, lr=0.02).eval()
    x = spoilt.x[:20]
    with torch.inference_mode():
        log_w = log_weights(Draw(model, Batch(x), samples=20_000))
    found = torch.logsumexp(log_w, 0) - math.log(len(log_w))
    error = (torch.softmax(log_w, 0).var(0) * len(log_w)).sqrt()
    assert ((found - spoilt.log_p(x)).abs() < 5 * error + 1e-9).all()
    with torch.no_grad():
        q = model.posterior(Batch(x))
    assert type(q) is Gaussian


def test_a_run_is_measured_and_its_codes_follow_the_decoder(vectors: DataSet, tmp_path: Path) -> None:
    """A code of SVI is made by the decoder alone, so that codes kept in a folder are those of its weights."""
    run = train("svi", vectors, tmp_path / "run", **{**FIT, "inner_steps": 3, "steps": 2})
    found = load(run.folder, data=vectors).evaluate(samples=3)
    assert math.isfinite(found["elbo"]["value"])
    assert math.isfinite(found["log_likelihood"]["value"])
    before = code_table(run).mu.copy()
    with torch.no_grad():
        for parameter in run.model.likelihood.parameters():
            parameter.add_(0.1)
    assert abs(code_table(run).mu - before).max() > 0


def test_origin_is_the_prior_for_every_example() -> None:
    q = Origin(J)(data())
    assert q.loc.shape == q.logvar.shape == (B, J)
    assert not q.loc.any()
