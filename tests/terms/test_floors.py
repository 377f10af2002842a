"""Free bits: no gradient below the floor, that of the rate above it, in four reductions and two forms."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from elboroom.core import distributed
from elboroom.core.batch import Batch
from elboroom.core.draw import Draw
from elboroom.core.model import LatentModel
from elboroom.core.objective import Term
from elboroom.core.problem import Problem
from elboroom.families.gaussian import GaussianPosterior, StandardNormal
from elboroom.families.structured import ClusteredPrior
from elboroom.terms.evidence import kl
from elboroom.terms.floors import Form, Reduce, Unit, free_bits

B, J, TARGET = 4, 3, 1.5  # 0.5 a dimension
KINDS: list[tuple[Unit, Reduce]] = [(u, r) for u in ("total", "per_dim") for r in ("sample", "batch")]
FORMS: list[Form] = ["hinge", "mask"]


class Table(torch.nn.Module):
    """(mu, log sigma^2) of every row, whatever x."""

    def __init__(self, loc: Tensor) -> None:
        super().__init__()
        self.heads = torch.nn.Parameter(torch.cat([loc, torch.zeros_like(loc)], 1))

    def forward(self, x: Tensor, u: Tensor | None = None) -> Tensor:
        return self.heads


def draw_of(rates: Tensor) -> Draw:
    """A Draw whose KL with N(0, I) is `rates`, (B, J)."""
    posterior = GaussianPosterior(Table((2 * rates).sqrt())).double()
    model = LatentModel(posterior, StandardNormal(rates.shape[1]).double(), torch.nn.Identity())
    return Draw(model, Batch(torch.zeros(len(rates), 1)))


def gradient(term: Term, rates: Tensor) -> tuple[float, Tensor]:
    """The mean of a term and its gradient in mu, (B, J)."""
    draw = draw_of(rates)
    value = term.mean(draw)
    grad = torch.autograd.grad(value, draw.model.posterior.net.heads, allow_unused=True)[0]
    return value.item(), torch.zeros(B, J).double() if grad is None else grad[:, :J]


# rows above and below 1.5 in total; columns above and below 0.5 in the mean; entries above and below 0.5
RATES = torch.tensor([[2.0, 0.1, 0.3], [0.2, 0.1, 0.4], [0.7, 0.6, 0.9], [0.1, 0.2, 0.4]]).double()


def above(unit: Unit, reduce: Reduce) -> Tensor:
    """Which entries of RATES are above their floor, as the table of the papers has it."""
    if unit == "per_dim":
        return RATES > TARGET / J if reduce == "sample" else (RATES.mean(0) > TARGET / J).expand(B, J)
    totals = RATES.sum(1)
    return (totals > TARGET).unsqueeze(1).expand(B, J) if reduce == "sample" else (totals.mean() > TARGET).expand(B, J)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("unit", "reduce"), KINDS)
def test_the_gradient_is_that_of_the_rate_above_and_none_below(unit: Unit, reduce: Reduce, form: Form) -> None:
    found = gradient(free_bits(kl(), TARGET, unit, reduce, form), RATES)[1]
    plain = gradient(kl(), RATES)[1]
    assert torch.equal(found, torch.where(above(unit, reduce), plain, 0.0))
    assert plain.all()


def test_the_table_has_rates_on_both_sides() -> None:
    for unit, reduce in KINDS:
        share = above(unit, reduce).double().mean()
        assert share == (1 if (unit, reduce) == ("total", "batch") else pytest.approx(0.5, abs=0.3))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("unit", "reduce"), KINDS)
def test_below_every_floor_there_is_no_gradient_and_above_it_is_the_rate(
    unit: Unit, reduce: Reduce, form: Form
) -> None:
    low, high = torch.full((B, J), 0.3).double(), torch.full((B, J), 0.7).double()
    value, grad = gradient(free_bits(kl(), TARGET, unit, reduce, form), low)
    assert not grad.any()
    assert value == pytest.approx(TARGET if form == "hinge" else 0.0)
    value, grad = gradient(free_bits(kl(), TARGET, unit, reduce, form), high)
    assert value == pytest.approx(2.1)
    assert torch.equal(grad, gradient(kl(), high)[1])


def test_the_hinge_has_the_value_of_the_papers() -> None:
    """max(l, D), sum_i max(l/J, D_i), max(l, mean D), sum_i max(l/J, mean D_i)."""

    def value(unit: Unit, reduce: Reduce) -> float:
        return gradient(free_bits(kl(), TARGET, unit, reduce), RATES)[0]

    assert value("total", "sample") == pytest.approx((2.4 + 1.5 + 2.2 + 1.5) / 4)
    assert value("per_dim", "sample") == pytest.approx(RATES.clamp_min(0.5).sum(1).mean().item())
    assert value("total", "batch") == pytest.approx(max(1.5, RATES.sum(1).mean().item()))
    assert value("per_dim", "batch") == pytest.approx(RATES.mean(0).clamp_min(0.5).sum().item())


def test_the_mask_falls_to_zero_where_the_hinge_stays_at_the_floor() -> None:
    assert gradient(free_bits(kl(), TARGET, "total", "sample", "mask"), RATES)[0] == pytest.approx((2.4 + 2.2) / 4)
    masked = torch.where(RATES > 0.5, RATES, 0.0).sum(1).mean().item()
    assert gradient(free_bits(kl(), TARGET, "per_dim", "sample", "mask"), RATES)[0] == pytest.approx(masked)


def test_the_mean_is_that_of_the_global_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a rank whose own rates are low, a batch that is above the floor as a whole keeps its gradient."""
    low = torch.full((B, J), 0.3).double()
    monkeypatch.setattr(distributed, "mean", lambda value: value + 1)
    for unit in ("total", "per_dim"):
        assert torch.equal(gradient(free_bits(kl(), TARGET, unit, "batch"), low)[1], gradient(kl(), low)[1])
        assert not gradient(free_bits(kl(), TARGET, unit, "sample"), low)[1].any()


def test_what_couples_says_so() -> None:
    assert free_bits(kl(), TARGET, "total", "batch").couples
    assert not free_bits(kl(), TARGET, "total", "sample").couples


def test_a_floor_for_each_dimension_needs_a_rate_for_each() -> None:
    net = Table(torch.zeros(B, J))
    model = LatentModel(GaussianPosterior(net), ClusteredPrior(J), torch.nn.Identity())
    free_bits(kl(), TARGET, "total").check(model)
    with pytest.raises(Problem, match="free-bits with --unit total"):
        free_bits(kl(), TARGET, "per_dim").check(model)
