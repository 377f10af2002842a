"""The implicit posterior: what it draws, what it estimates of itself, and what it may not be asked."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from elboroom.core import distributed
from elboroom.core.batch import Batch
from elboroom.core.kl import has_density, require_density, require_kl
from elboroom.core.problem import Problem
from elboroom.families.gaussian import Gaussian
from elboroom.families.implicit import Implicit, ImplicitPosterior

H, NOISE, J = 3, 4, 2


def linear() -> tuple[Implicit, Tensor, Tensor]:
    """z = W_h h + W_e e + b: a Gaussian in disguise, with its means (B, J) and variances (J,)."""
    generator = nn.Linear(H + NOISE, J).double()
    features = torch.randn(5, H).double()
    weight = generator.weight.detach()
    return (
        Implicit(features, generator, NOISE, J),
        features @ weight[:, :H].T + generator.bias.detach(),
        weight[:, H:].square().sum(1),
    )


def test_a_linear_generator_draws_its_gaussian() -> None:
    q, mean, variance = linear()
    z = q.rsample((40_000,))
    assert z.shape == (40_000, 5, J)
    torch.testing.assert_close(z.mean(0), mean, atol=5 * float(variance.max().sqrt()) / 200, rtol=0)
    torch.testing.assert_close(z.var(0), variance.expand(5, J), rtol=5 * math.sqrt(2 / 40_000), atol=0)
    assert z.requires_grad
    assert not q.sample().requires_grad


def test_the_contrast_is_the_gaussian_of_its_moments() -> None:
    q, mean, variance = linear()
    q.few = 20_000  # type: ignore[misc]
    r = q.moments()
    assert isinstance(r, Gaussian)
    assert not r.loc.requires_grad
    assert not r.logvar.requires_grad
    torch.testing.assert_close(r.loc, mean, atol=0.05, rtol=0)
    torch.testing.assert_close(r.variance, variance.expand(5, J), rtol=0.06, atol=0)
    q.few = 32  # type: ignore[misc]
    torch.manual_seed(4)
    r = q.moments()
    torch.manual_seed(4)
    z = q.sample((32,))
    torch.testing.assert_close(r.loc, z.mean(0))
    torch.testing.assert_close(r.variance, z.var(0) + 1e-6)


def test_a_generator_that_ignores_its_noise_has_a_contrast_too() -> None:
    q, mean, _ = linear()
    q.generator.weight.data[:, H:] = 0
    r = q.moments()
    torch.testing.assert_close(r.loc, mean)
    assert torch.isfinite(r.log_prob(mean)).all()


def test_each_row_has_noise_of_its_own() -> None:
    q, mean, _ = linear()
    left = q.rsample((3,)) - mean
    assert len(torch.unique(left.view(-1, J).detach(), dim=0)) == 15


def test_two_processes_draw_what_one_would(monkeypatch: pytest.MonkeyPatch) -> None:
    q, _, _ = linear()
    whole, parts = Implicit(q.features.repeat(2, 1)[:4], q.generator, NOISE, J), []
    torch.manual_seed(1)
    truth = whole.sample((3,))
    monkeypatch.setattr(distributed, "world", lambda: 2)
    for rank in (0, 1):
        monkeypatch.setattr(distributed, "rank", lambda rank=rank: rank)
        torch.manual_seed(1)
        rows = whole.features[2 * rank : 2 * rank + 2]
        parts.append(Implicit(rows, q.generator, NOISE, J).sample((3,)))
    torch.testing.assert_close(torch.cat(parts, 1), truth)


def test_it_has_no_density_and_says_so() -> None:
    assert not has_density(Implicit)
    with pytest.raises(Problem, match=r"q\(z\|x\), which is implicit, has none"):
        require_kl(Implicit, Gaussian)
    with pytest.raises(Problem, match="--posterior gaussian"):
        require_density(Implicit, "the importance-weighted bound")


def test_features_and_generator_both_learn() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(6, H)

        def forward(self, x: Tensor, u: Tensor | None = None) -> Tensor:
            out: Tensor = self.linear(x)
            return out

    posterior = ImplicitPosterior(Net(), H, NOISE, J, width=8)
    posterior(Batch(torch.randn(5, 6))).rsample((1,)).square().sum().backward()
    assert all(p.grad is not None and p.grad.any() for p in posterior.parameters())


def test_mixed_precision_does_not_round_the_samples() -> None:
    """Autocast takes products to eight bits; a narrow q around 2.5 would have three values left."""
    posterior = ImplicitPosterior(nn.Identity(), 1, 1, 1)
    generator = nn.Linear(2, 1)
    with torch.no_grad():
        generator.weight.copy_(torch.tensor([[0.0, 0.002]]))
        generator.bias.fill_(2.5)
    posterior.generator = nn.Sequential(generator)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        z = posterior.law(torch.zeros(1, 1)).sample((4000,))
    assert z.dtype == torch.float32
    assert z.std().item() == pytest.approx(0.002, rel=0.1)
