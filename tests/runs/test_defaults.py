"""What is learnt by default, on real data: the figures of docs/defaults.md, in runs of a minute."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch

import elboroom
from benchmarks import own_data, ptb_plain
from elboroom.runs.run import Run

pytestmark = pytest.mark.slow
SMALL: dict[str, Any] = {"embed": 128, "hidden": 128, "threads": 1}
AGAINST_COLLAPSE: dict[str, dict[str, Any]] = {
    "ae-pretrained-free-bits": {"target": 8.0, "steps": 1_200},
    "bn-vae": {},
    "bn-vae-tau": {},
    "control-vae": {"target": 8.0},
    "daae": {},
    "free-bits": {"target": 8.0, "unit": "per_dim", "reduce": "sample", "steps": 1_500},
    "mdr-vae": {"rate": 8.0, "steps": 900},
    "wae-s": {},
}


@pytest.fixture
def real() -> Path:
    if "ELBOROOM_DATA" not in os.environ:
        pytest.skip("ELBOROOM_DATA does not name a folder of real data")
    return Path(os.environ["ELBOROOM_DATA"])


@pytest.fixture
def some_of_ptb(real: Path, tmp_path: Path) -> Path:
    """6,000 sentences to learn from, and 500 of the test split that have no other words."""
    train = (real / "ptb" / "ptb.train.txt").read_text().splitlines()[:6_000]
    words = {word for line in train for word in line.split()}
    test = [line for line in (real / "ptb" / "ptb.test.txt").read_text().splitlines() if {*line.split()} <= words]
    for split, lines in (("train", train), ("test", test[:500])):
        for name in (f"{split}.txt", f"ptb.{split}.txt"):
            folder = tmp_path / ("plain" if name.startswith("ptb") else "ours")
            folder.mkdir(exist_ok=True)
            (folder / name).write_text("\n".join(lines) + "\n")
    return tmp_path


def information(run: Run) -> float:
    """Mutual information of x and z on the test split."""
    value: float = run.evaluate(samples=1, iw_most=1, most=1_000)["mutual_information"]["value"]
    return value


@pytest.mark.parametrize(
    ("name", "at_most", "options"),
    [
        ("freyfaces", 1.0, {}),
        ("fashion-mnist", 1.0, {"steps": 1_500}),  # of 20,000
        ("omniglot", 1.0, {}),
        ("photos", 1.1, {}),
        ("portraits", 1.0, {}),
        ("digits", 1.0, {}),
        ("cancer", 1.0, {}),
    ],
)
def test_own_data_are_kept_as_well_as_by_principal_components(
    name: str, at_most: float, options: dict[str, Any], real: Path, tmp_path: Path
) -> None:
    found = own_data.row(name, tmp_path, {"threads": 1} | options)
    unit = ", in widths" if name == "cancer" else ""
    assert found[f"error{unit}"] < at_most * found[f"pca{unit}"]
    assert found["largest mean of a code"] < 1, "codes stay near the prior"


def test_a_language_model_learns_faster_than_a_plain_loop(
    some_of_ptb: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ours = elboroom.train("lm", some_of_ptb / "ours", some_of_ptb / "run", epochs=3, **SMALL)
    capsys.readouterr()
    told = {"kind": "lm", "epochs": 3, "batch": 32, "embed": 128, "hidden": 128, "latent": 0, "threads": 1, "seed": 1}
    ptb_plain.train(Namespace(data=some_of_ptb / "plain", **told))
    plain = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert -(ours.elbo("test").value or 0.0) < plain["nll"]


def test_an_annealed_vae_keeps_its_rate(real: Path, tmp_path: Path) -> None:
    """The first twentieth of five epochs, by whose end no more than 0.07 nats used to be left."""
    told: dict[str, Any] = SMALL | {"latent": 32, "steps": 330, "decay": "none", "warmup": 0.9 * 6_575}
    run = elboroom.train("vae-annealed", "ptb", tmp_path / "run", **told)
    assert sum(run.kl_per_dim("test")) > 0.5


def test_an_autoencoder_writes_sentences_again(tmp_path: Path) -> None:
    run = elboroom.train("ae", "sentences", tmp_path / "run", steps=2_000, embed=64, hidden=128, latent=16, threads=1)
    given = run.data.sentences(run.rows("test")[1][:1_000])
    codes = torch.from_numpy(run.encode(given))
    variances = torch.linalg.eigvalsh(codes.T.cov()).clamp_min(0)
    assert variances.sum() ** 2 / variances.square().sum() > 3, "directions of the codes"
    assert run.evaluate(samples=1, iw_most=1, most=1_000)["distortion"]["value"] < 7
    assert sum(a == b for a, b in zip(given, run.reconstruct(given), strict=True)) > 900


@pytest.mark.parametrize("method", AGAINST_COLLAPSE)
def test_codes_of_captions_say_more_than_a_nat(method: str, real: Path, tmp_path: Path) -> None:
    options = {"latent": 32, "steps": 300, "min_count": 5} | SMALL | AGAINST_COLLAPSE[method]
    run = elboroom.train(method, "multi30k", tmp_path / "run", **options)
    assert information(run) > 1


def test_samples_of_captions_have_no_unknown_words(real: Path, tmp_path: Path) -> None:
    run = elboroom.train("bn-vae", "caption-style", tmp_path / "run", steps=300, **SMALL)
    assert information(run) > 1
    assert not any("<unk>" in text for text in run.sample(50))
