"""The linear Gaussian model, of which everything is known."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.distributions import MultivariateNormal

from elboroom.core.batch import Batch
from elboroom.core.draw import Draw
from elboroom.core.model import LatentModel
from elboroom.families.gaussian import GaussianPosterior, StandardNormal
from elboroom.families.pixels import GaussianLikelihood


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
