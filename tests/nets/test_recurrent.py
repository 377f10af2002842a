"""Recurrent nets of sentences: no pad is read, and each option enters where its paper says."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from itertools import product

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elboroom.core import distributed
from elboroom.core.problem import Problem
from elboroom.core.vocabulary import PAD, START, UNK
from elboroom.nets import autoregressive, dropout, sentences
from elboroom.nets.fast.packing import Packing
from elboroom.nets.recurrent import RecurrentDecoder, RecurrentEncoder

V = 13
X = torch.tensor([[1, 5, 6, 2, 0, 0], [1, 7, 4, 8, 9, 2], [1, 2, 0, 0, 0, 0], [1, 5, 12, 2, 0, 0]])
LENGTHS = (X != PAD).sum(1)


def rough(net: nn.Module, scale: float = 0.7) -> nn.Module:
    """Weights that are far from linear."""
    for parameter in net.parameters():
        nn.init.normal_(parameter, std=scale)
    return net


def decoder(**options: object) -> RecurrentDecoder:
    made = sentences.decoder(**{"name": "lstm", "vocabulary": V, "latent": 3, "embed": 4, "hidden": 5, **options})  # type: ignore[arg-type]
    assert isinstance(made, RecurrentDecoder)
    rough(made)
    return made.eval()


def encoder(name: str = "lstm", outputs: int = 6, **options: object) -> RecurrentEncoder:
    made = sentences.encoder(name, V, outputs, embed=4, hidden=5, **options)  # type: ignore[arg-type]
    assert isinstance(made, RecurrentEncoder)
    rough(made)
    return made


# encoders


@pytest.mark.parametrize("name", [n for n in sentences.NETS if n != "transformer"])
@pytest.mark.parametrize(("layers", "trunk"), [(1, "a"), (2, "a"), (2, "c")])
def test_a_padded_batch_is_each_sentence_alone(name: str, layers: int, trunk: str) -> None:
    net = encoder(name, layers=layers, trunk=trunk)
    whole = net(X)
    assert whole.shape == (4, 6)
    for row, n in zip(range(4), LENGTHS.tolist(), strict=True):
        torch.testing.assert_close(net(X[row : row + 1, :n])[0], whole[row], atol=1e-6, rtol=0)
    torch.testing.assert_close(net(F.pad(X, (0, 3))), whole)
    torch.testing.assert_close(net.read(net.embed(X), LENGTHS), whole)
    torch.testing.assert_close(net.read(net.embed(X[1:2]))[0], whole[1])


def test_the_encoder_is_the_last_state_through_its_head() -> None:
    net = encoder()
    cell = net.forth[0].cell
    states, (h, _) = cell(net.embedding(X[1]).unsqueeze(1))  # type: ignore[operator]
    torch.testing.assert_close(states[-1], h[0])
    torch.testing.assert_close(net(X)[1:2], F.linear(h[0], net.head.weight))


@pytest.mark.parametrize("layers", [1, 2])
def test_both_directions_are_those_of_pytorch(layers: int) -> None:
    net = encoder("bilstm", layers=layers)
    both = nn.LSTM(4, 5, layers, bidirectional=True)
    assert net.back is not None
    for number in range(layers):
        for suffix, half in (("", net.forth[number]), ("_reverse", net.back[number])):
            for name, weight in half.cell.named_parameters():  # type: ignore[union-attr]
                getattr(both, f"{name[:-1]}{number}{suffix}").data.copy_(weight)
    for row, n in enumerate(LENGTHS.tolist()):
        h = both(net.embedding(X[row, :n]).unsqueeze(1))[1][0][-2:]
        torch.testing.assert_close(net(X)[row], F.linear(h.flatten(), net.head.weight))


def test_u_joins_the_state() -> None:
    net = encoder(given=2)
    u = torch.tensor([[1.0, 0], [0, 1], [0, 1], [1, 0]])
    assert not torch.allclose(net(X, u), net(X, 1 - u))
    with pytest.raises(Problem, match="needs u"):
        net(X)
    torch.testing.assert_close(net(X, u) - net(X, 0 * u), F.linear(u, net.head.weight[:, 5:]))


# trunks


@pytest.mark.parametrize(("trunk", "reach", "bias"), [("a", 0.01, False), ("b", 0.1, True)])
def test_trunks_begin_as_published(trunk: str, reach: float, bias: bool) -> None:
    for net in (
        sentences.encoder("lstm", 500, 64, trunk=trunk),  # type: ignore[arg-type]
        sentences.decoder("lstm", 500, 32, trunk=trunk),  # type: ignore[arg-type]
    ):
        for name, parameter in net.named_parameters():
            limit = 0.1 if "embedding" in name else reach
            assert 0.9 * limit < parameter.abs().max() <= limit, name
        assert (net.head.bias is not None) == bias  # type: ignore[union-attr]


def test_trunk_c_is_b_that_begins_otherwise() -> None:
    read, written = sentences.encoder("lstm", 500, 64, trunk="c"), sentences.decoder("lstm", 500, 32, trunk="c")
    for net in (read, written):
        for name, parameter in net.named_parameters():
            if net is read and name == "embedding.weight":
                assert 0.98 < parameter.std() < 1.02
            elif name.endswith("bias_ih_l0"):
                input_, forget, *others = parameter.chunk(4)
                assert (forget == 1).all()
                assert torch.cat([input_, *others]).abs().max() <= 0.1
            else:
                reach = 0.3 if net is read and name == "head.weight" else 0.1
                assert 0.9 * reach < parameter.abs().max() <= reach, name
    for made, same in ((read, sentences.encoder), (written, sentences.decoder)):
        published = same("lstm", 500, 64 if made is read else 32, trunk="b").eval()  # type: ignore[operator]
        published.load_state_dict(made.state_dict())
        given = (X,) if made is read else (torch.randn(1, 4, 32), X)
        ask = [net if net in (read, published) and made is read else net.log_prob for net in (made.eval(), published)]
        torch.testing.assert_close(*(f(*given) for f in ask))


def test_sizes_of_trunk_a() -> None:
    """As of the published code: the parameters of PTB, all counted by hand."""
    count = sum(p.numel() for p in sentences.encoder("lstm", 10_002, 64).parameters())
    assert count == 10_002 * 256 + 4 * 256 * (256 + 256 + 2) + 256 * 64
    count = sum(p.numel() for p in sentences.decoder("lstm", 10_002, 32).parameters())
    assert count == 10_002 * 256 + 4 * 256 * (256 + 32 + 256 + 2) + 32 * 256 + 256 * 10_002
    count = sum(p.numel() for p in sentences.decoder("lstm", 10_002, 0).parameters())
    assert count == 10_002 * 256 + 4 * 256 * (256 + 256 + 2) + 256 * 10_002


@pytest.mark.parametrize("trunk", ["a", "b"])
def test_the_first_state(trunk: str) -> None:
    net, z = decoder(trunk=trunk), torch.randn(4, 3)
    h, c = net.first(z)[0]
    assert net.state is not None
    if trunk == "a":
        assert net.state.bias is None
        torch.testing.assert_close(c, F.linear(z, net.state.weight))
        torch.testing.assert_close(h, c.tanh())
    else:
        torch.testing.assert_close(h, F.linear(z, net.state.weight, net.state.bias))
        assert not c.any()


@pytest.mark.parametrize("trunk", ["a", "b"])
def test_the_decoder_by_hand(trunk: str) -> None:
    """Embedding, z beside every word, PyTorch's LSTM from the state of z, softmax: the published net line by line."""
    net, z = decoder(trunk=trunk), torch.randn(4, 3)
    cell = net.stack[0].cell
    h, c = net.first(z)[0]
    words = torch.cat([net.embedding(X[:, :-1]), z.unsqueeze(1).expand(-1, 5, -1)], 2)
    states, _ = cell(words.transpose(0, 1), (h.unsqueeze(0), c.unsqueeze(0)))
    logits = F.linear(states.transpose(0, 1), net.head.weight, net.head.bias)
    nll = F.cross_entropy(logits.transpose(1, 2), X[:, 1:], ignore_index=PAD, reduction="none").sum(1)
    torch.testing.assert_close(net.log_prob(z.unsqueeze(0), X)[0], -nll)


