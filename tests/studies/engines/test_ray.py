"""The Ray engine makes the table that the pool makes, on nodes that see the study's folder and on nodes that do not."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from small_studies import MEASURE, TINY, Here

from elboroom.core.problem import Problem
from elboroom.studies import Study, query, run_study
from elboroom.studies.engines.pool import Pool
from elboroom.studies.engines.ray import Cluster, Notes, mark_of, task
from elboroom.studies.schema import Measure
from elboroom.studies.store.remote import Store, pack, unpack

needs_ray = pytest.mark.skipif(
    __import__("importlib").util.find_spec("ray") is None, reason="Ray is not installed: pip install 'elboroom[ray]'"
)


@pytest.fixture(scope="module")
def study(squares: Path) -> Study:
    """24 short runs; one more fails."""
    runs = [
        {"method": "beta-vae", "beta": [1, 2, 4, 8]},
        {"method": "beta-tcvae", "beta": [2, 6]},
        {"method": "dip-vae-i", "zip": {"off": [1, 10], "diag": [10, 100]}},
        {"method": "vae", "lr": 1e9, "steps": 40, "seeds": 1},
    ]
    return Study.of({"name": "both", "data": str(squares), "seeds": 3, "every": TINY, "runs": runs, "measure": MEASURE})


@needs_ray
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_pool_and_ray_make_the_same_table(study: Study, tmp_path: Path) -> None:
    for name, engine in (("pool", Pool(2)), ("ray", Cluster(workers=2))):
        assert run_study(study, tmp_path / name, engine, quiet=True) == {"done": 24, "failed": 1}
    for file in ("table.csv", "table.parquet"):
        assert (tmp_path / "pool" / file).read_bytes() == (tmp_path / "ray" / file).read_bytes()
    for name in ("pool", "ray"):
        assert query(tmp_path / name, "SELECT DISTINCT engine FROM timings")[1] == [(name,)]
        states = [json.loads(line)["state"] for line in (tmp_path / name / "index.jsonl").read_text().splitlines()]
        assert (states.count("started"), states.count("done"), states.count("failed")) == (25, 24, 1)
    (lost,) = query(tmp_path / "ray", "SELECT error FROM timings WHERE state = 'failed'")[1][0]
    assert "a smaller lr" in lost  # as a study names it


class Board:
    """Notes without an actor."""

    def __init__(self) -> None:
        self.notes = Notes()
        self.tell = type("Tell", (), {"remote": staticmethod(self.notes.tell)})


@pytest.fixture
def job(study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A job whose study is not to be seen from here, as on the node of a cluster without a common disk."""
    monkeypatch.setenv("ELBOROOM_CACHE", str(tmp_path / "node"))
    cell = study.cells()[0]
    common = {"root": str(tmp_path / "nowhere"), "measure": study.measure.model_dump(), "mark": "abcd", "store": None}
    return {"cell": cell.to_json(), **common}


