"""Mixture priors: their density, their draws, and the two identities: N(0, I) in every part, and the data as pseudo-inputs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.distributions import Categorical, Independent, MixtureSameFamily, Normal

from elboroom.build.parts import Choices, Parts
from elboroom.build.pseudo import LONGEST, pseudo_inputs
from elboroom.core import distributed
from elboroom.core.batch import Batch
from elboroom.core.draw import Draw
from elboroom.core.method import Group, Method, Player, descend
from elboroom.core.model import LatentModel
from elboroom.core.problem import Problem
from elboroom.data import arrays
from elboroom.data.dataset import About, DataSet
from elboroom.divergences import compare
from elboroom.evaluate.likelihood.measure import mutual_information
from elboroom.evaluate.split import Split
from elboroom.families.gaussian import Gaussian, GaussianPosterior, StandardNormal
from elboroom.families.mixture import GaussianVampPrior, Mixture, MixturePrior
from elboroom.families.pixels import GaussianLikelihood
from elboroom.families.pseudo import PseudoImages, PseudoInputs
from elboroom.nets.recurrent import RecurrentEncoder
from elboroom.terms.evidence import kl, nll

NOTHING = Batch(torch.empty(0))


def mixture(latent: int, parts: int = 3) -> Mixture:
    noise = torch.Generator().manual_seed(2)
    logits, loc, logvar = (
        torch.randn(*shape, generator=noise, dtype=torch.float64) for shape in ((parts,), *[(parts, latent)] * 2)
    )
    return Mixture(torch.log_softmax(logits, 0), 2 * loc, logvar - 1)


def reference(p: Mixture) -> MixtureSameFamily:
    parts = Independent(Normal(p.loc, torch.exp(0.5 * p.logvar)), 1)
    return MixtureSameFamily(Categorical(logits=p.log_weights), parts)


def grid(p: Mixture, points: int) -> tuple[Tensor, float]:
    """Points on all sides of the mixture, and the volume of each."""
    reach = 8 * float(torch.exp(0.5 * p.logvar).max()) + float(p.loc.abs().max())
    axis = torch.linspace(-reach, reach, points, dtype=torch.float64)
    latent = p.loc.shape[1]
    return torch.cartesian_prod(*[axis] * latent).view(-1, latent), float(axis[1] - axis[0]) ** latent


# -- the density -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("latent", [1, 2, 7])
def test_density_and_mean_are_those_of_torch(latent: int) -> None:
    p, z = mixture(latent), torch.randn(4, 5, latent).double() * 3
    torch.testing.assert_close(p.log_prob(z), reference(p).log_prob(z), rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(p.mean, reference(p).mean)
    torch.testing.assert_close(p.variance, reference(p).variance)
    assert p.mean.shape == (latent,)


@pytest.mark.parametrize("latent", [1, 2])
def test_it_integrates_to_one(latent: int) -> None:
    p = mixture(latent)
    points, volume = grid(p, 1201)
    assert (p.log_prob(points).exp().sum() * volume).item() == pytest.approx(1.0, abs=1e-9)


def test_narrow_parts_lose_no_digits_in_single_precision() -> None:
    """z^2 / s^2 is a million here, and what is left of it a few nats."""
    p = Mixture(torch.zeros(1), torch.full((1, 2), 3.0), torch.full((1, 2), math.log(1e-5)))
    z = (3 + 1e-2 * torch.randn(100, 2)).float()
    wide = Normal(3.0, math.exp(0.5 * p.logvar[0, 0].double().item()))
    torch.testing.assert_close(p.log_prob(z).double(), wide.log_prob(z.double()).sum(-1), rtol=1e-6, atol=1e-4)


def test_gradients_are_those_of_finite_differences() -> None:
    p, z = mixture(2), torch.randn(3, 2).double().requires_grad_()
    tensors = [t.detach().requires_grad_() for t in (p.log_weights, p.loc, p.logvar)]
    assert torch.autograd.gradcheck(lambda z, *of: Mixture(*of).log_prob(z), (z, *tensors))

    def draw(loc: Tensor, logvar: Tensor) -> Tensor:
        torch.manual_seed(0)
        return Mixture(p.log_weights, loc, logvar).rsample((4,))

    assert torch.autograd.gradcheck(draw, tuple(tensors[1:]))


# -- draws -------------------------------------------------------------------------------------------------------------


def test_draws_follow_the_density() -> None:
    """Against torch's sampler by an MMD test, with moments and the share of each part; a moved part would be seen."""
    p, n = mixture(2), 20_000
    z, truth = p.sample((n,)), reference(p).sample((n,))
    assert compare(z[:700], truth[:700], permutations=200).p > 0.01
    moved = Mixture(p.log_weights, p.loc + torch.tensor([[0.8], [0], [0]]), p.logvar)
    assert compare(moved.sample((700,)), truth[:700], permutations=200).p < 0.01
    assert ((z.mean(0) - p.mean).abs() < 4.5 * z.std(0) / math.sqrt(n)).all()
    torch.testing.assert_close(z.var(0), reference(p).variance, rtol=0.06, atol=0)
    far = Mixture(p.log_weights, 100 * torch.arange(3.0).double()[:, None], torch.zeros(3, 1).double())
    share = torch.bincount((far.sample((n,))[:, 0] / 100).round().long(), minlength=3) / n
    assert (share - p.log_weights.exp()).abs().max() < 5 * 0.5 / math.sqrt(n)


