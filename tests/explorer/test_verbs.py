"""What the explorer answers is what the verbs of a run say."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from starlette.testclient import TestClient

from elboroom.data.dataset import DataSet
from elboroom.explorer import verbs
from elboroom.explorer.atlas import Atlas
from elboroom.explorer.seen import Seen
from elboroom.latent.attributes import attribute_vector
from elboroom.runs.lifecycle import load, train
from elboroom.runs.transfer import means_of


def pixels(body: bytes) -> NDArray[np.float64]:
    return np.asarray(Image.open(io.BytesIO(body)), np.float64) / 255


def test_the_sheet_ranks_dimensions_by_their_rate(ask: Any, pictures: Path) -> None:
    sheet, _ = ask(0, "sheet")
    rates = [d["kl"] for d in sheet["dimensions"]]
    assert rates == sorted(rates, reverse=True)
    assert len(rates) == sheet["latent"] == 4
    assert all(d["low"] < 0 < d["high"] for d in sheet["dimensions"])
    assert set(sheet["labels"]) == {"half", "place"}
    assert sheet["verdicts"]


def test_a_slider_sets_one_dimension_and_shows_what_decode_shows(ask: Any, pictures: Path) -> None:
    example, both = ask(0, "example", seed=1)
    assert pixels(both).shape == (16, 32)
    moved, body = ask(0, "move", z=example["z"], dim=2, value=1.5)
    assert moved["at"][2] == 1.5
    assert [a for j, a in enumerate(moved["z"]) if j != 2] == [a for j, a in enumerate(example["z"]) if j != 2]
    run = load(pictures)
    np.testing.assert_allclose(pixels(body), run.decode([moved["z"]])[0, 0].clip(0, 1), atol=0.5 / 255 + 1e-6)
    np.testing.assert_allclose(pixels(both)[:, :16], run.data.x([example["row"]])[0, 0], atol=1e-6)


def test_sentences_come_as_they_are(ask: Any, words: Path) -> None:
    example, _ = ask(1, "example", seed=3)
    run = load(words)
    assert example["sentences"] == [*run.data.sentences([example["row"]]), *run.decode([example["z"]])]
    several, _ = ask(1, "alternatives", z=example["z"], n=5)
    assert len(several["sentences"]) == 5


def test_a_path_has_its_ends_and_as_many_frames_as_asked(ask: Any) -> None:
    a, b = (ask(0, "prior", seed=seed)[0]["z"] for seed in (1, 2))
    assert a != b
    path, body = ask(0, "path", a=a, b=b, points=7)
    assert pixels(body).shape == (16, 7 * 16)
    assert path["z"][0] == a
    np.testing.assert_allclose(path["z"][-1], b, rtol=1e-5)
    arc, _ = ask(0, "path", a=a, b=b, points=7, spherical=True)
    assert arc["z"][3] != path["z"][3]


def test_the_map_is_the_codes_in_the_plane_that_it_says(ask: Any, pictures: Path) -> None:
    rows = np.frombuffer(ask(0, "rows")[1], "<i4")
    codes = load(pictures).encode(load(pictures).data)[rows]
    facts, body = ask(0, "chart", view="2,1")
    np.testing.assert_allclose(np.frombuffer(body, "<f4").reshape(-1, 2), codes[:, [2, 1]], atol=1e-5)
    facts, body = ask(0, "chart", view="pca")
    points = np.frombuffer(body, "<f4").reshape(-1, 2)
    across = (codes - np.array(facts["middle"])) @ np.array([facts["across"], facts["up"]]).T
    np.testing.assert_allclose(points, across, atol=1e-4)
    assert points[:, 0].var() >= points[:, 1].var()
    assert {line["mass"] for line in facts["contours"]} == {0.5, 0.9, 0.99}


def test_the_contours_hold_their_share_of_the_prior(ask: Any) -> None:
    contours = ask(0, "chart", view="0,1")[0]["contours"]
    radius = [np.hypot(*np.reshape(line["line"], (-1, 2)).T).mean() for line in contours if line["mass"] == 0.5]
    assert radius[0] == pytest.approx(np.sqrt(2 * np.log(2)), rel=0.1)  # of a standard normal in the plane


def test_t_sne_is_kept_in_the_folder_and_belongs_to_its_weights(ask: Any, pictures: Path) -> None:
    first = ask(0, "chart", view="tsne")[1]
    kept = pictures / "explorer" / "tsne.f32"
    assert kept.read_bytes() == first
    kept.write_bytes(np.frombuffer(first, "<f4")[::-1].tobytes())
    atlas = Atlas(Seen(load(pictures), 200))
    assert atlas.map("tsne").body == kept.read_bytes()
    for other in ('{"seal": "another", "n": 200}', "[" * 100_000):
        (pictures / "explorer" / "tsne.json").write_text(other)
        assert Atlas(Seen(load(pictures), 200)).map("tsne").body == first


def test_a_collapsed_run_has_no_t_sne(pictures: Path) -> None:
    """In a process of its own: this once was a segmentation fault."""
    code = f"""