# decoders


OPTIONS = [
    {"name": name, "inject": inject, "skip": skip, "layers": layers, "trunk": trunk}
    for name, inject, (skip, layers), trunk in product(
        ("lstm", "gru"), RecurrentDecoder.INJECTIONS, ((False, 1), (True, 2), (False, 2)), ("a", "b")
    )
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "-".join(map(str, o.values())))
def test_every_decoder_agrees_with_itself(options: dict[str, object]) -> None:
    """Copies of a sentence, teacher forcing in a padded batch, a sentence alone, and step by step: one probability."""
    net, z = decoder(**options), torch.randn(2, 4, 3)
    found = net.log_prob(z, X)
    assert found.shape == (2, 4)
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


@pytest.mark.parametrize("name", ["lstm", "gru"])
def test_a_language_model_is_a_decoder_whose_z_weighs_nothing(name: str) -> None:
    net, model = decoder(name=name), decoder(name=name, latent=0)
    assert model.state is None
    own = model.state_dict()
    for key, weight in net.state_dict().items():
        if key == "state.weight":
            weight.zero_()
        elif "weight_ih" in key:
            weight[:, 4:] = 0
            own[key].copy_(weight[:, :4])
        else:
            own[key].copy_(weight)
    found = net.log_prob(torch.randn(2, 4, 3), X)
    torch.testing.assert_close(model.log_prob(torch.zeros(2, 4, 0), X), found)
    torch.testing.assert_close(found[0], found[1])


