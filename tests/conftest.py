"""What every test shares: one thread, and data sets small enough to train on in a moment.

The cache is the user's own ($ELBOROOM_CACHE, or ~/.cache/elboroom), so that nothing is rendered or downloaded twice.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest
import torch
from contract import Bench
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.distributions import MultivariateNormal

from elboroom.core.draw import Batch, Draw, LatentModel
from elboroom.data import arrays
from elboroom.data.dataset import DataSet
from elboroom.data.text import gather
from elboroom.families.gaussian import GaussianPosterior, StandardNormal
from elboroom.families.pixels import GaussianLikelihood

N, SIZE = 200, 16


@pytest.fixture(autouse=True)
def _quiet() -> None:
    """One thread and a known place for the noise of each test."""
    torch.set_num_threads(1)
    torch.manual_seed(0)


def _blobs(width: float) -> NDArray[np.float64]:
    """N soft discs on a 16 x 16 grid, in [0, 1], their centres drawn once."""
    rng = np.random.default_rng(0)
    centre = rng.uniform(3, SIZE - 3, (N, 2, 1, 1))
    grid = np.stack(np.meshgrid(np.arange(SIZE), np.arange(SIZE), indexing="ij"))
    distance = np.sqrt(((grid - centre) ** 2).sum(1))
    return np.asarray(1 / (1 + np.exp((distance - 4) / width)))  # (N, 16, 16)


def _labels() -> NDArray[np.int64]:
    return np.arange(N) % 3


@pytest.fixture(scope="session")
def pixels() -> DataSet:
    """200 grey images of 16 x 16 with a label of three values."""
    return arrays.dataset((_blobs(1.0) * 255).round().astype(np.uint8), labels=_labels())


@pytest.fixture(scope="session")
def binary() -> DataSet:
    """The same in black and white."""
    return arrays.dataset((_blobs(1.0) > 0.5).astype(np.uint8), labels=_labels())


@pytest.fixture(scope="session")
def rgb() -> DataSet:
    """The same in colour."""
    bright = np.random.default_rng(1).uniform(0.2, 1, (N, 1, 1, 3))
    return arrays.dataset((_blobs(1.0)[..., None] * bright * 255).round().astype(np.uint8), labels=_labels())


@pytest.fixture(scope="session")
def vectors() -> DataSet:
    """200 real vectors of 6 correlated coordinates."""
    rng = np.random.default_rng(2)
    mixing = rng.normal(size=(6, 6))
    return arrays.dataset((rng.normal(size=(N, 6)) @ mixing + 1).astype(np.float32), labels=_labels())


class Encoder(nn.Module):
    """(mu, log sigma^2) with mu linear in x and sigma the same for every x."""

    def __init__(self, gain: Tensor, offset: Tensor, logvar: Tensor) -> None:
        super().__init__()
        self.gain, self.offset, self.logvar = nn.Parameter(gain), nn.Parameter(offset), nn.Parameter(logvar)

    def forward(self, x: Tensor, u: Tensor | None = None) -> Tensor:
        loc = (x.to(self.gain) - self.offset) @ self.gain.T  # (B, J)
        return torch.cat([loc, self.logvar.expand_as(loc)], 1)


class Decoder(nn.Module):
    """W z + b."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(weight), nn.Parameter(bias)

    def forward(self, z: Tensor, u: Tensor | None = None) -> Tensor:
        return z @ self.weight.T + self.bias


class Ppca:
    """Probabilistic PCA with its exact posterior: z ~ N(0, I), x ~ N(W z + b, s^2 I), the columns of W orthogonal.

    q = N(A^-1 W'(x - b), s^2 A^-1) with A = W'W + s^2 I, which is diagonal. `widen` spoils q: its variance is multiplied.
    """

    def __init__(self, pixels: int = 5, latent: int = 2, sigma: float = 0.6, widen: float = 1.0) -> None:
        noise = torch.Generator().manual_seed(3)
        basis = torch.linalg.qr(torch.randn(pixels, latent, generator=noise, dtype=torch.float64))[0]
        self.w = basis * torch.linspace(1.0, 2.0, latent, dtype=torch.float64)
        self.b = torch.randn(pixels, generator=noise, dtype=torch.float64)
        likelihood = GaussianLikelihood(Decoder(self.w.clone(), self.b.clone()), 1, sigma).double()
        self.variance = likelihood.log_sigma.exp() ** 2  # as the model keeps it
        a = self.w.square().sum(0) + self.variance
        encoder = Encoder((self.w / a).T, self.b.clone(), (widen * self.variance / a).log())
        self.model = LatentModel(GaussianPosterior(encoder), StandardNormal(latent), likelihood).double()
        z = torch.randn(200, latent, generator=noise, dtype=torch.float64)
        noisy = torch.randn(200, pixels, generator=noise, dtype=torch.float64) * self.variance.sqrt()
        self.x = (z @ self.w.T + self.b + noisy).float().double()  # what float32 can hold

    def log_p(self, x: Tensor) -> Tensor:
        """log N(x; b, W W' + s^2 I)."""
        cov = self.w @ self.w.T + self.variance * torch.eye(len(self.b), dtype=torch.float64)
        return MultivariateNormal(self.b, cov).log_prob(x.double())

    def draw(self, x: Tensor, samples: int = 1, step: int = 0) -> Draw:
        """A Draw on x."""
        return Draw(self.model, Batch(x, step=step), samples)


def at_sigma_points(draw: Draw) -> Draw:
    """The same Draw with z at mu +- sqrt(J) sigma_j e_j: the mean over them of anything quadratic in z is exact."""
    latent = draw.q.loc.shape[-1]
    eye = math.sqrt(latent) * torch.eye(latent, dtype=draw.q.loc.dtype)
    points = torch.cat([eye, -eye]).unsqueeze(1)  # (2J, 1, J)
    draw.__dict__["z"] = draw.q.loc + draw.q.stddev * points
    return draw


@pytest.fixture(scope="session")
def ppca() -> type[Ppca]:
    """The linear Gaussian model in which everything is known."""
    return Ppca


@pytest.fixture(scope="session")
def exact() -> Callable[[Draw], Draw]:
    """Puts z of a Draw at points over which means of quadratics are exact."""
    return at_sigma_points


@pytest.fixture(scope="module")
def bench(pixels: DataSet, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    torch.set_num_threads(1)
    return Bench(pixels, tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="session")
def sentences() -> DataSet:
    """200 sentences of 2 to 8 words with a label of three values."""
    rng, words = np.random.default_rng(3), [f"w{i}" for i in range(20)]
    drawn = [" ".join(rng.choice(words, rng.integers(2, 9))) for _ in range(N)]
    return gather(
        "sentences", {"train": zip(drawn, ((str(y),) for y in _labels()), strict=True)}, {"label": None}, holdout=0.1
    )


@pytest.fixture(scope="session")
def text_bench(sentences: DataSet, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Whole runs of every method on sentences, trained when first asked for."""
    small = {"embed": 6, "hidden": 7, "latent": 4}
    return Bench(sentences, tmp_path_factory.mktemp("text"), small)
