"""Methods beside one another: twins, players, every posterior and prior."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from contract import (
    AT_WORK,
    FIT,
    FROM_NOTHING,
    HALF,
    Bench,
    first_of_each,
    game,
    same,
    those,
    turns,
    updates,
)

from elboroom.build.parts import Choices, Parts
from elboroom.core.batch import Batch
from elboroom.core.method import Method, Player, adam
from elboroom.core.problem import Problem
from elboroom.data.dataset import About, DataSet
from elboroom.divergences.variational import DIVERGENCES
from elboroom.methods import card
from elboroom.runs.lifecycle import load, train
from elboroom.training import session
from elboroom.training.batches import Batches
from elboroom.training.loop import Loop, move
from elboroom.training.session import Own
from elboroom.training.spec import specify

# -- one method in the clothes of another ------------------------------------------------------------------------------

APART = {
    "likelihood": "auto",
    "net": "auto",
    "init": "kaiming",
}  # codes that begin apart: a KL of nothing is below any floor
UNITS, REDUCES = ("total", "per_dim"), ("sample", "batch")
TWINS: list[tuple[tuple[str, dict[str, Any]], tuple[str, dict[str, Any]]]] = [
    (("beta-vae-decreasing", {"start": 4.0, "end": 4.0}), ("beta-vae", {"beta": 4.0})),
    (("beta-vae-decreasing", {"start": 4.0, "end": 4.0, "shape": "linear"}), ("beta-vae", {"beta": 4.0})),
    (("beta-vae-decreasing", {"start": 9.0, "end": 2.0, "ramp": 0.0}), ("beta-vae", {"beta": 2.0})),
    (("beta-vae", {"beta": 1.0}), ("vae", {})),
    (("vae-annealed", {"warmup": 0.0}), ("vae", {})),
    (("vae-annealed", {"start": 1.0}), ("vae", {})),
    (("control-vae", {"kp": 0.0, "ki": 0.0, "low": 3.0}), ("beta-vae", {"beta": 3.0})),
    (("mdr-vae", {"rate": 1e-6}), ("vae", {})),
    (("factor-vae", {"gamma": 0.0}), ("vae", {})),
    (("beta-vae-capacity", {"capacity": 0.0, "gamma": 5.0}), ("beta-vae", {"beta": 5.0})),
    (("dip-vae-i", {"off": 0.0, "diag": 0.0}), ("vae", {})),
    (("dip-vae-ii", {"off": 0.0, "diag": 0.0}), ("vae", {})),
    (("info-vae", {"alpha": 0.0, "lam": 1.0}), ("vae", {})),
    (("info-vae", {"alpha": 0.0, "lam": 1.0, "kernel": "imq"}), ("vae", {})),
    (("info-vae", {"alpha": 1.0, "lam": 7.0}), ("mmd-vae", {"lam": 7.0})),
    (("mmd-vae", {"lam": 0.0}), ("beta-vae", {"beta": 0.0})),
    (("wae-mmd", {"lam": 0.0, "reconstruction": "nll"}), ("ae", {})),
    (("wae-gan", {"lam": 0.0, "reconstruction": "nll"}), ("ae", {})),
    (("vae-iaf", {}), ("vae", {"posterior": "iaf"})),
    (("alpha-beta-vae", {"alpha": 0.0, "beta": 4.0}), ("beta-vae", {"beta": 4.0})),
    (("alpha-beta-vae", {"alpha": 0.0, "beta": 4.0, "divergence": "mmd"}), ("beta-vae", {"beta": 4.0})),
    (("alpha-beta-vae", {"alpha": 0.0, "beta": 4.0, "divergence": "inclusive-kl"}), ("beta-vae", {"beta": 4.0})),
    (("f-vae", {"lam": 0.0, "beta": 4.0}), ("beta-vae", {"beta": 4.0})),
    (("regularised-vae", {"lam1": 0.0, "lam2": 0.0}), ("vae", {})),
    (("regularised-vae", {"lam1": 1.0, "lam2": 0.0}), ("beta-vae", {"beta": 2.0})),
    (("regularised-vae", {"lam1": -1.0, "lam2": 0.0}), ("beta-vae", {"beta": 0.0})),
    (("regularised-vae", {"lam1": -1.0, "lam2": 7.0}), ("mmd-vae", {"lam": 7.0})),
    *((("free-bits", {"target": 0.0, "unit": u, "reduce": r}), ("vae", {})) for u in UNITS for r in REDUCES),
    (("free-bits", {"target": 1e3, "unit": "total"}), ("beta-vae", {"beta": 0.0})),
    *((("free-bits", {"form": "mask", "unit": u}), ("free-bits", {"unit": u})) for u in UNITS),
    (("wae-d", {"lam": 0.0}), ("ae", {})),
    (("wae-d", {"lam": 3.0}), ("wae-mmd", {"lam": 3.0, "reconstruction": "nll"})),
    (
        ("wae-s", {"lam": 3.0, "spread": 0.1}),
        ("wae-mmd", {"lam": 3.0, "spread": 0.1, "posterior": "gaussian", "reconstruction": "nll"}),
    ),
    (("vmf-vae", {}), ("vae", {"posterior": "vmf"})),
    *((("mog-vae", {"free_bits": bits}), ("vae", {"prior": "mog"})) for bits in (0.0, 1e-6)),
    (("mog-vae", {"free_bits": 1e3, "prior": "normal"}), ("beta-vae", {"beta": 0.0})),
    (("vamp-vae", {"pseudo_inputs": 20}), ("vae", {"prior": "vamp", "pseudo_inputs": 20})),
    (
        ("laae", {"lam": 3.0, "penalty": 0.0, "critic_lr": 5e-4}),
        ("wae-gan", {"lam": 3.0, "posterior": "gaussian", "reconstruction": "nll"}),
    ),
]


@pytest.mark.parametrize(("left", "right"), TWINS)
def test_twins_are_bit_identical(
    bench: Bench, left: tuple[str, dict[str, Any]], right: tuple[str, dict[str, Any]]
) -> None:
    """Options that make two objectives the same make the two runs the same, bit for bit."""
    ends = []
    for name, options in (left, right):
        spec = specify(name, bench.data, "array", None, {**FIT, **APART, **options})
        method = session.build(spec, Own(bench.data))
        method.prepare(adam(FIT["lr"]))
        loop = bench.loop(method)
        for step in range(HALF):
            loop.step(step)
        ends.append({key: value.clone() for key, value in method.model.state_dict().items()})
    same(*ends)


@pytest.mark.parametrize("batch_size", [4, 16])
def test_capacity_counts_optimiser_steps(bench: Bench, batch_size: int) -> None:
    """Fault 6: C(t) = C_max min(1, t/T), whatever the batch size or the epoch."""
    options = {**FIT, "capacity": 6.0, "ramp": 4.0, "batch_size": batch_size}
    method = session.build(specify("beta-vae-capacity", bench.data, "array", None, options), Own(bench.data))
    method.prepare(adam(1e-3))
    loop = Loop(method, Batches(bench.data, "train", batch_size, 0, (), torch.device("cpu")), 0)
    assert [loop.step(step)["kl.capacity"] for step in range(6)] == [0.0, 1.5, 3.0, 4.5, 6.0, 6.0]


@pytest.mark.parametrize(("net", "total"), [("burgess", 502_005), ("locatello", 690_517), ("locatello-4x4", 764_245)])
def test_models_have_the_published_number_of_parameters(net: str, total: int) -> None:
    """Fault 16, on the whole model of a method."""
    about = About("sprites", "pixels", (1, 64, 64), 737_280, {}, 2)
    method = card("vae").build(Parts(about, Choices(net=net)), {})
    assert sum(p.numel() for p in method.parameters()) == total


# -- players -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", those(lambda method: len(method.groups) > 1))
def test_a_player_moves_its_own_groups_alone(bench: Bench, name: str) -> None:
    """Fault 2: whatever a loss reads, its step leaves the groups of other players as they were, gradients too."""
    method = bench.fresh(name).at(0)
    loop, shared = bench.loop(method), None
    for number, player in enumerate(method.players):
        before = {group: [p.detach().clone() for p in owned] for group, owned in method.owned.items()}
        draw = loop.draw(method, player, 0, number, 0, shared)
        shared = shared or draw
        move(loop.method, player, player.objective(draw).total)
        for group, owned in method.owned.items():
            still = [torch.equal(a, b) for a, b in zip(before[group], owned, strict=True)]
            assert not all(still) if group in player.moves else all(still), group
    assert all(p.grad is None for p in method.parameters())


def critics(method: Method) -> list[Player]:
    """The players that move a critic and nothing else."""
    return [player for player in method.players if player.moves == ("critic",)]


@pytest.mark.parametrize("name", those(critics))
def test_the_loss_of_a_critic_has_no_path_into_the_model(bench: Bench, name: str) -> None:
    """Fault 2: neither encoder, decoder nor prior is in the graph of what a critic descends."""
    method = bench.fresh(name).at(0)
    others = [p for group, owned in method.owned.items() if group != "critic" for p in owned]
    loop, shared = bench.loop(method), None
    for number, player in enumerate(method.players):
        draw = loop.draw(method, player, 0, number, 0, shared)
        shared = shared or draw
        total = player.objective(draw).total
        if player in critics(method):
            assert all(g is None for g in torch.autograd.grad(total, others, allow_unused=True))


# -- every posterior, every prior, every variant -----------------------------------------------------------------------

COMBINATIONS: list[dict[str, Any]] = [
    *({"posterior": kind} for kind in ("gaussian", "point", "iaf", "implicit")),
    *({"posterior": kind} for kind in ("vmf", "power-spherical", "nsf")),
    *({"prior": kind} for kind in ("anisotropic", "student", "clustered", "sparse")),
    *({"prior": kind, "pseudo_inputs": 20} for kind in ("sphere", "mog", "vamp", "flow")),
    {"posterior": "vmf", "kappa_learned": True},
    {"prior": "sparse", "sparse_share": 0.0},
    {"latent": 1},
    {"latent": 1, "posterior": "iaf"},
]
MORE: list[tuple[str, dict[str, Any]]] = [
    ("wae-mmd", {"posterior": "iaf", "spread": 1.0}),
    ("wae-mmd", {"posterior": "implicit", "spread": 1.0}),
    ("regularised-vae", {"posterior": "iaf", "r2": "decorrelated"}),
    ("regularised-vae", {"posterior": "iaf", "r2": "inclusive-kl"}),
    ("alpha-beta-vae", {"posterior": "iaf", "divergence": "inclusive-kl"}),
]


REFUSED = {  # by a combination, the methods that it is not for; what is not named has to train
    label: names.split() for label, names in tomllib.loads((Path(__file__).parent / "refused.toml").read_text()).items()
}


def combined() -> Iterator[Any]:
    """In `make test` the first method of each game; the families are those that are asked for."""
    first = first_of_each(game)
    for name, options in [*product(FROM_NOTHING, COMBINATIONS), *MORE]:
        label = ",".join(f"{key}={value}" for key, value in options.items())
        few = name in first or (name, options) in MORE
        refused = name in REFUSED.get(label, ())
        yield pytest.param(name, options, refused, id=f"{name}-{label}", marks=() if few else pytest.mark.slow)


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize(("name", "options", "refused"), list(combined()))
def test_a_combination_works_or_is_refused_when_it_is_built(
    vectors: DataSet, name: str, options: dict[str, Any], refused: bool
) -> None:
    spec = specify(name, vectors, "array", None, {**FIT, **AT_WORK.get(name, {}), **options})
    given = spec.model.given_names
    if refused:
        with pytest.raises(Problem, match="--"):  # it says what to combine instead
            session.build(spec, Own(vectors), vectors)
        return
    method = session.build(spec, Own(vectors), vectors)
    method.prepare(adam(1e-3))
    logged = Loop(method, Batches(vectors, "train", 8, 0, given, torch.device("cpu")), 0).step(0)
    assert all(math.isfinite(float(value)) for value in logged.values())


VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("avb", {"adaptive": False, "critic_turns": 3}),
    ("wae-mmd", {"posterior": "gaussian", "spread": 0.1, "kernel": "rbf"}),
    ("wae-gan", {"posterior": "gaussian", "reconstruction": "nll"}),
    ("aae", {"posterior": "gaussian", "reconstruction": "squared"}),
    ("dip-vae-ii", {"third": 1.0}),
    ("dip-vae-ii", {"third": 1.0, "entries": "diagonal"}),
    ("info-vae", {"alpha": 0.5, "kernel": "imq"}),
    ("alpha-beta-vae", {"prior": "clustered", "divergence": "inclusive-kl"}),
    ("alpha-beta-vae", {"prior": "sparse"}),
    ("alpha-beta-vae", {"prior": "anisotropic", "divergence": "mmd"}),
    ("alpha-beta-vae", {"prior": "student"}),
    *(("f-vae", {"f": row}) for row in DIVERGENCES),
    *(("regularised-vae", {"r2": r2}) for r2 in ("mmd-imq", "inclusive-kl", "decorrelated", "unit-variance")),
    ("iwae", {"posterior": "iaf", "prior": "clustered"}),
    ("vae-iaf", {"latent": 1}),
    ("vae-iaf", {"flow_steps": 1}),
    ("wae-mmd", {"posterior": "implicit"}),
    ("implicit-vae", {"generator": "linear", "critic_turns": 2}),
    ("implicit-vae-mi", {"posterior": "gaussian"}),
    ("vae", {"posterior": "implicit-linear"}),
    ("p-vae", {"curvature": 0.5, "curvature_learned": True}),
    ("apo-vae", {"generator": "linear", "curvature_learned": True}),
    ("apo-vae-vamp", {"generator": "mlp", "pseudo_inputs": 5}),
    ("wae-gan", {"posterior": "wrapped", "curvature_learned": True}),
    ("vae", {"prior": "anisotropic", "variances_learned": True}),
    ("vae", {"prior": "student", "variances_learned": True}),
    ("avb", {"posterior": "wrapped", "adaptive": False}),
    *(("free-bits", {"target": 0.05, "unit": u, "reduce": r, "form": "mask"}) for u in UNITS for r in REDUCES),
    ("free-bits", {"target": 0.01, "unit": "total", "posterior": "iaf"}),
    ("bn-vae", {"prior": "sparse"}),
    ("delta-vae", {"sign": "learned"}),
    ("delta-vae-ar1", {"latent": 4, "ar1_channels": 2}),
    ("lagging-vae", {"at_most": 3}),
    ("sa-vae", {"through": "difference", "inner_steps": 3}),
    ("sa-vae", {"prior": "clustered", "inner_steps": 3}),
    *(("vmf-vae", {"posterior": kind, "kappa_learned": True}) for kind in ("vmf", "power-spherical")),
    ("vmf-vae", {"posterior": "power-spherical", "kappa": 3.0}),
    *((name, {"free_bits": 0.01, "pseudo_inputs": 20}) for name in ("mog-vae", "vamp-vae", "flow-prior")),
    *(("iwae", {"prior": kind, "pseudo_inputs": 20}) for kind in ("mog", "vamp", "flow")),
    ("flow-prior", {"posterior": "nsf", "samples": 2, "flow_layers": 3}),
    ("lagging-vae", {"prior": "vamp", "pseudo_inputs": 20, "at_most": 3}),
]


ON_TEXT: list[tuple[str, dict[str, Any]]] = [
    ("vae", {"posterior": "nsf"}),
    ("flow-prior", {"posterior": "nsf", "samples": 2, "flow_layers": 3, "free_bits": 0.01}),
    *(("vmf-vae", {"posterior": kind, "kappa_learned": True}) for kind in ("vmf", "power-spherical")),
    ("vmf-vae", {"posterior": "power-spherical", "prior": "vamp", "pseudo_inputs": 5, "kappa_learned": True}),
    ("p-vae", {"curvature": 0.5, "curvature_learned": True}),
    ("apo-vae", {"generator": "linear", "curvature_learned": True}),
    ("wae-gan", {"posterior": "wrapped", "curvature_learned": True}),
    *(("free-bits", {"target": 0.05, "unit": u, "form": "mask"}) for u in UNITS),
    ("mog-vae", {"free_bits": 0.01}),
]
SMALL = {"pixels": {"net": "mlp-300"}, "sentences": {"embed": 6, "hidden": 7}}


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize(
    ("kind", "name", "options"),
    [*(("pixels", *variant) for variant in VARIANTS), *(("sentences", *variant) for variant in ON_TEXT)],
)
def test_a_variant_moves_everything_and_goes_on_where_it_was(
    kind: str, name: str, options: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    """The core of the contract for the options that the defaults leave out."""
    data: DataSet = request.getfixturevalue(kind)

    def ready() -> tuple[Method, Loop]:
        spec = specify(name, data, "array", None, {**FIT, **SMALL[kind], **options})
        method = session.build(spec, Own(data), data)
        method.prepare(adam(1e-3))
        return method, Loop(method, Batches(data, "train", 8, 0, (), torch.device("cpu")), 0)

    whole, loop = ready()
    before = {key: p.detach().clone() for key, p in whole.named_parameters()}
    for step in range(3):
        logged = loop.step(step)
        assert all(math.isfinite(float(value)) for value in logged.values())
        if step == 1:
            middle = {key: value.clone() for key, value in whole.state().items()}
    assert not [key for key, p in whole.named_parameters() if torch.equal(p, before[key])]
    assert updates(whole.state()) == turns(whole, 3)
    again, loop = ready()
    again.restore(middle)
    loop.step(2)
    same(again.state(), whole.state())


@pytest.mark.parametrize("f", DIVERGENCES)
def test_every_divergence_starts_finite_on_data_that_is_not_standardised(vectors: DataSet, f: str) -> None:
    method = session.build(specify("f-vae", vectors, "array", None, {**FIT, "f": f}), Own(vectors), vectors)
    method.prepare(adam(1e-3))
    loop = Loop(method, Batches(vectors, "train", 8, 0, (), torch.device("cpu")), 0)
    assert all(math.isfinite(float(value)) for step in range(3) for value in loop.step(step).values())


PRIORS = ["anisotropic", "student", "clustered", "sparse", "mog", "vamp", "flow", "ar1"]
LOSSES = ["vae", "iwae", "factor-vae", "beta-vae", "info-vae", "dip-vae-ii"]


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize(
    ("name", "prior"),
    [
        pytest.param(name, prior, marks=() if name == LOSSES[number % len(LOSSES)] else pytest.mark.slow)
        for number, prior in enumerate(PRIORS)
        for name in LOSSES
    ],
)
def test_a_prior_that_cannot_depend_on_labels_is_one_for_all(
    vectors: DataSet, tmp_path: Path, name: str, prior: str
) -> None:
    """Encoder and decoder see them all the same."""
    run = train(name, vectors, tmp_path / "run", **{**FIT, "prior": prior, "given": "label", "steps": 2})
    assert not run.split().has_many_priors
    assert not run.model.prior(Batch(torch.zeros(5, 6), torch.eye(3)[[0, 1, 2, 0, 1]])).batch_shape
    u = np.eye(3, dtype=np.float32)
    codes = run.encode(np.zeros((3, 6), np.float32), u)
    assert len(np.unique(codes.round(6), axis=0)) == 3
    assert run.sample(3, u=u).shape == (3, 6)


def test_the_anisotropic_prior_has_the_spectrum_of_the_data(vectors: DataSet, tmp_path: Path) -> None:
    """Fixed, scaled to mean one, kept in the run: what was read off the training rows is there after loading."""
    run = train("alpha-beta-vae", vectors, tmp_path / "run", **{**FIT, "prior": "anisotropic", "alpha": 0.0})
    x = run.data.x(run.data.splits["train"]).numpy().astype(np.float64)
    spectrum = np.linalg.eigvalsh(np.cov(x.T, ddof=0))[::-1][:3]
    found = load(run.folder, data=vectors).model.prior.logvar.exp().numpy()
    np.testing.assert_allclose(found, spectrum / spectrum.mean(), rtol=1e-4)
    assert found.mean() == pytest.approx(1.0)


@pytest.mark.parametrize("posterior", ["vmf", "power-spherical", "wrapped"])
def test_dimensions_on_a_sphere_or_a_ball_are_not_shuffled(pixels: DataSet, tmp_path: Path, posterior: str) -> None:
    with pytest.raises(Problem, match="shuffling the dimensions of codes leaves the space"):
        train("factor-vae", pixels, tmp_path / "run", steps=1, posterior=posterior)


@pytest.mark.parametrize(("alpha", "lam"), [(0.0, 0.001), (0.0, 0.999), (-3.0, 3.0), (0.5, 0.4)])
def test_an_mmd_of_negative_weight_is_refused(pixels: DataSet, tmp_path: Path, alpha: float, lam: float) -> None:
    """Fault 13: a peer's defaults, alpha 0 and lambda 0.001, push q(z) away from the prior."""
    with pytest.raises(Problem, match="alpha \\+ lam must be at least 1"):
        train("info-vae", pixels, tmp_path / "run", **{**FIT, "alpha": alpha, "lam": lam})
    assert not (tmp_path / "run").exists()
