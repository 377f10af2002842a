"""A likelihood in standardised units is a density of the data as it came."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.distributions import AffineTransform, Independent, TransformedDistribution
from torch.distributions import Normal as TorchNormal

from elboroom.core.batch import Batch
from elboroom.families.pixels import GaussianLikelihood, GaussianPerPixelLikelihood, OptimalGaussianLikelihood
from elboroom.families.rescaled import Rescaled, Standardised

CENTRE, SCALE = torch.tensor([100.0, -3.0, 0.0]), torch.tensor([50.0, 0.1, 1.0])


class Line(nn.Module):
    """z to three numbers, or twice three."""

    def __init__(self, outputs: int = 3) -> None:
        super().__init__()
        self.line, self.outputs = nn.Linear(2, outputs), outputs

    def forward(self, z: Tensor, u: Tensor | None = None) -> Tensor:
        out: Tensor = self.line(z)
        return out if self.outputs == 3 else out.view(-1, 2, 3)


def test_its_density_has_the_jacobian() -> None:
    inside, z = GaussianLikelihood(Line(), 1, sigma=0.3), torch.randn(4, 5, 2)
    batch = Batch(100 * torch.randn(5, 3))
    plain = inside(z, batch)
    base = Independent(TorchNormal(plain.mean, 0.3), 1)
    expected = TransformedDistribution(base, AffineTransform(CENTRE, SCALE, event_dim=1)).log_prob(batch.x)
    px = Rescaled(inside, CENTRE, SCALE)(z, batch)
    torch.testing.assert_close(px.log_prob(batch.x), expected)
    torch.testing.assert_close(px.mean, CENTRE + SCALE * plain.mean)
    drawn = px.sample(torch.Size([4000]))
    torch.testing.assert_close(drawn.std(0) / SCALE, torch.full((4, 5, 3), 0.3), rtol=0.1, atol=0)


def test_a_width_for_each_value_is_rescaled_too() -> None:
    inside, z, batch = GaussianPerPixelLikelihood(Line(6), 1), torch.randn(1, 5, 2), Batch(torch.randn(5, 3))
    px, plain = Rescaled(inside, CENTRE, SCALE)(z, batch), inside(z, batch)
    torch.testing.assert_close(px.log_sigma.exp(), plain.log_sigma.exp() * SCALE)


def test_the_net_reads_standardised_numbers() -> None:
    net = Standardised(nn.Identity(), CENTRE, SCALE)
    net.net.forward = lambda x, u=None: x  # type: ignore[method-assign, assignment]
    torch.testing.assert_close(net((CENTRE + 2 * SCALE)[None]), torch.full((1, 3), 2.0))


def test_its_statistics_are_kept_in_checkpoints() -> None:
    assert {"centre", "scale"} <= Rescaled(GaussianLikelihood(Line(), 1), CENTRE, SCALE).state_dict().keys()


def test_the_best_sigma_is_soon_the_error() -> None:
    likelihood = OptimalGaussianLikelihood(Line(), 1)
    with torch.no_grad():
        likelihood.net.line.weight.zero_()  # type: ignore[union-attr, operator]
        likelihood.net.line.bias.zero_()  # type: ignore[union-attr, operator]
    batch, z = Batch(0.05 * torch.randn(2000, 3)), torch.zeros(1, 2000, 2)
    adam = torch.optim.Adam([likelihood.slow_log_sigma], 1e-3)
    for _ in range(500):
        adam.zero_grad()
        (-likelihood(z, batch).log_prob(batch.x).mean()).backward()
        adam.step()
    assert abs(likelihood(z, batch).log_sigma.exp().item() / batch.x.square().mean().sqrt().item() - 1) < 0.05