@pytest.fixture(scope="module")
def expected(study: Study, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the same cell, done here."""
    one = Study.of({**study.tables.model_dump(), "runs": [study.tables.runs[0] | {"beta": 1}], "seeds": 1})
    folder = tmp_path_factory.mktemp("expected") / "one"
    run_study(one, folder, Here(), quiet=True)
    return folder / "runs" / one.cells()[0].name


def test_a_node_without_the_folder_sends_its_run_back(job: dict[str, Any], expected: Path, tmp_path: Path) -> None:
    board = Board()
    told = task(job, board)
    assert told["state"] == "done"
    assert board.notes.read()[0] == (expected.name, 0)
    assert board.notes.read() == []
    assert not (tmp_path / "nowhere").exists()
    unpack(told["packet"], tmp_path / "back")
    for file in ("metrics.json", "log.jsonl", "checkpoints/step-000000012.safetensors"):
        assert (tmp_path / "back" / file).read_bytes() == (expected / file).read_bytes()
    assert task(job, board)["from"] == 12, "what is on the node already is not trained again"


def test_a_node_with_the_folder_works_in_it(study: Study, job: dict[str, Any], expected: Path, tmp_path: Path) -> None:
    root = tmp_path / "seen"
    root.mkdir()
    study.write(root)
    told = task(job | {"root": str(root), "mark": mark_of(root)}, Board())
    assert "packet" not in told
    assert (root / "runs" / expected.name / "metrics.json").read_bytes() == (expected / "metrics.json").read_bytes()
    assert not (tmp_path / "node").exists()


def test_an_address_takes_the_weights_and_gives_them_to_another_node(
    job: dict[str, Any], expected: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job |= {"store": f"file://{tmp_path / 'far'}"}
    told = task(job, Board())
    unpack(told["packet"], tmp_path / "back")
    assert not (tmp_path / "back" / "checkpoints").exists(), "they are at the address"
    far = tmp_path / "far" / "runs" / expected.name
    assert (far / "checkpoints" / "step-000000012.safetensors").exists()
    (far / "metrics.json").unlink()
    monkeypatch.setenv("ELBOROOM_CACHE", str(tmp_path / "other"))
    assert task(job, Board())["from"] == 12, "another node goes on with what is at the address"
    assert (far / "metrics.json").read_bytes() == (expected / "metrics.json").read_bytes()


def test_checkpoints_are_mirrored_while_a_run_goes_on(expected: Path, tmp_path: Path) -> None:
    from elboroom.studies.store.remote import Mirror

    store = Store(f"file://{tmp_path / 'far'}")
    mirror = Mirror(store, expected, "run")
    mirror.look()
    far = tmp_path / "far" / "runs" / "run" / "checkpoints"
    assert {path.name for path in far.iterdir()} == {"step-000000012.json", "step-000000012.safetensors"}
    (far / "step-000000012.json").unlink()
    mirror.look()
    assert not (far / "step-000000012.json").exists(), "what was sent is not sent again"


def test_a_packet_stays_in_its_folder(tmp_path: Path) -> None:
    import io
    import tarfile

    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        entry = tarfile.TarInfo("../outside")
        archive.addfile(entry, io.BytesIO(b""))
    with pytest.raises(Problem, match="outside its run"):
        unpack(content.getvalue(), tmp_path / "run")
    (tmp_path / "run" / "codes").mkdir(parents=True)
    for name in (".part", "codes/mu.npy", "log.jsonl"):
        (tmp_path / "run" / name).write_text("x")
    unpack(pack(tmp_path / "run"), tmp_path / "other")
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["log.jsonl"]


@needs_ray
def test_an_address_at_which_nobody_answers_is_refused_at_once() -> None:
    for address, why in (("127.0.0.1:9", "no Ray cluster answers at 127.0.0.1:9"), ("ray://127.0.0.1:9", "no Ray cluster"),
                         ("there", "HOST:PORT"), ("a:b", "HOST:PORT")):  # fmt: skip
        with pytest.raises(Problem, match=why):
            Cluster(address)
    with pytest.raises(Problem, match="--gpus -1"):
        Cluster(gpus=-1)


def test_without_ray_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(Problem, match=r"pip install 'elboroom\[ray\]'"):
        Cluster()


def listening(folder: Path) -> set[str]:
    """The addresses on which the processes of a Ray listen that keeps its files in a folder, as the kernel writes them."""
    sockets: set[str] = set()
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if str(folder).encode() in (place / "cmdline").read_bytes():
                sockets |= {os.readlink(fd) for fd in (place / "fd").iterdir()}
        except OSError:
            continue
    lines = [
        line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]
    ]
    return {line[1].split(":")[0] for line in lines if line[3] == "0A" and f"socket:[{line[9]}]" in sockets}


@needs_ray
@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="needs /proc")
def test_a_local_ray_is_out_of_reach_of_others() -> None:
    import ray

    cluster = Cluster(workers=1)
    try:
        cluster._start()
        found = listening(Path(ray._private.worker._global_node.get_session_dir_path()))
    finally:
        cluster.close()
    assert found
    assert found <= {"0100007F", "0000000000000000FFFF00000100007F"}, "loopback and nothing else"


@needs_ray
def test_a_ray_that_is_gone_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    cluster = Cluster(workers=1)
    monkeypatch.setattr(cluster, "_start", lambda: None)

    def gone(*_: object) -> Any:
        raise ray.exceptions.RaySystemError("the raylet died")
        yield

    monkeypatch.setattr(cluster, "_run", gone)
    with pytest.raises(Problem, match=r"Ray is gone .*raylet died.*finished runs are kept"):
        list(cluster.run(iter(()), tmp_path, Measure()))
