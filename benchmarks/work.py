"""What is measured: nets, data, and one epoch of training by the loop and by a bare step of the same net."""

from __future__ import annotations

import atexit
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.measure import THREADS
from elboroom import nets
from elboroom.core.method import adam
from elboroom.data import dsprites
from elboroom.data.dataset import About, Bits, DataSet
from elboroom.runs.lifecycle import train
from elboroom.runs.run import Run
from elboroom.training.batches import Batches
from elboroom.training.loop import Loop
from elboroom.training.recorder import Recorder
from elboroom.training.session import Own, build
from elboroom.training.spec import specify

SHAPE = (1, 64, 64)
LATENT, BATCH, BETA, RATE = 10, 64, 4.0, 1e-4
IMAGES = 64 * BATCH  # of one epoch
LOG_EVERY = 50


@cache
def sprites(count: int = IMAGES) -> NDArray[np.uint8]:
    """Random dSprites, rendered: (count, 1, 64, 64) of 0 and 1."""
    rows = np.random.default_rng(0).choice(dsprites.COUNT, count, replace=False)
    return dsprites.render(dsprites.factors(rows))[:, None]


def looped() -> Callable[[], None]:
    """One epoch of beta-VAE by the loop of the project, with its batches and its log."""
    images = sprites()
    about = About("sprites", "pixels", SHAPE, len(images), {}, levels=2)
    data = DataSet(about, Bits(np.packbits(images.reshape(len(images), -1), axis=1), SHAPE))
    options = {"beta": BETA, "latent": LATENT, "net": "burgess", "lr": RATE, "batch_size": BATCH}
    spec = specify("beta-vae", data, "array", None, options)
    method = build(spec, Own(data)).train()
    method.prepare(adam(RATE), 0.0)
    loop = Loop(method, Batches(data, "train", BATCH, 0, (), torch.device("cpu")), 0)
    folder = TemporaryDirectory()
    recorder = Recorder(Path(folder.name) / "log.jsonl")
    steps = iter(range(10**9))

    def epoch(kept: TemporaryDirectory[str] = folder) -> None:
        for _ in range(IMAGES // BATCH):
            step = next(steps)
            recorder.add(step, loop.step(step))
            if step % LOG_EVERY == 0:
                recorder.flush()

    return epoch


def bare() -> Callable[[], None]:
    """One epoch of beta-VAE by hand: the same nets and optimiser, nothing logged, batches ready."""
    encoder, decoder = nets.encoder("burgess", SHAPE, 2 * LATENT), nets.decoder("burgess", SHAPE, LATENT)
    optimiser = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], RATE, fused=True)
    batches = [torch.from_numpy(part).float() for part in np.split(sprites(), IMAGES // BATCH)]

    def epoch() -> None:
        for x in batches:
            mean, logvar = encoder(x).chunk(2, 1)  # (B, J)
            z = mean + torch.exp(logvar / 2) * torch.randn_like(mean)
            nll = F.binary_cross_entropy_with_logits(decoder(z), x, reduction="sum")
            kl = 0.5 * (mean.square() + logvar.exp() - logvar - 1).sum()
            optimiser.zero_grad()
            ((nll + BETA * kl) / BATCH).backward()
            optimiser.step()

    return epoch


def plain(encoder: nn.Module) -> nn.Module:
    """The same encoder as PyTorch's own layers."""
    layers: list[nn.Module] = []
    for layer in encoder.modules():
        if isinstance(layer, nn.Conv2d):
            size, step, edge = layer.kernel_size[0], layer.stride[0], int(layer.padding[0])
            copy: nn.Module = nn.Conv2d(layer.in_channels, layer.out_channels, size, step, edge)
        elif isinstance(layer, nn.Linear):
            layers += [] if any(isinstance(made, nn.Linear) for made in layers) else [nn.Flatten()]
            copy = nn.Linear(layer.in_features, layer.out_features)
        else:
            continue
        copy.load_state_dict(layer.state_dict())
        layers += [copy, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


@cache
def trained() -> Run:
    """A VAE of the study's net on dSprites after a moment of training, in a folder that lasts as long as this process."""
    folder = TemporaryDirectory()
    atexit.register(folder.cleanup)
    options: dict[str, Any] = {
        "net": "locatello",
        "latent": LATENT,
        "batch_size": BATCH,
        "lr": 1e-3,
        "threads": THREADS,
    }
    return train("vae", "dsprites", Path(folder.name) / "run", steps=300, **options)


def flops(net: nn.Module, *inputs: Tensor) -> float:
    """Floating-point operations of one forward pass per example, 2 per multiplication of the published layers."""
    total = 0

    def count(layer: nn.Module, given: tuple[Tensor, ...], made: Tensor) -> None:
        nonlocal total
        side = given[0] if isinstance(layer, nn.ConvTranspose2d) else made  # every value of it meets weight[0]
        assert isinstance(layer.weight, Tensor)
        total += 2 * side.numel() * layer.weight[0].numel()

    kinds = nn.Linear | nn.Conv2d | nn.ConvTranspose2d
    hooks = [layer.register_forward_hook(count) for layer in net.modules() if isinstance(layer, kinds)]
    with torch.no_grad():
        net(*inputs)
    for hook in hooks:
        hook.remove()
    return total / len(inputs[0])