import torch
from elboroom import Problem, load
from elboroom.explorer.atlas import Atlas
from elboroom.explorer.seen import Seen
run = load({str(pictures)!r})
with torch.no_grad():
    [parameter.zero_() for parameter in run.model.posterior.parameters()]
try:
    Atlas(Seen(run, 200)).map("tsne")
except Problem as problem:
    print(problem)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "the codes are all but equal, so there is no map of them\n"), (
        done.stderr
    )


def test_a_place_of_the_map_is_lifted_to_a_code_there(ask: Any) -> None:
    z = ask(0, "zero")[0]["z"]
    facts, _ = ask(0, "chart", view="pca")
    spot, _ = ask(0, "spot", view="pca", x=0.5, y=-0.25, z=z)
    away = np.array(spot["at"]) - np.array(facts["middle"])
    np.testing.assert_allclose([away @ facts["across"], away @ facts["up"]], [0.5, -0.25], atol=1e-4)


def test_vectors_of_labels_and_of_a_lasso(ask: Any, pictures: Path) -> None:
    run, rows = load(pictures), np.frombuffer(ask(0, "rows")[1], "<i4")
    sheet, _ = ask(0, "sheet")
    has = run.data.labels[rows, 0] == 1
    vector, _ = ask(0, "vector", label="half", value=sheet["labels"]["half"][1])
    codes = run.encode(run.data)[rows]
    np.testing.assert_allclose(vector["vector"], attribute_vector(codes, has), atol=1e-4)
    lasso, _ = ask(0, "select", rows=np.flatnonzero(has).tolist())
    assert lasso["selected"] == has.sum()
    np.testing.assert_allclose(lasso["vector"], vector["vector"], atol=1e-6)
    np.testing.assert_allclose(lasso["z"], codes[has].mean(0), atol=1e-4)
    edited, _ = ask(0, "edit", z=lasso["z"], vector=vector["vector"], strength=-1)
    np.testing.assert_allclose(edited["z"], codes[~has].mean(0), atol=1e-4)
    sums, _ = ask(0, "analogy", a=lasso["z"], b=edited["z"], c=edited["z"])
    np.testing.assert_allclose(sums["z"], lasso["z"], atol=1e-4)


def test_a_picture_of_ones_own_is_read_as_the_data_was(client: TestClient, pictures: Path, read_message: Any) -> None:
    run = load(pictures)
    x = (255 * run.data.x([7])[0, 0].numpy()).round().astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(x).save(file, "PNG")
    kind = {"content-type": "application/octet-stream"}
    facts, body = read_message(client.post("/api/runs/0/read", content=file.getvalue(), headers=kind).content)
    np.testing.assert_allclose(pixels(body)[:, :16], x / 255, atol=1e-6)
    np.testing.assert_allclose(facts["z"], run.encode(run.data.x([7]).numpy())[0], atol=1e-4)
    assert facts["nll"] == pytest.approx(-run.score_samples(run.data.x([7]).numpy())[0], rel=1e-5)
    asked = {"asked": '{"invert": true}'}
    _, other = read_message(
        client.post("/api/runs/0/read", params=asked, content=file.getvalue(), headers=kind).content
    )
    np.testing.assert_allclose(pixels(other)[:, :16], 1 - x / 255, atol=1e-6)


def test_a_sentence_of_ones_own_is_read(ask: Any) -> None:
    facts, _ = ask(1, "read", text="she likes unheard it")
    assert facts["sentences"][0] == "she likes <unk> it"
    assert facts["nll"] is None
    assert "density" in facts["reason"]


def test_a_lasso_is_compared_with_what_the_map_shows(ask: Any, pictures: Path) -> None:
    seen = Seen(load(pictures), 200)
    names = list(seen.run.data.about.labels)
    half = seen.run.data.labels[seen.rows, names.index("half")]
    rows = np.flatnonzero(half == 0)[:4]
    facts, _ = ask(0, "select", rows=rows.tolist(), shown=20, label="half", off=[1])
    rest = np.setdiff1d(np.flatnonzero((half == 0) & (np.arange(len(half)) < 20)), rows)
    wanted = seen.codes[rows].mean(0) - seen.codes[rest].mean(0)
    np.testing.assert_allclose(facts["vector"], wanted, atol=1e-4)
    whole, _ = ask(0, "select", rows=rows.tolist())
    assert np.abs(np.subtract(whole["vector"], wanted)).max() > 1e-3


