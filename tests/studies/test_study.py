"""A study file: presets, scaling, and every mistake that can be made in one, told before the first run."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commanded import Elbo
from small_studies import TINY, Here

import elboroom
from elboroom.core.method import Method
from elboroom.core.problem import Problem
from elboroom.studies import Study, presets, run_study
from elboroom.studies.engines.work import trained
from elboroom.studies.plan import same_data, specified, validate
from elboroom.studies.progress import steps_of
from elboroom.training import session
from elboroom.training.session import Own
from elboroom.training.spec import Spec


def toml(path: Path, data: Path, *lines: str, head: str = "") -> Path:
    """A study file of tiny runs on `data`."""
    every = "[every]\nsteps = 4\nbatch_size = 8\nlatent = 2\nnet = 'mlp-300'\n"
    path.write_text(f"data = '{data}'\n{head}\n{every}" + "\n".join(lines) + "\n")
    return path


def test_the_presets_are_the_published_grids() -> None:
    assert set(presets()) == {"kumar", "kumar-celeba", "locatello", "reference"}
    counts = {}
    for name in presets():
        study = Study.read(name)
        cells = study.cells()
        assert study.count == len(cells)
        counts[name] = len(cells), len({cell.setting for cell in cells})
        by = {(c.method, c.options.get("beta", c.options.get("gamma"))) for c in cells}
        assert ("beta-vae", 1) in by
    assert counts == {"reference": (170, 17), "locatello": (1800, 36), "kumar": (29, 29), "kumar-celeba": (24, 24)}
    dip = [c.options for c in Study.read("locatello").cells() if c.method == "dip-vae-i"]
    assert all(options["diag"] == 10 * options["off"] for options in dip)
    assert {c.options["steps"] for c in Study.read("reference").cells()} == {345_600}


def test_the_reference_is_as_the_thesis_where_it_is_clear() -> None:
    by: dict[str, list[dict[str, Any]]] = {}
    for cell in Study.read("reference").scaled(seeds=1).cells():
        by.setdefault(cell.method, []).append(cell.options)
    assert list(by) == ["beta-vae", "factor-vae", "beta-tcvae", "dip-vae-ii"]
    assert all(options["off"] == options["diag"] for options in by["dip-vae-ii"])
    assert {options["estimator"] for options in by["beta-tcvae"]} == {"mws"}
    cell = next(c for c in Study.read("reference").cells() if c.method == "factor-vae")
    method = session.build(specified(cell), Own())
    assert isinstance(method, Method)
    assert sum(p.numel() for p in method.groups["critic"].parameters()) == 4_017_002  # five layers, as printed


def test_the_grids_of_the_dip_vae_paper() -> None:
    cells = Study.read("kumar").cells()
    of = {m: [c.options for c in cells if c.method == m] for m in ("beta-vae", "dip-vae-i", "dip-vae-ii")}
    assert {o["beta"] for o in of["beta-vae"]} == {1, 2, 4, 8, 16, 25, 32, 60, 64, 100, 128, 200, 256}
    assert [o["off"] for o in of["dip-vae-i"]] == [1, 2, 5, 10, 20, 50, 100, 500]
    assert all(o["diag"] == 10 * o["off"] for o in of["dip-vae-i"])
    assert all(o["diag"] == o["off"] and o["third"] == 200 for o in of["dip-vae-ii"])
    assert Study.read("kumar").measure.mode == {"beta-vae": "paper-dip", "sap": "paper"}


def test_every_setting_of_the_presets_can_be_built() -> None:
    for name in presets():
        study = Study.read(name).scaled(seeds=1)
        every = {key: value for key, value in study.tables.every.items() if key != "labels"}
        small = study.tables.model_copy(update={"data": "dsprites", "size": None, "every": every})
        validate(Study(small, name))


def test_the_example_of_the_docs_is_a_study() -> None:
    text = (Path(__file__).parents[2] / "docs" / "studies.md").read_text()
    found = re.search(r"```toml\n(.*?)```", text, re.DOTALL)
    assert found is not None
    study = Study.of(tomllib.loads(found.group(1)))
    assert study.count == len(study.cells()) == 60 + 20 + 200 + 1


def test_a_recipe_is_a_setting_or_an_axis(squares: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By name or by a path, which holds wherever a worker runs; what the study says beside it wins."""
    (tmp_path / "mine.toml").write_text("[options]\nlr = 0.125\nbatch_size = 4\n[method.beta-vae]\nsteps = 9\n")
    monkeypatch.chdir(tmp_path)
    every = {"net": "mlp-300", "batch_size": 8, "recipe": ["mine.toml", "fast"]}
    study = Study.of({"data": str(squares), "every": every, "runs": [{"method": "beta-vae", "beta": 2}]})
    kept, cells = study.kept, study.cells()
    monkeypatch.chdir("/")
    study = Study.of(kept)
    assert study.cells() == cells
    validate(study)
    specs = [specified(cell) for cell in cells]
    assert [spec.recipe for spec in specs] == [str(tmp_path / "mine.toml"), "fast"]
    assert [(spec.fit.lr, spec.fit.decay, spec.fit.batch_size) for spec in specs] == [
        (0.125, "none", 8),
        (1e-3, "cosine", 8),
    ]
    assert specs[0].fit.steps == steps_of(cells[0]) == 9
    start, run = trained(replace(cells[1], options=cells[1].options | {"steps": 2}), tmp_path / "run")
    assert (start, run.step, run.spec.recipe, run.spec.options["beta"]) == (0, 2, "fast", 2.0)
    with pytest.raises(Problem, match="unknown recipe 'fats'; did you mean 'fast'"):
        validate(Study.of({"data": str(squares), "every": {"recipe": "fats"}, "runs": [{"method": "vae"}]}))


