"""The transformer decoder: causal, the same step by step, and open to second derivatives."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from elboroom.core.problem import Problem
from elboroom.core.vocabulary import PAD
from elboroom.nets import sentences, transformer
from elboroom.nets.transformer import Transformer

V = 13
X = torch.tensor([[1, 5, 6, 2, 0, 0], [1, 7, 4, 8, 9, 2], [1, 2, 0, 0, 0, 0]])
LENGTHS = (X != PAD).sum(1)


def decoder(inject: str = "memory", **options: object) -> Transformer:
    made = sentences.decoder("transformer", V, 3, embed=16, hidden=8, layers=2, inject=inject, **options)  # type: ignore[arg-type]
    assert isinstance(made, Transformer)
    return made.eval()


@pytest.mark.parametrize("inject", Transformer.INJECTIONS)
def test_no_word_sees_what_comes_after_it(inject: str) -> None:
    net, z = decoder(inject), torch.randn(3, 3)
    x = torch.randint(4, V, (3, 7))
    h = net.hidden(z, x)
    for t in range(1, 7):
        other = x.clone()
        other[:, t:] = torch.randint(4, V, (3, 7 - t))
        changed = net.hidden(z, other)
        torch.testing.assert_close(changed[:, :t], h[:, :t], atol=1e-5, rtol=0)
    assert not torch.allclose(changed[:, -1], h[:, -1])
    assert not torch.allclose(net.hidden(z + 1, x)[:, 0], h[:, 0])


@pytest.mark.parametrize("inject", Transformer.INJECTIONS)
def test_one_probability_however_it_is_computed(inject: str) -> None:
    """Copies, a padded batch, a sentence alone, and step by step with what was remembered."""
    net, z = decoder(inject), torch.randn(2, 3, 3)
    found = net.log_prob(z, X)
    with torch.no_grad():
        torch.testing.assert_close(net.log_prob(z, X), found)
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


def test_parts_are_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    net, z = decoder(), torch.randn(4, 3, 3)
    with torch.no_grad():
        whole = net.log_prob(z, X)
        monkeypatch.setattr(transformer, "PART", 5)
        torch.testing.assert_close(net.log_prob(z, X), whole)


def test_a_block_is_that_of_pytorch() -> None:
    """Attention and feed-forward of one block against nn.TransformerEncoderLayer under a causal mask."""
    net = decoder()
    block = net.stack[0]
    block.memory = None
    theirs = nn.TransformerEncoderLayer(16, 8, 32, 0.0, "gelu", batch_first=True, norm_first=True)
    ours = {
        "self_attn.in_proj_": block.inputs,
        "self_attn.out_proj.": block.outputs,
        "norm1.": block.norms[0],
        "norm2.": block.norms[1],
        "linear1.": block.feed[0],
        "linear2.": block.feed[2],
    }
    theirs.load_state_dict({f"{k}{n}": w for k, layer in ours.items() for n, w in layer.state_dict().items()})
    net.blocks = nn.ModuleList([block])
    x, rows = torch.randint(4, V, (3, 5)), torch.randn(3, 3)
    mask = nn.Transformer.generate_square_subsequent_mask(5)
    truth = net.norm(theirs(net.embed(x, rows, 0), mask, is_causal=True))
    torch.testing.assert_close(net.attend(rows, x, torch.arange(3), 1), truth, atol=1e-5, rtol=1e-5)


def test_the_memory_is_attention_to_one_vector() -> None:
    """With one key the softmax is 1, whatever the queries are: PyTorch's attention gives what two linear layers give."""
    block = decoder().stack[0]
    assert block.memory is not None
    attention = nn.MultiheadAttention(16, 4, kdim=3, vdim=3, batch_first=True)
    attention.v_proj_weight.data.copy_(block.memory[0].weight)
    attention.in_proj_bias.data[32:].copy_(block.memory[0].bias)
    attention.out_proj.load_state_dict(block.memory[1].state_dict())
    z = torch.randn(2, 1, 3)
    found, _ = attention(torch.randn(2, 5, 16), z, z)
    torch.testing.assert_close(found, block.memory(z).expand(2, 5, 16), atol=1e-6, rtol=1e-5)


def test_embeddings_are_tied_and_every_parameter_learns() -> None:
    for inject in Transformer.INJECTIONS:
        net = decoder(inject).train()
        assert net.head.weight is net.embedding.weight
        net.log_prob(torch.randn(2, 3, 3), X).sum().backward()  # type: ignore[no-untyped-call]
        for name, parameter in net.named_parameters():
            assert parameter.grad is not None, name
            assert parameter.grad.any(), name


def test_of_no_dimensions_it_is_a_language_model() -> None:
    net = sentences.decoder("transformer", V, 0, embed=16, hidden=8).eval()
    assert isinstance(net, Transformer)
    assert len(net.blocks) == 3
    assert net.dropout == 0.2
    found = net.log_prob(torch.zeros(2, 3, 0), X)
    torch.testing.assert_close(found[0], found[1])
    nn.init.zeros_(net.head.weight)
    expected = -(LENGTHS - 1) * math.log(V)
    torch.testing.assert_close(net.log_prob(torch.zeros(1, 3, 0), X)[0], expected)


def test_second_derivatives_with_the_plain_kernel() -> None:
    net = decoder("memory+add").double()
    z = torch.randn(1, 3, 3, dtype=torch.float64, requires_grad=True)
    with sdpa_kernel(SDPBackend.MATH):
        assert torch.autograd.gradgradcheck(lambda z: net.log_prob(z, X), (z,))


def test_long_sentences_have_positions_too() -> None:
    net = decoder()
    x = torch.randint(4, V, (1, 700))
    assert torch.isfinite(net.hidden(torch.zeros(1, 3), x)).all()


def test_a_width_that_heads_cannot_share() -> None:
    with pytest.raises(Problem, match="cannot have 3 heads"):
        Transformer(V, 2, width=16, heads=3)
