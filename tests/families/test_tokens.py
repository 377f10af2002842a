"""The likelihood of sentences: a distribution over them, measured in nats per sentence."""

from __future__ import annotations

import math
from itertools import product

import pytest
import torch
from torch import Tensor, nn

from elboroom.core.batch import Batch
from elboroom.core.draw import Draw
from elboroom.core.model import LatentModel
from elboroom.core.problem import Problem
from elboroom.core.vocabulary import END, PAD, START
from elboroom.families.decoding import Greedy
from elboroom.families.gaussian import GaussianPosterior, StandardNormal
from elboroom.families.tokens import TokenLikelihood, Tokens
from elboroom.nets import sentences
from elboroom.terms.evidence import log_weights

V = 7
X = torch.tensor([[1, 5, 6, 2, 0], [1, 4, 4, 6, 2], [1, 2, 0, 0, 0]])


def likelihood(name: str = "lstm", latent: int = 2, **options: object) -> TokenLikelihood:
    net = sentences.decoder(name, V, latent, embed=16, hidden=6, **options)  # type: ignore[arg-type]
    for parameter in net.parameters():
        nn.init.normal_(parameter, std=0.5)
    return TokenLikelihood(net).eval()


class Bare(nn.Module):
    """The least that a decoder of one's own needs to have."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner, self.head = inner, inner.head

    def hidden(self, z: Tensor, x_in: Tensor, u: Tensor | None = None) -> Tensor:
        out: Tensor = self.inner.hidden(z, x_in, u)  # type: ignore[operator]
        return out

    def start(self, z: Tensor, u: Tensor | None = None) -> tuple[Tensor, ...]:
        state: tuple[Tensor, ...] = self.inner.start(z, u)  # type: ignore[operator]
        return state

    def step(self, tokens: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        h, state = self.inner.step(tokens, state)  # type: ignore[operator]
        return h, state


@pytest.mark.parametrize("name", ["lstm", "gru"])
def test_probabilities_of_all_sentences_sum_to_one(name: str) -> None:
    """Every sentence of up to two words that ends, and every beginning of three words: together all there is."""
    px = likelihood(name, trunk="b")
    px.net.head.bias.data[PAD] = -1e4  # type: ignore[union-attr, index]
    words = [word for word in range(V) if word not in (PAD, END)]
    total = 0.0
    for n, end in ((0, [END]), (1, [END]), (2, [END]), (3, [])):
        x = torch.tensor([[START, *said, *end] for said in product(words, repeat=n)])
        total += px(torch.ones(1, len(x), 2), Batch(x)).log_prob(x).exp().sum().item()
    assert total == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("name", ["lstm", "transformer"])
def test_uniform_logits_give_t_plus_one_ln_v(name: str) -> None:
    px = likelihood(name)
    nn.init.zeros_(px.net.head.weight)  # type: ignore[union-attr, arg-type]
    found = px(torch.randn(3, 3, 2), Batch(X)).log_prob(X)
    expected = -torch.tensor([3.0, 4.0, 1.0]) * math.log(V)
    torch.testing.assert_close(found, expected.expand(3, 3))


def test_a_distribution_of_codes_by_sentences() -> None:
    z = torch.randn(4, 3, 2)
    px = likelihood()(z, Batch(X))
    assert isinstance(px, Tokens)
    assert px.batch_shape == (4, 3)
    assert TokenLikelihood.family is Tokens
    whole = px.log_prob(X)
    for k in range(4):
        torch.testing.assert_close(Tokens(px.decoder, z[k : k + 1]).log_prob(X)[0], whole[k])


def test_nothing_is_computed_before_it_is_asked_for() -> None:
    class Never(nn.Module):
        head, start, step = nn.Identity(), None, None

        def log_prob(self, z: Tensor, x: Tensor, u: Tensor | None) -> Tensor:
            raise AssertionError

    px = TokenLikelihood(Never())(torch.zeros(1, 3, 2), Batch(X))
    with pytest.raises(AssertionError):
        px.log_prob(X)


def test_with_and_without_gradients() -> None:
    px, z = likelihood(), torch.randn(5, 3, 2, requires_grad=True)
    found = px(z, Batch(X)).log_prob(X)
    with torch.no_grad():
        torch.testing.assert_close(px(z, Batch(X)).log_prob(X), found)
    with torch.inference_mode():
        torch.testing.assert_close(px(z, Batch(X)).log_prob(X), found.detach())
    (grad,) = torch.autograd.grad(found[2, 1], z)
    assert grad[2, 1].all()
    assert grad.count_nonzero() == 2


@pytest.mark.parametrize("name", ["lstm", "gru", "transformer"])
def test_a_decoder_of_ones_own(name: str) -> None:
    ours = likelihood(name, given=3)
    own = TokenLikelihood(Bare(ours.net)).eval()
    z, batch = torch.randn(2, 3, 2), Batch(X, u=torch.eye(3))
    torch.testing.assert_close(own(z, batch).log_prob(X), ours(z, batch).log_prob(X), atol=1e-5, rtol=1e-5)
    assert own(z, batch).decode(Greedy(), 9).equal(ours(z, batch).decode(Greedy(), 9))


def test_labels_reach_every_copy() -> None:
    px, z = likelihood(given=2), torch.randn(2, 3, 2)
    one, other = torch.tensor([[1.0, 0]] * 3), torch.tensor([[0.0, 1]] * 3)
    a, b = (px(z, Batch(X, u=u)).log_prob(X) for u in (one, other))
    assert (a != b).all()
    mixed = px(z, Batch(X, u=torch.stack([one[0], other[0], one[0]]))).log_prob(X)
    torch.testing.assert_close(mixed, torch.stack([a[:, 0], b[:, 1], a[:, 2]], 1))
    assert px(z, Batch(X, u=one)).decode(Greedy(), 5).shape[:2] == (2, 3)


def test_what_was_drawn_has_a_probability() -> None:
    """Sentences come in the form in which log_prob takes them."""
    px = likelihood()(torch.randn(1, 50, 2), Batch(X))
    drawn = px.sample(longest=6)[0]
    log_p = px.log_prob(drawn)[0]
    assert torch.isfinite(log_p).all()
    assert (log_p < 0).all()


def test_in_a_model_the_bound_holds() -> None:
    """One latent dimension: IW-K and the ELBO lie below log p(x), which a grid over z integrates."""
    encoder = sentences.encoder("lstm", V, 2, embed=4, hidden=5)
    for parameter in encoder.parameters():
        nn.init.normal_(parameter, std=0.5)
    model = LatentModel(GaussianPosterior(encoder), StandardNormal(1), likelihood(latent=1)).eval()
    batch = Batch(X)
    with torch.no_grad():
        z = torch.linspace(-8, 8, 2001).view(-1, 1, 1).expand(-1, 3, 1)
        density = model.likelihood(z, batch).log_prob(X) + model.prior(batch).log_prob(z)
        truth = torch.logsumexp(density, 0) + math.log(16 / 2000)
        log_w = log_weights(Draw(model, batch, 4000))
        iw = torch.logsumexp(log_w, 0) - math.log(4000)
    torch.testing.assert_close(iw, truth, atol=0.05, rtol=0)
    assert (log_w.mean(0) < truth).all()


def test_it_is_refused_what_writes_no_sentences() -> None:
    class Deaf(nn.Module):
        head, start, step = nn.Identity(), None, None

    with pytest.raises(Problem, match="log_prob or hidden"):
        TokenLikelihood(Deaf())
