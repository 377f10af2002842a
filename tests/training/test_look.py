"""What a look at held-out data goes by, of posteriors with and without a density."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from elboroom.core.batch import Batch
from elboroom.core.model import LatentModel
from elboroom.data.dataset import DataSet
from elboroom.families.implicit import Implicit
from elboroom.families.point import PointPosterior
from elboroom.runs.lifecycle import train
from elboroom.training.watches import held_out, negative_elbo


class Drawn(nn.Module):
    """The exact posterior of a linear Gaussian model, which can only be sampled."""

    family = Implicit

    def __init__(self, known: Any) -> None:
        super().__init__()
        self.exact = known.model.posterior
        self.scale = self.exact(Batch(known.x[:1])).stddev[0].detach()

    def forward(self, batch: Batch) -> Implicit:
        mean = self.exact(batch).mean

        def around(both: Any) -> Any:
            loc, e = both.chunk(2, -1)
            return loc + self.scale * e

        return Implicit(mean, around, mean.shape[-1], mean.shape[-1])  # type: ignore[arg-type]


def test_a_sampled_posterior_is_looked_at_by_a_bound(ppca: Any) -> None:
    """Not by its reconstructions, which are best where it is regularised least."""
    known = ppca()
    model = LatentModel(Drawn(known), known.model.prior, known.model.likelihood)
    truth = -known.log_p(known.x).mean().item()
    found = negative_elbo(model, [Batch(known.x)]).item()
    nll = -known.draw(known.x).nll.mean().item()
    assert truth < found + 0.05
    assert found == pytest.approx(truth, abs=0.3)  # the Gaussian is a little too wide
    assert abs(nll - truth) > 0.5
    model.posterior.scale.mul_(1e-6)  # shrunk to a point: the fitted Gaussian alone would be 28 nats above
    assert truth - 0.05 < negative_elbo(model, [Batch(known.x)]).item() < truth + 15


def test_a_point_has_nothing_but_its_reconstructions(ppca: Any) -> None:
    known = ppca()

    class Mean(PointPosterior):
        def forward(self, batch: Batch) -> Any:
            return self.family(known.model.posterior(batch).mean)

    model = LatentModel(Mean(known.model.posterior.net), known.model.prior, known.model.likelihood)
    z = known.model.posterior(Batch(known.x)).mean.unsqueeze(0)
    wanted = -known.model.likelihood(z, Batch(known.x)).log_prob(known.x).mean()
    torch.testing.assert_close(negative_elbo(model, [Batch(known.x)]), wanted.detach().double())


def test_what_a_look_saw_is_in_the_log(pixels: DataSet, tmp_path: Path) -> None:
    """nll + kl of the validation split at weight one, whatever trains, at every look; the best is that of the kept model."""
    options: dict[str, Any] = {"steps": 6, "batch_size": 8, "latent": 2, "net": "mlp-300", "threads": 1, "lr": 1e-2}
    options |= {"likelihood": "bernoulli", "init": "kaiming"}
    run = train("beta-vae", pixels, tmp_path / "run", beta=7.0, patience=9, look_every=2, holdout=0.2, **options)
    seen = {line["step"]: line["loss_valid"] for line in run.log if "loss_valid" in line}
    assert sorted(seen) == [2, 4, 6]
    again = negative_elbo(run.model, held_out(run.data, (), torch.device("cpu"))).item()
    assert min(seen.values()) == pytest.approx(again, rel=1e-6)