def test_uniform_logits_cost_ln_v_a_token() -> None:
    net = decoder(trunk="b")
    nn.init.zeros_(net.head.weight)
    nn.init.constant_(net.head.bias, 0.3)
    expected = -(LENGTHS - 1) * math.log(V)
    torch.testing.assert_close(net.log_prob(torch.randn(1, 4, 3), X)[0], expected)


@pytest.mark.parametrize("layers", [1, 2])
def test_skips_without_weight_are_trunk_b(layers: int) -> None:
    """Zeroing the block of z above the first layer, and before the softmax, gives the decoder without skips."""
    skipping, plain = decoder(trunk="b", skip=True, layers=layers), decoder(trunk="b", layers=layers)
    z = torch.randn(1, 4, 3)
    own = plain.state_dict()
    for key, weight in skipping.state_dict().items():
        block = weight[:, 5:] if key == "head.weight" or key == "layers.1.cell.weight_ih_l0" else None
        if block is not None:
            assert block.shape[1] == 3
            assert not torch.allclose(skipping.log_prob(z, X), skipping.log_prob(-z, X))
            block.zero_()
            own[key].copy_(weight[:, :5])
        else:
            own[key].copy_(weight)
    torch.testing.assert_close(skipping.log_prob(z, X), plain.log_prob(z, X))


def test_an_added_code_is_added_to_every_word() -> None:
    net, z = decoder(inject="add"), torch.randn(4, 3)
    assert net.state is None
    assert not any(t.any() for t in net.first(z)[0])
    assert net.added is not None
    words = net.embedding(X[:, :-1]) + net.added(z).unsqueeze(1)
    states, _ = net.stack[0].cell(words.transpose(0, 1))
    found = net.hidden(z, X[:, :-1])
    for row, n in enumerate(LENGTHS.tolist()):
        torch.testing.assert_close(found[row, : n - 1], states[: n - 1, row])


