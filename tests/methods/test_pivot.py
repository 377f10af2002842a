"""What only transfer through a pivot satisfies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from contract import FIT

from elboroom import load, train
from elboroom.core.draw import Draw
from elboroom.core.problem import Problem
from elboroom.core.stages import Stages
from elboroom.data.dataset import DataSet
from elboroom.data.sequences import CONTEXT
from elboroom.data.text import Reading, gather
from elboroom.nets.guide import Guide
from elboroom.nets.switch import SwitchedWriter
from elboroom.runs.run import Run
from elboroom.terms.guided import guided
from elboroom.training import session
from elboroom.training.base import grounded, inherited, read_like
from elboroom.training.batches import batch_of
from elboroom.training.loop import Loop
from elboroom.training.session import Own
from elboroom.training.spec import specify

SMALL: dict[str, Any] = {**FIT, "latent": None, "embed": 6, "hidden": 8}
ENGLISH, FRENCH = [f"w{i}" for i in range(12)], [f"m{i}" for i in range(12)]


def _corpus(styled: bool, back: bool = True, seed: int = 0) -> DataSet:
    """Sentences word by word in another language; of the styled, one word tells the style."""
    rng, read = np.random.default_rng(seed), []
    for at in range(60):
        words, style = rng.integers(0, 12, rng.integers(2, 6)), at % 2
        here, there = (" ".join(language[i] for i in words) for language in (ENGLISH, FRENCH))
        here, there = (here, there) if back else (there, here)
        label = (("good", "bad")[style],) if styled else ()
        read.append((f"{here} {'yes' if style else 'no'}" if styled else here, label, ((there,),)))
    labels = {"style": None} if styled else None
    return gather(
        "styled" if styled else "plain", {"train": read}, labels, holdout=0.1, beside=[CONTEXT], own=[CONTEXT]
    )


@pytest.fixture(scope="module")
def captions() -> DataSet:
    return _corpus(styled=True)


@pytest.fixture(scope="module")
def back(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Translates from the pivot to the language of the data."""
    return train("seq2seq", _corpus(False), tmp_path_factory.mktemp("back") / "run", **SMALL, dropout=0.5)


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Translates to the pivot."""
    return train("seq2seq", _corpus(False, back=False), tmp_path_factory.mktemp("there") / "run", **SMALL)


@pytest.fixture(scope="module")
def trained(captions: DataSet, back: Run, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train("bst", captions, tmp_path_factory.mktemp("bst") / "run", base=back.folder, **SMALL, pretraining=0.25)


def built(data: DataSet, base: Run, name: str = "bst", **options: Any) -> Any:
    """A method at step 0; bst on its base, seq2seq on the same tokens."""
    said = {**SMALL, **options} if name != "bst" else inherited(base.spec, {**SMALL, **options}, Reading(), CONTEXT)
    data = read_like(data, base.folder, CONTEXT)
    spec = specify(name, data, "array", None, said, base=grounded(base.folder)[0] if name == "bst" else None)
    return session.build(spec, Own(data), data), data


def test_without_a_guide_it_is_a_seq2seq_with_a_label_on_a_frozen_encoder(captions: DataSet, back: Run) -> None:
    mine, data = built(captions, back, guide=0.0, decoders="given", dropout=0.0)
    plain, _ = built(captions, back, "seq2seq", given="style", dropout=0.0)
    assert not isinstance(mine, Stages)
    plain.model.conditioner.load_state_dict(back.model.conditioner.state_dict())
    plain.model.likelihood.load_state_dict(mine.model.likelihood.state_dict())
    batch, found = batch_of(data, np.arange(8), ("style",)), []
    for method in (mine, plain):
        loss = method.train().players[0].objective(Draw(method.model, batch)).total
        found.append([loss, *torch.autograd.grad(loss, list(method.model.likelihood.parameters()))])
    assert all(torch.equal(a.to_dense(), b.to_dense()) for a, b in zip(*found, strict=True))


@pytest.mark.parametrize("decoders", ["each", "given"])
def test_the_base_and_the_guide_stand_still_and_have_no_noise(
    captions: DataSet, back: Run, decoders: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, step = [], Loop.step

    def watched(loop: Loop, number: int) -> Any:
        found = step(loop, number)
        model, batch = loop.method.at(number).model.train(), loop.batches(number)
        assert not any(part.training for part in model.conditioner.modules()), "whatever noise a base has is off"
        guide, stays = model.heads["guide"], number >= 4
        assert torch.equal(guide(batch.x), guide(batch.x)) == stays, "dropout is on while it learns, and off then"
        kept = [t.clone() for part in (model.conditioner, guide) for t in part.parameters()]
        seen.append((len(list(model.conditioner.parameters())), kept))
        return found

    monkeypatch.setattr(Loop, "step", watched)
    run = train("bst", captions, tmp_path / "run", base=back.folder, decoders=decoders, pretraining=4, **SMALL)
    base, first = seen[0]
    assert all(torch.equal(a, b) for _, kept in seen for a, b in zip(first[:base], kept[:base], strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(first, seen[3][1], strict=True)), "the guide learns"
    assert all(torch.equal(a, b) for _, kept in seen[3:] for a, b in zip(seen[3][1], kept, strict=True)), "then stands"
    assert isinstance(run.model.likelihood.net, SwitchedWriter) == (decoders == "each")
    names = [set(line) for line in run.log]
    assert "guide_accuracy" in names[0]
    assert {"nll", "guided"} <= names[-1]


def test_the_guide_reads_the_logits_of_the_likelihood_and_teaches_them(captions: DataSet, back: Run) -> None:
    method, data = built(captions, back, decoders="given", dropout=0.0)
    model, batch = method.then.model.train(), batch_of(data, np.arange(8), ("style",))
    draw, guide = Draw(model, batch), model.heads["guide"]
    told = guided(guide, 1.0)(draw)
    wanted = [*model.likelihood.net.head.parameters(), model.likelihood.net.attention.keys.weight]
    assert all(grad.abs().sum() > 0 for grad in torch.autograd.grad(told.sum(), wanted))
    logits = draw.px.logits(batch.x)  # (1, B, T, V)
    log_p = torch.log_softmax(logits[0], -1).gather(2, batch.x[:, 1:].unsqueeze(2)).squeeze(2)
    nll = -(log_p * (batch.x[:, 1:] != 0)).sum(1)
    torch.testing.assert_close(nll, draw.nll[0], rtol=1e-5, atol=1e-5)


def test_the_weight_of_the_guide_is_in_nats_a_sentence(captions: DataSet, back: Run) -> None:
    """The published 1 stands beside nats a token."""
    mine, data = built(captions, back)
    weights = {term.name: weight for weight, term in mine.then.players[0].objective.parts}
    length = float(data.lengths(data.splits["train"]).double().mean())
    assert weights["guided"].now(0) == pytest.approx(length)


def test_soft_words_that_are_sure_are_words() -> None:
    guide, x = Guide(9, 2, "style", 0, 6).eval(), torch.tensor([[1, 5, 6, 2, 0], [1, 7, 8, 5, 2]])
    p = torch.nn.functional.one_hot(x[:, 1:], 9).float()
    torch.testing.assert_close(guide.soft(p, x[:, 1:] != 0), guide(x), rtol=1e-5, atol=1e-6)
    longer = torch.nn.functional.pad(x, (0, 7))
    torch.testing.assert_close(guide(x), guide(longer), rtol=1e-5, atol=1e-6)  # padding is not read


def test_a_translation_the_other_way_is_refused(trained: Run, there: Run) -> None:
    with pytest.raises(Problem, match=r"--through .* is of the wrong direction"):
        trained.transfer(["m1 m2"], "good", through=there)


def test_sentences_go_through_the_pivot(captions: DataSet, trained: Run, there: Run) -> None:
    run = load(trained.folder, data=captions)
    assert run.styles() == {"style": ["bad", "good"]}
    texts = ["w1 w2 yes", "w3 no"]
    by_run = run.transfer(texts, "good", through=there.folder)
    pivot = [one for (one,) in there.generate([[text] for text in texts], 1, None)]
    assert len(by_run) == len(pivot) == 2
    assert run.transfer(texts, "good", through=there) == by_run
    handed = run.transfer(texts, to={"style": "good"}, context=["m1 m2", "m3"])
    assert handed == [one for (one,) in run.generate([["m1 m2"], ["m3"]], 1, u=run.labelled(2, style="good"))]
    batch = run.examples(3)
    turns = run.data.turns(CONTEXT, batch.index.numpy())
    assert run.transfer(batch, "bad") == run.transfer(["a"] * 3, "bad", context=turns)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "say which run translates it, with --through RUN"),
        ({"context": ["m1", "m2"]}, "1 sentences and 2 contexts"),
        ({"context": ["m1"], "through": "x"}, "not both"),
        ({"context": ["m1"], "to": "ugly"}, "style has no value 'ugly'"),
        ({"context": ["m1"], "by": "offset"}, "has no z"),
        ({"context": ["m1"], "to": None}, "say the style with --to"),
    ],
)
def test_what_a_transfer_lacks_is_one_sentence(trained: Run, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Problem, match=sentence):
        trained.transfer(["w1 w2"], **{"to": "good", **options})


def test_only_a_translation_translates(trained: Run, captions: DataSet, tmp_path: Path) -> None:
    with pytest.raises(Problem, match="is no translation"):
        trained.transfer(["w1"], "good", through=trained)
    ae = train("ae", captions, tmp_path / "ae", **{**SMALL, "latent": 3})
    with pytest.raises(Problem, match="--through is for a run that reads translations, which ae does not"):
        ae.transfer(["w1"], "good", through=trained)


def _base(kind: str, captions: DataSet, back: Run, there: Run, folder: Path) -> Path | None:
    """A run that bst cannot stand on."""
    if kind == "direction":
        return there.folder
    other = [("x y z", (), (("p q r",),)), ("y z", (), (("q r p",),))] * 12
    data = gather("other", {"train": other}, beside=[CONTEXT], own=[CONTEXT]) if kind == "tokens" else captions
    method, more = {"tokens": ("seq2seq", {}), "no memory": ("cvae", {}), "no context": ("ae", {})}[kind]
    latent = {} if method == "seq2seq" else {"latent": 3}
    return train(method, data, folder, **{**SMALL, **latent, **more}).folder


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("direction", "is of the wrong direction: it writes the language of the contexts"),
        ("tokens", "knows 0% of the words of the contexts of styled; its tokens are of another text"),
        ("no memory", "cvae keeps no states of a context to attend to"),
        ("no context", "keeps no states of a context to attend to"),
    ],
)
def test_a_base_that_does_not_fit_is_one_sentence(
    captions: DataSet, back: Run, there: Run, kind: str, sentence: str, tmp_path: Path
) -> None:
    base = _base(kind, captions, back, there, tmp_path / "base")
    with pytest.raises(Problem, match=sentence):
        train("bst", captions, tmp_path / "run", base=base, **SMALL)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"pretraining": 0}, "the guide would know nothing"),
        ({"posterior": "gaussian"}, "bst has no z"),
        ({"given": "context,style"}, "changes one label"),
        ({"tau": 0}, "--tau"),
        ({"guide": 0.0, "tau": 0.5}, "--tau has no effect without a guide"),
        ({"decoder": torch.nn.Linear(4, 4)}, "a decoder of your own is one"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    captions: DataSet, back: Run, options: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(Problem, match=sentence):
        train("bst", captions, tmp_path / "run", base=back.folder, **{**SMALL, **options})


def test_it_needs_a_base(captions: DataSet, tmp_path: Path) -> None:
    with pytest.raises(Problem, match="say which with --base RUN"):
        train("bst", captions, tmp_path / "run", **SMALL)


def test_x_has_its_own_tokens_and_contexts_those_of_the_base(trained: Run, back: Run) -> None:
    assert trained.tokenisers[CONTEXT].to_json() == back.tokenisers[CONTEXT].to_json()
    assert "yes" in trained.tokeniser.words
    assert "yes" not in back.tokeniser.words
