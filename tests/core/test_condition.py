"""What nets see beside x: labels as ever, or what a conditioner makes of a context, worked out once a Draw."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from contract import Killed, act_at, kill, newest, same
from torch import Tensor, nn

import elboroom
from elboroom.build import registry
from elboroom.build.parts import Choices, Parts
from elboroom.core.batch import Batch, Condition
from elboroom.core.draw import Draw
from elboroom.core.method import Method, descend
from elboroom.core.problem import Problem
from elboroom.data.dataset import DataSet
from elboroom.data.registry import load
from elboroom.data.text import Reading
from elboroom.families.gaussian import ConditionalNormal
from elboroom.terms.evidence import kl, nll
from elboroom.training.batches import batch_of

SMALL: dict[str, Any] = {
    "steps": 6,
    "batch_size": 4,
    "latent": 3,
    "embed": 6,
    "hidden": 7,
    "threads": 1,
    "device": "cpu",
}


class Means(nn.Module):
    """A context as the mean of the embeddings of its words, and these as a memory."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.embed, self.calls = nn.Embedding(size, 3), 0

    def forward(self, batch: Batch) -> Condition:
        self.calls += 1
        assert batch.context is not None
        mask = batch.context > 0
        memory: Tensor = self.embed(batch.context)
        mean = (memory * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)
        return Condition(mean, memory, mask)


def of_a_context(parts: Parts) -> Method:
    """A VAE whose prior knows the context."""
    about = parts.about.sequences["context"]
    model = parts.vae().with_prior(ConditionalNormal(parts.latent, 3))
    model = model.with_conditioner(Means(about.size))
    return descend(model, nll() + kl())


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    words = list("abcdef")
    entries = [
        {"text": " ".join(rng.choice(words, 4)), "before": [" ".join(rng.choice(words, 2)) for _ in range(i % 3)]}
        for i in range(40)
    ]
    path = tmp_path / "talk.jsonl"
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return path


def test_labels_are_seen_as_they_are(pixels: DataSet) -> None:
    model = Parts(pixels.about, Choices(latent=2)).vae()
    batch = Batch(pixels.x(np.arange(4)), torch.ones(4, 2))
    assert model.conditioned(batch) is batch
    assert model.condition(batch) == Condition(batch.u)
    assert Draw(model, batch).seen is batch


def test_a_condition_is_worked_out_once_a_draw(talk: Path) -> None:
    data = load(talk, reading=Reading(context_column="before"))
    parts = Parts(data.about, Choices(latent=3, embed=6, hidden=7), data=data)
    means = Means(data.about.levels)
    model = parts.vae().with_prior(ConditionalNormal(3, 3)).with_conditioner(means)
    batch = batch_of(data, np.arange(5), ("context",))
    assert batch.u is None
    draw = Draw(model, batch)
    assert draw.seen.condition is not None
    assert draw.seen.u is draw.seen.condition.vector
    assert draw.p.batch_shape == (5,)
    assert model.condition(draw.seen) is draw.seen.condition
    assert means.calls == 1
    assert model.p(batch).loc.equal(draw.p.loc)
    assert means.calls == 2
    for other in (model.with_posterior(model.posterior), model.with_prior(model.prior)):
        assert other.conditioner is means
    draw.p.loc.sum().backward()
    assert means.embed.weight.grad is not None


@pytest.mark.parametrize("own", ["", "context"])
def test_a_run_reads_its_context_resumes_and_is_loaded(
    talk: Path, own: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_CARDS", dict(registry._CARDS))
    elboroom.method("of-a-context", "nll + kl(q, p(z|c))", paper="this test")(of_a_context)
    options = SMALL | {"context_column": "before", "own_vocabulary": own, "checkpoint_every": 3}
    whole = elboroom.train("of-a-context", str(talk), tmp_path / "whole", **options)
    with pytest.raises(Killed):
        elboroom.train("of-a-context", str(talk), tmp_path / "half", bar=act_at(4, kill), **options)
    elboroom.resume(tmp_path / "half")
    same(newest(tmp_path / "whole").state, newest(tmp_path / "half").state)
    again = elboroom.load(tmp_path / "whole")
    assert again.given == ()
    assert (tmp_path / "whole" / "tokeniser-context.json").exists() == bool(own)
    assert whole.data.beside["context"].tokeniser is not None
    assert again.tokenisers["context"].to_json() == whole.data.beside["context"].tokeniser.to_json()
    assert (again.tokenisers["context"] is again.tokeniser) == (not own)
    assert again.elbo().value == whole.elbo().value
    assert again.elbo().value < 0


def test_a_context_that_nobody_reads_is_refused(talk: Path, tmp_path: Path) -> None:
    small = {name: value for name, value in SMALL.items() if name != "latent"}
    with pytest.raises(Problem, match="lm does not read a context"):
        elboroom.train("lm", str(talk), tmp_path / "run", **small, given="context", context_column="before")
    with pytest.raises(Problem, match="--attention dot has no effect here"):
        elboroom.train("vae", str(talk), tmp_path / "run", **SMALL, attention="dot", context_column="before")
    with pytest.raises(Problem, match=r"--given context: .* has none; .* --context-column"):
        elboroom.train("vae", str(talk), tmp_path / "run", **SMALL, given="context", text_column="text")
    with pytest.raises(Problem, match="cannot be given"):
        elboroom.train(
            "vae", str(talk), tmp_path / "run", **SMALL, given="target", text_column="text", target_column="text"
        )
