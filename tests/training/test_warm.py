"""A warm start carries parts by their role, wherever they stand in the other model."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from contract import Killed, act_at, kill, newest

import elboroom
from elboroom.data.dataset import DataSet
from elboroom.training import session
from elboroom.training.session import Own
from elboroom.training.spec import specify
from elboroom.training.warm import counterparts, warm_start

SMALL: dict[str, Any] = {"steps": 2, "batch_size": 8, "latent": 3, "net": "mlp-300", "threads": 1, "device": "cpu"}


@pytest.mark.parametrize(
    ("before", "after", "anew"),
    [
        ("vae", "bn-vae", {"posterior.norm.running_mean", "posterior.norm.running_var", "posterior.shift",
                           "posterior.norm.num_batches_tracked"}),
        ("vae", "delta-vae", set()),
        ("delta-vae", "bn-vae-tau", None),
        ("bn-vae", "vae", set()),
        ("vae", "sa-vae", set()),
        ("ae", "vae", {"posterior.net.net.dense.2.weight", "posterior.net.net.dense.2.bias"}),
        ("vae", "vae-iaf", None),
    ],
)  # fmt: skip
def test_encoder_and_decoder_are_carried(
    pixels: DataSet, before: str, after: str, anew: set[str] | None, tmp_path: Path
) -> None:
    elboroom.train(before, pixels, tmp_path / "run", **SMALL)
    theirs = {k.removeprefix("model."): v for k, v in newest(tmp_path / "run").state.items() if k.startswith("model.")}
    method = session.build(specify(after, pixels, "array", None, SMALL), Own(pixels))
    first = {name: tensor.clone() for name, tensor in method.model.state_dict().items()}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        said = warm_start(method, tmp_path / "run")
    now = method.model.state_dict()
    pairs = {name: other for name, other in counterparts(now, theirs).items() if theirs[other].shape == now[name].shape}
    assert all(torch.equal(now[name], theirs[other]) for name, other in pairs.items())
    assert all(torch.equal(now[name], first[name]) for name in now.keys() - pairs.keys())
    assert any(name.startswith("posterior") and ".net." in name for name in pairs), "the encoder"
    assert any(name.startswith("likelihood") for name in pairs), "the decoder"
    if anew is not None:
        assert now.keys() - pairs.keys() == anew
        assert bool(told) == bool(anew)
        of_encoder = sum(name.startswith("posterior") for name in now)
        wanted = f"{of_encoder - len(anew)} of {of_encoder} tensors of the encoder" if anew else "the encoder"
        assert said == f"{wanted} and the decoder, from {tmp_path / 'run'}"


def test_a_role_is_a_part_and_an_end_and_no_guess() -> None:
    assert counterparts(["posterior.posterior.net.w"], ["posterior.net.w"]) == {
        "posterior.posterior.net.w": "posterior.net.w"
    }
    assert counterparts(["posterior.net.w"], ["likelihood.net.w", "posterior.flow_net.w"]) == {}
    assert counterparts(["posterior.w"], ["posterior.a.w", "posterior.b.w"]) == {}, "either could be meant"
    assert counterparts(["prior.a.w", "prior.w"], ["prior.w"]) == {"prior.w": "prior.w"}, "a name goes first"


@pytest.mark.parametrize("after", ["bn-vae", "delta-vae"])
def test_an_encoder_of_sentences_trained_before_is_carried(sentences: DataSet, after: str, tmp_path: Path) -> None:
    small = {"steps": 4, "batch_size": 8, "latent": 3, "embed": 4, "hidden": 4, "threads": 1}
    before = elboroom.train("ae-pretrained-free-bits", sentences, tmp_path / "before", **small)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some starts anew, which is said
        run = elboroom.train(after, sentences, tmp_path / "run", warm=tmp_path / "before", **small | {"lr": 1e-9})
    theirs = before.model.posterior.net.state_dict()  # type: ignore[union-attr]
    known, own = (some.tokenisers["x"].tokens for some in (before, run))  # that which looks has fewer to learn from
    here, there = zip(*((row, known.index(token)) for row, token in enumerate(own) if token in known), strict=True)
    assert len(here) > 4
    for name, weight in run.model.posterior.posterior.net.state_dict().items():  # type: ignore[union-attr]
        word = "embedding" in name
        mine, other = (weight[list(here)], theirs[name][list(there)]) if word else (weight, theirs[name])
        torch.testing.assert_close(mine, other, atol=1e-6, rtol=0)


def test_where_it_was_warm_started_from_is_kept_as_an_absolute_path(
    pixels: DataSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that a run that was killed before its first checkpoint is resumed from elsewhere."""
    monkeypatch.chdir(tmp_path)
    elboroom.train("vae", pixels, "before", **SMALL)
    with pytest.raises(Killed):
        elboroom.train("vae", pixels, "run", warm="before", bar=act_at(1, kill), **SMALL)
    monkeypatch.chdir("/")
    run = elboroom.resume(tmp_path / "run", data=pixels)
    assert run.spec.warm == str(tmp_path / "before")
