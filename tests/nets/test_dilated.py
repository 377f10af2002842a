"""The decoder of dilated convolutions: causal, the same step by step, and as far-sighted as its depth says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import elboroom
from elboroom.core.problem import Problem
from elboroom.core.vocabulary import PAD
from elboroom.data.dataset import DataSet
from elboroom.families.decoding import Greedy
from elboroom.nets import sentences
from elboroom.nets.dilated import DilatedDecoder

V = 13
X = torch.tensor([[1, 5, 6, 2, 0, 0], [1, 7, 4, 8, 9, 2], [1, 2, 0, 0, 0, 0]])
LENGTHS = (X != PAD).sum(1)


def decoder(latent: int = 3, layers: int = 2, **options: Any) -> DilatedDecoder:
    made = sentences.decoder("dilated", V, latent, embed=6, hidden=8, layers=layers, **options)
    assert isinstance(made, DilatedDecoder)
    return made.eval()


def test_a_word_sees_those_before_it_as_far_as_the_blocks_reach() -> None:
    """Two blocks see 2 + 4 words back: h after word t depends on words t - 6 to t and on no other."""
    net, z, x = decoder(), torch.randn(1, 3), torch.randint(4, V, (1, 12))
    h = net.hidden(z, x)
    for t in range(12):
        other = x.clone()
        other[:, t] = 4 + (x[:, t] - 3) % (V - 4)
        moved = (net.hidden(z, other) - h).abs().amax(2)[0] > 1e-7
        assert not moved[:t].any()
        assert not moved[t + 7 :].any()
        assert moved[t]
    assert not torch.allclose(net.hidden(z + 1, x)[:, 0], h[:, 0])


def test_one_probability_however_it_is_computed() -> None:
    """Copies, a padded batch, a sentence alone, and step by step with what was remembered."""
    net, z = decoder(), torch.randn(2, 3, 3)
    found = net.log_prob(z, X)
    hidden = net.hidden(z[1], X[:, :-1])
    log_p = net.head(hidden).log_softmax(-1).gather(2, X[:, 1:].unsqueeze(2)).squeeze(2)
    torch.testing.assert_close((log_p * (X[:, 1:] != PAD)).sum(1), found[1], atol=1e-5, rtol=1e-5)
    for row, n in enumerate(LENGTHS.tolist()):
        alone = net.log_prob(z[:, row : row + 1], X[row : row + 1, :n])
        torch.testing.assert_close(alone[:, 0], found[:, row], atol=1e-5, rtol=1e-5)
        state = net.start(z[1, row : row + 1])
        for t in range(n - 1):
            h, state = net.step(X[row : row + 1, t], state)
            torch.testing.assert_close(h[0], hidden[row, t], atol=1e-5, rtol=1e-5)
            assert all(len(part) == 1 for part in state)


def test_what_is_remembered_does_not_grow() -> None:
    net = decoder(layers=3)
    state = net.start(torch.randn(2, 3))
    sizes = [part.shape for part in state]
    for _ in range(20):
        _, state = net.step(torch.tensor([5, 6]), state)
    assert [part.shape for part in state] == sizes


def test_dropout_hides_words_and_features_in_training_alone() -> None:
    net, z = decoder(dropout=0.5), torch.randn(1, 3, 3)
    assert torch.equal(net.log_prob(z, X), net.log_prob(z, X))
    net.train()
    assert not torch.equal(net.log_prob(z, X), net.log_prob(z, X))


def test_a_run_trains_decodes_and_goes_on(text_data: DataSet, tmp_path: Path) -> None:
    small: dict[str, Any] = {"net": "dilated", "embed": 6, "hidden": 8, "latent": 4, "layers": 2, "threads": 1}
    run = elboroom.train("vae-annealed", text_data, tmp_path / "run", steps=4, **small)
    assert len(run.sample(3)) == 3
    assert run.reconstruct(["w1 w2 w3"], decoding=Greedy())
    assert elboroom.resume(tmp_path / "run", steps=2, data=text_data).step == 6
    assert elboroom.train("lm", text_data, tmp_path / "lm", steps=2, **{**small, "latent": None}).latent == 0


@pytest.fixture
def text_data(sentences: DataSet) -> DataSet:
    return sentences


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"attention": "dot", "memory": 4}, "convolutions do not attend"),
        ({"skip": True}, "need a recurrent decoder"),
        ({"inject": "state"}, "has no --inject state; it has: concat"),
    ],
)
def test_what_it_cannot_do_is_one_sentence(options: dict[str, Any], said: str) -> None:
    with pytest.raises(Problem, match=said):
        decoder(**options)