def test_a_study_is_scaled_in_proportion() -> None:
    scaled = Study.read("locatello").scaled(steps=600, seeds=2)
    steps = {(c.method, c.options["steps"]) for c in scaled.cells()}
    assert scaled.count == 72
    assert steps == {(m, 300 if m == "factor-vae" else 600) for m, _ in steps}
    runs = [{"method": "vae", "steps": [10, 30], "seeds": 5}, {"method": "ae", "epochs": 2}]
    other = Study.of({"runs": runs, "every": {"steps": 20}}).scaled(steps=40, seeds=1)
    assert [(c.method, c.options["steps"], c.seed) for c in other.cells()] == [
        ("vae", 20, 0),
        ("vae", 60, 0),
        ("ae", 40, 0),
    ]
    assert all("epochs" not in c.options for c in other.cells())
    with pytest.raises(Problem, match="--seeds 0"):
        other.scaled(seeds=0)


def test_what_is_kept_is_what_was_read(tables: dict[str, Any], tmp_path: Path) -> None:
    study = Study.of(tables)
    study.write(tmp_path)
    again = Study.read(tmp_path)
    assert [cell.name for cell in again.cells()] == [cell.name for cell in study.cells()]
    assert (again.name, again.measure) == ("small", study.measure)


def test_a_cell_is_specified_as_its_run_will_be(squares: Path) -> None:
    cell = Study.of(
        {"data": str(squares), "seeds": [7], "runs": [{"method": "beta-vae", "beta": 3, "steps": 9}]}
    ).cells()[0]
    spec = specified(cell)
    assert (spec.options, spec.fit.seed, spec.until, spec.fit.threads) == ({"beta": 3.0}, 7, 9, 1)


