"""Methods that read a context: the contract on data with one, and their identities."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from contract import CONTEXT_METHODS, HALF, WHOLE, Bench, Killed, act_at, kill, moved, newest, same, talk

from elboroom import load, resume, train
from elboroom.build.parts import Choices, Parts
from elboroom.core.batch import Batch
from elboroom.core.draw import Draw
from elboroom.core.problem import Problem
from elboroom.data.dataset import DataSet
from elboroom.evaluate.likelihood.measure import MOST_NATS
from elboroom.families.decoding import Greedy
from elboroom.families.gaussian import ConditionalNormal, Gaussian
from elboroom.methods import card, cards
from elboroom.terms.evidence import kl
from elboroom.terms.given import Told, bow_nll, told_nll
from elboroom.training.batches import batch_of

every = pytest.mark.parametrize("name", CONTEXT_METHODS)
SMALL = {"latent": 3, "embed": 6, "hidden": 8}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    folder = tmp_path_factory.mktemp("talk")
    return Bench(talk(), folder, {"embed": 6, "hidden": 8})


@every
def test_every_trainable_parameter_moves(bench: Bench, name: str) -> None:
    after = newest(bench.whole(name).folder).state
    for parameter, may, did in moved(bench.fresh(name), after):
        assert may == did, f"{parameter} {'stands still' if may else 'is frozen, yet moved'}"
    assert all(math.isfinite(value) for line in bench.whole(name).log for value in line.values())


@every
def test_it_resumes_bit_for_bit_after_a_kill(bench: Bench, name: str, tmp_path: Path) -> None:
    whole, folder = bench.whole(name), tmp_path / "run"
    with pytest.raises(Killed):
        bench.train(name, folder, bar=act_at(WHOLE - 1, kill))
    assert newest(folder).step == HALF
    resume(folder, data=bench.data)
    same(newest(folder).state, newest(whole.folder).state)


@every
def test_it_is_read_back_and_answers(bench: Bench, name: str) -> None:
    run = load(bench.whole(name).folder, data=bench.data)
    assert len(run.sample(4)) == 4
    u = run.labelled(4, act="ask") if run.given else None  # of methods that give the decoder a label
    told = None if u is None else u[:3]
    one = run.generate(["a b", "c"], n=3, seed=1, u=told)
    assert one == run.generate(["a b", "c"], n=3, seed=1, u=told) != run.generate(["a b", "c"], n=3, seed=2, u=told)
    assert [len(found) for found in run.generate([["a"], ["b", "c"]], n=2, u=u)] == [2, 2]
    found = run.evaluate(samples=3)
    words = int(run.data.words[run.rows()[1]].sum()) / len(run.rows()[1])
    bound = found["log_likelihood"]
    if (per_word := -bound["value"] / words) > MOST_NATS:  # running averages of a few steps
        assert "hardly been trained" in found["perplexity"]["reason"]
    else:
        assert math.isclose(found["perplexity"]["value"], math.exp(per_word), rel_tol=1e-9)
    if run.latent:
        batch = run.examples(3)
        assert run.encode(batch).shape == (3, run.latent)
        assert len(run.reconstruct(batch)) == 3
        assert len(run.interpolate(batch, batch, points=2)) == 3
        with pytest.raises(Problem, match="reads a context"):
            run.encode(["a b"])
        with pytest.raises(Problem, match="reads a context"):
            run.decode(np.zeros((1, run.latent)))


@every
def test_it_refuses_data_without_a_context(name: str, sentences: DataSet, tmp_path: Path) -> None:
    with pytest.raises(Problem, match=r"has no context to read; .* --context-column"):
        train(name, sentences, tmp_path / "run", steps=1, batch_size=8)


def test_a_turn_of_ten_thousand_words_is_read(bench: Bench) -> None:
    """Of training data it is left out, with a warning: tests/data/test_sequences.py."""
    (one,) = bench.whole("seq2seq").generate([" ".join(["a b"] * 5_000)], n=1)
    assert isinstance(one, str)


AGAINST = ("free-bits", "control-vae", "flow-prior", "bn-vae", "wae-d", "vmf-vae", "avb", "lagging-vae", "vae-svi")
OTHERS = {  # that cannot be given a context, and what they say
    "vamp-vae": "pseudo-inputs have no context",
    "apo-vae-vamp": "pseudo-inputs have no context",
    "multi-decoder": "--given context is none; name a label",
}


@pytest.mark.parametrize("name", [*AGAINST, "implicit-vae", "apo-vae"])
def test_methods_against_collapse_read_a_context(bench: Bench, name: str, tmp_path: Path) -> None:
    run = bench.train(name, tmp_path / "run", given="context")
    assert run.model.conditioner is not None
    assert len(run.generate("a b", n=3)) == 3
    assert any("conditioner" in key for key in newest(run.folder).state)


def test_rows_with_a_context_are_edited_and_answer_it_still(bench: Bench) -> None:
    run = bench.whole("cvae")
    rows = run.examples(4)
    assert run.edit(rows, to="ask", label="act", strength=0.0) == run.reconstruct(rows, decoding=Greedy(unknown=False))
    far = run.edit(rows, to="ask", label="act", strength=50.0)
    assert len(far) == 4


@pytest.mark.parametrize(
    "name", [name for name in CONTEXT_METHODS if not card(name).needs_base]
)  # whose nets are its own
def test_convolutions_read_a_context_without_attention(bench: Bench, name: str, tmp_path: Path) -> None:
    run = bench.train(name, tmp_path / "run", net="dilated", steps=2)
    assert len(run.generate("a b", n=2)) == 2


@pytest.mark.parametrize("name", OTHERS)
def test_a_method_that_cannot_be_given_a_context_says_why(bench: Bench, name: str, tmp_path: Path) -> None:
    with pytest.raises(Problem, match=OTHERS[name]):
        bench.train(name, tmp_path / "run", given="context")
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(name for name, card in cards().items() if "tokens" in card.on))
def test_every_method_of_text_reads_a_context_or_says_why_not(bench: Bench, name: str, tmp_path: Path) -> None:
    try:
        run = bench.train(name, tmp_path / "run", given="context", steps=2)
    except Problem:
        assert not (tmp_path / "run").exists(), "it is refused before anything is written"
    else:
        assert run.model.conditioner is not None


def draw_of(bench: Bench, name: str, rows: int = 40, **options: object) -> Draw:
    parts = Parts(bench.data.about, Choices(**SMALL, trunk="b"), data=bench.data)
    torch.manual_seed(0)
    made = card(name).build(parts, options)
    return Draw(made.model.train(), batch_of(bench.data, np.arange(rows), ()))


def gone_far(model: Any) -> None:
    """A prior that has gone far."""
    table = next(module for module in model.prior.modules() if isinstance(module, ConditionalNormal)).table
    torch.nn.init.normal_(table.weight, std=3.0)
    torch.nn.init.normal_(table.bias, std=3.0)


@pytest.mark.parametrize("gamma", [0.3, 0.9])
@pytest.mark.parametrize("on", ["difference", "both"])
def test_gamma_bounds_the_rate_wherever_the_prior_goes(bench: Bench, on: str, gamma: float) -> None:
    """In every batch of training, and with the averages over batches in evaluation."""
    draw = draw_of(bench, "bn-cvae", gamma=gamma, on=on)
    model, least = draw.model, (gamma if on == "difference" else gamma - 0.2) ** 2
    gone_far(model)
    rng, rows = np.random.default_rng(0), len(bench.data)
    for _ in range(40):
        batch = batch_of(bench.data, rng.choice(rows, 40, replace=False), ())
        seen = Draw(model.train(), batch)
        apart = (seen.q.loc - seen.p.loc).square().mean(0)
        assert (apart >= least * 0.999).all()
        if on == "difference":
            torch.testing.assert_close(apart, torch.full((3,), least), rtol=1e-3, atol=0)
        assert seen.p.logvar.max() <= 0
        assert (kl()(seen).mean(0) >= least * 0.999 / 2).all()
    whole = Draw(model.eval(), batch_of(bench.data, np.arange(rows), ()))
    assert ((whole.q.loc - whole.p.loc).square().mean(0) >= 0.8 * least).all()
    assert (kl()(whole).mean(0) >= 0.8 * least / 2).all()


class Following(ConditionalNormal):
    """A prior that is where q was."""

    def __init__(self, q: Gaussian) -> None:
        torch.nn.Module.__init__(self)
        self.q = q

    def forward(self, batch: Batch) -> Gaussian:
        return self.q


@pytest.mark.parametrize(("on", "least"), [("difference", 0.9**2 / 2), ("both", 0.7**2 / 2), ("posterior", 0.0)])
def test_a_prior_that_follows_q_takes_the_rate_where_q_alone_is_normalised(bench: Bench, on: str, least: float) -> None:
    draw = draw_of(bench, "bn-cvae", on=on, gamma=0.9)
    model, following = draw.model, Following(Gaussian(draw.q.loc.detach(), draw.q.logvar.detach()))
    if on == "posterior":
        model.prior = following
    elif on == "both":
        model.prior.prior.posterior = following
    else:
        model.prior.prior = following
    rate = kl()(Draw(model, draw.batch)).mean(0)
    assert (rate >= 0.999 * least).all()
    assert (rate < 1e-6).all() == (on == "posterior")


def test_two_means_of_one_deviation_are_held_apart_by_nothing(bench: Bench) -> None:
    with pytest.raises(Problem, match="--gamma and --gamma-prior are equal"):
        draw_of(bench, "bn-cvae", on="both", gamma=0.5, gamma_prior=0.5)
    with pytest.raises(Problem, match="--gamma-prior"):
        draw_of(bench, "bn-cvae", gamma_prior=0.5)


def test_the_bag_of_words_is_a_sum_over_words_and_the_end(bench: Bench) -> None:
    draw = draw_of(bench, "cvae", rows=6)
    head = Told(3 + 8, 5, bench.data.about.levels)
    for parameter in head.parameters():
        torch.nn.init.zeros_(parameter)
    lengths = draw.batch.lengths
    assert lengths is not None
    torch.testing.assert_close(bow_nll(head)(draw), lengths * math.log(bench.data.about.levels))
    torch.nn.init.normal_(head.net[-1].bias)
    log_p = torch.log_softmax(head.net[-1].bias, 0)
    by_hand = [-sum(log_p[i] for i in row[1:] if i) for row in draw.batch.x.tolist()]
    torch.testing.assert_close(bow_nll(head)(draw), torch.stack(by_hand))


def test_prior_posterior_and_decoder_read_the_context(bench: Bench) -> None:
    model = draw_of(bench, "cvae").model.eval()
    torch.nn.init.normal_(model.prior.table.weight)
    batch = batch_of(bench.data, np.arange(2, 4), ())
    other = Batch(batch.x, context=batch.context.flip(0))
    for one, two in ((model.p(batch), model.p(other)), (model.q(batch), model.q(other))):
        assert not torch.equal(one.loc, two.loc)
    z = torch.zeros(1, 2, 3)
    assert not torch.equal(model.px(z, batch).log_prob(batch.x), model.px(z, other).log_prob(batch.x))


def test_a_label_that_examples_do_not_have_is_asked_for(bench: Bench) -> None:
    model = bench.fresh("cvae").model
    batch = batch_of(bench.data, np.arange(4), ())
    unlabelled = Draw(model, Batch(batch.x, lengths=batch.lengths))
    with pytest.raises(
        Problem, match=r"act_nll needs the label .*, and these examples have none; give data with labels"
    ):
        told_nll(Told(3, 8, 2), 0, "act_nll")(unlabelled)
