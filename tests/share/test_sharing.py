"""A run that was shared is the run: by the Hub's protocol, by folders and by fsspec; what is pulled is not trusted."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import fsspec
import numpy as np
import pytest
from hub_server import TOKEN, Hub, serving
from shell import elbo

import elboroom
from elboroom.core.problem import Problem
from elboroom.data.dataset import DataSet
from elboroom.runs.run import Run
from elboroom.share.places import ALLOWED, place
from elboroom.share.sharing import pull, push

Make = Callable[..., Run]


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A Hub of one's own, a cache of one's own."""
    with serving() as found:
        monkeypatch.setenv("HF_ENDPOINT", found.address)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
        monkeypatch.setattr("huggingface_hub._commit_api.is_xet_available", lambda: False)  # another protocol
        monkeypatch.setenv("ELBOROOM_CACHE", str(tmp_path / "cache"))
        yield found


@pytest.fixture
def run(made: Make, tmp_path: Path) -> Run:
    """A run with things in its folder that are nobody else's business."""
    folder = tmp_path / "mine"
    shutil.copytree(made("vae", "pixels", net="mlp-300").folder, folder)
    (folder / "notes.txt").write_text("a secret")
    (folder / "figures").mkdir(exist_ok=True)
    (folder / "figures" / "own.png").write_bytes(b"png")
    (folder / "report.html").write_text("<p>report")
    return elboroom.load(folder)


def codes(run: Run) -> np.ndarray:
    return run.encode(np.random.default_rng(0).integers(0, 256, (5, 16, 16)).astype(np.uint8))


def test_push_pull_and_load_by_the_hub(hub: Hub, run: Run, tmp_path: Path) -> None:
    done = push(run.folder, "ada/blobs")
    files = hub.repositories["ada/blobs"].commits[hub.repositories["ada/blobs"].branches["main"]]
    assert set(done["files"]) == set(files) - {".gitattributes"}
    assert set(done["files"]) == {
        "README.md", "spec.json", "report.html", "checkpoints/step-000000003.safetensors", "checkpoints/step-000000003.json",
    }  # fmt: skip
    assert any(said.startswith("PUT /large/") for said in hub.asked), "weights went as a large file"
    folder = pull("ada/blobs", out=tmp_path / "theirs")
    assert np.array_equal(codes(elboroom.load(folder)), codes(run))
    again = elboroom.load("hf://ada/blobs")
    assert np.array_equal(codes(again), codes(run))
    before = len(hub.asked)
    elboroom.load("hf://ada/blobs")
    assert [said for said in hub.asked[before:] if "/resolve/" in said] == [], "a copy is made once"


def test_revisions_are_versions(hub: Hub, run: Run, made: Make, tmp_path: Path) -> None:
    other = made("vae", "pixels", net="gated-300-300")
    push(run.folder, "ada/blobs", private=True)
    push(other.folder, "ada/blobs", revision="gated")
    assert hub.repositories["ada/blobs"].private
    assert np.array_equal(codes(elboroom.load("hf://ada/blobs@gated")), codes(other))
    assert np.array_equal(codes(elboroom.load("hf://ada/blobs")), codes(run))
    first = hub.repositories["ada/blobs"].branches["main"]
    push(other.folder, "ada/blobs")
    assert np.array_equal(codes(elboroom.load("hf://ada/blobs")), codes(other)), "a new version is fetched"
    assert np.array_equal(codes(elboroom.load(pull("ada/blobs", first, tmp_path / "old"))), codes(run))


def test_old_checkpoints_leave_the_repository(hub: Hub, run: Run) -> None:
    push(run.folder, "ada/blobs")
    longer = elboroom.resume(run.folder, 2)
    assert longer.step == 5
    push(run.folder, "ada/blobs")
    repository = hub.repositories["ada/blobs"]
    kept = [name for name in repository.commits[repository.branches["main"]] if name.startswith("checkpoints/")]
    assert sorted(kept) == ["checkpoints/step-000000005.json", "checkpoints/step-000000005.safetensors"]


def measured(run: Run) -> dict[str, object]:
    return {name: entry for name, entry in run.measured.items() if name != "run"}


@pytest.mark.parametrize("address", ["ada/blobs", "memory://bucket/blobs"])
def test_nothing_of_the_run_before_stays(address: str, hub: Hub, run: Run, made: Make, tmp_path: Path) -> None:
    fsspec.filesystem("memory").store.clear()
    run.evaluate(samples=2, most=10)
    assert measured(run)
    push(run.folder, address)
    other = made("vae", "pixels", net="mlp-300", lr=2e-3)
    push(other.folder, address)
    names = {entry.name for entry in place(address).listing()}
    assert not {"metrics.json", "report.html"} & names
    assert not measured(elboroom.load(pull(address, out=tmp_path / "theirs")))


