"""The prior of pseudo-inputs: a mixture of posteriors, read by the encoder itself, and trained beside the critic."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from elboroom.build.parts import Choices, Parts
from elboroom.build.pseudo import pseudo_inputs
from elboroom.core.batch import Batch
from elboroom.core.draw import Draw
from elboroom.core.kl import has_density
from elboroom.core.model import LatentModel
from elboroom.core.problem import Problem
from elboroom.core.vocabulary import PAD
from elboroom.data.dataset import DataSet
from elboroom.families.ball import WrappedImplicitPosterior, WrappedPosterior
from elboroom.families.pseudo import PseudoInputs, PseudoSentences, Vamp, VampImplicit, VampPrior
from elboroom.geometry.ball import Ball
from elboroom.methods import card
from elboroom.nets.recurrent import RecurrentEncoder
from elboroom.terms.evidence import kl

B, D, J = 6, 5, 2


class Net(nn.Module):
    """Linear in x."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(D, outputs)

    def forward(self, x: Tensor, u: Tensor | None = None) -> Tensor:
        out: Tensor = self.linear(x)
        return out


X = torch.randn(B, D, generator=torch.Generator().manual_seed(1)).double()


def prior(k: int = 3) -> tuple[WrappedPosterior, VampPrior]:
    posterior = WrappedPosterior(Net(2 * J), Ball(0.5)).double()
    return posterior, VampPrior(posterior, PseudoInputs(X[:k].clone()), J)


def test_its_density_is_the_mixture() -> None:
    posterior, vamp = prior()
    p, q = vamp(Batch(X)), posterior(Batch(X[:3]))
    z = q.ball.exp0(torch.randn(4, B, J).double())
    truth = torch.stack([q.log_prob(z.unsqueeze(2))[..., k] for k in range(3)]).exp().mean(0).log()
    torch.testing.assert_close(p.log_prob(z), truth)
    assert vamp.family is Vamp
    assert p.mean.shape == (J,)


def test_it_is_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    _, vamp = prior(5)
    z = torch.zeros(4, J).double()
    whole = vamp(Batch(X)).log_prob(z)
    monkeypatch.setattr("elboroom.families.pseudo.CHUNK", 2)
    torch.testing.assert_close(vamp(Batch(X)).log_prob(z), whole)


def test_on_the_data_itself_its_rate_is_the_information_of_the_batch() -> None:
    """p = 1/M sum_m q(z|x_m): the mean of log q(z_i|x_i) - log p(z_i) is I(x; z) of the batch, and at most log M."""
    posterior, vamp = prior(B)
    draw = Draw(LatentModel(posterior, vamp, nn.Identity()), Batch(X))
    pairs_ = draw.q.log_prob(draw.z[0].unsqueeze(1).clone())  # (B, B)
    information = pairs_.diagonal() - torch.logsumexp(pairs_, 1) + math.log(B)
    torch.testing.assert_close(kl()(draw), information, rtol=1e-6, atol=1e-8)
    assert information.mean() <= math.log(B)


def test_its_samples_come_from_every_component() -> None:
    posterior, vamp = prior()
    nn.init.normal_(posterior.net.linear.weight, std=1.0)
    posterior.net.linear.bias.data[J:] = -12  # all but points
    posterior.net.linear.weight.data[J:] = 0
    z = vamp(Batch(X)).sample((900,))
    assert z.shape == (900, J)
    near = (z.unsqueeze(1) - posterior(Batch(X[:3])).mean).norm(dim=-1)  # (900, 3)
    assert (near.min(1).values < 0.05).all()
    counts = near.argmin(1).bincount(minlength=3)
    assert ((counts - 300).abs() < 4 * math.sqrt(900 * 2 / 9)).all()


def test_pseudo_inputs_have_a_gradient_and_the_encoder_is_no_part_of_them() -> None:
    _, vamp = prior()
    assert [name for name, _ in vamp.named_parameters()] == ["pseudo.x"]
    vamp(Batch(X)).rsample((20,)).sum().backward()
    assert vamp.pseudo.x.grad.any()


def test_a_posterior_without_a_density_leaves_a_prior_without_one() -> None:
    posterior = WrappedImplicitPosterior(Net(J + 4), Ball(0.5), 4, 4, J, linear=False)
    vamp = VampPrior(posterior, PseudoInputs(X.float()), J)
    assert vamp.family is VampImplicit
    assert not has_density(vamp.family)
    assert vamp(Batch(X)).sample((7,)).shape == (7, J)


def test_sentences_are_read_from_their_word_vectors() -> None:
    """Pseudo-inputs that are sentences are read as these are, padding unread, whatever vectors the words come to have."""
    net = RecurrentEncoder("lstm", 20, 2 * J, embed=8, hidden=8)
    ids = torch.tensor([[1, 5, 6, 7, 2], [1, 9, 2, PAD, PAD], [1, 4, 8, 2, PAD]])
    lengths = (ids != PAD).sum(1)
    pseudo, rows = PseudoSentences(ids, lengths, 8), torch.tensor([2, 0, 1, 1])
    for _ in range(2):
        torch.testing.assert_close(pseudo.read(net, rows), net(ids)[rows])
        net.embedding.weight.data.mul_(3)
    pseudo.x.data += 0.5
    assert not torch.isclose(pseudo.read(net, rows), net(ids)[rows]).any(), "and beside them what is learned"
    pseudo.read(net, rows).sum().backward()
    assert pseudo.x.grad is not None
    assert pseudo.x.grad[ids != PAD].any(-1).all()
    assert net.embedding.weight.grad is None, "words are moved by the sentences they stand in, not by the prior"
    assert set(pseudo.state_dict()) == {"x", "ids", "lengths"}


@pytest.mark.parametrize("draws", [3, 500])
def test_no_pseudo_input_is_read_twice_for_one_sample(draws: int) -> None:
    posterior, vamp = prior(6)
    read, law = list[int](), vamp(Batch(X))
    posterior.net.register_forward_hook(lambda net, x, out: read.append(len(out)))
    assert law.sample((draws,)).shape == (draws, J)
    assert sum(read) <= 6


def test_a_method_takes_as_many_as_it_is_told(pixels: DataSet) -> None:
    for told, count in ((7, 7), (None, 500)):
        parts = Parts(pixels.about, Choices(latent=3, net="mlp-300", pseudo_inputs=told), 8, pixels)
        made = card("apo-vae-vamp").build(parts, {})
        assert len(made.model.prior.pseudo) == count
        assert [id(p) for p in made.owned["pseudo"]] == [id(made.model.prior.pseudo.x)]


def test_another_prior_or_posterior_is_refused(pixels: DataSet) -> None:
    for more in ({"prior": "wrapped"}, {"posterior": "gaussian"}):
        with pytest.raises(Problem, match=r"--(prior|posterior)"):
            card("apo-vae-vamp").build(Parts(pixels.about, Choices(latent=3, **more), 8), {})


def test_every_row_stands_among_them_before_any_stands_twice(vectors: DataSet) -> None:
    train = len(vectors.splits["train"])
    for count in (train - 3, train, 2 * train + 5):
        x = pseudo_inputs(Parts(vectors.about, Choices(), 8, vectors), nn.Identity(), count).x
        counts = torch.unique(x, dim=0, return_counts=True)[1]
        assert len(x) == count
        assert len(counts) == min(count, train)
        assert counts.max() - counts.min() <= 1
