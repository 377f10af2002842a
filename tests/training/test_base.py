"""A run that stands frozen under another: it keeps its bits, is found again, and is no other."""

from __future__ import annotations

import copy
import math
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from contract import Killed, act_at, kill, newest, same
from shell import elbo
from torch import Tensor

import elboroom
from elboroom.build import registry
from elboroom.build.parts import Parts
from elboroom.core.draw import Draw
from elboroom.core.freeze import Frozen, frozen, thawed
from elboroom.core.method import Group, Method, Player, descend
from elboroom.core.objective import Term
from elboroom.core.problem import Problem
from elboroom.core.stages import Stages
from elboroom.data.dataset import DataSet
from elboroom.data.text import handed
from elboroom.families.recalled import Recalled
from elboroom.runs import measure
from elboroom.runs.run import Run
from elboroom.terms.evidence import nll
from elboroom.terms.labels import label_nll
from elboroom.training import session
from elboroom.training.batches import batch_of
from elboroom.training.checkpoint import Checkpoints
from elboroom.training.session import Own

FIT: dict[str, Any] = {"batch_size": 16, "threads": 1, "device": "cpu", "checkpoint_every": 20, "log_every": 10}
IMAGES: dict[str, Any] = FIT | {
    "steps": 40,
    "latent": 3,
    "net": "mlp-300",
    "lr": 1e-3,
    "likelihood": "auto",
    "init": "kaiming",
}
NOISE: dict[str, Any] = {"dropout": 0.5, "word_dropout": 0.3}
# trunk a, whose codes tell hardly more than the length: that is the label here
WORDS: dict[str, Any] = (
    FIT | NOISE | {"steps": 200, "lr": 0.01, "latent": 4, "embed": 6, "hidden": 7, "trunk": "a", "decay": "none"}
)
HEAD: dict[str, Any] = FIT | {"steps": 50, "lr": 0.05, "decay": "none"}


@pytest.fixture(scope="module")
def told(pixels: DataSet) -> DataSet:
    """The images with a label that their codes can tell: which third of all by brightness they belong to."""
    bright = pixels.x(np.arange(len(pixels))).flatten(1).mean(1).numpy()
    label = np.searchsorted(np.quantile(bright, [1 / 3, 2 / 3]), bright)
    return DataSet(pixels.about, pixels.store, pixels.splits, label[:, None], holdout=pixels.holdout)


@pytest.fixture(scope="module")
def said() -> DataSet:
    """Sentences whose label says whether they are long, as their codes do."""
    rng = np.random.default_rng(0)
    long = rng.integers(0, 2, 200)
    return handed([" ".join(rng.choice(list("abcd"), rng.integers(1, 3) + 3 * y)) for y in long], long.tolist())


