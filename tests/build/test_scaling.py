"""Statistics of the data inside a model, and a beginning as probabilistic PCA."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from elboroom.build.parts import Choices, Parts
from elboroom.build.scaling import principal, standard
from elboroom.core.batch import Batch
from elboroom.core.problem import Problem
from elboroom.data import arrays
from elboroom.data.dataset import DataSet

RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(300, 3)) @ RNG.normal(size=(3, 8)) * np.logspace(-2, 3, 8) + 500


def parts(data: DataSet, **options: object) -> Parts:
    shared = {
        "standardise": True,
        "net": "mlp-300+linear",
        "init": "principal",
        "latent": 3,
        "likelihood": "gaussian-optimal",
    }
    return Parts(data.about, Choices(**shared | options), data=data)  # type: ignore[arg-type]


def test_columns_have_widths_of_their_own_and_a_constant_one_has_one() -> None:
    table = np.column_stack([TABLE, np.full(300, 7e5)])
    centre, width = standard(arrays.dataset(table).about, arrays.dataset(table))
    np.testing.assert_allclose(centre, table.mean(0), rtol=1e-5)
    np.testing.assert_allclose(width[:8], TABLE.std(0), rtol=1e-4)
    assert width[8] == 1


def test_the_pixels_of_an_image_share_their_width(pixels: DataSet) -> None:
    centre, width = standard(pixels.about, pixels)
    assert (centre.shape, width.shape) == ((1, 16, 16), (1, 1, 1))
    assert (standard(pixels.about, None)[0] == 0).all()


@pytest.mark.parametrize("rows", [300, 6])
def test_principal_components_are_those_of_an_svd(rows: int) -> None:
    x = torch.from_numpy(TABLE[:rows] - TABLE[:rows].mean(0))
    x = x / x.std()
    known, svd = principal(x, 3), torch.linalg.svd(x, full_matrices=False)
    torch.testing.assert_close(known.widths.double(), svd.S[:3] / math.sqrt(rows), rtol=1e-4, atol=1e-6)
    torch.testing.assert_close((known.axes @ svd.Vh[:3].T.float()).abs(), torch.eye(3), atol=1e-3, rtol=0)


def test_more_dimensions_than_the_data_has_are_left_alone() -> None:
    known = principal(torch.randn(20, 2).double(), 5)
    assert known.axes.shape == (5, 2)
    assert (known.widths[2:] == 0).all()
    assert math.isfinite(known.rest)


def test_a_model_begins_as_principal_components() -> None:
    """Reconstructs three-dimensional data before its first step, in the units of the table, with codes like the prior."""
    data = arrays.dataset(TABLE)
    model, batch = parts(data).vae(), Batch(data.x(np.arange(300)))
    q = model.q(batch)
    made = model.px(q.mean[None], batch).mean[0]
    width = batch.x.std(0)
    assert ((made - batch.x) / width).square().mean() < 0.05
    assert (q.mean.mean(0).abs() < 0.3).all()
    assert (q.mean.std(0) < 1.5).all()


def test_without_the_data_the_same_model_is_built_for_a_checkpoint() -> None:
    data = arrays.dataset(TABLE)
    there, empty = parts(data).vae(), Parts(data.about, parts(data).choices).vae()
    assert {k: v.shape for k, v in there.state_dict().items()} == {k: v.shape for k, v in empty.state_dict().items()}


def test_what_cannot_be_is_told() -> None:
    data = arrays.dataset(TABLE)
    with pytest.raises(Problem, match=r"needs a net that ends in \+linear"):
        parts(data, net="mlp-300").vae()
    with pytest.raises(Problem, match="needs values in"):
        parts(data, likelihood="bernoulli", standardise=False, init="small").vae()
    shares = arrays.dataset(RNG.uniform(size=(20, 4)))
    with pytest.raises(Problem, match="--standardise is for Gaussian likelihoods"):
        parts(shares, likelihood="bernoulli", init="small").vae()
    parts(shares, likelihood="bernoulli", standardise=False, init="small").vae()
