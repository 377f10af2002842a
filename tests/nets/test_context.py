"""Contexts: turns taken apart, one turn as no hierarchy, padding never seen, decoding with a memory as teacher forcing."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from elboroom.core.batch import Batch, Memory
from elboroom.core.problem import Problem
from elboroom.nets import sentences
from elboroom.nets.context import Turns

ROWS = torch.tensor([[1, 5, 6, 2, 7, 2, 0], [1, 8, 2, 0, 0, 0, 0], [1, 2, 0, 0, 0, 0, 0]])  # two turns, one, none
NETS = [("lstm", "dot"), ("lstm", "additive"), ("gru", "dot"), ("transformer", "dot")]
nets = pytest.mark.parametrize(("net", "attention"), NETS)


def context(turns: int = 2) -> sentences.ContextEncoder:
    torch.manual_seed(0)
    return sentences.context("lstm", 9, 4, 6, "b", turns)


def decoder(net: str, attention: str) -> sentences.Autoregressive:
    torch.manual_seed(0)
    made = sentences.decoder(net, 9, 3, 0, 8, 6, trunk="b", attention=attention, memory=12)
    return made.eval()


def memory(rows: int = 2, length: int = 4) -> Memory:
    torch.manual_seed(1)
    mask = torch.ones(rows, length, dtype=torch.bool)
    mask[-1, 2:] = False
    return Memory(torch.randn(rows, length, 12), mask)


def test_turns_are_taken_apart() -> None:
    turns = Turns.of(ROWS)
    assert turns.ids.tolist() == [[1, 5, 6, 2], [1, 7, 2, 0], [1, 8, 2, 0], [1, 2, 0, 0]]
    assert turns.counts.tolist() == [2, 1, 1]
    assert turns.last.tolist() == [1, 2, 3]


def test_one_turn_is_as_no_hierarchy() -> None:
    dialogue, sentence = context(2), context(1)
    sentence.load_state_dict({k: v for k, v in dialogue.state_dict().items() if not k.startswith("before")})
    one, other = (net(Batch(ROWS[1:], context=ROWS[1:])) for net in (dialogue, sentence))
    for a, b in zip(one, other, strict=True):
        assert torch.equal(a, b)
    whole = dialogue(Batch(ROWS, context=ROWS))
    assert whole.mask.sum(1).tolist() == [7, 3, 2]  # both turns of the first with a <s> each
    torch.testing.assert_close(whole.vector[1:], one.vector)
    last = dialogue(Batch(ROWS[:1], context=torch.tensor([[1, 7, 2]])))
    assert not torch.allclose(whole.vector[:1], last.vector), "the turn before is read"
    torch.testing.assert_close(whole.memory[:1, 4:7], last.memory)


def test_longer_padding_changes_no_bit() -> None:
    net = context()
    longer = torch.nn.functional.pad(ROWS, (0, 5))
    for a, b in zip(net(Batch(ROWS, context=ROWS)), net(Batch(ROWS, context=longer)), strict=True):
        assert torch.equal(a, b)


def test_labels_stand_before_the_vector() -> None:
    u = torch.eye(3)
    given, plain = (context()(Batch(ROWS, labels, context=ROWS)) for labels in (u, None))
    assert torch.equal(given.vector, torch.cat([u, plain.vector], 1))
    with pytest.raises(Problem, match="reads a context, and there is none"):
        context()(Batch(ROWS))


@nets
def test_what_is_masked_is_not_seen(net: str, attention: str) -> None:
    made, seen = decoder(net, attention), memory()
    x, z = torch.tensor([[1, 4, 5, 2], [1, 6, 2, 0]]), torch.randn(1, 2, 3)
    changed = seen.states.clone()
    changed[1, 2:] = 100.0
    assert torch.equal(made.log_prob(z, x, None, seen), made.log_prob(z, x, None, Memory(changed, seen.mask)))
    changed[1, 1] = 100.0
    assert not torch.allclose(made.log_prob(z, x, None, seen), made.log_prob(z, x, None, Memory(changed, seen.mask)))
    with pytest.raises(Problem, match="attends to a context"):
        made.log_prob(z, x)


@nets
def test_a_longer_memory_is_the_same_memory(net: str, attention: str) -> None:
    """Bit for bit, whatever stands in its padding, in teacher forcing and step by step."""
    made, seen, z = decoder(net, attention), memory(length=13), torch.randn(2, 3)
    x = torch.tensor([[1, 4, 5, 2], [1, 6, 2, 0]])
    states = torch.cat([seen.states, torch.full((2, 40, 12), 50.0)], 1)
    longer = Memory(states, torch.nn.functional.pad(seen.mask, (0, 40)))
    one, other = (made.log_prob(z.unsqueeze(0), x, None, some) for some in (seen, longer))
    assert torch.equal(one, other)
    state, more = made.start(z, None, seen), made.start(z, None, longer)
    for at in range(3):
        (now, state), (then, more) = made.step(x[:, at], state), made.step(x[:, at], more)
        assert torch.equal(now, then)


@nets
def test_no_word_sees_a_later_one(net: str, attention: str) -> None:
    made, seen, z = decoder(net, attention), memory(), torch.randn(2, 3)
    x, other = torch.tensor([[1, 4, 5, 6], [1, 6, 7, 8]]), torch.tensor([[1, 4, 8, 8], [1, 6, 5, 5]])
    h, g = (made.hidden(z, rows, None, seen) for rows in (x, other))
    torch.testing.assert_close(h[:, :2], g[:, :2])
    assert not torch.allclose(h[:, 2], g[:, 2])


@nets
def test_a_step_is_teacher_forcing(net: str, attention: str) -> None:
    made, seen, z = decoder(net, attention), memory(), torch.randn(2, 3)
    x = torch.tensor([[1, 4, 5, 6], [1, 6, 7, 8]])
    h, state = made.hidden(z, x, None, seen), made.start(z, None, seen)
    for at in range(4):
        now, state = made.step(x[:, at], state)
        torch.testing.assert_close(now, h[:, at], rtol=1e-4, atol=1e-5)
        state = tuple(t.flip(0).flip(0) for t in state)  # rows can be gathered, as beams are


@nets
def test_copies_of_a_sentence_share_its_memory(net: str, attention: str) -> None:
    made, seen, z = decoder(net, attention), memory(), torch.randn(3, 2, 3)
    x = torch.tensor([[1, 4, 2, 0], [1, 6, 5, 2]])
    together: Tensor = made.log_prob(z, x, None, seen)
    for k in range(3):
        torch.testing.assert_close(together[k], made.log_prob(z[k : k + 1], x, None, seen)[0], rtol=1e-4, atol=1e-5)
    made.train()
    made.dropout, made.word_dropout = 1e-9, 0.0  # noise of its own for every copy, and next to none
    torch.testing.assert_close(made.log_prob(z, x, None, seen), together, rtol=1e-4, atol=1e-5)


def test_a_transformer_has_no_additive_attention() -> None:
    with pytest.raises(Problem, match="--attention dot"):
        decoder("transformer", "additive")
