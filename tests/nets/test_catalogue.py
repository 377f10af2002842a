"""Every net by name: its number of parameters, its shapes, what it is given, what it refuses."""

from __future__ import annotations

from math import sqrt

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from elboroom.core.problem import Problem
from elboroom.nets import NETS, critic, decoder, encoder
from elboroom.nets.conv import Frame

MLPS = [name for name in NETS if name.startswith(("mlp", "gated"))]
CONV = [name for name in NETS if name not in MLPS]


def count(net: nn.Module) -> int:
    return sum(p.numel() for p in net.parameters())


@pytest.mark.parametrize(
    ("name", "shape", "halves"),
    [
        ("burgess", (1, 64, 64), (252_052, 249_953)),
        ("locatello", (1, 64, 64), (309_204, 381_313)),
        ("locatello-4x4", (1, 64, 64), (382_932, 381_313)),
        ("mlp-300", (784,), (241_520, 239_284)),
        ("mlp-300", (1, 28, 28), (241_520, 239_284)),
        ("mlp-1200", (1, 64, 64), (6_381_620, 7_814_896)),
        ("gated-300-300", (784,), (657_620, 423_184)),
    ],
)
def test_parameters_are_as_many_as_published(name: str, shape: tuple[int, ...], halves: tuple[int, int]) -> None:
    assert (count(encoder(name, shape, 20)), count(decoder(name, shape, 10))) == halves


@pytest.mark.parametrize(("name", "total"), [("burgess", 502_005), ("locatello", 690_517), ("locatello-4x4", 764_245)])
def test_whole_models_have_the_printed_totals(name: str, total: int) -> None:
    assert count(encoder(name, (1, 64, 64), 20)) + count(decoder(name, (1, 64, 64), 10)) == total


def test_a_gated_net_is_its_formula_written_out() -> None:
    """h = (A x + a) * sigmoid(G x + g), twice, then a linear layer; no other activation stands between them."""
    x, net = torch.randn(4, 1, 3, 2), encoder("gated-300-300", (1, 3, 2), 5, init="torch")  # biases that are not zero
    own = {name.removeprefix("dense."): p for name, p in net.named_parameters()}
    h = x.flatten(1)
    for layer in "01":
        value = h @ own[f"{layer}.linear.weight"].T + own[f"{layer}.linear.bias"]
        opening = h @ own[f"{layer}.gate.weight"].T + own[f"{layer}.gate.bias"]
        h = value / (1 + torch.exp(-opening))
    torch.testing.assert_close(net(x), h @ own["2.weight"].T + own["2.bias"])


def test_the_critic_of_factor_vae() -> None:
    net = critic(10, outputs=2)
    assert count(net) == 5_018_002
    assert {layer.negative_slope for layer in net.modules() if isinstance(layer, nn.LeakyReLU)} == {0.2}
    assert critic(10)(torch.randn(3, 10)).shape == (3, 1)
    assert count(critic(10, outputs=2, depth=5)) == 4_017_002


@pytest.mark.parametrize("given", [0, 3])
@pytest.mark.parametrize(
    "shape", [(1, 64, 64), (3, 64, 64), (1, 28, 28), (2, 16, 16), (1, 1, 5), (3, 33, 100), (1, 8, 8)]
)
@pytest.mark.parametrize("name", NETS)
def test_images_of_any_size(name: str, shape: tuple[int, ...], given: int) -> None:
    u = F.one_hot(torch.tensor([0, 2]), 3).float() if given else None
    assert encoder(name, shape, 7, given=given)(torch.rand(2, *shape), u).shape == (2, 7)
    for channels in (None, 2 * shape[0]):
        x = decoder(name, shape, 4, channels=channels, given=given)(torch.randn(2, 4), u)
        assert x.shape == (2, channels or shape[0], *shape[1:])


@pytest.mark.parametrize("name", MLPS)
def test_vectors(name: str) -> None:
    assert encoder(name, (5,), 4)(torch.randn(3, 5)).shape == (3, 4)
    assert decoder(name, (5,), 2)(torch.randn(3, 2)).shape == (3, 5)
    assert decoder(name, (5,), 2, channels=1)(torch.randn(3, 2)).shape == (3, 5)
    assert decoder(name, (5,), 2, channels=2)(torch.randn(3, 2)).shape == (3, 2, 5)