def test_what_is_given_stands_beside_z() -> None:
    net, joined = decoder(given=2), decoder(latent=5)
    joined.load_state_dict(net.state_dict())
    z, u = torch.randn(2, 4, 3), torch.eye(2)[[0, 1, 1, 0]]
    whole = torch.cat([z, u.expand(2, 4, 2)], 2)
    torch.testing.assert_close(net.log_prob(z, X, u), joined.log_prob(whole, X))
    with pytest.raises(Problem, match="codes of 3 dimensions"):
        net.log_prob(z[..., :2], X, u)


def test_lengths_of_one_kind_or_mixed_give_the_same_loss() -> None:
    """Mixed batches against batches of a single length without padding: values and the sum of gradients."""
    read, write = encoder().double(), decoder().double()
    parameters = [*read.parameters(), *write.parameters()]

    def loss(x: Tensor) -> Tensor:
        z = read(x)[:, :3].unsqueeze(0)
        return -write.log_prob(z, x).sum()

    mixed = loss(X)
    apart = sum(loss(X[n == LENGTHS][:, :n]) for n in LENGTHS.unique().tolist())
    assert isinstance(apart, Tensor)
    torch.testing.assert_close(mixed, apart, atol=1e-10, rtol=0)
    for a, b in zip(*(torch.autograd.grad(v, parameters) for v in (mixed, apart)), strict=True):
        torch.testing.assert_close(a, b, atol=1e-10, rtol=1e-10)


def test_the_elbo_has_second_derivatives_in_the_code() -> None:
    net = decoder().double()
    z = torch.randn(1, 4, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda z: net.log_prob(z, X), (z,))


# dropout


def test_dropout_in_its_places() -> None:
    """Half of the embedded words and half of the states before the softmax, never z; and nothing in evaluation."""
    net, seen = decoder(dropout=0.5, trunk="b"), []
    z = torch.randn(1, 4, 3)
    assert net.log_prob(z, X).equal(net.log_prob(z, X))
    net.train()
    assert not net.log_prob(z, X).equal(net.log_prob(z, X))
    original = net.drop

    def spy(h: Tensor, packing: Packing, copies: int) -> Tensor:
        out = original(h, packing, copies)
        seen.append((h, out))
        return out

    net.drop = spy  # type: ignore[method-assign]
    net.log_prob(z, X)
    (words, dropped), (states, left) = seen
    assert words.shape == (12, 4)
    assert states.shape == (12, 5)
    for before, after in ((words, dropped), (states, left)):
        assert ((after == 0) | torch.isclose(after, 2 * before)).all()
        assert (after == 0).any()
        assert (after != 0).any()


@pytest.mark.parametrize("p", [0.1, 0.25, 0.5, 0.8])
def test_masks_have_their_probability_and_mean_one(p: float) -> None:
    mask = dropout.kept(50, 20, 43, p, torch.zeros(()), copies=2)
    assert mask.shape == (100, 20, 43)
    n = mask.numel()
    share = (mask == 0).float().mean().item()
    assert abs(share - p) < 5 * math.sqrt(p * (1 - p) / n) + 1e-5
    torch.testing.assert_close(mask.max().item(), 1 / (1 - p), atol=1e-4, rtol=1e-4)
    per_unit = (mask == 0).float().mean((0, 1))
    assert per_unit.sub(p).abs().max() < 5 * math.sqrt(p * (1 - p) / 2000)
    both = ((mask == 0)[..., 1:] & (mask == 0)[..., :-1]).float().mean().item()  # neighbours know nothing of each other
    assert abs(both - p * p) < 0.01