def test_numbers_are_those_of_the_run_itself(run: Run, made: Make, tmp_path: Path) -> None:
    """Of another run with the same method, step and seed they are not taken."""
    run.evaluate(samples=2, most=10)
    other = tmp_path / "other"
    shutil.copytree(made("vae", "pixels", net="mlp-300", lr=2e-3).folder, other)
    shutil.copy(run.folder / "metrics.json", other)
    assert not measured(elboroom.load(other))
    old = json.loads((run.folder / "metrics.json").read_text())
    assert old["run"].pop("id") == run.spec.id
    (run.folder / "metrics.json").write_text(json.dumps(old))
    assert measured(run), "those of before had no id"


def test_a_run_that_stands_on_others_brings_them(run: Run, pixels: DataSet, tmp_path: Path) -> None:
    few = {"steps": 2, "batch_size": 8}
    probe = elboroom.train("probe", pixels, tmp_path / "probe", base=run.folder, **few)
    files = push(probe.folder, str(tmp_path / "there"))["files"]
    assert {"base/spec.json", "base/checkpoints/step-000000003.safetensors"} <= {*files}
    assert not any("report" in name or "notes" in name for name in files)
    folder = pull(str(tmp_path / "there"), out=tmp_path / "theirs")
    run.folder.rename(tmp_path / "gone")
    theirs = elboroom.load(folder, data=pixels)
    assert np.array_equal(codes(theirs), codes(probe))
    assert elboroom.resume(folder, 1, data=pixels).step == 3
    push(folder, str(tmp_path / "again"))
    assert elboroom.load(pull(str(tmp_path / "again"), out=tmp_path / "third")).step == 3
    (tmp_path / "there" / "base" / "spec.json").write_text("{}")
    with pytest.raises(Problem, match=r"there/base/spec\.json"):
        pull(str(tmp_path / "there"), out=tmp_path / "bad")