RUN = "[[runs]]\nmethod = 'beta-vae'\n"
# what is wrong -> (lines of the file, its head, what the sentence must hold)
MISTAKES: dict[str, tuple[str, str, str]] = {
    "unknown option": (RUN + "bet = [1, 2]", "", "beta-vae has no option --bet; did you mean 'beta'?"),
    "option of another method": (RUN + "gamma = [1, 2]", "", "beta-vae has no option --gamma"),
    "option out of range": (RUN + "beta = [1, -2]", "", "--beta -2"),
    "no number": (RUN + "beta = ['much']", "", "--beta 'much'"),
    "unknown method": ("[[runs]]\nmethod = 'beta-va'", "", "did you mean 'beta-vae'?"),
    "empty grid": (RUN + "beta = []", "", "has no run; a list in it is empty"),
    "no seeds": (RUN, "seeds = 0", "has no run"),
    "no runs": ("", "", "needs [[runs]]"),
    "unknown table": (RUN + "[mesure]\nsamples = 3", "", "has no 'mesure'; did you mean 'measure'?"),
    "unknown word of measure": (RUN + "[measure]\nsample = 3", "", "has no 'sample'; did you mean 'samples'?"),
    "unknown metric": (RUN + "[measure]\nmetrics = ['mgi']", "", "did you mean 'mig'?"),
    "unknown mode": (RUN + "[measure]\nmetrics = ['mig']\nmode = 'modren'", "", "did you mean 'modern'?"),
    "mode of another metric": (
        RUN + "[measure]\nmetrics = ['mig']\nmode = { mig = 'hist' }",
        "",
        "mig has no mode 'hist'",
    ),
    "bad number of measure": (RUN + "[measure]\nsamples = 0", "", "measure.samples 0"),
    "no TOML": ("[[runs", "", "is not valid TOML"),
    "no such data": (RUN, "", "nowhere.npz"),
    "illegal pair": ("[[runs]]\nmethod = 'vae'\nposterior = 'point'", "", "--posterior gaussian"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("command", ["run", "plan"])
def test_a_mistake_is_told_before_the_first_run(
    mistake: str, command: str, elbo: Elbo, squares: Path, tmp_path: Path
) -> None:
    lines, head, expected = MISTAKES[mistake]
    data = tmp_path / "nowhere.npz" if mistake == "no such data" else squares
    file = toml(tmp_path / "s.toml", data, lines, head=head)
    code, out, err = elbo("study", command, file, "--out", tmp_path / "out")
    assert code == 2, err
    assert out == ""
    assert err.startswith("elbo: ")
    assert len(err.splitlines()) == 1, err
    assert expected in err
    assert not (tmp_path / "out").exists(), "nothing is written for a study that cannot be"


def test_a_million_runs_ask_first(elbo: Elbo, squares: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = toml(tmp_path / "s.toml", squares, RUN + f"beta = {list(range(1000))}", head="seeds = 1000")
    for command in ("run", "plan"):
        code, _, err = elbo("study", command, file, "--out", tmp_path / "out")
        assert code == 2
        assert f"elbo: {file} has 1,000,000 runs; use --yes to run them all\n" == err
    asked = []
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda text, **_: asked.append(text))
    begun = []
    monkeypatch.setattr(
        "elboroom.studies.run.run_study",
        lambda study, *_, **__: begun.append(study.count) or {"done": 0, "failed": 0},
    )
    assert elbo("study", "run", file, "--out", tmp_path / "out")[0] == 0
    assert asked == [f"{file} has 1,000,000 runs. Continue?"]
    assert elbo("study", "run", file, "--out", tmp_path / "out", "--yes")[0] == 0
    assert (begun, len(asked)) == ([1_000_000, 1_000_000], 1)
    assert not (tmp_path / "out").exists()


def test_other_mistakes_of_the_command(elbo: Elbo, squares: Path, tmp_path: Path) -> None:
    file = toml(tmp_path / "s.toml", squares, RUN)

    def refused(expected: str, *words: object) -> None:
        code, _, err = elbo("study", *words)
        assert (code, len(err.splitlines())) == (2, 1), err
        assert expected in err

    out = ["--out", tmp_path / "out"]
    refused("did you mean 'reference'?", "run", "refrence")
    refused("does not exist", "run", tmp_path / "nothing.toml")
    refused("is not the folder of a study", "table", tmp_path)
    refused("did you mean 'ray'?", "run", file, "--engine", "rey", *out)
    refused("--address needs --engine ray", "run", file, "--address", "a:1", *out)
    refused("no Ray cluster answers at 127.0.0.1:9", "run", file, "--engine", "ray", "--address", "127.0.0.1:9", *out)
    refused("HOST:PORT", "run", file, "--engine", "ray", "--address", "nonsense", *out)
    refused("--workers 0", "run", file, "--workers", 0, *out)
    refused("cannot be written", "run", file, "--to", "file:///proc/nowhere", *out)
    refused("--to", "run", file, "--to", "carrier-pigeon://there", *out)
    refused("need --search", "run", file, "--metric", "elbo", *out)
    refused("unknown search 'grid'", "run", file, "--search", "grid", *out)
    assert not (tmp_path / "out").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("precious")
    refused("is not a study", "run", file, "--out", tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "precious"


def test_a_study_is_planned_from_three_short_runs(elbo: Elbo, squares: Path, tmp_path: Path) -> None:
    runs = "[[runs]]\nmethod = ['vae', 'beta-vae', 'dip-vae-i', 'beta-tcvae']\nsteps = 100000"
    file = toml(tmp_path / "s.toml", squares, runs, "[measure]\nsamples = 2\nmost = 20", head="seeds = 5")
    code, out, err = elbo("study", "plan", file, "--json", "--workers", 2)
    assert code == 0, err
    found = json.loads(out)
    assert (found["runs"], len(found["probes"]), found["workers"]) == (20, 3, 2)
    assert len({probe["method"] for probe in found["probes"]}) == 3
    step = sum(probe["step"] for probe in found["probes"]) / 3
    assert found["seconds"] == pytest.approx(20 * (100_000 * step + found["probes"][0]["measure"]), rel=0.5)
    assert 20 * 12 * 20_000 < found["disk"] < 20 * 12 * 1_000_000, (
        "weights and moments of some 10^5 parameters, and logs"
    )
    assert not (tmp_path / "studies").exists()
    code, out, _ = elbo("study", "plan", file)
    assert code == 0
    assert "are free" in out


def test_labels_kinds_and_what_is_given_are_settings(
    squares: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = "\n".join(f"{i % 2},{i % 5}" for i in range(200))
    (tmp_path / "more.csv").write_text(f"odd,five\n{rows}\n")
    monkeypatch.chdir(tmp_path)  # the table is named from here
    runs = [
        {"method": "vae", "labels": "more.csv", "label_kinds": ["five=ordinal", "odd=binary"], "given": ["odd", "five"]}
    ]
    tables = {"data": str(squares), "every": {**TINY, "labels": "more.csv"}, "runs": runs}
    study = Study.of(tables | {"measure": {"samples": 2, "most": 20, "codes": 0}})
    kept, cells = study.kept, study.cells()
    monkeypatch.chdir("/")
    study = Study.of(kept)
    assert study.cells() == cells
    validate(study)
    spec = specified(study.cells()[0])
    assert spec.data["label_kinds"] == {"five": "ordinal"}
    assert spec.model.given_names == ("odd",)
    assert spec.data["labels"] == str(tmp_path / "more.csv")
    assert run_study(study, tmp_path / "out", Here(), quiet=True) == {"done": 4, "failed": 0}
    specs = [Spec.read(folder) for folder in sorted((tmp_path / "out" / "runs").iterdir())]
    assert {spec.id for spec in specs} >= {specified(cell).id for cell in study.cells()}
    same_data(tmp_path / "out")


def test_bases_are_an_axis(squares: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("vae", "ae"):
        elboroom.train(name, str(squares), tmp_path / name, **TINY, threads=1)
    monkeypatch.chdir(tmp_path)
    every = {key: value for key, value in TINY.items() if key not in ("latent", "net")}
    runs = [{"method": "probe", "base": ["vae", "ae"]}]
    measure = {"samples": 2, "most": 20, "codes": 0}
    study = Study.of({"data": str(squares), "every": every, "runs": runs, "measure": measure})
    validate(study)
    assert [cell.options["base"] for cell in study.cells()] == [str(tmp_path / name) for name in ("vae", "ae")]
    assert run_study(study, tmp_path / "out", Here(), quiet=True) == {"done": 2, "failed": 0}
    with pytest.raises(Problem, match="nowhere does not exist"):
        validate(Study.of({"data": str(squares), "runs": [{"method": "probe", "base": "nowhere"}]}))
