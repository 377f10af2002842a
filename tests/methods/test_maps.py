"""Maps of codes: the identities that only they satisfy, the base that keeps its bits, and what is refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from contract import Killed, act_at, kill, newest, same
from processes import equal

import elboroom
from elboroom.core.draw import Draw
from elboroom.core.problem import Problem
from elboroom.core.stages import Stages
from elboroom.data.dataset import DataSet
from elboroom.data.text import handed
from elboroom.families.mapped import Mapped
from elboroom.families.point import Point
from elboroom.nets.mapping import Offset, mapping
from elboroom.runs import measure
from elboroom.runs.run import Run
from elboroom.terms.maps import among, cosine, having, map_critic, mapped, natural, unmapped
from elboroom.training.base import grounded
from elboroom.training.batches import batch_of

FIT: dict[str, Any] = {"batch_size": 16, "threads": 1, "device": "cpu", "checkpoint_every": 10, "log_every": 10}
WORDS: dict[str, Any] = FIT | {"steps": 30, "lr": 0.01, "latent": 4, "embed": 6, "hidden": 7}
MAP: dict[str, Any] = FIT | {"steps": 20, "lr": 0.01}
PAIRS = [(" ".join("abcd"[(i + j) % 4] for j in range(2 + i % 3)), "d c " + "abcd"[i % 4]) for i in range(60)]


@pytest.fixture(scope="module")
def said() -> DataSet:
    rng = np.random.default_rng(0)
    long = rng.integers(0, 2, 200)
    texts = [" ".join(rng.choice(list("abcd"), rng.integers(1, 3) + 3 * y)) for y in long]
    return handed(texts, ["long" if y else "short" for y in long])


@pytest.fixture(scope="module")
def base(said: DataSet, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return elboroom.train("ae", said, tmp_path_factory.mktemp("base") / "run", **WORDS)


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.tsv"
    path.write_text("text\tto\tfrom\n" + "".join(f"{x}\t{y}\t{x}\n" for x, y in PAIRS))
    return path


@pytest.mark.parametrize(("kind", "layers", "width"), [("offset", 2, 7), ("resnet", 1, 0), ("mlp", 2, 5)])
def test_a_map_has_the_shape_of_codes(kind: Any, layers: int, width: int) -> None:
    z = torch.randn(5, 3)
    made = mapping(kind, 3, layers, width)(z)
    assert made.shape == z.shape
    assert not torch.equal(made, z)


def test_an_offset_net_with_a_zero_second_layer_is_the_identity_and_loses_no_content(base: Run, said: DataSet) -> None:
    net = mapping("offset", 4, 2)
    for layer in net:
        assert isinstance(layer, Offset)
        torch.nn.init.zeros_(layer.out.weight)
        torch.nn.init.zeros_(layer.out.bias)
    model = base.model.with_posterior(Mapped(base.model.posterior, net))
    draw = Draw(model, batch_of(said, np.arange(9), ()))
    assert torch.equal(mapped(draw), unmapped(draw))
    torch.testing.assert_close(cosine(mapped, unmapped, "content")(draw), torch.zeros(9), atol=1e-6, rtol=0)


def test_a_critic_that_cannot_tell_costs_two_log_two_and_the_map_log_two(base: Run, said: DataSet) -> None:
    """-log D, not its saturating twin: where D knows better, the slope of the map is 1 and not 0."""
    model = base.model.with_posterior(Mapped(base.model.posterior, mapping("offset", 4)))
    draw = Draw(model, batch_of(said, np.arange(9), ()))
    critic = torch.nn.Linear(4, 1)
    torch.nn.init.zeros_(critic.weight)
    torch.nn.init.zeros_(critic.bias)
    torch.testing.assert_close(map_critic(critic, mapped, unmapped)(draw), torch.full((9,), 2 * math.log(2)))
    torch.testing.assert_close(natural(critic, mapped)(draw), torch.full((9,), math.log(2)))
    logits = torch.full((3, 1), -20.0, requires_grad=True)
    loss = natural(torch.nn.Identity(), lambda _: logits)(draw).sum()
    (slope,) = torch.autograd.grad(loss, logits)
    torch.testing.assert_close(slope, -torch.ones(3, 1))


def test_terms_are_means_over_the_examples_that_are_meant(base: Run, said: DataSet) -> None:
    model = base.model.with_posterior(Mapped(base.model.posterior, mapping("offset", 4)))
    rows = np.arange(40)
    draw = Draw(model, batch_of(said, rows, ()))
    whole, long = cosine(mapped, unmapped, "content"), said.labels[rows, 0] == 0
    part = among(having(0, 0, float(long.mean())), whole).mean(draw)
    torch.testing.assert_close(part, whole(draw)[torch.from_numpy(long)].mean())
    part = among(having(0, 0, float(long.mean()), but=True), whole).mean(draw)
    torch.testing.assert_close(part, whole(draw)[torch.from_numpy(~long)].mean())


def test_a_base_keeps_its_bits_and_codes_are_worked_out_once(base: Run, said: DataSet, tmp_path: Path) -> None:
    before = grounded(base.folder)[0].hash
    run = elboroom.train("emb2emb", said, tmp_path / "run", base=base.folder, to="long", **MAP)
    assert grounded(base.folder)[0].hash == before
    kept = newest(run.folder).state
    assert not [name for name in kept if "posterior.posterior" in name or "likelihood" in name], "all but the map"
    assert isinstance(run.method, Stages)
    assert torch.equal(kept["first.model.heads.label.out.weight"], kept["then.model.heads.label.out.weight"])
    codes = run.model.posterior.posterior
    rows = run.data.splits["train"][:20]
    batch = batch_of(run.data, rows, ())
    fresh = base.encode(run.data.sentences(rows))
    codes.fill([batch], len(run.data))
    np.testing.assert_allclose(codes.train()(batch).mean.numpy(), fresh, rtol=1e-5, atol=1e-6)
    codes.eval()
    text = run.data.sentences(rows[:3])
    assert isinstance(run.model.q(batch), Point)
    assert run.edit(text, strength=0.0) == base.edit(text, to="long", strength=0.0)
    assert run.edit(text) == [run.edit([one])[0] for one in text], "whatever is beside it"


def test_it_learns_from_pairs_on_either_side(base: Run, pairs: Path, tmp_path: Path) -> None:
    options = MAP | {"steps": 60, "text_column": "text", "adversary": 0.0, "width": 16}
    run = elboroom.train("emb2emb", pairs, tmp_path / "run", base=base.folder, target_column="to", **options)
    assert run.log[-1]["distance"] < 0.5 * run.log[0]["distance"]
    assert len(run.edit(["a b c"])) == 1
    options |= {"text_column": "to"}
    other = elboroom.train("emb2emb", pairs, tmp_path / "other", base=base.folder, context_column="from", **options)
    assert other.log[-1]["distance"] < 0.5 * other.log[0]["distance"]
    assert not other.latent
    assert len(other.generate("a b c")) == 1
    with pytest.raises(Problem, match="learnt from pairs"):
        run.edit(["a b"], to="d")


def test_it_resumes_bit_for_bit_from_pairs(base: Run, pairs: Path, tmp_path: Path) -> None:
    options = MAP | {"target_column": "to", "text_column": "text"}
    whole = elboroom.train("emb2emb", pairs, tmp_path / "whole", base=base.folder, **options)
    with pytest.raises(Killed):
        elboroom.train("emb2emb", pairs, tmp_path / "half", base=base.folder, bar=act_at(15, kill), **options)
    same(newest(elboroom.resume(tmp_path / "half").folder).state, newest(whole.folder).state)


@pytest.mark.parametrize("start", ["scratch", "pretrained", "mapped", "frozen"])
def test_rivals_trained_end_to_end(base: Run, pairs: Path, start: str, tmp_path: Path) -> None:
    options = MAP | {"steps": 10, "context_column": "from", "text_column": "to", "start": start}
    run = elboroom.train("seq2seq", pairs, tmp_path / "run", base=base.folder, **options)
    state = newest(run.folder).state
    names = {name for name in state if name.startswith("model.")}
    learns = {part: any(part in name for name in names) for part in ("likelihood", "conditioner.posterior", "mapping")}
    frozen, has_map = start == "frozen", start in ("mapped", "frozen")
    assert learns == {"likelihood": not frozen, "conditioner.posterior": not frozen, "mapping": has_map}
    again = elboroom.load(run.folder)
    assert again.generate("a b c", 1) == run.generate("a b c", 1)
    own = base.model.likelihood.net.state_dict()
    if frozen:
        assert all(torch.equal(own[k], v) for k, v in run.model.likelihood.likelihood.net.named_parameters())


def test_what_cannot_be_is_one_sentence(base: Run, said: DataSet, pairs: Path, tmp_path: Path) -> None:
    def refused(match: str, data: Any, under: Path | None, method: str = "emb2emb", **options: Any) -> None:
        with pytest.raises(Problem, match=match):
            elboroom.train(method, data, tmp_path / "run", base=under, **MAP | options)
        assert not (tmp_path / "run").exists()

    refused("has no pairs; say the value .* --to", said, base.folder)
    refused("'huge'", said, base.folder, to="huge")
    refused("'colour'", said, base.folder, to="long", label="colour")
    refused("--label is of --to", said, base.folder, label="label")
    refused("identity has no layers", said, base.folder, to="long", mapping="identity", layers=2)
    refused("leaves nothing to train", said, base.folder, to="long", mapping="identity", adversary=0.0)
    refused("--tokens has no effect here", pairs, base.folder, target_column="to", tokens="bytes")
    gaps = tmp_path / "gaps.tsv"
    gaps.write_text("text\tto\na b\tc\nb\t\n" * 20)
    refused("^line 3 of .*gaps.tsv has no value for 'to'$", gaps, base.folder, target_column="to")
    other = tmp_path / "other.tsv"
    other.write_text("text\tto\na b\tle chat dort\nb c\tun chien\n" * 20)
    refused("knows 0% of the words of the targets of .*other.tsv; its tokens are of another text", other, base.folder,
            target_column="to")  # fmt: skip
    french = handed(["le chat dort", "un chien mange"] * 20, ["long", "short"] * 20)
    refused("knows 0% of the words of the sentences of ", french, base.folder, to="long")
    alone = elboroom.train("lm", said, tmp_path / "lm", **FIT | {"steps": 2, "embed": 4, "hidden": 4})
    refused("lm has no z", said, alone.folder, to="long")
    turned = {"context_column": "from", "text_column": "to"}
    refused("--start has no effect without a trained run", pairs, None, "seq2seq", **turned, start="frozen")
    refused("--mapping has no effect without a map", pairs, base.folder, "seq2seq", **turned, mapping="offset")
    refused("--style-weight has no effect on pairs", pairs, base.folder, target_column="to", style_weight=0.5)
    with pytest.raises(Problem, match="has no map; train one"):
        base.edit(["a b"], to="long", by="map")


@pytest.mark.unhurried
def test_transfer_is_measured_on_those_that_have_another_value(base: Run, said: DataSet, tmp_path: Path) -> None:
    run = elboroom.train("emb2emb", said, tmp_path / "run", base=base.folder, to="long", **MAP)
    rows = run.rows("test")[1]
    short = int((run.data.labels[rows, 0] == list(run.data.classes["label"]).index("short")).sum())
    assert 0 < short < len(rows)
    for way, more in (("map", {}), ("map+fgim", {}), ("fgim", {"to": "long"})):
        found = measure.metrics(run, ["transfer"], by=way, **more)["transfer_accuracy"]
        assert found["settings"]["sentences"] == short
        assert found["settings"]["by"] == way
    both = measure.metrics(base, ["transfer"], by="offset")["transfer_accuracy"]
    assert both["settings"]["sentences"] == len(rows)
    with pytest.raises(Problem, match="'huge'"):
        measure.metrics(run, ["transfer"], by="fgim", to="huge")
    assert run.transfer(["a b"], by="map") == run.edit(["a b"])


@pytest.mark.slow
def test_two_processes_are_one(tmp_path: Path) -> None:
    """The dropout of the classifier too, whose mask is drawn for the global batch."""
    rng = np.random.default_rng(0)
    long = rng.integers(0, 2, 120)
    lines = tmp_path / "said.tsv"
    texts = (" ".join(rng.choice(list("abcd"), rng.integers(1, 3) + 3 * y)) for y in long)
    lines.write_text(
        "text\tlabel\n" + "".join(f"{t}\t{'long' if y else 'short'}\n" for t, y in zip(texts, long, strict=True))
    )
    under = elboroom.train("ae", lines, tmp_path / "base", **WORDS | {"steps": 10})
    options = FIT | {"steps": 8, "lr": 0.01, "base": str(under.folder), "to": "long", "pretraining": 0.5}
    equal("emb2emb", lines, tmp_path, options)


@pytest.mark.slow
def test_two_processes_are_one_on_pixels(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 120)
    np.savez(
        tmp_path / "drawn.npz", x=(rng.uniform(0, 0.4, (120, 8, 8)) + 0.5 * y[:, None, None]).astype(np.float32), y=y
    )
    drawn = tmp_path / "drawn.npz"
    sizes = {"latent": 4, "net": "mlp-300", "steps": 10}
    under = elboroom.train("ae", drawn, tmp_path / "base", **FIT | sizes)
    options = FIT | {"steps": 8, "lr": 0.01, "base": str(under.folder), "to": "1", "pretraining": 0.5}
    equal("emb2emb", drawn, tmp_path, options)
