"""What a trained run answers, whatever trained it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import safetensors.torch
from contract import Bench, by_kind, same

from elboroom.runs.lifecycle import load


def test_an_autoencoder_is_sampled_from_the_gaussian_of_its_codes(bench: Bench) -> None:
    """It has no prior: codes of samples have the mean and the covariance of the codes of the training examples."""
    run, n = load(bench.whole("ae").folder, data=bench.data), 40_000
    codes = run.encode(bench.data.hold_out(bench.data.holdout).x(run.data.splits["train"]).numpy())
    run._decoded = lambda z, u, decoding: z.numpy()  # type: ignore[method-assign]
    z = run.sample(n)
    deviation = codes.std(0, ddof=1)
    np.testing.assert_array_less(np.abs(z.mean(0) - codes.mean(0)), 5 * deviation / math.sqrt(n))
    error = 5 * np.outer(deviation, deviation) * math.sqrt(2 / n)
    np.testing.assert_array_less(np.abs(np.cov(z.T) - np.cov(codes.T)), error)
    assert abs(z.mean(0)).max() > 10 / math.sqrt(n), "which are not those of N(0, I)"


@pytest.mark.parametrize("name", ["ae", "vae", "aae", "avb"])
def test_the_same_seed_gives_the_same_samples(bench: Bench, name: str) -> None:
    run = load(bench.whole(name).folder, data=bench.data)
    assert np.array_equal(run.sample(3), run.sample(3))


def test_a_model_with_a_prior_is_sampled_from_it(bench: Bench) -> None:
    run, n = load(bench.whole("wae-mmd").folder, data=bench.data), 40_000
    run._decoded = lambda z, u, decoding: z.numpy()  # type: ignore[method-assign]
    z = run.sample(n)
    assert abs(z.mean(0)).max() < 5 / math.sqrt(n)
    assert abs(np.cov(z.T) - np.eye(3)).max() < 5 * math.sqrt(2 / n)


def test_a_run_is_loaded_whatever_its_first_tensor_is(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flow keeps masks of bool and orders of int64 beside its weights, and a file names no first one."""
    run, read = bench.whole("vae-iaf"), safetensors.torch.load
    monkeypatch.setattr(safetensors.torch, "load", lambda content: by_kind(read(content), floats_first=False))
    same(load(run.folder, data=bench.data).model.state_dict(), run.model.state_dict())
