"""The doctor says the right thing of a collapsed, a healthy and an overfit run, with numbers and a command that parses."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from shell import elbo

import elboroom
from elboroom.evaluate.verdicts import Verdict
from elboroom.runs.doctor import Patient, _by_moments, _reconstructions, examine, losses
from elboroom.runs.run import Run

RNG = np.random.default_rng(0)
X = (RNG.normal(size=(400, 2)) @ RNG.normal(size=(2, 6)) + 0.3 * RNG.normal(size=(400, 6))).astype(np.float32)
SMALL: dict[str, Any] = {"latent": 2, "net": "mlp-300+linear", "threads": 1, "log_every": 5}


def found(run: Run) -> dict[str, Verdict]:
    return {verdict.name: verdict for verdict in examine(run)}


def problems(run: Run) -> set[str]:
    return {name for name, verdict in found(run).items() if verdict.state == "problem"}


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return elboroom.train("vae", X, tmp_path_factory.mktemp("runs") / "healthy", steps=300, **SMALL)


def set_last(run: Run, weight: float, bias: list[float]) -> None:
    """Sets the last layers of the encoder: of the net, and of the map beside it."""
    lines = [m for m in run.model.posterior.modules() if isinstance(m, torch.nn.Linear) and m.out_features == len(bias)]
    with torch.no_grad():
        for number, line in enumerate(lines):
            line.weight.mul_(weight)
            line.bias.copy_(torch.tensor(bias) if not number else torch.zeros(len(bias)))


@pytest.mark.unhurried
def test_a_healthy_run_has_no_problem(healthy: Run) -> None:
    told = found(healthy)
    assert problems(healthy) == set(), told
    assert told["dead dimensions"].told == "All 2 dimensions are active."
    assert "draws of the prior fall among the codes" in told["prior"].told
    assert told["learning"].told.startswith("It has settled")
    assert told["overfit"].evidence["nats, test"] == pytest.approx(-(healthy.elbo().value or 0), rel=1e-6)
    assert not any(verdict.command for verdict in told.values())


@pytest.mark.unhurried
def test_a_collapsed_run_is_told_with_what_to_try(tmp_path: Path) -> None:
    run = elboroom.train("beta-vae", X, tmp_path / "run", beta=4000, steps=60, **SMALL)
    set_last(run, 0.0, [0.0, 0.0, 0.0, 0.0])
    told = found(run)
    assert told["collapse"].state == "problem"
    assert told["collapse"].told.startswith("z is not used (mean KL 0 nats)")
    assert told["collapse"].evidence["active dimensions"] == 0
    command = told["collapse"].command
    assert command.startswith("elbo train free-bits --data FILE.npy ")
    assert "--latent 2 --net mlp-300+linear" in command
    assert command.endswith(f"--steps 60 --log-every 5 --out {run.folder}-in-use")
    assert "beta" not in command
    assert not {"prior", "doubled dimensions", "pca"} & told.keys(), "of a z that is not used nothing else is said"


TABLE = "line,mood\n" + "".join(f"w{i % 7} w{i % 5} w{i % 3} {m},{m}\n" for i in range(30) for m in ("good", "bad"))
TEXT: dict[str, Any] = {"steps": 2, "embed": 4, "hidden": 5, "latent": 2, "threads": 1}


@pytest.mark.parametrize(
    ("method", "said", "tried", "parts"),
    [
        ("vae", {"given": "mood", "min_count": 2, "posterior": "vmf"}, "bn-vae", ["--given mood", "--min-count 2"]),
        ("bn-vae", {"gamma": 0.7, "warmup": 0.5}, "free-bits", ["--warmup 0.5"]),
        ("free-bits", {"target": 9.0}, "bn-vae", []),
        ("style-vae", {"latent": None, "style_size": 3, "content_size": 5, "rate": 2.0}, "style-ae", ["--style-size 3"]),
    ],
)  # fmt: skip
@pytest.mark.unhurried
def test_what_to_try_is_another_method_on_the_same_data(
    method: str, said: dict[str, Any], tried: str, parts: list[str], tmp_path: Path
) -> None:
    (tmp_path / "x.csv").write_text(TABLE)
    column = {"text_column": "line", "label_column": "mood"}
    told = {name: value for name, value in (TEXT | said).items() if value is not None}
    run = elboroom.train(method, tmp_path / "x.csv", tmp_path / "run", **column, **told)
    command = Patient(run, 20).remedy("in-use")
    assert command.startswith(f"elbo train {tried} --data {tmp_path / 'x.csv'} ")
    for part in (*parts, "--text-column line", "--label-column mood", "--steps 2"):
        assert part in command
    assert not any(gone in command for gone in ("vmf", "gamma", "target", "--rate"))
    done = elbo(*shlex.split(command)[1:])
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run-in-use" / "spec.json").exists()


@pytest.mark.unhurried
def test_replies_are_tried_by_another_method_of_replies(tmp_path: Path) -> None:
    rows = "".join(f"w{i % 7} w{i % 5}\tw{i % 3} w{i % 4}\n" for i in range(60))
    (tmp_path / "x.tsv").write_text(f"before\treply\n{rows}")
    columns = {"text_column": "reply", "context_column": "before"}
    run = elboroom.train("cvae", tmp_path / "x.tsv", tmp_path / "run", **columns, **TEXT)
    assert Patient(run, 20).remedy("x").startswith(f"elbo train bn-cvae --data {tmp_path / 'x.tsv'} ")


@pytest.mark.unhurried
def test_an_overfit_run_is_told(tmp_path: Path) -> None:
    run = elboroom.train("vae", X[:40], tmp_path / "run", steps=400, holdout=0.5, lr=1e-2, **SMALL)
    told = found(run)
    assert told["overfit"].state == "problem"
    assert float(told["overfit"].evidence["nats, test"]) > float(told["overfit"].evidence["nats, train"]) + 1
    assert "--patience 3" in told["overfit"].command
    assert "--holdout 0.5" in told["overfit"].command, "what was said stays"
    assert "learning" not in told, "what it learns by now is of no use"


def test_doubled_dimensions_a_far_prior_and_a_dead_dimension(healthy: Run) -> None:
    lines = [m for m in healthy.model.posterior.modules() if isinstance(m, torch.nn.Linear) and m.out_features == 4]
    before = [line.weight.detach().clone() for line in lines]
    try:
        with torch.no_grad():
            for line in lines:
                line.weight[1], line.bias[1] = line.weight[0], line.bias[0]
        told = found(_fresh(healthy))
        assert told["doubled dimensions"].told.startswith("z0 and z1 are doubled (correlation 1.00): one of them")
        assert "--latent 1" in told["doubled dimensions"].command
        with torch.no_grad():
            for line, weight in zip(lines, before, strict=True):
                line.weight.copy_(weight)
                line.weight[0] *= 30
                line.weight[1] *= 0
        told = found(_fresh(healthy))
        assert told["prior"].state == "problem"
        assert told["prior"].command == f"elbo sample {healthy.folder} --sampler gmm"
        assert told["dead dimensions"].told.startswith("1 of 2 dimensions is passive")
        assert told["dead dimensions"].state == "note"
    finally:
        with torch.no_grad():
            for line, weight in zip(lines, before, strict=True):
                line.weight.copy_(weight)


def _fresh(run: Run) -> Run:
    """The same model without what was computed before."""
    return Run(run.folder, run.spec, run.method, run.step, run._own)


@pytest.mark.unhurried
def test_photos_under_bernoulli_and_a_sigma_that_is_too_wide(tmp_path: Path) -> None:
    photos = np.clip(RNG.normal(120, 20, (60, 8, 8)), 0, 255).astype(np.uint8)
    small = {"steps": 2, "latent": 2, "net": "mlp-300", "threads": 1}
    told = found(elboroom.train("vae", photos, tmp_path / "bernoulli", likelihood="bernoulli", **small))
    assert told["likelihood"].state == "problem"
    assert float(told["likelihood"].evidence["share of grey pixels"]) > 0.9
    assert "--likelihood gaussian-optimal" in told["likelihood"].command
    told = found(elboroom.train("vae", photos, tmp_path / "wide", likelihood="gaussian", sigma=3.0, **small))
    assert told["likelihood"].told.startswith("sigma is fixed at 3")
    drawn = (photos > 120).astype(np.uint8)
    told = found(elboroom.train("vae", drawn, tmp_path / "drawn", likelihood="gaussian", **small))
    assert told["likelihood"].told.startswith("The images are black and white")
    assert "likelihood" not in found(elboroom.train("vae", drawn, tmp_path / "well", **small))


@pytest.mark.unhurried
def test_sentences_and_models_without_z_are_looked_at_too(tmp_path: Path) -> None:
    lines = [f"w{i % 7} w{i % 5} w{i % 3}" for i in range(60)]
    small = {"steps": 3, "embed": 4, "hidden": 4, "threads": 1}
    told = found(elboroom.train("vae", lines, tmp_path / "vae", latent=2, **small))
    assert told.get("collapse", told.get("dead dimensions")) is not None
    assert "elbo train bn-vae" in told["collapse"].command if "collapse" in told else True
    assert "collapse" not in found(elboroom.train("lm", lines, tmp_path / "lm", **small))


def test_what_a_map_writes_is_not_held_against_what_it_reads(tmp_path: Path) -> None:
    lines = [(f"the {thing} was {mood}", mood) for thing in ("soup", "cake", "room") for mood in ("bad", "good")] * 10
    (tmp_path / "x.tsv").write_text("".join(f"{mood}\t{line}\n" for line, mood in lines))
    small = {"steps": 4, "threads": 1, "log_every": 1}
    base = elboroom.train("ae", tmp_path / "x.tsv", tmp_path / "base", latent=4, embed=4, hidden=4, **small)
    run = elboroom.train("emb2emb", tmp_path / "x.tsv", tmp_path / "map", base=base.folder, to="good", **small)
    assert {"learning"} >= found(run).keys()


@pytest.mark.unhurried
def test_a_run_with_a_style_is_looked_at_by_what_it_is(tmp_path: Path) -> None:
    """Its KL is that of both parts, q(z) is no farther from the prior than that, and what it is told to try can be tried."""
    rng = np.random.default_rng(0)
    lines = [(" ".join(rng.choice([f"w{i}" for i in range(9)], 6)) + f" {mood}", mood) for mood in ["good", "bad"] * 40]
    (tmp_path / "x.tsv").write_text("".join(f"{mood}\t{line}\n" for line, mood in lines))
    sizes = {"style_size": 2, "content_size": 40, "embed": 6, "hidden": 8}
    run = elboroom.train("style-vae", tmp_path / "x.tsv", tmp_path / "run", steps=8, log_every=1, threads=1, **sizes)
    patient, line = Patient(run, 100), run.log[-1]
    assert losses(run)[-1] == pytest.approx(line["nll"] + line["kl_style"] + line["kl_content"])
    assert patient.rate is not None
    assert 0 <= _by_moments(patient) <= patient.rate, (
        "a covariance of 42 dimensions by 8 draws would say thousands of nats"
    )
    assert "--content-size 39" in patient.smaller(41)
    patient.variances = [1.0] * 42  # as if z were in use
    assert [verdict.state for verdict in _reconstructions(patient)] == ["note"]


@pytest.mark.unhurried
def test_the_page_and_its_json(healthy: Run) -> None:
    page = elbo("doctor", healthy.folder)
    assert page.returncode == 0
    assert "What is well" in page.stdout
    assert "evidence: active dimensions 2, latent dimensions 2" in page.stdout
    said = json.loads(elbo("doctor", healthy.folder, "--json").stdout)
    assert said["run"]["method"] == "vae"
    assert {"name", "state", "told", "evidence", "command"} == set(said["verdicts"][0])
    gone = elbo("doctor", healthy.folder / "nothing")
    assert (gone.returncode, gone.stderr.count("\n")) == (2, 1)


@pytest.mark.unhurried
def test_a_command_to_try_can_be_typed(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X[:40])
    run = elboroom.train("vae", tmp_path / "x.npy", tmp_path / "run", steps=400, holdout=0.5, lr=1e-2, **SMALL)
    words = shlex.split(found(run)["overfit"].command)
    words[words.index("--steps") + 1] = "3"
    assert elbo(*words[1:]).returncode == 0
    assert (tmp_path / "run-early" / "spec.json").exists()
    shown = elbo("eval", tmp_path / "run", "--samples", 2).stderr
    assert f"elbo doctor {tmp_path / 'run'}" in shown
    assert "  overfit: " in shown
    assert "evidence: nats, test" in shown
    assert "try: elbo train vae" in shown
    kept = json.loads((tmp_path / "run" / "metrics.json").read_text())
    said = json.loads(elbo("eval", tmp_path / "run", "--samples", 2, "--json").stdout)
    told = {verdict["name"]: verdict for verdict in said.pop("verdicts")}
    assert "--patience 3" in told["overfit"]["command"]
    assert "well" not in [verdict["state"] for verdict in told.values()]
    assert said.keys() == kept.keys(), "verdicts are no numbers, and are not kept"
