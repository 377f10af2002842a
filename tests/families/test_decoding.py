"""Decoding: greedy, drawn and by beam, against what can be counted by hand."""

from __future__ import annotations

import math
from itertools import product

import pytest
import torch
from torch import Tensor, nn

from elboroom.core.problem import Problem
from elboroom.core.vocabulary import END, PAD, START, UNK
from elboroom.families.decoding import Beam, Decoding, Greedy, Sampling
from elboroom.families.tokens import TokenLikelihood, Tokens
from elboroom.nets import sentences

V, LATENT = 9, 3


def decoder(name: str = "lstm", scale: float = 0.8) -> nn.Module:
    net = sentences.decoder(name, V, LATENT, embed=16, hidden=8)
    for parameter in net.parameters():
        nn.init.normal_(parameter, std=scale)
    return net.eval()


class Table(nn.Module):
    """A decoder whose next word depends on the last alone: logits as a table, (V, V)."""

    def __init__(self, logits: Tensor) -> None:
        super().__init__()
        self.logits, self.asked = logits, list[int]()

    def head(self, features: Tensor) -> Tensor:
        return features.clone()

    def start(self, z: Tensor, u: Tensor | None = None) -> tuple[Tensor, ...]:
        return (z,)

    def step(self, tokens: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        self.asked.append(len(tokens))
        assert len(state[0]) == len(tokens)
        return self.logits[tokens], state

    def hidden(self, z: Tensor, x_in: Tensor, u: Tensor | None = None) -> Tensor:
        return self.logits[x_in]


def px(net: nn.Module, z: Tensor) -> Tokens:
    return Tokens(net, z)


STRATEGIES = [Greedy(), Sampling(), Sampling(0.7, 4, 0.8), Beam(1), Beam(3)]


@pytest.mark.parametrize("name", ["lstm", "gru", "transformer"])
@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
def test_rows_are_sentences(strategy: Decoding, name: str) -> None:
    found = px(decoder(name, 0.4), torch.randn(2, 30, LATENT)).decode(strategy, longest=8)
    assert found.shape[:2] == (2, 30)
    assert found.shape[2] <= 9
    assert not found.requires_grad
    rows = found.flatten(0, 1)
    assert (rows[:, 0] == START).all()
    ends = (rows == END).int()
    assert (ends.sum(1) <= 1).all()
    assert ((rows == PAD) == (ends.cumsum(1) - ends).bool()).all()  # padding after </s>, and nowhere else
    assert not (rows[:, 1:] == START).any()
    assert (rows != PAD).sum(1).max() == rows.shape[1]


@pytest.mark.parametrize("name", ["lstm", "transformer"])
def test_greedy_takes_the_best_word_given_the_words_before(name: str) -> None:
    net, z = decoder(name), torch.randn(1, 20, LATENT)
    rows = px(net, z).decode(Greedy(unknown=True), 6)[0]
    for row, code in zip(rows, z[0], strict=True):
        n = int((row != PAD).sum())
        logits = net.head(net.hidden(code.unsqueeze(0), row[None, : n - 1]))[0]  # type: ignore[operator]
        logits[:, [PAD, START]] = -torch.inf
        assert logits.argmax(1).tolist() == row[1:n].tolist()


@pytest.mark.parametrize("name", ["lstm", "gru", "transformer"])
def test_a_beam_of_one_is_greedy(name: str) -> None:
    likelihood = px(decoder(name), torch.randn(2, 40, LATENT))
    assert likelihood.decode(Beam(1), 7).equal(likelihood.decode(Greedy(), 7))


@pytest.mark.parametrize("name", ["lstm", "transformer"])
def test_a_wide_beam_finds_the_best_sentence(name: str) -> None:
    """Of all sentences of up to three words over five words, the most probable one, by trying every one of them."""
    net, z, longest = decoder(name), torch.randn(1, 6, LATENT), 4
    everything = [w for n in range(longest) for w in product(range(UNK, V), repeat=n)]
    rows = torch.zeros(len(everything), longest + 1, dtype=torch.long)
    for row, words in zip(rows, everything, strict=True):
        row[: len(words) + 2] = torch.tensor([START, *words, END])
    found = px(net, z).decode(Beam(width=400, unknown=True), longest)[0]
    for code, row in zip(z[0], found, strict=True):
        with torch.no_grad():
            scores = px(net, code.expand(1, len(rows), -1)).log_prob(rows)[0]
        best = rows[scores.argmax()]
        assert row[row != PAD].tolist() == best[best != PAD].tolist()


@pytest.mark.parametrize("name", ["lstm", "gru"])
@pytest.mark.parametrize("width", [2, 3])
def test_a_beam_word_by_word(name: str, width: int) -> None:
    """The search as one would write it down, every beginning read anew; sentences are long, so that beams cross."""
    net = sentences.decoder(name, V, LATENT, embed=16, hidden=8, trunk="b").eval()
    for parameter in net.parameters():
        nn.init.normal_(parameter, std=0.8)
    net.head.bias.data[END] = -3.0
    z, lengths = torch.randn(12, LATENT), []
    found = px(net, z.unsqueeze(0)).decode(Beam(width, unknown=True), 8)[0]
    for code, row in zip(z, found, strict=True):
        beams = [(0.0, [START])]
        for _ in range(8):
            if beams[0][1][-1] == END:
                break
            longer = [beam for beam in beams if beam[1][-1] == END]
            for score, words in [beam for beam in beams if beam[1][-1] != END]:
                with torch.no_grad():
                    h = net.hidden(code.unsqueeze(0), torch.tensor([words]))[0, -1]
                    log_p = net.head(h).log_softmax(0).tolist()
                longer += [(score + log_p[word], [*words, word]) for word in range(V) if word not in (PAD, START)]
            beams = sorted(longer, reverse=True)[:width]
        best = next((beam for beam in beams if beam[1][-1] == END), beams[0])[1]
        assert row[row != PAD].tolist() == best
        lengths.append(len(best))
    assert max(lengths) > 5


def test_a_wider_beam_sees_what_greed_does_not() -> None:
    """The best first word leads to a poor sentence: 0.5 * 0.4 < 0.3 * 1."""
    p = torch.full((V, V), 1e-9)
    p[START, 4], p[START, 5], p[START, END] = 0.5, 0.3, 0.2
    p[4, END], p[4, 6] = 0.4, 0.6
    p[6, END], p[6, 7] = 0.3, 0.7
    p[7, END], p[5, END] = 1.0, 1.0
    net = Table(p.log())
    z = torch.zeros(1, 2, 1)
    assert px(net, z).decode(Greedy(), 5)[0].tolist() == [[START, 4, 6, 7, END]] * 2
    assert px(net, z).decode(Beam(3), 5)[0].tolist() == [[START, 5, END]] * 2


def test_who_has_ended_is_no_longer_asked() -> None:
    p = torch.full((V, V), 1e-9)
    p[START, 4], p[4, END] = 1.0, 1.0
    net = Table(p.log())
    found = px(net, torch.zeros(1, 5, 1)).decode(Greedy(), 50)
    assert found.shape == (1, 5, 3)
    assert net.asked == [5, 5]
    px(net, torch.zeros(1, 5, 1)).decode(Beam(2), 50)
    assert len(net.asked) == 4


def test_a_sentence_without_an_end_is_cut_off() -> None:
    p = torch.full((V, V), 1e-9)
    p[:, 4] = 1.0
    for strategy in (Greedy(), Sampling(), Beam(2)):
        found = px(Table(p.log()), torch.zeros(1, 2, 1)).decode(strategy, 6)
        assert found.tolist() == [[[START, *[4] * 6]] * 2]


def test_unknown_words_are_said_only_if_asked() -> None:
    p = torch.full((V, V), 1e-9)
    p[:, UNK], p[:, END], p[:, 4] = 0.6, 0.3, 0.1
    z = torch.zeros(1, 3, 1)
    for hush in (Greedy(), Beam(2)):
        assert (px(Table(p.log()), z).decode(hush, 4)[..., 1] == END).all()
    assert (px(Table(p.log()), z).decode(Greedy(unknown=True), 4)[..., 1] == UNK).all()
    assert not (px(Table(p.log()), z).decode(Sampling(), 4) == UNK).any()


# sampling


def test_top_k_keeps_exactly_k() -> None:
    logits = torch.tensor([[1.0, 3.0, 2.0, 3.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0]])
    p = Sampling(top_k=2).probabilities(logits)
    torch.testing.assert_close(p[0], torch.tensor([0.0, 0.5, 0.0, 0.5, 0.0]))
    assert (p[1] > 0).sum() == 2
    torch.testing.assert_close(Sampling(top_k=99).probabilities(logits), logits.softmax(1))


@pytest.mark.parametrize(("top_p", "left"), [(0.3, 1), (0.5, 1), (0.51, 2), (0.75, 2), (0.76, 3), (0.99, 4), (1.0, 4)])
def test_top_p_keeps_the_fewest_that_have_it(top_p: float, left: int) -> None:
    truth = torch.tensor([[0.125, 0.5, 0.125, 0.25]])
    p = Sampling(top_p=top_p).probabilities(truth.log())
    kept = truth.sort(1, descending=True).values[:, :left]
    torch.testing.assert_close(p.sort(1, descending=True).values[:, :left], kept / kept.sum())
    assert (p > 0).sum() == left


def test_temperature_divides_the_logits() -> None:
    logits = torch.randn(3, 7)
    torch.testing.assert_close(Sampling(0.5).probabilities(logits), (2 * logits).softmax(1))


def test_both_limits_together() -> None:
    """top_p counts what top_k has left: of 0.4, 0.3, 0.2 renormalised, 0.44 alone is below 0.5."""
    truth = torch.tensor([[0.4, 0.3, 0.2, 0.1]])
    p = Sampling(top_k=3, top_p=0.5).probabilities(truth.log())
    torch.testing.assert_close(p, torch.tensor([[4 / 7, 3 / 7, 0.0, 0.0]]))


def test_words_are_drawn_with_their_probabilities() -> None:
    p = torch.full((V, V), 1e-12)
    p[START, 4], p[START, 5], p[START, END] = 0.5, 0.3, 0.2
    p[4, END], p[5, END] = 1.0, 1.0
    n = 8000
    first = px(Table(p.log()), torch.zeros(1, n, 1)).sample()[0, :, 1]
    for word, share in ((4, 0.5), (5, 0.3), (END, 0.2)):
        assert abs((first == word).float().mean() - share) < 5 * math.sqrt(share * (1 - share) / n)


def test_noise_is_torchs_own() -> None:
    likelihood = px(decoder(), torch.randn(1, 10, LATENT))
    torch.manual_seed(3)
    first = likelihood.sample((2,))
    assert first.shape[:3] == (2, 1, 10)
    torch.manual_seed(3)
    assert likelihood.sample((2,)).equal(first)
    assert not first[0].equal(first[1])


@pytest.mark.parametrize(
    "make", [lambda: Sampling(0.0), lambda: Sampling(top_p=0.0), lambda: Sampling(top_k=-1), lambda: Beam(0)]
)
def test_what_cannot_be(make: type[Decoding]) -> None:
    with pytest.raises(Problem):
        make()


def test_a_decoder_says_what_it_lacks() -> None:
    with pytest.raises(Problem, match="has no head"):
        TokenLikelihood(nn.Linear(2, 2))