def test_a_film_is_a_gif_that_goes_forth_and_back(ask: Any) -> None:
    a, b = (ask(0, "prior", seed=seed)[0]["z"] for seed in (1, 2))
    film = Image.open(io.BytesIO(ask(0, "gif", z=[a, b, a])[1]))
    assert film.format == "GIF"


@pytest.mark.parametrize("method", ["vmf-vae", "p-vae"])
def test_codes_stay_where_they_live(method: str, pixels: DataSet, tmp_path: Path) -> None:
    run = train(method, pixels, tmp_path / "run", steps=3, batch_size=32, latent=3, net="mlp-300", device="cpu")
    atlas = Atlas(Seen(run, 50))
    start = verbs.ask("example", atlas, {}).facts
    asked = {"z": start["z"], "dim": 0, "value": 0.6}
    moved = verbs.ask("move", atlas, asked).facts
    norm = float(np.linalg.norm(moved["z"]))
    assert moved["at"][0] == pytest.approx(0.6, abs=1e-4)
    assert norm == pytest.approx(1, abs=1e-4) if method == "vmf-vae" else norm < 1
    a, b = (torch.tensor(code, dtype=torch.float32) for code in (start["z"], moved["z"]))
    path = verbs.ask("path", atlas, {"a": start["z"], "b": moved["z"], "points": 5}).facts
    np.testing.assert_allclose(path["z"], run.space.way(a, b, 5), atol=1e-4)
    if method == "vmf-vae":
        assert np.linalg.norm(verbs.ask("zero", atlas, {}).facts["z"]) == pytest.approx(1, abs=1e-4)


def test_a_conditional_model_is_given_its_labels(pixels: DataSet, tmp_path: Path) -> None:
    options = {"steps": 3, "batch_size": 32, "latent": 3, "net": "mlp-300", "device": "cpu", "given": "label"}
    atlas = Atlas(Seen(train("vae", pixels, tmp_path / "run", **options), 50))
    start = verbs.ask("example", atlas, {}).facts
    assert set(start["u"]) == {"label"}
    one, other = (verbs.ask("decode", atlas, {"z": [start["z"]], "u": {"label": c}}).body for c in ("0", "2"))
    assert one != other
    atlas.ready()
    assert atlas.map("pca").facts["contours"] == []


def test_a_style_moves_and_the_content_stays(ask_more: Any, styled: Path) -> None:
    sheet, _ = ask_more(0, "sheet")
    assert sheet["styles"] == {"mood": ["bad", "good"]}
    z = ask_more(0, "example", seed=1)[0]["z"]
    run = load(styled)
    where = run.model.blocks["style"]
    goods = means_of(run)["mood"].means[1].tolist()
    for strength in (0.0, 0.5, 1.0):
        moved, _ = ask_more(0, "restyle", z=z, label="mood", value="good", strength=strength)
        wanted = np.array(z)
        wanted[where] += strength * (np.array(goods) - wanted[where])
        np.testing.assert_allclose(moved["z"], wanted, atol=1e-4)
        assert moved["sentences"] == run.decode([moved["z"]])


def test_a_model_that_reads_a_context_answers(ask_more: Any, answering: Path) -> None:
    sheet, _ = ask_more(1, "sheet")
    assert sheet["answers"]
    assert sheet["turns"][0].startswith("how is")
    said, _ = ask_more(1, "reply", turns=["how is he ?"], n=3, seed=4)
    assert said["sentences"] == load(answering).generate(["how is he ?"], 3, seed=4)


@pytest.mark.parametrize(
    ("number", "verb", "told", "said"),
    [
        (1, "reply", {"turns": [" ", ""]}, "nothing to answer"),
        (1, "reply", {"turns": ["x" * 3000]}, "at most 2,000 characters"),
        (1, "reply", {"turns": ["hi"], "n": 1000}, "less than or equal to 20"),
        (1, "zero", {}, "reads a context"),
        (1, "chart", {}, "reads a context"),
        (0, "reply", {"turns": ["hi"]}, "reads no context"),
        (0, "restyle", {"z": [0.0] * 5, "label": "mood", "value": "odd"}, "good"),
        (0, "restyle", {"z": [0.0] * 5, "label": "x", "value": "good"}, "mood"),
    ],
)
def test_what_a_run_cannot_do_is_one_sentence(
    number: int, verb: str, told: dict[str, Any], said: str, more_runs: TestClient
) -> None:
    response = more_runs.post(f"/api/runs/{number}/{verb}", json=told)
    assert response.status_code == 422
    assert said in response.json()["problem"]