def test_nothing_else_at_an_address_is_read(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    store = fsspec.filesystem("memory")
    store.store.clear()
    push(run.folder, "memory://big")
    for name in ("logs/all.json", "other.json", "base/notes.json", "checkpoints/old/x.json"):
        store.pipe_file(f"/big/{name}", b"{}")
    found = place("memory://big")
    assert all(ALLOWED.fullmatch(entry.name) for entry in found.listing())
    read = list[str]()
    monkeypatch.setattr(type(found), "read", lambda self, name: read.append(name) or b"")
    found.version()
    assert sorted(read) == ["checkpoints/step-000000003.json", "spec.json"]


def test_a_page_of_a_stranger_is_not_pulled(run: Run, tmp_path: Path) -> None:
    push(run.folder, str(tmp_path / "there"))
    assert (tmp_path / "there" / "report.html").is_file()
    assert not (pull(str(tmp_path / "there"), out=tmp_path / "theirs") / "report.html").exists()


def test_the_commands_push_and_pull(hub: Hub, run: Run, tmp_path: Path) -> None:
    said = elbo("push", run.folder, "ada/blobs", "--weights", "--json")
    assert said.returncode == 0, said.stderr
    assert json.loads(said.stdout)["address"] == "hf://ada/blobs"
    assert elbo("push", run.folder, "ada/blobs", "--revision", "v2").returncode == 0
    brought = elbo("pull", "ada/blobs", "--revision", "v2", "--out", tmp_path / "theirs")
    assert (brought.returncode, brought.stdout) == (0, ""), brought.stderr
    assert str(tmp_path / "theirs") in brought.stderr
    assert np.array_equal(codes(elboroom.load(tmp_path / "theirs")), codes(run))
    gone = elbo("pull", "ada/none", "--out", tmp_path / "none")
    assert (gone.returncode, gone.stderr.count("\n")) == (2, 1)


def test_what_the_hub_refuses_is_one_sentence(
    hub: Hub, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(
        Problem, match=r"hf://ada/none at .* is not there, or is private: check the name, or set HF_TOKEN"
    ):
        pull("ada/none", out=tmp_path / "x")
    push(run.folder, "ada/blobs", private=True)
    with pytest.raises(Problem, match="has no revision v9"):
        pull("ada/blobs", "v9", tmp_path / "x")
    with pytest.raises(Problem, match="two revisions are said, a and b"):
        place("hf://ada/blobs@a", "b")
    with pytest.raises(Problem, match="no address of the Hub"):
        elboroom.load("hf://blobs")
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    with pytest.raises(Problem, match=r"hf://ada/mine at .* cannot be written \(401\): set HF_TOKEN"):
        push(run.folder, "ada/mine")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(Problem, match="cannot be read: "):
        pull("ada/blobs", out=tmp_path / "x")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("address", ["{folder}/shared", "file://{folder}/shared", "memory://bucket/shared"])
def test_any_folder_and_any_store(address: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELBOROOM_CACHE", str(tmp_path / "cache"))
    address = address.format(folder=tmp_path)
    fsspec.filesystem("memory").store.clear()
    push(run.folder, address)
    assert np.array_equal(codes(elboroom.load(pull(address, out=tmp_path / "theirs"))), codes(run))
    assert np.array_equal(codes(elboroom.load(address)), codes(run))
    with pytest.raises(Problem, match="theirs exists"):
        pull(address, out=tmp_path / "theirs")
    with pytest.raises(Problem, match="--revision is for the Hub"):
        pull(address, "main", tmp_path / "more")
    with pytest.raises(Problem, match="--private is for the Hub"):
        push(run.folder, address, private=True)


def test_weights_alone_are_a_third_and_give_the_same_codes(run: Run, tmp_path: Path) -> None:
    whole = push(run.folder, str(tmp_path / "whole"))["files"]
    light = push(run.folder, str(tmp_path / "light"), weights=True)["files"]
    name = "checkpoints/step-000000003.safetensors"
    assert light[name] < 0.4 * whole[name]
    assert np.array_equal(codes(elboroom.load(pull(str(tmp_path / "light"), out=tmp_path / "theirs"))), codes(run))


def test_a_place_that_holds_something_else_is_left_alone(run: Run, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "all.tex").write_text("...")
    with pytest.raises(Problem, match="holds something that is no run"):
        push(run.folder, str(tmp_path / "thesis"))
    with pytest.raises(Problem, match=r"has no run: it has no spec\.json"):
        pull(str(tmp_path / "thesis"), out=tmp_path / "x")
    with pytest.raises(Problem, match="cannot be opened"):
        pull("nosuch://x", out=tmp_path / "x")


def test_what_is_pulled_is_checked(run: Run, tmp_path: Path) -> None:
    there = tmp_path / "there"
    push(run.folder, str(there))
    (there / "evil.py").write_text("raise SystemExit")
    (there / "checkpoints" / "evil.pkl").write_bytes(b"cos\nsystem\n")
    folder = pull(str(there), out=tmp_path / "fine")
    assert all(ALLOWED.fullmatch(str(p.relative_to(folder))) for p in folder.rglob("*") if p.is_file())
    weights = there / "checkpoints" / "step-000000003.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
    with pytest.raises(
        Problem, match=r"there/checkpoints/step-000000003\.safetensors is damaged \(its checksum differs\)"
    ):
        pull(str(there), out=tmp_path / "bad")
    assert not (tmp_path / "bad").exists()
    assert [path.name for path in tmp_path.glob(".*part")] == [], "nothing is left of it"
    push(run.folder, str(there))
    spec = json.loads((there / "spec.json").read_text())
    (there / "spec.json").write_text(json.dumps({**spec, "run_me": "rm"}))
    with pytest.raises(Problem, match="run_me"):
        pull(str(there), out=tmp_path / "bad")


def test_names_that_are_taken_cannot_leave_their_folder() -> None:
    for name in ("base/../spec.json", "base/README.md", "base/base/base/base/spec.json"):
        assert not ALLOWED.fullmatch(name)
    for name in ("../spec.json", "/spec.json", "checkpoints/../../x.json", "checkpoints/a.safetensors", "x/spec.json",
                 "tokeniser.json\n", "checkpoints/step-1.pkl", "data.npz", "README.md/x"):  # fmt: skip
        assert not ALLOWED.fullmatch(name)
    assert ALLOWED.fullmatch("tokeniser-context.json")
    assert ALLOWED.fullmatch("base/base/checkpoints/best.json")


def test_the_card_says_what_a_stranger_asks(made: Make, tmp_path: Path) -> None:
    lines = tmp_path / "private" / "sentences.txt"
    lines.parent.mkdir()
    lines.write_text("\n".join(f"w{i % 7} w{i % 5} w{i % 3}" for i in range(60)))
    run = elboroom.train("beta-vae", str(lines), tmp_path / "run", steps=2, batch_size=8, latent=3, embed=6, hidden=7)
    run.evaluate(samples=5, most=20)
    (run.folder / "report.html").write_text(f"<p>elbo train --data {lines}")
    push(run.folder, str(tmp_path / "shared"))
    text = (tmp_path / "shared" / "README.md").read_text()
    for part in ("library_name: elboroom", "nll + beta kl", "Higgins et al. 2017", "## Numbers", "| ELBO |", "±", "elbo pull",
                 "elboroom.load(", "elbo train beta-vae", "One run with one seed", "whose licence is not known"):  # fmt: skip
        assert part in text, part
    everything = b"".join(path.read_bytes() for path in (tmp_path / "shared").rglob("*.[jmh]*"))
    assert b"private" not in everything, "where the data lay is nobody's business"
    known = made("vae", "sentences", net="lstm")
    assert "elbo eval run" in _card(known)


def _card(run: Run) -> str:
    from elboroom.share.card import card, nameless

    return card(run, nameless(run.spec), "hf://ada/x")


def test_a_cache_is_not_asked_for_where_the_run_is_here(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELBOROOM_CACHE", os.devnull)
    assert elboroom.load(str(run.folder)).step == 3
