"""Named parts of z: a term through a block, and objectives that subtract and weigh sums."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from contract import FIT
from torch import Tensor, nn

import elboroom
from elboroom.build import registry
from elboroom.build.parts import Choices, Parts
from elboroom.core.batch import Batch
from elboroom.core.blocks import of
from elboroom.core.draw import Draw
from elboroom.core.method import Method, descend
from elboroom.core.model import LatentModel
from elboroom.core.objective import Constant, Term, logged
from elboroom.core.problem import Problem
from elboroom.data.dataset import DataSet
from elboroom.terms.aggregate import total_correlation
from elboroom.terms.evidence import kl, nll
from elboroom.training.batches import batch_of
from elboroom.weights.controllers import PI
from elboroom.weights.schedules import Linear

SIZES = {"style": 2, "content": 3}


def model_of(data: DataSet, **choices: object) -> LatentModel:
    small = {"embed": 6, "hidden": 7} if data.about.kind == "tokens" else {}
    parts = Parts(data.about, Choices(latent=5, **small, **choices), data=data)
    vae = parts.vae()
    return LatentModel(vae.posterior, vae.prior, vae.likelihood, SIZES)


@pytest.fixture(params=["pixels", "sentences"])
def draw(request: pytest.FixtureRequest) -> Draw:
    data = request.getfixturevalue(request.param)
    return Draw(model_of(data), batch_of(data, np.arange(8), ()))


def test_blocks_lie_in_z_one_after_the_other(draw: Draw) -> None:
    assert draw.model.blocks == {"z": slice(None), "style": slice(0, 2), "content": slice(2, 5)}


def test_kls_of_blocks_are_those_of_the_whole_bit_for_bit(draw: Draw) -> None:
    parts = [of(name, kl())(draw) for name in SIZES]
    assert torch.equal(torch.cat(parts, 1), kl()(draw))
    in_all = sum(part.double().sum(1) for part in parts)  # in double precision these sums are exact
    assert torch.equal(in_all, kl()(draw).double().sum(1))


def test_a_block_sees_its_own_dimensions(draw: Draw) -> None:
    seen = {}

    def look(name: str) -> Term:
        def value(part: Draw) -> Tensor:
            seen[name] = part
            return part.first.sum(1)

        return Term("look", value)

    for name, where in draw.model.blocks.items():
        of(name, look(name))(draw)
        part = seen[name]
        assert torch.equal(part.z, draw.z[..., where])
        assert torch.equal(part.q.loc, draw.q.loc[..., where])
        assert torch.equal(part.p.loc, draw.p.loc[..., where])
        assert torch.equal(part.nll, draw.nll)
        assert torch.equal(part.q.log_prob(part.z), draw.q.log_prob_per_dim(draw.z)[..., where].sum(-1))


def test_the_whole_is_a_block() -> None:
    term = kl()
    assert of("z", term) is term
    assert of("style", term).name == "kl_style"


def test_terms_that_couple_examples_work_on_a_block(draw: Draw) -> None:
    alone = total_correlation(100)
    small = Draw(model_of_block(draw, "content"), draw.batch)
    small.z = draw.z[..., 2:]
    torch.testing.assert_close(of("content", alone)(draw), alone(small))


def model_of_block(draw: Draw, name: str) -> LatentModel:
    """A model whose q and p are those of one block."""

    class Sliced(nn.Module):
        family = draw.model.posterior.family

        def __init__(self, whole: nn.Module) -> None:
            super().__init__()
            self.whole = whole

        def forward(self, batch: Batch) -> object:
            return self.whole(batch).part(draw.model.block(name))

    return LatentModel(Sliced(draw.model.posterior), Sliced(draw.model.prior), draw.model.likelihood)


def test_unknown_blocks_and_families_without_parts_are_refused(pixels: DataSet) -> None:
    with pytest.raises(Problem, match="z has no block 'styel'; did you mean 'style'"):
        descend(model_of(pixels), nll() + of("styel", kl()))
    with pytest.raises(Problem, match="independent dimensions"):
        descend(model_of(pixels, prior="mog"), nll() + of("style", kl()))


def test_no_block_takes_the_name_of_the_whole(pixels: DataSet) -> None:
    vae = Parts(pixels.about, Choices(latent=5)).vae()
    with pytest.raises(Problem, match="a block is named 'z', which is all of z; give it another name"):
        LatentModel(vae.posterior, vae.prior, vae.likelihood, {"z": 2, "style": 3})


def test_objectives_subtract_and_weigh_sums(draw: Draw) -> None:
    style, content = of("style", kl()), of("content", kl())
    loss = nll() + Linear(0, 1, 10) * (style + 2 * content) - 0.5 * Term("one", lambda d: torch.ones(()))
    total = loss(Draw(draw.model, Batch(draw.batch.x, lengths=draw.batch.lengths, step=5))).logged
    expected = total["nll"] + 0.5 * total["kl_style"] + 1.0 * total["kl_content"] - 0.5
    torch.testing.assert_close(total["loss"], expected)
    assert total["kl_content.weight"] == 1.0
    assert str(nll() - kl()) == "nll + -1 * kl"


def test_minus_the_whole_is_minus_every_part(draw: Draw) -> None:
    loss = nll() + 3 * kl()
    torch.testing.assert_close((-loss)(draw).total, -loss(draw).total)
    torch.testing.assert_close((2.0 * loss)(draw).total, 2 * loss(draw).total)
    assert (2.0 * (nll() + logged(kl()))).parts[1][0].apply_to(0, torch.tensor(torch.inf)) == 0


def test_a_controller_steers_one_term() -> None:
    with pytest.raises(Problem, match="its own weight"):
        PI(1.0, 0.1, 0.1, 0.0, 1.0) * (nll() + kl())
    scaled = 2.0 * (PI(1.0, 0.1, 0.1, 0.0, 1.0) * kl())
    assert [type(weight).__name__ for weight, _ in scaled.parts] == ["Scaled"]
    scaled.update(0, {"kl": torch.tensor(3.0)})
    assert scaled.state_dict()["weights.0.weight.integral"] != 0


def test_two_weights_that_move_are_refused() -> None:
    with pytest.raises(Problem, match="write the two as one weight"):
        Linear(0, 1, 5) * (Linear(0, 1, 5) * kl())
    assert isinstance((0.5 * (2 * kl())).parts[0][0], Constant)


def test_a_number_makes_a_weight_so_many_times_as_large() -> None:
    for weight in (0.5 * Linear(0, 4, 10), Linear(0, 4, 10) * 0.5):
        assert weight.now(5) == 1.0
        assert str(nll() + weight * kl()) == "nll + 0.5 Linear(0 -> 4 in 10 steps) * kl"
    assert isinstance(2 * Constant(3.0), Constant)


def test_a_product_of_two_weights_is_refused() -> None:
    with pytest.raises(Problem, match=r"Linear\(0 -> 1 in 5 steps\) \* Linear\(.*\) is no weight.*one of your own"):
        Linear(0, 1, 5) * Linear(0, 1, 5)  # type: ignore[operator]
    with pytest.raises(Problem, match="is no weight"):
        "0.5" * Linear(0, 1, 5)  # type: ignore[operator]


def test_two_terms_of_one_name_are_refused() -> None:
    with pytest.raises(Problem, match="two terms of one objective are named 'kl'"):
        nll() + kl() + 2 * kl()


@pytest.mark.parametrize("shape", [(3, 8), (8, 2, 2), (7,)])
def test_a_term_of_another_shape_is_refused_with_what_it_returned(draw: Draw, shape: tuple[int, ...]) -> None:
    term = Term("odd", lambda _: torch.zeros(shape))
    with pytest.raises(Problem, match=rf"'odd' returned shape \({', '.join(map(str, shape))},?\)"):
        (nll() + term)(draw)


def blocks_of_a_test(parts: Parts) -> Method:
    """A VAE whose z has two parts."""
    model = parts.vae(blocks=SIZES)
    return descend(model, nll() + (of("style", kl()) + of("content", kl())))


@pytest.mark.unhurried
@pytest.mark.parametrize("data", ["pixels", "sentences"])
def test_a_model_of_blocks_trains_and_is_measured_as_any_other(
    data: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_CARDS", dict(registry._CARDS))
    elboroom.method("blocks-of-a-test", "nll + kl of two blocks", paper="this test")(blocks_of_a_test)
    small = {"embed": 6, "hidden": 7} if data == "sentences" else {}
    options = {**FIT, **small}
    del options["latent"]
    run = elboroom.train("blocks-of-a-test", request.getfixturevalue(data), tmp_path / "run", **options)
    assert run.latent == 5
    assert run.model.blocks["content"] == slice(2, 5)
    assert run.elbo().value is not None
    assert len(run.kl_per_dim()) == 5
