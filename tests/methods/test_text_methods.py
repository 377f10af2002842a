"""The contract of the registry on sentences: the same methods, the same loop, tokens in place of pixels."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from contract import (
    HALF,
    METHODS,
    TEXT_METHODS,
    WHOLE,
    Bench,
    Killed,
    act_at,
    kill,
    laws,
    moved,
    newest,
    one_of_each,
    same,
    state,
)

from elboroom import load, resume
from elboroom.core.problem import Problem
from elboroom.data.dataset import DataSet
from elboroom.training import session
from elboroom.training.session import Own
from elboroom.training.spec import specify

every = pytest.mark.parametrize("name", TEXT_METHODS)
of_each_state = pytest.mark.parametrize("name", one_of_each(state, TEXT_METHODS))
of_each_law = pytest.mark.parametrize("name", one_of_each(laws, TEXT_METHODS))


@every
def test_every_trainable_parameter_moves(text_bench: Bench, name: str) -> None:
    after = newest(text_bench.whole(name).folder).state
    for parameter, may, did in moved(text_bench.fresh(name), after):
        assert may == did, f"{parameter} {'stands still' if may else 'is frozen, yet moved'}"


@every
def test_every_line_of_the_log_is_finite(text_bench: Bench, name: str) -> None:
    log = text_bench.whole(name).log
    assert [line["step"] for line in log] == [3, 4, 6, 8]
    assert all(math.isfinite(value) for line in log for value in line.values())


@of_each_state
def test_it_resumes_bit_for_bit_after_a_kill(text_bench: Bench, name: str, tmp_path: Path) -> None:
    whole, folder = text_bench.whole(name), tmp_path / "run"
    with pytest.raises(Killed):
        text_bench.train(name, folder, bar=act_at(WHOLE - 1, kill))
    assert newest(folder).step == HALF
    resume(folder, data=text_bench.data)
    same(newest(folder).state, newest(whole.folder).state)
    assert (folder / "log.jsonl").read_text() == (whole.folder / "log.jsonl").read_text()


@of_each_law
def test_it_is_read_back_and_speaks(text_bench: Bench, name: str) -> None:
    folder = text_bench.whole(name).folder
    run = load(folder, data=text_bench.data)
    given = run.sentences(3)
    assert len(run.sample(4)) == 4
    assert all(isinstance(sentence, str) for sentence in run.sample(4))
    assert run.sample(4, seed=1) == run.sample(4, seed=1) != run.sample(4, seed=2)
    if not run.latent:
        return
    u = run.labelled(3, label="0") if run.given else None  # of methods that give the decoder a label
    assert run.encode(given, u).shape == (3, run.latent)
    assert len(run.reconstruct(given, u)) == 3
    ways = run.interpolate(given[:2], given[1:], points=4, u=None if u is None else u[:2])
    assert [len(row) for row in ways] == [4, 4]
    alone = run.encode(given[1:2], None if u is None else u[1:2])[0]
    np.testing.assert_allclose(run.encode(given, u)[1], alone, rtol=1e-4, atol=1e-5)


@of_each_law
def test_its_numbers_are_those_of_one_protocol(text_bench: Bench, name: str) -> None:
    run = load(text_bench.whole(name).folder, data=text_bench.data)
    found = run.evaluate(samples=3)
    assert found["distortion"]["value"] > 0
    assert found["distortion"]["settings"]["tokens"] == int(run.data.words[run.rows()[1]].sum())
    bound = found["log_likelihood"]
    if bound["value"] is None:
        assert found["perplexity"]["value"] is None
        assert bound["reason"]
        return
    words = int(run.data.words[run.rows()[1]].sum()) / len(run.rows()[1])
    assert math.isclose(found["perplexity"]["value"], math.exp(-bound["value"] / words), rel_tol=1e-9)
    if found["elbo"]["value"] is not None:
        assert bound["value"] >= bound["parts"]["elbo_of_these_rows"] - 1e-9


@of_each_law
def test_it_trains_given_a_label(sentences: DataSet, text_bench: Bench, name: str, tmp_path: Path) -> None:
    run = text_bench.train(name, tmp_path / "run", given="label")
    assert all(math.isfinite(value) for line in run.log for value in line.values())
    made = run.decode(torch.zeros(3, run.latent).numpy(), torch.eye(3).numpy())
    assert len(made) == 3


def test_constant_lengths_are_refused_where_examples_are_coupled(text_bench: Bench) -> None:
    coupled = {text_bench.fresh(name).couples: name for name in TEXT_METHODS}
    for couples, name in coupled.items():
        fit = specify(name, text_bench.data, "array", None, {"batches": "constant", "batch_size": 8}).fit
        if couples:
            assert specify(name, text_bench.data, "array", None, {"batch_size": 8}).fit.order("tokens", True) == "mixed"
            with pytest.raises(Problem, match="couples"):
                fit.order("tokens", couples)
        else:
            assert fit.order("tokens", couples) == "constant"
    assert coupled.keys() == {True, False}


@pytest.mark.parametrize("name", [name for name in TEXT_METHODS if name not in METHODS])
def test_a_method_for_text_alone_refuses_pixels(pixels: DataSet, name: str) -> None:
    with pytest.raises(Problem, match=f"{name} works on tokens"):
        session.build(specify(name, pixels, "array", None, {"batch_size": 8}), Own(pixels))