def test_two_processes_draw_what_one_would(monkeypatch: pytest.MonkeyPatch) -> None:
    p = mixture(2)
    torch.manual_seed(1)
    whole = p.sample((6,))
    monkeypatch.setattr(distributed, "world", lambda: 2)
    parts = []
    for rank in (0, 1):
        monkeypatch.setattr(distributed, "rank", lambda rank=rank: rank)
        torch.manual_seed(1)
        parts.append(p.sample((3,)))
    torch.testing.assert_close(torch.cat(parts), whole)


# -- the learned mixture -----------------------------------------------------------------------------------------------


class Net(nn.Module):
    """A small net of x, deaf to u."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(inputs, 8), nn.Tanh(), nn.Linear(8, outputs)).double()

    def forward(self, x: Tensor, u: Tensor | None = None) -> Tensor:
        out: Tensor = self.layers(x.double())
        return out


def model(prior: Any, latent: int = 3) -> LatentModel:
    torch.manual_seed(4)
    encoder, decoder = Net(5, 2 * latent), Net(latent, 5)
    posterior = GaussianPosterior(encoder)
    return LatentModel(posterior, prior(posterior), GaussianLikelihood(decoder, 1)).double()


X = torch.randn(11, 5, generator=torch.Generator().manual_seed(9), dtype=torch.float64)


def test_it_starts_with_variance_one() -> None:
    torch.manual_seed(0)
    p = MixturePrior(4, 400)(NOTHING)
    z = p.sample((50_000,))
    torch.testing.assert_close(z.var(0), torch.ones(4), atol=0.12, rtol=0)
    assert len(torch.unique(p.loc[:, 0])) == 400, "parts that start alike stay alike"


def test_with_every_part_standard_normal_it_is_the_vae_with_a_sampled_rate() -> None:
    """Values and gradients of nll + kl, whatever the weights."""
    made = MixturePrior(3, 4)
    for tensor in (made.loc, made.logvar):
        nn.init.zeros_(tensor)
    nn.init.normal_(made.logits)
    found = []
    for prior in (made, StandardNormal(3)):
        vae = model(lambda posterior, prior=prior: prior)
        torch.manual_seed(1)
        draw = Draw(vae, Batch(X), samples=4)
        sampled = (draw.q.log_prob(draw.z) - draw.p.log_prob(draw.z)).mean(0)
        if prior is made:
            assert torch.equal(kl()(draw), sampled)
        loss = nll().mean(draw) + sampled.mean()
        shared = [*vae.posterior.parameters(), *vae.likelihood.parameters()]
        found.append([loss, *torch.autograd.grad(loss, shared)])
    for left, right in zip(*found, strict=True):
        torch.testing.assert_close(left, right, rtol=1e-10, atol=1e-12)


def test_every_part_of_it_learns() -> None:
    vae = model(lambda posterior: MixturePrior(3, 4))
    kl().mean(Draw(vae, Batch(X))).backward()
    assert all(p.grad is not None and p.grad.any() for p in vae.prior.parameters())


# -- the mixture of posteriors -----------------------------------------------------------------------------------------


def vamp(posterior: GaussianPosterior) -> GaussianVampPrior:
    return GaussianVampPrior(posterior, PseudoInputs(X.clone()))


def test_with_the_batch_as_pseudo_inputs_the_mean_rate_is_the_mutual_information() -> None:
    """As the evaluation estimates it over a split, the same noise: E log q(z|x) - log 1/M sum_m q(z|x_m)."""
    vae = model(vamp)
    data = arrays.dataset(X.numpy().astype(np.float32))
    rows = data.x(np.arange(11)).double()
    vae.prior.pseudo.x.data.copy_(rows)
    split = Split(vae, data, "train", np.arange(11))
    loc, logvar = split.codes
    torch.manual_seed(0)
    draw = Draw(vae, Batch(rows))
    assert logvar is not None
    draw.__dict__["q"] = Gaussian(loc.double(), logvar.double())
    draw.__dict__["p"] = Mixture(vae.prior(NOTHING).log_weights, loc.double(), logvar.double())
    assert kl().mean(draw).item() == pytest.approx(mutual_information(split).value, rel=1e-9)
    torch.manual_seed(0)
    own = Draw(vae, Batch(rows))
    pairs_ = own.log_q_pairs.sum(-1)  # (B, M)
    information = pairs_.diagonal() - torch.logsumexp(pairs_, 1) + math.log(11)
    torch.testing.assert_close(kl()(own), information, rtol=1e-9, atol=1e-10)
    assert 0 < kl().mean(own).item() < math.log(11)


def test_its_parts_are_the_posteriors_of_the_pseudo_inputs() -> None:
    vae = model(vamp)
    p, q = vae.prior(NOTHING), vae.posterior(Batch(X))
    torch.testing.assert_close(p.loc, q.loc)
    torch.testing.assert_close(p.logvar, q.logvar)
    torch.testing.assert_close(p.log_weights, torch.full((11,), -math.log(11), dtype=torch.float64))


def test_the_encoder_learns_through_the_prior_and_is_there_once() -> None:
    vae = model(vamp)
    z = torch.randn(6, 3).double()
    vae.prior(NOTHING).log_prob(z).sum().backward()
    assert all(p.grad is not None and p.grad.any() for p in vae.posterior.parameters())
    assert vae.prior.pseudo.x.grad is not None
    assert [name for name, _ in vae.prior.named_parameters()] == ["pseudo.x"]
    assert not [key for key in vae.state_dict() if key.startswith("prior.") and key != "prior.pseudo.x"]
    descend(vae, nll() + kl())
    groups = {"encoder": Group(vae.posterior), "decoder": Group([vae.likelihood, vae.prior])}
    method = Method(vae, players=[Player(nll() + kl(), moves=("encoder", "decoder"))], **groups)
    assert len(method.owned["encoder"]) == 4, "those of the net, and of nothing else"


def test_pixels_of_pseudo_inputs_stay_between_zero_and_one() -> None:
    x = torch.rand(6, 1, 4, 4)
    x[0], x[1] = 0.0, 1.0
    pseudo, seen = PseudoImages(x), list[Tensor]()

    def net(x: Tensor, u: Tensor | None) -> Tensor:
        seen.append(x)
        return x

    pseudo.read(net, torch.arange(6))  # type: ignore[arg-type]
    torch.testing.assert_close(seen[0], x.clamp(0.01, 0.99), atol=1e-6, rtol=0)
    seen[0].sum().backward()
    assert pseudo.x.grad is not None
    assert pseudo.x.grad.all(), "black and white pixels can be learned too"
    pseudo.x.data += 100 * torch.randn_like(pseudo.x)
    pseudo.read(net, torch.tensor([2]))  # type: ignore[arg-type]
    assert seen[1].shape == (1, 1, 4, 4)
    assert 0 <= seen[1].min() <= seen[1].max() <= 1


@pytest.mark.parametrize("kind", ["pixels", "vectors"])
def test_they_start_at_training_examples_with_their_labels(kind: str, request: pytest.FixtureRequest) -> None:
    data: DataSet = request.getfixturevalue(kind).hold_out(0.5)
    parts = Parts(data.about, Choices(latent=2, given="label"), data=data)
    pseudo = pseudo_inputs(parts, nn.Identity(), 30)
    x = torch.sigmoid(pseudo.x) if kind == "pixels" else pseudo.x
    train = data.splits["train"]
    distance = torch.cdist(x.detach().flatten(1).double(), data.x(train).flatten(1).double())
    assert distance.amin(1).max() < (0.3 if kind == "pixels" else 1e-3)
    assert pseudo.u is not None
    assert torch.equal(pseudo.u.detach(), data.u(train[distance.argmin(1).numpy()], ["label"]))
    assert len(torch.unique(distance.argmin(1))) == 30, "no example twice"
    assert len(pseudo_inputs(parts, nn.Identity())) == 500, "of 100 examples, some twice"
    torch.manual_seed(3)
    noise = torch.rand(1)
    for where in (data, None):
        torch.manual_seed(3)
        unseen = pseudo_inputs(Parts(data.about, Choices(latent=2), data=where), nn.Identity(), 30)
        assert unseen.x.shape == pseudo.x.shape, "a checkpoint fits, data or not"
        assert torch.equal(torch.rand(1), noise), "and the noise of the weights is where it was"


def test_sentences_are_pseudo_inputs_as_word_vectors() -> None:
    """At the start their posteriors are those of the sentences; only the vectors of words that are there learn."""
    about = About("sentences", "tokens", (7,), 3, {}, 12)
    x = torch.tensor([[1, 5, 6, 7, 2, 0, 0], [1, 8, 2, 0, 0, 0, 0], [1, 4, 4, 9, 10, 11, 2]])

    class Text:
        splits = {"train": np.arange(3)}  # noqa: RUF012

        def x(self, rows: Any) -> Tensor:
            return x[rows]

    posterior = GaussianPosterior(RecurrentEncoder("lstm", 12, 4, embed=3, hidden=5, trunk="b"))
    prior = GaussianVampPrior(posterior, pseudo_inputs(Parts(about, Choices(latent=2), data=Text()), posterior.net, 3))  # type: ignore[arg-type]
    p, q = prior(NOTHING), posterior(Batch(x))
    order = (p.loc.unsqueeze(1) - q.loc).square().sum(-1).argmin(1)
    assert sorted(order.tolist()) == [0, 1, 2]
    torch.testing.assert_close(p.loc, q.loc[order])
    torch.testing.assert_close(p.logvar, q.logvar[order])
    assert prior.pseudo.x.shape == (3, 8, 3)
    p.log_prob(torch.randn(4, 2)).sum().backward()
    assert prior.pseudo.x.grad is not None
    moved = prior.pseudo.x.grad.abs().sum(-1) > 0
    assert torch.equal(moved.sum(1), torch.tensor([5, 3, 7])[order])
    assert posterior.net.embedding.weight.grad is None, "the words themselves are not read"
    assert all(w.grad is not None for name, w in posterior.net.named_parameters() if name != "embedding.weight")
    unseen = pseudo_inputs(Parts(about, Choices(latent=2)), posterior.net, 3)
    assert unseen.state_dict().keys() == prior.pseudo.state_dict().keys()
    assert all(unseen.state_dict()[k].shape == v.shape for k, v in prior.pseudo.state_dict().items())


def test_long_sentences_end_where_they_are_cut() -> None:
    about = About("sentences", "tokens", (90,), 2, {}, 12)
    x = torch.cat([torch.ones(2, 1), torch.full((2, 88), 5), torch.full((2, 2), 2)], 1).long()[:, :90]

    class Text:
        splits = {"train": np.arange(2)}  # noqa: RUF012

        def x(self, rows: Any) -> Tensor:
            return x[rows]

    net = RecurrentEncoder("lstm", 12, 4, embed=3, hidden=5)
    pseudo = pseudo_inputs(Parts(about, Choices(latent=2), data=Text()), net, 2)  # type: ignore[arg-type]
    assert pseudo.x.shape == (2, LONGEST, 3)
    assert not pseudo.x.any(), "nothing is learned beside the words yet"
    assert pseudo.ids[0, -2:].tolist() == [5, 2]  # type: ignore[union-attr, index]
    with pytest.raises(Problem, match="`embed` and `read`"):
        pseudo_inputs(Parts(about, Choices(latent=2)), nn.Identity(), 2)
