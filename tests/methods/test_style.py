"""What only methods of style and content satisfy."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from contract import FIT
from processes import equal

from elboroom.core.draw import Draw
from elboroom.core.problem import Problem
from elboroom.data import sentences as grammar
from elboroom.data.dataset import DataSet
from elboroom.families.styled import Misread
from elboroom.methods import card
from elboroom.nets.switch import SwitchedNet
from elboroom.runs.lifecycle import load, train
from elboroom.training import session
from elboroom.training.batches import batch_of
from elboroom.training.session import Own
from elboroom.training.spec import specify

ZERO = {"mul_style": 0.0, "adv_style": 0.0, "mul_content": 0.0, "adv_content": 0.0}
SIZES = {"style_size": 2, "content_size": 3}
SMALL = {**FIT, "latent": None, "embed": 6, "hidden": 7}


def small(data: DataSet, **more: Any) -> dict[str, Any]:
    """Options for a data set; those of words are for text."""
    text = data.about.kind == "tokens"
    keys = [key for key in SMALL if text or key not in ("embed", "hidden")]
    return {key: SMALL[key] for key in keys} | ({} if text else {"net": "mlp-300"}) | more


@pytest.mark.parametrize("kind", ["pixels", "sentences"])
@pytest.mark.parametrize(
    ("name", "options", "plain"), [("style-vae", {"rate": 1.0, "warmup": 0.0}, "vae"), ("style-ae", {}, "ae")]
)
def test_weights_at_zero_are_the_plain_method_bit_for_bit(
    name: str, options: dict[str, Any], plain: str, kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    data = request.getfixturevalue(kind)
    style = train(name, data, tmp_path / "style", **small(data), **SIZES, **ZERO, **options)
    other = train(plain, data, tmp_path / "plain", **small(data, latent=5))
    mine, theirs = (dict(run.model.named_parameters()) for run in (style, other))
    named = {key.replace("posterior.posterior.", "posterior."): value for key, value in mine.items()}
    assert named.keys() == theirs.keys()
    assert all(torch.equal(named[key], theirs[key]) for key in theirs)


def built(data: DataSet, name: str = "style-vae", **options: Any) -> Any:
    spec = specify(name, data, "array", None, small(data, **SIZES, **options))
    return session.build(spec, Own(data), data)


def test_the_unit_is_nats_an_example(sentences: DataSet) -> None:
    """The published weights stand beside nats a token: ten times the mean length for the label told from the style."""
    parts = {term.name: weight for weight, term in built(sentences).players[0].objective.parts}
    length = float(sentences.lengths(sentences.splits["train"]).double().mean())
    assert parts["label_nll_style"].now(0) == pytest.approx(10 * length)
    assert parts["label_entropy_content"].now(0) == pytest.approx(-length)
    assert parts["bag_nll_content"].now(0) == pytest.approx(3 * length)
    assert parts["bag_entropy_style"].now(0) == pytest.approx(-0.03 * length)
    assert parts["kl_style"].now(10**6) == parts["kl_content"].now(10**6) == pytest.approx(0.03 * length)
    own = {term.name: weight for weight, term in built(sentences, style_rate=7.0).players[0].objective.parts}
    assert own["kl_style"].now(10**6) == 7.0


def test_the_warm_up_says_to_what_it_rises() -> None:
    (warmup,) = (option for option in card("style-vae").options if option.name == "warmup")
    assert "from 0 to --rate and --style-rate" in warmup.help
    assert "--start" not in warmup.help


def test_an_adversary_is_at_most_as_unsure_as_chance(sentences: DataSet) -> None:
    """Max of the entropy is ln of the number of labels, where the adversary knows nothing."""
    method = built(sentences)
    draw = Draw(method.model, batch_of(sentences, np.arange(16), ()))
    entropies = {term.name: term for _, term in method.players[0].objective.parts}
    spy, thief = method.model.heads["spy"], method.model.heads["thief"]
    assert entropies["label_entropy_content"](draw).max() <= math.log(3) + 1e-6
    torch.nn.init.zeros_(spy[2].weight)
    torch.nn.init.zeros_(spy[2].bias)
    for name, parameter in thief.net.named_parameters():
        if name.startswith("2."):
            torch.nn.init.zeros_(parameter)
    fresh = Draw(method.model, batch_of(sentences, np.arange(16), ()))
    torch.testing.assert_close(entropies["label_entropy_content"](fresh), torch.full((16,), math.log(3)))
    words = math.log(int(thief.content.sum()))
    torch.testing.assert_close(entropies["bag_entropy_style"](fresh), torch.full((16,), words))


@pytest.mark.parametrize("name", ["style-vae", "style-ae", "style-embedding", "multi-decoder"])
def test_what_an_adversary_descends_has_no_path_into_the_rest(name: str, sentences: DataSet) -> None:
    blocks = name in ("style-vae", "style-ae")
    options = SIZES if blocks else {}
    spec = specify(name, sentences, "array", None, small(sentences, **options))
    method = session.build(spec, Own(sentences), sentences)
    draw = Draw(method.model, batch_of(sentences, np.arange(8), spec.model.given_names))
    rivals = [player for player in method.players if player.rival]
    assert len(rivals) == 1 + blocks
    for player in rivals:
        others = [p for group, owned in method.owned.items() if group not in player.moves for p in owned]
        total = player.objective(draw).total
        assert all(g is None for g in torch.autograd.grad(total, others, allow_unused=True, retain_graph=True))


def test_adversaries_read_the_mean_of_the_content_and_a_draw_of_the_style(sentences: DataSet) -> None:
    method = built(sentences)
    terms = {term.name: term for player in method.players for term in player.objective.terms}
    batch = batch_of(sentences, np.arange(8), ())
    first, second = Draw(method.model.eval(), batch), Draw(method.model, batch)
    assert torch.equal(terms["label_entropy_content"](first), terms["label_entropy_content"](second))
    assert not torch.equal(terms["bag_entropy_style"](first), terms["bag_entropy_style"](second))


def test_faithful_is_what_the_released_code_did(sentences: DataSet) -> None:
    method = built(sentences, faithful=True)
    weights = {term.name: weight for weight, term in method.players[0].objective.parts}
    length = float(sentences.lengths(sentences.splits["train"]).double().mean())
    assert weights["kl_style"].now(20_000) / length == pytest.approx(0.00285, abs=1e-5)
    assert weights["kl_style"].now(10**6) == weights["kl_style"].now(20_000), "it never arrives"
    draw = Draw(method.model, batch_of(sentences, np.arange(8), ()))
    assert isinstance(draw.q, Misread)
    told = next(term for term in method.players[0].objective.terms if term.name == "label_nll_style")
    assert told(draw).min() > math.log(1 + 2 * math.exp(-1)) - 1e-6, "a softmax of a softmax is never sure"


def test_several_labels_have_a_block_each(tmp_path: Path) -> None:
    data = grammar.load()
    options = {**SMALL, **SIZES, "label": "polarity,tense"}
    run = train("style-vae", "sentences", tmp_path / "run", **options)
    assert list(run.model.blocks) == ["z", "style_polarity", "style_tense", "content"]
    assert run.styles() == {"polarity": ["positive", "negative"], "tense": ["past", "present", "future"]}
    text = data.sentences([0])
    assert len(run.transfer(text, "tense=future,polarity=negative")) == 1
    with pytest.raises(Problem, match="say which with --to LABEL=VALUE"):
        run.transfer(text)


def test_images_have_a_style_and_no_words(pixels: DataSet, tmp_path: Path) -> None:
    run = train("style-vae", pixels, tmp_path / "run", **small(pixels), **SIZES)
    terms = [term.name for term in run.method.players[0].objective.terms]
    assert "label_nll_style" in terms
    assert not [name for name in terms if "bag" in name]
    images = run.examples(4)
    assert run.transfer(images, to="2").shape == images.x.shape
    with pytest.raises(Problem, match=r"--adv-content need the words of a text, and .* is pixels; remove them"):
        built(pixels, mul_content=1.0)


def test_decoders_of_a_label_each_are_ours(pixels: DataSet, tmp_path: Path) -> None:
    """One net for all labels would give every label the same picture."""
    own = torch.nn.Linear(4, 4)
    with pytest.raises(Problem, match="a decoder of your own is one"):
        train("multi-decoder", pixels, tmp_path / "run", given="label", decoder=own, **small(pixels))
    spec = specify("multi-decoder", pixels, "array", None, small(pixels, given="label", latent=3))
    (switch,) = (m for m in session.build(spec, Own(pixels), pixels).model.modules() if isinstance(m, SwitchedNet))
    assert len({id(net) for net in switch.nets}) == 3


@pytest.mark.parametrize("name", ["style-vae", "style-ae"])
def test_a_style_beside_a_context(name: str, tmp_path: Path) -> None:
    rows = "".join(f"{mood}\tq{i % 3} w{i % 5}\tw{i % 5} w{i % 7}\n" for i, mood in enumerate(["good", "bad"] * 40))
    (tmp_path / "x.tsv").write_text(f"mood\tasked\tsaid\n{rows}")
    columns = {"text_column": "said", "context_column": "asked", "label_column": "mood", "given": "context"}
    run = train(name, tmp_path / "x.tsv", tmp_path / "run", **columns, **SMALL, **SIZES)
    assert run.step == SMALL["steps"]
    began = session.build(run.spec, Own(run.data), run.data).model.conditioner.state_dict()
    learnt = run.model.conditioner.state_dict()
    assert not all(torch.equal(began[key], learnt[key]) for key in began), "the reader of contexts learns too"


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("style-vae", {"label": "mood"}, "mood"),
        ("style-vae", {}, "has no labels, so there is no style"),
        ("style-embedding", {}, "gives its decoder a label, and array has none"),
        ("style-vae", {"mul_style": -1.0}, "--mul-style"),
        ("style-vae", {"faithful": True, "warmup": 0.5}, "--warmup has no effect with --faithful"),
        ("style-ae", {"adv_style": 0.0, "adv_content": 0.0, "critic_lr": 1e-2}, "--critic-lr has no effect"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    name: str, options: dict[str, Any], sentence: str, sentences: DataSet, vectors: DataSet
) -> None:
    from elboroom.data import arrays

    bare = arrays.dataset(np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32))
    data = sentences if options else bare
    with pytest.raises(Problem, match=sentence):
        session.build(specify(name, data, "array", None, {**small(data), **options}), Own(data), data)


def test_a_run_transfers_without_its_data(sentences: DataSet, tmp_path: Path) -> None:
    text = sentences.sentences([0, 1])
    folder = train("style-vae", sentences, tmp_path / "run", **small(sentences), **SIZES).folder
    (folder / "data.npz").unlink()
    run = load(folder)
    with pytest.raises(Problem, match="keeps no copy"):
        _ = run.data
    assert len(run.transfer(text, "1")) == 2


def test_every_method_of_style_is_registered() -> None:
    assert [card(name).paper for name in ("style-vae", "style-ae")] == ["John et al. 2019"] * 2
    assert all(card(name).needs_given for name in ("style-embedding", "multi-decoder"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["style-vae", "style-ae", "style-embedding", "multi-decoder"])
def test_two_processes_equal_one(name: str, tmp_path: Path) -> None:
    blocks = name in ("style-vae", "style-ae")
    own = {"label": "polarity", **SIZES} if blocks else {"given": "polarity", "latent": 4}
    options = {
        "steps": 4,
        "batch_size": 8,
        "embed": 6,
        "hidden": 7,
        "lr": 1e-3,
        "log_every": 2,
        "threads": 1,
        "device": "cpu",
    }
    equal(name, "sentences", tmp_path, {**options, **own})
