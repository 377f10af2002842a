"""Graphs say what their model says, at any number of rows, without torch."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from numpy.typing import NDArray

import elboroom
from elboroom.core.problem import Problem
from elboroom.families.decoding import Greedy
from elboroom.methods import cards
from elboroom.runs.run import Run
from elboroom.share import onnx
from elboroom.share.export import export

Make = Callable[..., Run]
ROWS = (1, 3, 100)
CLOSE = 1e-5
CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("vae", "binary", {"net": "burgess"}),
    ("vae", "vectors", {"standardise": True}),
    ("vae", "sentences", {"net": "lstm"}),
]
MORE: list[tuple[str, str, dict[str, Any]]] = [
    ("vae", "pixels", {"net": "locatello", "likelihood": "logistic"}),
    ("vae", "rgb", {"net": "locatello-4x4", "likelihood": "gaussian-learned"}),
    ("vae", "pixels", {"net": "mlp-300", "given": "label"}),
    ("vae", "pixels", {"net": "gated-300-300"}),
    ("vae", "pixels", {"posterior": "vmf"}),
    ("vae", "pixels", {"posterior": "power-spherical", "kappa_learned": True}),
    ("vae", "pixels", {"posterior": "wrapped", "curvature": 0.7}),
    ("vae", "pixels", {"posterior": "iaf"}),
    ("vae", "sentences", {"net": "bilstm"}),
    ("vae", "sentences", {"net": "gru"}),
    ("vae", "sentences", {"net": "bigru", "given": "label"}),
    ("vae", "sentences", {"net": "transformer"}),
    ("vae", "sentences", {"net": "transformer", "inject": "prefix"}),
    ("vae", "sentences", {"net": "dilated"}),
    ("vmf-vae", "sentences", {}),
    ("p-vae", "sentences", {}),
    ("bn-vae", "sentences", {}),
]


def name(case: tuple[str, str, dict[str, Any]]) -> str:
    return " ".join([case[0], case[1], *map(str, case[2].values())])


def sessions(folder: Path) -> dict[str, Any]:
    return {path.stem: onnxruntime.InferenceSession(str(path)) for path in folder.glob("*.onnx")}


def examples(run: Run, rows: int) -> tuple[Any, dict[str, NDArray[Any]]]:
    """So many examples as the run takes them, and as its graph does."""
    picked = np.arange(rows) % len(run.data)
    if run.tokeniser is None:
        x = run.data.x(picked).numpy()
        raw = np.rint(x * (run.spec.about.levels - 1)).astype(np.uint8) if run.spec.about.levels else x
        return x, {"x": raw}
    said = run.data.sentences(picked)
    batch = run.medium().batch(said)
    noise = torch.where(batch.x == 0, torch.randint(4, 9, batch.x.shape), batch.x)  # behind the end nothing is read
    assert batch.lengths is not None
    return said, {"tokens": noise.numpy(), "lengths": batch.lengths.numpy() + 1}


def written(found: dict[str, Any], z: NDArray[np.float32], u: dict[str, Any], longest: int) -> list[list[int]]:
    """Sentences by the graphs alone, the most probable word each time."""
    state, token = found["start"].run(None, {"z": z, **u}), np.ones(len(z), np.int64)
    rows: list[NDArray[np.int64]] = []
    for _ in range(longest):
        handed = {f"state{i}": tensor for i, tensor in enumerate(state)}
        logits, *state = found["step"].run(None, {"token": token, **handed})
        logits[:, Greedy().unsaid] = -np.inf
        token = logits.argmax(1)
        rows.append(token)
    return np.stack(rows, 1).tolist()


def compared(run: Run, folder: Path, rows: int) -> float:
    """How far codes and what is decoded from them are from what torch says."""
    found, (x, handed) = sessions(folder), examples(run, rows)
    label = run.labelled(rows, label=1).numpy() if run.given else None
    u = {} if label is None else {"u": label}
    z = found["encoder"].run(["mean"], {**handed, **u})[0]
    apart = float(np.abs(z - run.encode(x, label)).max())
    if run.tokeniser is None:
        mean = found["decoder"].run(["mean"], {"z": z, **u})[0]
        return max(apart, float(np.abs(mean - run.decode(z, label)).max()))
    words = run.tokeniser
    assert [words.decode(row) for row in written(found, z, u, 20)] == [
        words.decode(words.encode(s)[:20]) for s in run.decode(z, label)
    ]
    return apart


def check(run: Run, tmp_path: Path, title: str) -> None:
    done = export(run, "onnx", tmp_path / "onnx")
    found = [compared(run, tmp_path / "onnx", rows) for rows in ROWS]
    print(f"{title:60s}" + "".join(f"  {rows:4d}: {far:.1e}" for rows, far in zip(ROWS, found, strict=True)))
    assert max(found) < CLOSE
    assert max(done["apart"].values()) < CLOSE
    about = json.loads((tmp_path / "onnx" / "model.json").read_text())
    for graph, session in sessions(tmp_path / "onnx").items():
        for side, ports in (("inputs", session.get_inputs()), ("outputs", session.get_outputs())):
            said = about["graphs"][graph][side]
            assert [port.name for port in ports] == [port["name"] for port in said]
            assert [port.shape for port in ports] == [port["shape"] for port in said]


@pytest.mark.unhurried
@pytest.mark.parametrize("case", CASES, ids=name)
def test_graphs_equal_torch_at_any_number_of_rows(case: Any, made: Make, tmp_path: Path) -> None:
    check(made(case[0], case[1], **case[2]), tmp_path, name(case))


@pytest.mark.slow
@pytest.mark.parametrize("case", MORE, ids=name)
def test_more_graphs_equal_torch(case: Any, made: Make, tmp_path: Path) -> None:
    check(made(case[0], case[1], **case[2]), tmp_path, name(case))


@pytest.mark.slow
@pytest.mark.parametrize("method", [n for n, card in cards().items() if not (card.needs_base or card.needs_context)])
def test_every_method_has_its_graphs_or_says_why_not(method: str, bench: Any, text_bench: Any, tmp_path: Path) -> None:
    whole = bench if "pixels" in cards()[method].on else text_bench
    run = whole.whole(method)
    try:
        done = export(run, "onnx", tmp_path / "onnx")
    except Problem as problem:
        said = str(problem)
    else:
        said, apart = "", max(done["apart"].values())
        assert apart < CLOSE
    assert not said or "has no z" in said or "by gradient steps" in said


def ran(folder: Path) -> str:
    """What the example says, run as it is from another folder, where neither torch nor elboroom can be imported."""
    blocked = "import sys; sys.modules.update(torch=None, elboroom=None); import runpy; runpy.run_path(sys.argv[1])"
    done = subprocess.run([sys.executable, "-c", blocked, str(folder / "example.py")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.unhurried
def test_the_example_runs_as_it_is_without_torch(made: Make, tmp_path: Path) -> None:
    pictures, text = made(*CASES[0][:2], **CASES[0][2]), made(*CASES[2][:2], **CASES[2][2])
    assert "codes (3, 3) decoded (3, 1, 16, 16)" in ran(pictures.export("onnx", tmp_path / "pictures"))
    said = ran(text.export("onnx", tmp_path / "text"))
    assert text.tokeniser is not None
    first = " ".join(text.tokeniser.decode(range(4, 8)).split())
    assert "code (1, 3)" in said
    assert said.split("decoded:")[1].split() == text.reconstruct([first])[0].split()[:30]


@pytest.mark.slow
def test_the_example_of_pieces_of_words_and_of_labels(made: Make, tmp_path: Path) -> None:
    lines = [f"{word} {other}" for word in ("ab", "cd", "a") for other in ("b c", "d", "a b")] * 4
    pieces = elboroom.train(
        "vae", lines, tmp_path / "run", tokens="bytes", steps=3, batch_size=8, latent=3, embed=6, hidden=7
    )
    assert (tmp_path / "a" / "tokeniser.json").parent == pieces.export("onnx", tmp_path / "a")
    written = ran(tmp_path / "a").split("decoded:")[1].strip()
    assert len(written) > 20
    assert pieces.reconstruct(["a b c"])[0].startswith(written)
    given = made("vae", "pixels", net="mlp-300", given="label")
    assert "decoded (3, 1, 16, 16)" in ran(given.export("onnx", tmp_path / "b"))
    assert json.loads((tmp_path / "b" / "model.json").read_text())["u"] == [
        {"name": "label", "classes": ["0", "1", "2"]}
    ]


def test_what_has_no_graph_is_refused_in_a_sentence(made: Make, tmp_path: Path) -> None:
    with pytest.raises(Problem, match="lm has no z: there is no encoder to export"):
        made("lm", "sentences", latent=None).export("onnx", tmp_path / "lm")
    assert not (tmp_path / "lm").exists()
    with pytest.raises(Problem, match="by gradient steps for each example"):
        made("svi", "sentences").export("onnx", tmp_path / "svi")
    with pytest.raises(Problem, match="unknown form 'onx'; did you mean 'onnx'"):
        made("lm", "sentences", latent=None).export("onx")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("all of it")
    with pytest.raises(Problem, match="holds something else"):
        made("vae", "vectors").export("onnx", tmp_path / "mine")


@pytest.mark.unhurried
def test_a_graph_that_differs_is_refused(made: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx, "_far", lambda found, wanted: 0.5)
    with pytest.raises(Problem, match=r"0\.5 from what the model says"):
        made("vae", "vectors").export("onnx", tmp_path / "out")
    assert not (tmp_path / "out").exists(), "nothing is left of it"


@pytest.mark.parametrize("error", [RuntimeError("no such\nlayer"), NotImplementedError()])
def test_whatever_stops_the_trace_is_a_sentence(
    error: Exception, made: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def export(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr("torch.onnx.export", export)
    said = " ".join(str(error).split()) or "NotImplementedError"
    with pytest.raises(Problem, match=f"the encoder of this model cannot be said in ONNX: {said}"):
        made("vae", "vectors").export("onnx", tmp_path / "out")
    assert not (tmp_path / "out").exists(), "nothing is left of it"


def test_one_bound_is_promised_and_held() -> None:
    assert onnx.CLOSE == CLOSE
    page = Path(__file__).parents[2] / "docs" / "sharing.md"
    assert f"by more than {CLOSE:.0e}".replace("e-05", "e-5") in page.read_text()