@pytest.mark.parametrize(
    ("name", "size", "kernels"),
    [
        ("burgess", 16, [(32, 4)] * 2),
        ("burgess", 128, [(32, 4)] * 5),
        ("locatello", 16, [(64, 2)] * 2),
        ("locatello", 32, [(32, 4), (64, 2), (64, 2)]),
        ("locatello", 64, [(32, 4), (32, 4), (64, 2), (64, 2)]),
        ("locatello", 128, [(32, 4), (32, 4), (32, 4), (64, 2), (64, 2)]),
        ("locatello-4x4", 64, [(32, 4), (32, 4), (64, 4), (64, 4)]),
    ],
)
def test_convolutions_at_other_sizes(name: str, size: int, kernels: list[tuple[int, int]]) -> None:
    layers = [m for m in encoder(name, (1, size, size), 2).modules() if isinstance(m, nn.Conv2d)]
    assert [(m.out_channels, m.kernel_size[0]) for m in layers] == kernels
    mirrored = [m for m in decoder(name, (1, size, size), 2).modules() if isinstance(m, nn.ConvTranspose2d)]
    assert [m.in_channels for m in mirrored] == [channels for channels, _ in kernels][::-1]
    assert {m.kernel_size for m in mirrored} == {(4, 4)}


@pytest.mark.parametrize(
    ("height", "width", "size"), [(1, 1, 16), (16, 16, 16), (17, 3, 32), (28, 28, 32), (64, 64, 64), (90, 128, 128)]
)
def test_a_frame_centres_an_image_and_gives_it_back(height: int, width: int, size: int) -> None:
    frame, x = Frame(height, width), torch.rand(2, 3, height, width)
    padded = frame.pad(x)
    assert padded.shape == (2, 3, size, size)
    assert size == 4 * 2**frame.halvings
    torch.testing.assert_close(padded.sum(), x.sum())
    rows = padded.sum((0, 1, 3)).nonzero()
    assert abs(int(rows[0]) - (size - 1 - int(rows[-1]))) <= 1
    assert torch.equal(frame.crop(padded), x)


@pytest.mark.parametrize("name", NETS)
def test_what_is_given_reaches_the_output_and_every_parameter_has_a_gradient(name: str) -> None:
    x, z, u = torch.rand(2, 1, 16, 16), torch.randn(2, 3), torch.eye(2)
    net: nn.Module
    for net, start in ((encoder(name, x.shape[1:], 4, given=2), x), (decoder(name, x.shape[1:], 3, given=2), z)):
        assert not torch.allclose(net(start, u), net(start, u.flip(0)))
        net(start, u).square().sum().backward()
        assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in net.parameters())
        with pytest.raises(Problem, match="needs u"):
            net(start)
        with pytest.raises(Problem, match="values per example, not of shape"):
            net(start, u[:, :1])