@pytest.fixture(scope="module")
def under(told: DataSet, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return elboroom.train("bn-vae", told, tmp_path_factory.mktemp("base") / "run", **IMAGES)


@pytest.fixture(scope="module")
def spoken(said: DataSet, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return elboroom.train("ae", said, tmp_path_factory.mktemp("base") / "run", **WORDS)


@pytest.fixture(scope="module")
def probed(told: DataSet, under: Run, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return elboroom.train("probe", told, tmp_path_factory.mktemp("probe") / "run", base=under.folder, **HEAD)


def whole(model: torch.nn.Module) -> dict[str, Tensor]:
    """All tensors of a model, those of frozen parts too."""
    return {name: t.clone() for name, t in [*model.named_parameters(), *model.named_buffers()]}


@pytest.mark.parametrize("kind", ["pixels", "tokens"])
def test_a_base_keeps_its_bits_its_dropout_off_and_its_averages_still(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over 50 steps, in each of which the base is run as a whole and all is told to train."""
    run: Run = request.getfixturevalue("under" if kind == "pixels" else "spoken")
    data: DataSet = request.getfixturevalue("told" if kind == "pixels" else "said")
    before, seen = whole(run.model), []
    step = session.Loop.step

    def watched(loop: Any, number: int) -> Any:
        loop.method.train()
        batch, model = loop.batches(number), loop.method.model
        q = model.posterior.posterior(batch)
        px = model.px(q.mean.unsqueeze(0), batch).log_prob(batch.x)
        assert torch.equal(px, model.px(q.mean.unsqueeze(0), batch).log_prob(batch.x)), "no noise of dropout"
        found = step(loop, number)
        seen.append({name: t.clone() for name, t in whole(model).items()})
        return found

    monkeypatch.setattr(session.Loop, "step", watched)
    probe = elboroom.train("probe", data, tmp_path / "run", base=run.folder, **HEAD)
    assert len(seen) == 50
    for name, tensor in before.items():
        inside = name.replace("posterior.", "posterior.posterior.", 1) if name.startswith("posterior.") else name
        assert all(torch.equal(now[inside], tensor) for now in seen), name
    assert not torch.equal(seen[0]["heads.label.weight"], seen[-1]["heads.label.weight"])
    if kind == "pixels":
        assert any("running_mean" in name for name in before), "there are averages to be moved"
    state = newest(probe.folder).state
    assert {name for name in state if not name.startswith("optimiser/")} == {
        "model.heads.label.weight", "model.heads.label.bias"
    }  # fmt: skip


def test_a_frozen_module_stays_what_it_was_and_is_in_no_state() -> None:
    norm = torch.nn.BatchNorm1d(3)
    both = torch.nn.ModuleDict(
        {"still": frozen(torch.nn.Sequential(norm, torch.nn.Dropout())), "free": torch.nn.Linear(3, 2)}
    )
    both.train()
    assert isinstance(both["still"], torch.nn.Sequential)
    assert isinstance(both["still"], Frozen)
    assert not norm.training
    assert both["free"].training
    assert not any(p.requires_grad for p in both["still"].parameters())
    assert set(both.state_dict()) == {"free.weight", "free.bias"}
    forged = both.state_dict() | {"still.0.weight": torch.full((3,), 7.0)}
    both.load_state_dict(forged)
    assert torch.equal(norm.weight, torch.ones(3)), "a state has no say"
    assert list(thawed(both)) == [both, both["free"]]
    assert frozen(both["still"]) is both["still"]
    assert isinstance(copy.deepcopy(both)["still"], Frozen)
    with pytest.raises(RuntimeError, match="Missing"):
        both.load_state_dict({"free.weight": torch.zeros(2, 3)})


def test_codes_are_those_of_the_base(told: DataSet, under: Run) -> None:
    kept = Recalled(frozen(copy.deepcopy(under.model.posterior)))
    rows = np.arange(40, 60)
    batch = batch_of(told, rows, ())
    kept.fill([batch_of(told, np.arange(start, start + 50), ()) for start in range(0, 200, 50)], len(told))
    found, own = kept(batch), under.model.q(batch)
    torch.testing.assert_close(found.mean, own.mean)
    torch.testing.assert_close(found.logvar, own.logvar)
    kept.table.zero_()
    assert torch.equal(kept(batch).mean, torch.zeros(20, 3)), "read off the table in training"
    kept.eval()
    torch.testing.assert_close(kept(batch).mean, own.mean)
    assert not kept.state_dict()


def test_a_probe_beats_chance_and_says_so(
    probed: Run, told: DataSet, spoken: Run, said: DataSet, tmp_path: Path
) -> None:
    words = elboroom.train("probe", said, tmp_path / "words", base=spoken.folder, **HEAD | {"steps": 200})
    assert probed.log[-1]["label_nll"] < 0.8 * math.log(3)
    assert words.log[-1]["label_nll"] < 0.8 * math.log(2)
    for run in (probed, words):
        assert 0 < run.log[-1]["accuracy"] <= 1
        found = measure.metrics(run, ["likelihood", "accuracy"], samples=3, most=40)
        assert found["distortion"]["value"] > 0
        assert found["accuracy"]["value"] > found["accuracy"]["parts"]["majority"] > 0
    with pytest.raises(Problem, match="a head that tells a label"):
        measure.metrics(spoken, ["accuracy"])


def test_it_encodes_as_its_base_does(probed: Run, under: Run, told: DataSet) -> None:
    assert np.array_equal(probed.encode(told), under.encode(told))
    assert probed.latent == under.latent == 3


def test_it_resumes_bit_for_bit_after_its_base_has_moved(
    probed: Run, under: Run, told: DataSet, tmp_path: Path
) -> None:
    base, run = tmp_path / "base", tmp_path / "run"
    shutil.copytree(under.folder, base)
    with pytest.raises(Killed):
        elboroom.train("probe", told, run, base=base, bar=act_at(30, kill), **HEAD)
    base.rename(tmp_path / "elsewhere")
    for verb in (elboroom.resume, elboroom.load):
        with pytest.raises(Problem, match=f"is not at {base}; .*--base"):
            verb(run, data=told)
    with pytest.raises(Problem, match=f"was at {base}"):
        elboroom.load(run, data=told, base=tmp_path / "nowhere")
    elboroom.load(run, data=told, base=tmp_path / "elsewhere")
    again = elboroom.resume(run, data=told, base=tmp_path / "elsewhere")
    same(newest(run).state, newest(probed.folder).state)
    assert (run / "log.jsonl").read_text() == (probed.folder / "log.jsonl").read_text()
    assert again.spec.base is not None
    assert again.spec.base.folder == str(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").rename(base)
    assert elboroom.resume(run, data=told, base=base).step == 50, "a complete run is told the place and loaded"
    assert elboroom.load(run, data=told).step == 50


def test_a_run_that_has_ended_is_not_trained_on_where_its_base_is_told(
    under: Run, told: DataSet, tmp_path: Path
) -> None:
    base, run = tmp_path / "base", tmp_path / "run"
    shutil.copytree(under.folder, base)
    elboroom.train("probe", told, run, base=base, patience=1, look_every=1, **HEAD | {"lr": 50.0})
    state, end = newest(run).state, newest(run).step
    assert end < HEAD["steps"]
    base.rename(tmp_path / "elsewhere")
    elboroom.resume(run, data=told, base=tmp_path / "elsewhere")
    assert newest(run).step == end
    same(newest(run).state, state)


def test_of_a_base_that_stands_on_another_the_run_is_named_whose_base_has_moved(
    under: Run, told: DataSet, tmp_path: Path
) -> None:
    base, middle, run = (tmp_path / name for name in ("base", "middle", "run"))
    shutil.copytree(under.folder, base)
    elboroom.train("emb2emb", told, middle, base=base, to="1", **HEAD | {"steps": 4})
    elboroom.train("probe", told, run, base=middle, **HEAD | {"steps": 4})
    base.rename(tmp_path / "elsewhere")
    with pytest.raises(Problem, match=f"the base of {middle} is not at {base}; .* elbo resume {middle} --base NEW"):
        elboroom.load(run, data=told)
    elboroom.resume(middle, data=told, base=tmp_path / "elsewhere")
    assert elboroom.load(run, data=told).step == 4


def test_other_weights_are_refused(under: Run, told: DataSet, tmp_path: Path) -> None:
    """Forged with a checksum that fits, or trained on."""
    base, run = tmp_path / "base", tmp_path / "run"
    shutil.copytree(under.folder, base)
    elboroom.train("probe", told, run, base=base, **HEAD | {"steps": 3})
    checkpoints = Checkpoints(base / "checkpoints")
    kept = newest(base)
    state = dict(kept.state)
    state["model.likelihood.net.dense.0.bias"] = state["model.likelihood.net.dense.0.bias"] + 1
    checkpoints.save(kept.step, state)
    with pytest.raises(Problem, match="not those that this run was begun on"):
        elboroom.load(run, data=told)
    with pytest.raises(Problem, match="not those that this run was begun on"):
        elboroom.resume(run, 3, data=told)
    checkpoints.save(kept.step, dict(kept.state))
    assert elboroom.load(run, data=told).step == 3
    (base / "spec.json").rename(tmp_path / "spec.json")
    (base / "spec.json").symlink_to(tmp_path / "spec.json")
    with pytest.raises(Problem, match="link"):
        elboroom.load(run, data=told)


def test_what_does_not_go_together_is_one_sentence(
    under: Run, spoken: Run, told: DataSet, said: DataSet, vectors: DataSet, tmp_path: Path
) -> None:
    def refused(match: str, method: str, data: Any, base: Path | None, **options: Any) -> None:
        with pytest.raises(Problem, match=match):
            elboroom.train(method, data, tmp_path / "run", base=base, **{**HEAD, **options})
        assert not (tmp_path / "run").exists()

    refused("say which with --base RUN", "probe", told, None)
    refused("--base has no effect with vae", "vae", told, under.folder)
    refused("vectors of shape .* was trained on pixels of shape", "probe", vectors, under.folder)
    refused("is tokens, but the base .* pixels", "probe", said, under.folder)
    refused("--latent 5 has no effect here", "probe", told, under.folder, latent=5)
    refused("--min-count has no effect here", "probe", said.sentences(range(9)), spoken.folder, min_count=2)
    refused("'colour'", "probe", told, under.folder, label="colour")
    refused("does not exist", "probe", told, tmp_path / "none")
    alone = elboroom.train("lm", said, tmp_path / "lm", **FIT | {"steps": 2, "embed": 4, "hidden": 4})
    refused("lm has no z", "probe", said, alone.folder)
    with pytest.raises(Problem, match="--base has no effect"):
        elboroom.load(under.folder, data=told, base=under.folder)


def test_text_is_read_in_the_tokens_of_the_base(spoken: Run, tmp_path: Path) -> None:
    other = handed(["b b new c", "a a d"] * 30, [1, 0] * 30)
    run = elboroom.train("probe", other, tmp_path / "run", base=spoken.folder, **HEAD | {"steps": 3})
    assert run.tokeniser is not None
    assert spoken.tokeniser is not None
    assert run.tokeniser.to_json() == spoken.tokeniser.to_json()
    assert run.seen("b b new c") == "b b <unk> c"
    assert np.array_equal(run.encode(["b b c"]), spoken.encode(["b b c"]))
    assert run.data.about.levels == spoken.spec.about.levels
    assert run.data.hash == other.hash
    assert elboroom.load(run.folder, data=other).data.about == run.data.about


@pytest.mark.parametrize("tokens", ["bpe", "bytes"])
def test_pieces_are_handed_over_too(said: DataSet, tokens: str, tmp_path: Path) -> None:
    lines = tmp_path / "said.tsv"
    rows = zip(said.sentences(np.arange(200)), said.labels[:, 0], strict=True)
    lines.write_text("text\tlabel\n" + "".join(f"{text}\t{y}\n" for text, y in rows))
    base = elboroom.train("vae", lines, tmp_path / "base", tokens=tokens, **WORDS | {"steps": 2})
    run = elboroom.train("probe", lines, tmp_path / "run", base=base.folder, **HEAD | {"steps": 2})
    assert run.data.tokeniser is not None
    assert run.data.tokeniser.size == base.spec.about.levels
    assert torch.equal(run.data.x(np.arange(5)), base.data.x(np.arange(5)))
    assert elboroom.load(run.folder).encode(["a b"]).shape == (1, 4)


# -- what stands beside the model is loaded too ------------------------------------------------------------------------


def others(run: Run) -> dict[str, Tensor]:
    return {name: t for name, t in run.method.state_dict().items() if not name.startswith("model.")}


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("average", [0.0, 0.9])
def test_a_critic_is_the_trained_one_after_load(told: DataSet, average: float, tmp_path: Path) -> None:
    run = elboroom.train("factor-vae", told, tmp_path / "run", **IMAGES | {"steps": 4, "average": average})
    kept, found = newest(run.folder).state, others(elboroom.load(run.folder, data=told))
    assert any(name.startswith("others.critic") for name in found)
    same(found, {name: kept[name] for name in found})
    fresh = session.build(run.spec, Own(told)).state_dict()
    assert any(not torch.equal(fresh[name], tensor) for name, tensor in found.items())
    for again in (copy.deepcopy(run), pickle.loads(pickle.dumps(run))):
        same(again.method.state_dict(), run.method.state_dict())


def test_a_head_is_the_trained_one_after_load_and_copy(probed: Run, told: DataSet) -> None:
    kept = newest(probed.folder).state["model.heads.label.weight"]
    for run in (probed, elboroom.load(probed.folder, data=told), copy.deepcopy(probed)):
        assert torch.equal(run.model.heads["label"].weight, kept)


def test_a_run_in_its_second_stage_is_loaded_there(told: DataSet, tmp_path: Path) -> None:
    run = elboroom.train("ae-pretrained-free-bits", told, tmp_path / "run", **IMAGES | {"steps": 4, "pretraining": 0.5})
    kept = newest(run.folder).state
    assert run.method.stage
    same(
        dict(run.method.state_dict()),
        {name: tensor for name, tensor in kept.items() if "optimiser/" not in name},
    )


def test_the_command_takes_a_base_and_its_new_place(told: DataSet, tmp_path: Path) -> None:
    images, small = tmp_path / "x.npz", ["--steps", 2, "--batch-size", 8, "--threads", 1, "--device", "cpu"]
    np.savez(images, x=(told.x(np.arange(200)).numpy() * 255).astype(np.uint8), y=told.labels[:, 0])
    base, run = tmp_path / "base", tmp_path / "run"
    assert elbo("train", "vae", "--data", images, "--out", base, "--net", "mlp-300", *small).returncode == 0
    assert elbo("train", "probe", "--data", images, "--out", run, "--base", base, *small).returncode == 0
    assert f"--base {base}" in elboroom.load(run).spec.command
    base.rename(tmp_path / "moved")
    gone = elbo("eval", run)
    assert gone.returncode == 2
    assert str(base) in gone.stderr
    assert "--base" in gone.stderr
    assert elbo("resume", run, "--base", tmp_path / "moved").returncode == 0
    told_now = elbo("eval", run, "--metrics", "accuracy", "--json")
    assert told_now.returncode == 0, told_now.stderr
    assert '"majority"' in told_now.stdout


def test_patience_looks_at_the_loss_of_the_probe(told: DataSet, under: Run, tmp_path: Path) -> None:
    options = HEAD | {"steps": 60, "patience": 50, "look_every": 10, "log_every": 1}
    run = elboroom.train("probe", told, tmp_path / "run", base=under.folder, **options)
    looks = [line["loss_valid"] for line in run.log if "loss_valid" in line]
    assert len(looks) == 6
    assert looks[-1] < looks[0] < 2 * math.log(3)  # nats of a label; an ELBO stands still, and is of another size
    head = run.model.heads["label"]
    rows = run.data.splits["valid"]
    with torch.no_grad():
        batch = batch_of(run.data, rows, ())
        assert batch.y is not None
        loss = torch.nn.functional.cross_entropy(head(run.model.q(batch).mean), batch.y[:, 0])
    assert loss.item() == pytest.approx(min(looks), rel=1e-5)


PAIRS = [(" ".join("abcd"[(i + j) % 4] for j in range(2 + i % 3)), "d c " + "abcd"[i % 4]) for i in range(60)]


@pytest.fixture
def paired(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.tsv"
    path.write_text("text\tto\n" + "".join(f"{x}\t{y}\n" for x, y in PAIRS))
    return path


def of_targets(parts: Parts) -> Method:
    """A linear map from codes to those of paired targets."""
    base = parts.require_base()
    parts.require_targets()
    head = torch.nn.Linear(base.latent, base.latent)
    model = base.model.with_posterior(base.codes).with_heads(map=head, target=base.targets)

    def distance(draw: Draw) -> Tensor:
        return (head(draw.q.mean) - base.targets(draw.batch).mean).square()

    return Method(model, [Player(Term("distance", distance), "map")], map=Group(head))


def test_codes_of_targets_are_worked_out_once(
    spoken: Run, paired: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_CARDS", dict(registry._CARDS))
    elboroom.method("of-targets", "|f(z) - z*|^2", paper="this test", needs_base=True)(of_targets)
    options = HEAD | {"steps": 30, "target_column": "to", "checkpoint_every": 10}
    run = elboroom.train("of-targets", str(paired), tmp_path / "run", base=spoken.folder, **options)
    assert run.log[-1]["distance"] < 0.5 * run.log[0]["distance"]
    assert not [name for name in newest(run.folder).state if "target" in name]  # frozen, and made anew
    assert run.data.tokeniser is not None
    assert run.data.tokeniser.to_json() == spoken.tokeniser.to_json()  # type: ignore[union-attr]
    targets = run.model.heads["target"]
    assert isinstance(targets, Recalled)
    rows = run.data.splits["train"][:7]
    batch = batch_of(run.data, rows, ())
    expected = spoken.encode([PAIRS[row][1] for row in rows])
    np.testing.assert_allclose(targets.train()(batch).mean.numpy(), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(targets.eval()(batch).mean.numpy(), expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(Killed):
        elboroom.train(
            "of-targets", str(paired), tmp_path / "half", base=spoken.folder, bar=act_at(15, kill), **options
        )
    again = elboroom.resume(tmp_path / "half")
    same(newest(run.folder).state, newest(again.folder).state)
    with pytest.raises(Problem, match=r"has no paired targets; .* --target-column"):
        elboroom.train(
            "of-targets", str(paired), tmp_path / "no", base=spoken.folder, **(HEAD | {"text_column": "text"})
        )


def in_two_stages(parts: Parts, pretraining: float = 0.5) -> Stages:
    """First a classifier of the codes of a base; then an autoencoder of its own, which keeps the classifier."""
    base = parts.require_base()
    heads = [parts.classifier("", base.latent) for _ in range(2)]
    probing = base.model.with_posterior(base.codes).with_heads(label=heads[0])
    first = Method(probing, [Player(label_nll(heads[0], means=True), "head")], head=Group(heads[0]))
    heads[1].requires_grad_(False)
    then = descend(parts.vae(blocks={"all": base.latent}).with_heads(label=heads[1]), nll() + label_nll(heads[1]))
    return Stages(first, then, parts.span(pretraining), carry=("heads.label",))


@pytest.mark.parametrize("at", [15, 20, 25])
def test_stages_of_different_models_in_a_run(
    told: DataSet, under: Run, at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_CARDS", dict(registry._CARDS))
    elboroom.method("in-two-stages", "label; then nll", paper="this test", needs_base=True)(in_two_stages)
    options = HEAD | {"steps": 40, "checkpoint_every": 5}
    whole = elboroom.train("in-two-stages", told, tmp_path / "whole", base=under.folder, **options)
    with pytest.raises(Killed):
        elboroom.train("in-two-stages", told, tmp_path / "half", base=under.folder, bar=act_at(at + 2, kill), **options)
    early = elboroom.load(tmp_path / "half", data=told)
    assert early.step == at
    assert isinstance(early.model.posterior, Recalled) == (at <= 20)  # the second stage begins with the step after
    assert early.encode(told.x(np.arange(3)).numpy()).shape == (3, 3)
    again = elboroom.resume(tmp_path / "half", data=told)
    same(newest(whole.folder).state, newest(again.folder).state)
    loaded = elboroom.load(whole.folder, data=told)
    assert not isinstance(loaded.model.posterior, Recalled)
    assert loaded.elbo().value == whole.elbo().value
    state = newest(whole.folder).state
    assert torch.equal(state["first.model.heads.label.weight"], state["then.model.heads.label.weight"])
