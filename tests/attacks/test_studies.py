"""Studies: exit codes, tables and an index that a stranger wrote."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from shell import elbo
from small_studies import Here

from elboroom import Problem
from elboroom.commands.output import print_table
from elboroom.studies import Study, query, run_study
from elboroom.studies.analysis.table import as_csv
from elboroom.studies.engines.pool import RETRIES, Pool
from elboroom.studies.space import Cell
from elboroom.studies.store.index import Index

EVERY = {"steps": 2, "batch_size": 8, "latent": 2, "net": "mlp-300"}
MEASURE = {"samples": 2, "most": 10, "codes": 0}


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Any]:
    np.save(tmp_path / "x.npy", np.random.default_rng(0).integers(0, 256, (40, 8, 8)).astype(np.uint8))
    data = str(tmp_path / "x.npy")
    return {"data": data, "seeds": [2**31, 2**40], "every": EVERY, "runs": [{"method": "vae"}], "measure": MEASURE}


def test_large_seeds_are_in_the_table(tables: dict[str, Any], tmp_path: Path) -> None:
    run_study(Study.of(tables), tmp_path / "out", Here(), quiet=True)
    assert query(tmp_path / "out", "SELECT DISTINCT seed FROM results ORDER BY seed")[1] == [(2**31,), (2**40,)]


@pytest.mark.parametrize("seeds", [True, [True], -1, [-1], [2**63], 10**12, "3", 1.5])
def test_seeds_are_whole_numbers(tables: dict[str, Any], seeds: Any) -> None:
    with pytest.raises(Problem):
        Study.of(tables | {"seeds": seeds}).cells()


def test_a_study_with_failed_runs_exits_with_one(tables: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(
        f'data = "{tables["data"]}"\n[every]\nsteps = 2\nbatch_size = 8\n[[runs]]\nmethod = "vae"\n'
    )
    for failed, code in ((1, 1), (0, 0)):
        with patch("elboroom.studies.run.run_study", lambda *a, failed=failed, **k: Counter(done=1, failed=failed)):
            assert elbo("study", "run", tmp_path / "study.toml", "--out", tmp_path / "out").returncode == code


def test_a_worker_that_dies_before_a_checkpoint_is_taken_up_again(tmp_path: Path) -> None:
    pool, cell = Pool(1), Cell("vae", "x", None, 0)
    assert [pool._lost(cell, tmp_path, -9) for _ in range(RETRIES)] == [None] * RETRIES
    lost = pool._lost(cell, tmp_path, -9)
    assert lost is not None
    assert lost["state"] == "failed"


def test_a_damaged_study_is_run_again_from_its_file(tables: dict[str, Any], tmp_path: Path) -> None:
    study, engine = Study.of(tables), Here()
    run_study(study, tmp_path / "out", Here(), quiet=True)
    (tmp_path / "out" / "study.json").write_text('{"name"')
    with pytest.raises(Problem, match=r"study\.json cannot be read .*run again with the \.toml"):
        Study.read(tmp_path / "out")
    with pytest.warns(UserWarning, match=r"study\.json\.damaged"):
        assert run_study(study, tmp_path / "out", engine, quiet=True)["done"] == 2
    assert engine.did == []
    assert Study.read(tmp_path / "out").cells() == study.cells()


@pytest.mark.parametrize(
    "line",
    [
        {"run": "../../etc"},
        {"run": ".."},
        {"run": []},
        {"run": 5},
        {"state": "winning"},
        {"state": {}},
        {"cell": None},
        {"cell": {"method": []}},
        {"seconds": "long"},
        {"error": 5, "state": "failed"},
    ],
)
def test_a_line_of_a_strange_index_counts_for_nothing(tmp_path: Path, line: dict[str, Any]) -> None:
    index = Index(tmp_path)
    cell = {"method": "vae", "data": "x", "size": None, "seed": 0, "options": {}}
    good = {"run": "a", "state": "done", "cell": cell}
    index.path.write_text(
        json.dumps(good | line) + "\n" + "[" * 10**5 + "\n5\n" + json.dumps(good | {"run": "b"}) + "\n"
    )
    assert list(index.read()) == ["b"]


@pytest.mark.parametrize("text", ["=1+1", "+cmd", "-2+3", "@SUM(A1)"])
def test_no_cell_is_a_formula(text: str) -> None:
    assert as_csv([{"a": text, "b": -1.5}], ["a", "b"]) == f"a,b\n'{text},-1.5\n"


def test_no_name_is_markup_or_obeyed_by_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["[red]a[/red]"], [["[link=x]b[/link]"], ["\x1b[31mc"]], "[bold]t[/bold]")
    shown = capsys.readouterr().out
    for text in ("[red]a[/red]", "[link=x]b[/link]", "[bold]t[/bold]"):
        assert text in shown
    assert "\x1b[31mc" not in shown
