"""The command from end to end."""

from __future__ import annotations

import json
import shlex
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
import torch
from commanded import TINY, Elbo, reals, refused
from PIL import Image


@pytest.mark.slow
def test_what_was_chosen_is_in_the_title_and_the_folder(
    images: Path, elbo: Elbo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = ["--data", images, "--posterior", "vmf", "--net", "mlp-300", "--steps", 2, *TINY]
    assert elbo("train", "vae", *said)[0] == 0
    run = tmp_path / "runs" / "vae-vmf-x-0"
    _, out, _ = elbo("eval", run, "--samples", 2, "--most", 10)
    assert "vae --posterior vmf, step 2" in out
    assert elbo("report", run)[0] == 0
    page = (run / "report.html").read_text()
    assert "<h1>vae --posterior vmf " in page
    assert "Here with posterior vmf." in page
    code, _, err = elbo("interpolate", run, "--spherical")
    assert (code, "--spherical has no effect" in err) == (2, True)
    code, _, err = elbo("encode", run, "--out", tmp_path / "codes.txt")
    assert (code, "must be a .npy or .csv file" in err) == (2, True)


def test_a_recipe_stands_for_what_is_not_said(images: Path, elbo: Elbo, tmp_path: Path) -> None:
    few = ["--data", images, "--steps", 2, *TINY, "--json"]
    code, out, _ = elbo("train", "--recipe", "burgess-dsprites", *few, "--out", tmp_path / "named")
    assert (code, json.loads(out)["method"]) == (0, "beta-vae-capacity")
    spec = json.loads((tmp_path / "named" / "spec.json").read_text())
    assert (spec["recipe"], spec["model"]["net"], spec["fit"]["batch_size"]) == ("burgess-dsprites", "burgess", 8)
    mine = tmp_path / "mine.toml"
    mine.write_text("[options]\nnet = 'mlp-300'\nlr = 0.25\n")
    assert elbo("train", "vae", "--recipe", mine, *few, "--out", tmp_path / "mine")[0] == 0
    assert json.loads((tmp_path / "mine" / "spec.json").read_text())["fit"]["lr"] == 0.25
    for words, sentence in (
        (["train", "--recipe", "fast"], "the recipe fast names no method: say which"),
        (["train", f"--recipe={mine}"], "names no method"),
        (["train", "--recipe", "fats"], "unknown recipe 'fats'; did you mean 'fast'?"),
        (["train", "vae", "--recipe", "lagging-ptb", *few], "the recipe lagging-ptb is for text, and x.npy is images"),
        (["recipes", "fats"], "unknown recipe 'fats'"),
    ):
        code, _, err = elbo(*words)
        assert code == 2
        assert sentence in err
        assert err.count("\n") == 1


def test_recipes_are_listed_and_shown(elbo: Elbo) -> None:
    assert "tomczak-mnist" in elbo("recipes")[1]
    shown = elbo("recipes", "tomczak-mnist")[1]
    assert "Tomczak & Welling 2018" in shown
    assert "  --net gated-300-300\n" in shown
    assert json.loads(elbo("recipes", "fast", "--json")[1])[0]["tokens"]["clip"] == 5


def test_from_training_to_report(elbo: Elbo, images: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    code, said, _ = elbo(
        "train", "beta-vae", "--data", images, "--out", out, "--steps", 8, "--beta", 2, "--json", *TINY
    )
    assert code == 0
    assert json.loads(said)["step"] == 8
    assert json.loads((out / "spec.json").read_text())["options"] == {"beta": 2.0}
    code, said, _ = elbo("resume", out, "--steps", 4, "--json")
    assert (code, json.loads(said)["step"]) == (0, 12)
    code, said, _ = elbo("eval", out, "--json", "--samples", 5)
    measured = json.loads(said)
    assert code == 0
    verdicts = measured.pop("verdicts")  # which are no numbers
    assert all(set(verdict) == {"name", "state", "told", "evidence", "command"} for verdict in verdicts)
    assert measured == json.loads((out / "metrics.json").read_text())
    assert measured["log_likelihood"]["estimator"] == "iw-5"
    assert set(measured["log_likelihood"]["errors"]) == {"sampling", "importance_noise"}
    assert measured["elbo"]["settings"]["split"] == "test"
    code, said, _ = elbo("eval", out, "--split", "train", "--samples", 5)
    assert code == 0
    assert "of 5 draws effective" in " ".join(said.replace("│", " ").split())
    code, said, _ = elbo("eval", out, "--json", "--samples", 5, "--iw-until", 50)
    assert (code, json.loads(said)["log_likelihood"]["estimator"]) == (0, "iw-8")
    refused(elbo("eval", out, "--iw-until", 0), "would never end")
    code, said, _ = elbo("encode", out, "--data", images, "--out", tmp_path / "codes.npy", "--json")
    assert np.load(tmp_path / "codes.npy").shape == (200, 3) == tuple(json.loads(said)["shape"])
    for verb in ("sample", "reconstruct", "traverse", "interpolate"):
        for suffix in ("png", "gif"):
            assert elbo(verb, out, "--out", tmp_path / f"{verb}.{suffix}")[0] == 0, verb
            assert Image.open(tmp_path / f"{verb}.{suffix}").size[0] > 16
        assert elbo(verb, out, "--out", tmp_path / f"{verb}.npy")[0] == 0, verb
        assert np.load(tmp_path / f"{verb}.npy").shape[-3:] == (1, 16, 16)
    refused(elbo("sample", out, "--out", tmp_path / "a.txt"), "must be .png or .gif")
    assert elbo("report", out)[0] == 0
    assert "<html" in (out / "report.html").read_text()


def test_verbs_of_vectors_write_arrays(elbo: Elbo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["--data", reals(tmp_path / "x.npy"), "--out", "run", "--steps", 1, "--batch-size", 16, "--latent", 2]
    assert elbo("train", "vae", *words)[0] == 0
    columns = np.load(tmp_path / "x.npy").shape[1]
    shapes = {"samples": (25,), "reconstructions": (2, 3), "traversal": (2, 10), "interpolation": (5, 10)}
    for verb, name in zip(("sample", "reconstruct", "traverse", "interpolate"), shapes, strict=True):
        assert elbo(verb, "run", *(["--n", 3] if verb == "reconstruct" else []))[0] == 0
        assert np.load(f"{name}.npy").shape == (*shapes[name], columns)
    refused(elbo("sample", "run", "--out", "a.png"), "use a .npy or .csv file")


def test_verbs_of_a_table_read_and_write_tables(elbo: Elbo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = np.random.default_rng(0).normal(size=(100, 3)).round(3)
    lines = [f"{a},{'xy'[i % 2]},{b},{c}" for i, (a, b, c) in enumerate(rows.tolist())]
    Path("t.csv").write_text("age,kind,income,rent\n" + "\n".join(lines) + "\n")
    words = ["--label-column", "kind", "--out", "run", "--steps", 1, "--batch-size", 16, "--latent", 2]
    assert elbo("train", "vae", "--data", "t.csv", *words)[0] == 0
    Path("own.csv").write_text("rent,name,age,income\n0.5,Ann,1,2\n0.25,Bo,3,4\n")  # by name, in any order
    heads = {
        "sample": "age,income,rent",
        "reconstruct": "what,example,age,income,rent",
        "traverse": "dimension,at,age,income,rent",
        "interpolate": "example,at,age,income,rent",
    }
    for verb, head in heads.items():
        assert elbo(verb, "run", "--out", f"{verb}.csv")[0] == 0, verb
        assert Path(f"{verb}.csv").read_text().splitlines()[0] == head
    assert elbo("reconstruct", "run", "own.csv", "--out", "made.csv")[0] == 0
    made = Path("made.csv").read_text().splitlines()
    assert [made[1], made[2], len(made)] == ["input,1,1.0,2.0,0.5", "input,2,3.0,4.0,0.25", 5]
    assert made[3].startswith("reconstruction,1,")
    assert elbo("encode", "run", "--data", "own.csv", "--out", "codes.csv")[0] == 0
    codes = Path("codes.csv").read_text().splitlines()
    assert [codes[0], len(codes)] == ["z0,z1", 3]
    assert elbo("train", "vae", "--data", "sample.csv", "--out", "again", "--steps", 1)[0] == 0, "samples are data"
    refused(elbo("traverse", "run", "own.csv"), "a traversal needs 1 example; own.csv has 2 rows")
    Path("own.csv").write_text("age,income\n1,2\n")
    refused(elbo("reconstruct", "run", "own.csv"), "own.csv has no column rent; this model takes age, income, rent")
    Path("own.csv").write_text("age,income,rent\n1,,2\n")
    refused(elbo("reconstruct", "run", "own.csv"), "line 2 of own.csv has an empty cell, not a number")
    refused(elbo("reconstruct", "run", "gone.csv"), "gone.csv does not exist")
    refused(elbo("reconstruct", "run", "a.jpg"), "give a table (.csv, .tsv), not a.jpg")


def test_warm_start_copies_the_weights(elbo: Elbo, trained: Path, images: Path, tmp_path: Path) -> None:
    out = tmp_path / "warm"
    words = ["--data", images, "--out", out, "--from", trained, "--steps", 1, "--lr", "1e-12", *TINY]
    assert elbo("train", "vae", *words)[0] == 0
    import elboroom

    a, b = (elboroom.load(folder).model.state_dict() for folder in (trained, out))
    assert all(np.allclose(a[name], b[name], atol=1e-6) for name in a)


def test_a_warm_start_says_what_starts_anew(elbo: Elbo, trained: Path, images: Path, tmp_path: Path) -> None:
    words = ["--data", images, "--from", trained, "--steps", 1, *TINY]
    code, _, said = elbo("train", "vae", *words, "--out", tmp_path / "wider", "--latent", 7)
    assert code == 0
    assert "tensors fit; these start anew: " in said
    same = elbo("train", "vae", *words, "--out", tmp_path / "same")[2]
    assert "start anew" not in same
    assert f"weights: the encoder and the decoder, from {trained}\n" in same
    refused(elbo("train", "vae", *words, "--out", tmp_path / "none", "--from", tmp_path / "nope"), "does not exist")


def test_a_proposal_is_for_a_posterior_that_can_only_be_sampled(elbo: Elbo, trained: Path) -> None:
    refused(elbo("eval", trained, "--proposal", "flow"), "--proposal has no effect here; remove it")


def test_what_is_on_by_default_can_be_switched_off(elbo: Elbo, images: Path, tmp_path: Path) -> None:
    """And the command in the report says so in words that the command line takes."""
    import elboroom

    out = tmp_path / "run"
    assert elbo("train", "avb", "--data", images, "--out", out, "--no-adaptive", "--steps", 1, *TINY)[0] == 0
    spec = elboroom.load(out).spec
    assert spec.options["adaptive"] is False
    words = shlex.split(spec.command)
    assert "--no-adaptive" in words
    assert elbo(*words[1:], "--out", tmp_path / "again")[0] == 0
    assert elboroom.load(tmp_path / "again").spec.options == spec.options


def test_methods_and_data_are_listed(elbo: Elbo) -> None:
    code, said, _ = elbo("methods", "--json")
    listed = {entry["name"]: entry for entry in json.loads(said)}
    assert code == 0
    assert listed["control-vae"]["options"]["high"] == {"other": 100.0, "tokens": 1.0}
    assert elbo("methods")[0] == 0
    code, said, _ = elbo("data", "list", "--json")
    assert "dsprites" in {entry["name"] for entry in json.loads(said)}
    assert elbo("data", "list")[0] == 0


def labelled(path: Path, n: int = 400) -> Path:
    """Images of 16x16 with a square at a place that the label says."""
    rng = np.random.default_rng(0)
    x, y = np.zeros((n, 16, 16), np.uint8), rng.integers(0, 4, n)
    for i, place in enumerate(y):
        x[i, 4 * place : 4 * place + 4, rng.integers(0, 12) :][:, :4] = 255
    np.savez(path, x=x, y=y)
    return path


def test_every_kind_of_figure(elbo: Elbo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from elboroom.plots import manifold as drawn

    monkeypatch.setattr(drawn, "POINTS", 60)
    monkeypatch.setitem(drawn.ROLL, "steps", 5)
    data = labelled(tmp_path / "x.npz")
    for seed in (0, 1):
        out = tmp_path / f"run-{seed}"
        assert elbo("train", "vae", "--data", data, "--out", out, "--seed", seed, "--steps", 12, *TINY)[0] == 0
    code, said, _ = elbo("plot", "list", "--json")
    kinds = json.loads(said)
    assert code == 0
    several = {"rate-distortion": [tmp_path / "run-0", tmp_path / "run-1"], "swiss-roll": [], "kl-fits": []}
    refused(elbo("plot", "blocks", tmp_path / "run-0"), "has no block of style")
    for kind in kinds:
        if kind == "blocks":  # tests/report/test_report.py draws it
            continue
        runs = several.get(kind, [tmp_path / "run-0"])
        code, _, err = elbo("plot", kind, *runs, "--out", tmp_path / f"{kind}.png")
        assert code == 0, (kind, err)
        assert Image.open(tmp_path / f"{kind}.png").size[0] > 100
    refused(elbo("plot", "traversal", tmp_path / "run-0"), "did you mean 'traversals'?")
    refused(elbo("plot", "curves"), "shows one run; you gave 0")
    refused(elbo("plot", "swiss-roll", tmp_path / "run-0"), "takes no run")
    refused(elbo("plot", "curves", tmp_path / "run-0", "--out", tmp_path / "a.txt"), ".svg")


@pytest.mark.slow
def test_metrics_of_a_run_without_a_grid(elbo: Elbo, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert elbo("train", "vae", "--data", labelled(tmp_path / "x.npz"), "--out", out, "--steps", 12, *TINY)[0] == 0
    code, said, err = elbo("eval", out, "--metrics", "gaussian-tc,mean-mi", "--json")
    if code == 0:
        assert json.loads(said)["gaussian-tc"]["mode"] == "dlib"
    else:
        assert "10,000" in err, "a protocol that asks for more rows says so"
    code, said, _ = elbo("eval", out, "--metrics", "downstream", "--mode", "logistic", "--json")
    found = json.loads(said)
    assert code == 0
    assert found["downstream-100"]["mode"] == "logistic"
    assert found["downstream-100"]["settings"]["test"] == 300
    assert "400 rows" in found["downstream-1000"]["reason"]
    assert elbo("eval", out, "--metrics", "downstream")[0] == 0
    assert json.loads((out / "metrics.json").read_text())["downstream-10"]["mode"] == "boosting"
    assert elbo("plot", "labels", out, "--out", tmp_path / "kept.png")[0] == 0
    refused(elbo("eval", out, "--metrics", "gaussian-tcc"), "did you mean 'gaussian-tc'?")
    refused(elbo("eval", out, "--mode", "nonsense"), "--mode has no effect with --metrics likelihood; remove it")
    refused(elbo("eval", out, "--metrics", "gaussian-tc", "--split", "train"), "--split has no effect")
    refused(elbo("eval", out, "--metrics", "probe", "--iw-most", 5), "--iw-most has no effect")
    refused(elbo("eval", out, "--metrics", "probe", "--iw-until", 0.1), "--iw-until has no effect")
    refused(elbo("eval", out, "--metrics", "udr"), "at least two")


def test_compare_says_whether_two_samples_differ(elbo: Elbo, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    np.save(tmp_path / "a.npy", rng.normal(size=(300, 2)))
    np.save(tmp_path / "b.npy", rng.normal(size=(300, 2)))
    np.save(tmp_path / "c.npy", rng.normal(size=(300, 2)) + 0.7)
    np.save(tmp_path / "d.npy", rng.normal(size=(300, 3)))
    words = ["--permutations", 200, "--json"]
    code, said, _ = elbo("compare", tmp_path / "a.npy", tmp_path / "c.npy", *words, "--out", tmp_path / "w.png")
    assert (code, json.loads(said)["p"]) == (0, pytest.approx(1 / 201))
    assert Image.open(tmp_path / "w.png").size[0] > 100
    assert json.loads(elbo("compare", tmp_path / "a.npy", tmp_path / "b.npy", *words)[1])["p"] > 0.05
    refused(elbo("compare", tmp_path / "a.npy", tmp_path / "d.npy"), "2")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_device_that_is_not_there_is_refused(elbo: Elbo, images: Path, tmp_path: Path) -> None:
    words = ["--data", images, "--device", "cuda", "--out", tmp_path / "run"]
    refused(elbo("train", "vae", *words), "PyTorch sees no CUDA device")
    assert not (tmp_path / "run").exists()


def test_the_version_is_told(elbo: Elbo) -> None:
    code, said, _ = elbo("--version")
    assert (code, said.split()) == (0, ["elboroom", metadata.version("elboroom")])
