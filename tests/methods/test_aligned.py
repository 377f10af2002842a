"""What only the cross-aligned autoencoder satisfies."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from contract import FIT
from torch.nn import functional as F

from elboroom.core.draw import Draw
from elboroom.core.problem import Problem
from elboroom.core.vocabulary import END, PAD
from elboroom.data.dataset import DataSet
from elboroom.data.text import handed
from elboroom.nets import sentences as nets
from elboroom.nets.critics import Critics
from elboroom.nets.unrolled import free_running, teacher_forced
from elboroom.runs.lifecycle import load, train
from elboroom.terms.aligned import aligned, cross_aligned, cross_critic
from elboroom.training import session
from elboroom.training.batches import batch_of
from elboroom.training.session import Own
from elboroom.training.spec import specify

SMALL: dict[str, Any] = {**FIT, "latent": 4, "embed": 6, "hidden": 7}
X = torch.tensor([[1, 5, 6, 2, 0], [1, 7, 2, 0, 0], [1, 5, 5, 5, 2]])


def built(data: DataSet, **options: Any) -> Any:
    return session.build(specify("cae", data, "array", None, {**SMALL, **options}), Own(data), data)


def drawn(method: Any, data: DataSet, rows: int = 12) -> Draw:
    return Draw(method.model.train(), batch_of(data, np.arange(rows), ("label",)))


def critics_of(method: Any) -> Critics:
    return next(module for module in method.modules() if isinstance(module, Critics))


def test_without_critics_it_is_the_conditional_autoencoder_bit_for_bit(sentences: DataSet, tmp_path: Path) -> None:
    mine = train("cae", sentences, tmp_path / "cae", rho=0.0, **SMALL)
    plain = train("ae", sentences, tmp_path / "ae", given="label", inject="state", **SMALL)
    ours, theirs = (dict(run.method.named_parameters()) for run in (mine, plain))
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[key], theirs[key]) for key in theirs)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_states_of_reading_are_those_of_teacher_forcing_and_end_with_the_sentence(cell: str) -> None:
    decoder = nets.decoder(cell, 9, 3, 2, embed=4, hidden=5, inject="state").eval()
    z, u = torch.randn(3, 3), torch.eye(2)[[0, 1, 1]]
    states = teacher_forced(decoder, z, u, X)  # type: ignore[arg-type]
    there = (X[:, 1:] != PAD).unsqueeze(2)
    torch.testing.assert_close(states.h[:, 1:] * there, decoder.hidden(z, X[:, :-1], u) * there)
    assert torch.equal(states.there, X != PAD)
    assert states.h[0, 0].abs().sum() > 0, "the first state is z and the label"


def test_soft_words_of_a_sure_decoder_are_its_words() -> None:
    decoder = nets.decoder("lstm", 9, 3, embed=4, hidden=5, inject="state").eval()
    decoder.head.weight.data.mul_(1e6)  # Gumbel noise has no say
    z = torch.randn(6, 3)
    states = free_running(decoder, z, None, 4, 0.1)  # type: ignore[arg-type]
    words, state, going = torch.ones(6, dtype=torch.long), decoder.start(z), torch.ones(6, dtype=torch.bool)
    for step in range(4):
        h, state = decoder.step(words, state)
        torch.testing.assert_close(states.h[going, step + 1], h[going])
        assert torch.equal(states.there[:, step + 1], going)
        words = decoder.head(h).argmax(1)
        going &= words != END


def test_critics_that_cannot_tell_are_at_two_log_two_each(sentences: DataSet) -> None:
    method = built(sentences)
    critics, draw = critics_of(method), drawn(method, sentences)
    for out in critics.out:
        torch.nn.init.zeros_(out.weight)
        torch.nn.init.zeros_(out.bias)
    terms = cross_critic(critics, 0.1), cross_aligned(critics, 0.1, 9.0), cross_aligned(critics, 0.1, 9.0, True)
    found = [term(draw).item() / math.log(2) for term in terms]
    assert found == pytest.approx([3 * 2, 3, -3], rel=1e-5)


def test_losses_are_sums_over_styles_of_means(sentences: DataSet) -> None:
    method = built(sentences)
    critics, draw = critics_of(method), drawn(method, sentences)
    states = aligned(draw, critics, 0.1)
    assert torch.equal(states.other, (states.style + 1) % 3)
    by_hand = 0.0
    for style in range(3):
        real, written = (
            critics.out[style](critics.windows[style](*found.of(which == style))).squeeze(1)
            for found, which in ((states.real, states.style), (states.written, states.other))
        )
        by_hand += float((F.softplus(-real).mean() + F.softplus(written).mean()).detach())
    assert math.isclose(cross_critic(critics, 0.1)(draw).item(), by_hand, rel_tol=1e-5)


def test_critics_are_listened_to_below_the_gate_alone(sentences: DataSet) -> None:
    method = built(sentences)
    critics, draw = critics_of(method), drawn(method, sentences)
    weights = list(method.model.likelihood.parameters())
    open_, shut = cross_aligned(critics, 0.1, 9.0)(draw), cross_aligned(critics, 0.1, 0.0)(draw)
    assert open_ == shut
    assert not shut.requires_grad
    found = torch.autograd.grad(open_, [*weights, *method.model.posterior.parameters()], allow_unused=True)
    assert sum(grad.to_dense().abs().sum() for grad in found if grad is not None) > 0


def test_what_critics_descend_has_no_path_into_the_model(sentences: DataSet) -> None:
    method = built(sentences)
    critics, draw = critics_of(method), drawn(method, sentences)
    loss = cross_critic(critics, 0.1)(draw)
    found = torch.autograd.grad(loss, [*method.model.parameters(), *critics.parameters()], allow_unused=True)
    own = len(list(method.model.parameters()))
    assert all(grad is None for grad in found[:own])
    assert all(grad is not None for grad in found[own:])


def test_a_run_gives_the_other_style(tmp_path: Path) -> None:
    said = [f"the {n} was {w}" for n in ("soup", "cake", "room") for w in ("bad", "good")] * 6
    data = handed(said, [text.split()[-1] for text in said])
    folder = train("cae", data, tmp_path / "run", **{**SMALL, "steps": 3}).folder
    run = load(folder, data=data)
    told = run.transfer(said[:2], "good", u=run.labelled(2, label="bad"))
    assert told == run.transfer(said[:2], "good"), "of two styles what is to have one has the other"
    assert told == run.decode(run.encode(said[:2], run.labelled(2, label="bad")), run.labelled(2, label="good"))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"net": "transformer"}, "cae reads the states of a recurrent decoder"),
        ({"net": "dilated"}, "cae reads the states of a recurrent decoder"),
        ({"temperature": 0}, "--temperature"),
        ({"rho": 0.0, "gate": 2.0}, "--gate has no effect without critics"),
        ({"prior": "normal"}, "this method has no prior"),
    ],
)
def test_what_cannot_be_is_one_sentence(sentences: DataSet, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Problem, match=sentence):
        built(sentences, **options)