def test_words_are_hidden_but_never_the_first() -> None:
    net = decoder(word_dropout=0.6).train()
    packing = Packing.of(torch.full((400,), 9))
    x = torch.randint(4, V, (400, 9))
    x[:, 0] = START
    hidden = packing.spread(net.hide(packing.take(x), packing, 1))
    assert (hidden[:, 0] == START).all()
    gone = hidden != x
    assert (hidden[gone] == UNK).all()
    assert abs(gone[:, 1:].float().mean() - 0.6) < 0.05
    net.eval()
    assert net.hide(x, packing, 1) is x


def test_copies_have_noise_of_their_own() -> None:
    net = decoder(dropout=0.5).train()
    found = net.log_prob(torch.randn(1, 4, 3).expand(3, 4, 3), X)
    assert len(found[:, 1].unique()) == 3


@pytest.mark.parametrize("name", ["lstm", "transformer"])
def test_two_processes_drop_what_one_would(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    net = rough(sentences.decoder(name, V, 3, embed=16, hidden=5, dropout=0.4, word_dropout=0.3), 0.3).train()
    assert isinstance(net, autoregressive.Autoregressive)
    z = torch.randn(2, 4, 3)
    torch.manual_seed(1)
    truth, parts = net.log_prob(z, X), []
    monkeypatch.setattr(distributed, "world", lambda: 2)
    for module in (dropout, autoregressive):
        monkeypatch.setattr(module, "longest", lambda length, like: max(length, X.shape[1] - 1))
    for rank in (0, 1):
        monkeypatch.setattr(distributed, "rank", lambda rank=rank: rank)
        torch.manual_seed(1)
        mine = slice(2 * rank, 2 * rank + 2)
        x = X[mine, : int(LENGTHS[mine].max())]
        parts.append(net.log_prob(z[:, mine], x))
    torch.testing.assert_close(torch.cat(parts, 1), truth, atol=1e-5, rtol=1e-5)


# the catalogue


def test_names_that_there_are_not() -> None:
    with pytest.raises(Problem, match="did you mean 'lstm'"):
        sentences.encoder("lstn", V, 2)
    with pytest.raises(Problem, match="'gru' has no --inject memory"):
        sentences.decoder("gru", V, 2, inject="memory")
    with pytest.raises(Problem, match="need a recurrent decoder"):
        sentences.decoder("transformer", V, 2, skip=True)


MIXED = """
import torch
from elboroom.nets import sentences
x = torch.tensor([[1, 5, 6, 2, 0], [1, 7, 4, 8, 2]])
torch.manual_seed(0)
for name in sentences.NETS:
    read = sentences.encoder(name, 12, 6, embed=16, hidden=16)
    write = sentences.decoder(name, 12, 3, embed=16, hidden=16, dropout=0.0, skip=name not in ("transformer", "dilated"))
    def nll():
        return -write.log_prob(read(x)[None, :, :3].float(), x).float().sum()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = nll()
    torch.testing.assert_close(mixed, nll(), atol=0.3, rtol=0.03)
    grads = torch.autograd.grad(mixed, (*read.parameters(), *write.parameters()))
    assert all(bool(grad.abs().sum() > 0) for grad in grads)
"""


@pytest.mark.slow
def test_mixed_precision() -> None:
    # in a process of its own: some virtual machines announce tile instructions that they do not have
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"}
    subprocess.run([sys.executable, "-c", MIXED], env=environment, check=True)


def test_labels_that_are_given_are_told_apart_from_the_first_step_on() -> None:
    """A label moves the first words as much as another word would; begun as small as z it moved nothing."""
    torch.manual_seed(0)
    moved = []
    for labels in (0, 2):
        net = sentences.decoder("lstm", 50, 4, 2, 16, 32, trunk="c", labels=labels).eval()
        z, x = torch.zeros(2, 4), torch.tensor([[1, 7, 8]]).expand(2, -1)
        h = net.hidden(z, x, torch.eye(2))
        moved.append((h[0] - h[1]).abs().mean().item())
    assert moved[1] > 4 * moved[0]