@pytest.mark.parametrize("name", NETS)
def test_double_precision_and_second_derivatives(name: str) -> None:
    net = nn.Sequential(encoder(name, (1, 16, 16), 3), decoder(name, (1, 16, 16), 3)).double()
    x = torch.rand(2, 1, 16, 16, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(net(x).square().sum(), x, create_graph=True)
    (curve,) = torch.autograd.grad(slope.square().sum(), x)
    assert curve.abs().sum() > 0


@pytest.mark.parametrize("name", CONV)
def test_a_net_equals_its_plain_layers(name: str) -> None:
    net = encoder(name, (3, 32, 32), 4).double()
    x = torch.rand(2, 3, 32, 32, dtype=torch.float64)
    h = x
    for layer in net.modules():
        if isinstance(layer, nn.Conv2d):
            h = F.conv2d(h, layer.weight, layer.bias, layer.stride, layer.padding).relu()
    for layer in (fc := [m for m in net.modules() if isinstance(m, nn.Linear)]):
        h = F.linear(h.flatten(1), layer.weight, layer.bias)
        h = h if layer is fc[-1] else h.relu()
    torch.testing.assert_close(net(x), h, atol=1e-10, rtol=0)


@pytest.mark.parametrize("name", CONV)
def test_a_large_batch_in_parts_is_the_same(name: str) -> None:
    x, z = torch.rand(150, 1, 28, 28), torch.randn(150, 3)
    for net, start in ((encoder(name, (1, 28, 28), 4), x), (decoder(name, (1, 28, 28), 3), z)):
        whole = net(start).detach()
        with torch.inference_mode():
            torch.testing.assert_close(net(start), whole, atol=1e-5, rtol=1e-5)


def test_kaiming_keeps_the_scale_of_activations() -> None:
    torch.manual_seed(0)
    layers = [
        m for m in decoder("locatello", (1, 64, 64), 10).modules() if isinstance(m, nn.Linear | nn.ConvTranspose2d)
    ]
    for layer in layers[1:-1]:
        n_in = layer.in_features if isinstance(layer, nn.Linear) else layer.in_channels * 4
        assert float(layer.weight.detach().std()) == pytest.approx(sqrt(2 / n_in), rel=0.03)
        assert layer.bias is not None
        assert not layer.bias.detach().any()
    h = torch.randn(16, 64, 4, 4)
    for layer in (m for m in layers if isinstance(m, nn.ConvTranspose2d) and m.out_channels > 1):
        h = layer(h.relu())
        assert 0.5 < float(h[..., 2:-2, 2:-2].detach().square().mean().sqrt()) < 3  # sqrt(2) for a unit rectified input


def test_glorot_and_the_initialisation_of_torch() -> None:
    net = encoder("burgess", (1, 64, 64), 20, init="glorot")
    first = next(m for m in net.modules() if isinstance(m, nn.Conv2d))
    bound = sqrt(6 / (16 + 32 * 16))
    assert 0.9 * bound < float(first.weight.detach().abs().max()) <= bound
    torch.manual_seed(1)
    ours = decoder("mlp-300", (5,), 2, init="torch").state_dict()
    torch.manual_seed(1)
    theirs = nn.Sequential(nn.Linear(2, 300), nn.ReLU(), nn.Linear(300, 5)).state_dict()
    assert all(torch.equal(a, b) for a, b in zip(ours.values(), theirs.values(), strict=True))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: encoder("burges", (1, 64, 64), 2), "did you mean 'burgess'"),
        (lambda: encoder("burgess", (5,), 2), "for vectors use one of mlp-300, mlp-300-300, mlp-1200, gated"),
        (lambda: decoder("locatello", (5,), 2), "for vectors use one of mlp-300, mlp-300-300, mlp-1200, gated"),
        (lambda: encoder("burgess", (3, 129, 64), 2), "resize"),
        (lambda: encoder("mlp-300", (3, 4), 2), "must be images"),
        (lambda: encoder("mlp-300", (5,), 2, init="kaming"), "kaiming"),
        (lambda: encoder("burgess", (1, 64, 64), 2)(torch.rand(2, 3, 64, 64)), "built for"),
        (lambda: encoder("mlp-300", (1, 8, 8), 2)(torch.rand(2, 1, 4, 16)), "built for"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(make: object, sentence: str) -> None:
    assert callable(make)
    with pytest.raises(Problem, match=sentence):
        make()


@pytest.mark.parametrize(("name", "shape"), [("mlp-300", (7,)), ("mlp-300", (2, 5, 4)), ("burgess", (1, 12, 16))])
@pytest.mark.parametrize("given", [0, 3])
def test_a_linear_map_beside_a_net(name: str, shape: tuple[int, ...], given: int) -> None:
    x, z, u = torch.randn(4, *shape), torch.randn(4, 2), torch.randn(4, given) if given else None
    reads, writes = encoder(f"{name}+linear", shape, 6, given), decoder(f"{name}+linear", shape, 2, given=given)
    assert reads(x, u).shape == (4, 6)
    assert writes(z, u).shape == x.shape
    with torch.no_grad():
        for half in (reads, writes):
            half.linear.weight.zero_()
    assert torch.equal(reads(x, u), reads.net(x, u))
    assert torch.equal(writes(z, u), writes.net(z, u))


@pytest.mark.parametrize("name", NETS)
def test_small_begins_near_nought(name: str) -> None:
    x = torch.rand(20, 1, 32, 32)
    assert encoder(name, (1, 32, 32), 10, init="small")(x).square().mean() < 0.1
    assert decoder(name, (1, 32, 32), 5, init="small")(x[:, 0, 0, :5]).square().mean() < 0.1


@pytest.mark.parametrize("name", ["none+linear", "+linear", "burgess+linear"])
def test_a_linear_map_beside_nothing_is_refused(name: str) -> None:
    with pytest.raises(Problem):
        encoder(name, (7,), 6)
