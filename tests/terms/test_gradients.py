"""The gradient of every term against finite differences. Terms are found by looking, so that none is forgotten."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from importlib import import_module
from pkgutil import walk_packages

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

import elboroom.terms
from elboroom.core.batch import Batch
from elboroom.core.draw import Draw
from elboroom.core.model import LatentModel
from elboroom.core.objective import Term
from elboroom.divergences.variational import DIVERGENCES
from elboroom.families.gaussian import ConditionalNormal, Gaussian, GaussianPosterior
from elboroom.families.pixels import BernoulliLikelihood, GaussianLikelihood
from elboroom.geometry.ball import Ball
from elboroom.terms.evidence import kl, nll
from elboroom.terms.labels import Classifier
from elboroom.terms.maps import having, mapped
from elboroom.terms.words import Bag
from elboroom.training.batches import reseed

B, D, J, N = 4, 3, 2, 20


def found() -> dict[str, Callable[..., Term]]:
    """Every public function of elboroom.terms that returns a Term."""
    functions: dict[str, Callable[..., Term]] = {}
    for info in walk_packages(elboroom.terms.__path__, "elboroom.terms."):
        module = import_module(info.name)
        for name, thing in vars(module).items():
            mine = inspect.isfunction(thing) and thing.__module__ == info.name and not name.startswith("_")
            if mine and typing.get_type_hints(thing).get("return") is Term:
                functions[name] = thing
    return functions


class Net(nn.Module):
    """A small smooth net of x and u."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(inputs + 2, 3), nn.Linear(3, outputs)

    def forward(self, x: Tensor, u: Tensor) -> Tensor:
        out: Tensor = self.last(torch.tanh(self.first(torch.cat([x, u], 1))))
        return out


class Critic(nn.Module):
    """A small smooth critic of codes."""

    def __init__(self, outputs: int = 2) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(J, 4), nn.Tanh(), nn.Linear(4, outputs))

    def forward(self, z: Tensor) -> Tensor:
        out: Tensor = self.net(z)
        return out


class Joint(nn.Module):
    """A small smooth critic of pairs (x, z)."""

    def __init__(self) -> None:
        super().__init__()
        self.net = Net(D + J, 1)

    def forward(self, x: Tensor, z: Tensor, u: Tensor) -> Tensor:
        out: Tensor = self.net(torch.cat([x, z], 1), u)
        return out.squeeze(1)


class Nu(nn.Module):
    """A small smooth critic of codes beside features."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.joint = features > 0
        self.net = nn.Sequential(nn.Linear(J + features, 4), nn.Tanh(), nn.Linear(4, 1))

    def forward(self, z: Tensor, h: Tensor | None = None) -> Tensor:
        out: Tensor = self.net(z if h is None else torch.cat([z, h], 1))
        return out.squeeze(1)


class Shares(Bag):
    """A bag of words of real x, which are taken for shares of words."""

    def shares(self, x: Tensor) -> Tensor:
        return x.abs() / x.abs().sum(1, keepdim=True)


def drawn(draw: Draw) -> Tensor:
    """Codes that are sampled."""
    return draw.first


CONTENT = torch.tensor([True, False, True])
TOLD = Classifier(J, 3, "label", 0)
CRITIC, SCORE, JOINT, NU_XZ, NU_Z = Critic(), Critic(1), Joint(), Nu(2), Nu(0)
FLOOR = 0.25  # nats, with rates on both sides of it
# Whose gradient is checked: everyone's, that of the modules that the term reads, or everyone's but the prior's, whose
# draws are constants for these terms; or that of the modules and of the prior, which moves with them.
ALL, ITS_OWN, NOT_PRIOR, AND_PRIOR = "all", "its own", "not the prior's", "its own and the prior's"
# One line for every variant of a term: its function, its arguments, and whose gradient it has.
TABLE: dict[str, list[tuple[tuple[object, ...], str]]] = {
    "nll": [((), ALL)],
    "nll_of_mean": [((), ALL)],
    "kl": [((), ALL)],
    "label_nll": [
        *(((Classifier(J, 3, "label", 0), means), ALL) for means in (False, True)),
        ((TOLD, True, True), ITS_OWN),
        ((TOLD, False, False, 0.1, True), ALL),
    ],
    "entropy": [((head, means), ALL) for head in (TOLD, Shares(J, CONTENT)) for means in (False, True)],
    "bag_nll": [
        *(
            ((Shares(J, CONTENT, hidden=4), False, False, smoothing, twice), ALL)
            for smoothing in (0, 0.1)
            for twice in (0, 1)
        ),
        ((Shares(J, CONTENT, leaky=True), True), ALL),
        ((Shares(J, CONTENT), False, True), ITS_OWN),
    ],
    "accuracy": [],  # has no gradient: for the log alone
    "bow_nll": [],  # of sentences, in tests/methods/test_dialogue.py
    "told_nll": [],
    "guide_nll": [],  # of sentences, in tests/methods/test_pivot.py
    "guide_accuracy": [],
    "guided": [],
    "cross_critic": [],  # of sentences, in tests/methods/test_aligned.py
    "cross_aligned": [],
    "cosine": [((mapped, drawn, "cosine"), ALL)],
    "told_as": [((TOLD, 1), ALL)],
    "natural": [((SCORE, mapped), ALL)],
    "map_critic": [((SCORE, mapped, drawn, having(0, 1, 0.5), having(0, 1, 0.5, but=True)), ITS_OWN)],
    "among": [((having(0, 1, 0.5), nll()), ALL)],
    "iw_bound": [((1,), ALL), ((5,), ALL)],
    "index_code_mi": [((N, e), ALL) for e in ("mss-sym", "mss", "mws")],
    "total_correlation": [((N, e), ALL) for e in ("mss-sym", "mss", "mws")],
    "dimwise_kl": [((N, e), ALL) for e in ("mss-sym", "mss", "mws")],
    "density_ratio": [((CRITIC,), ALL)],
    "critic_nll": [((CRITIC,), ITS_OWN)],
    "fool": [((SCORE,), ALL)],
    "prior_critic": [((SCORE,), ITS_OWN)],
    "joint_ratio": [((JOINT, False), ALL), ((JOINT, True), ALL)],
    "joint_critic": [((JOINT, False), ITS_OWN), ((JOINT, True), ITS_OWN)],
    "f_penalty": [((SCORE, row), NOT_PRIOR) for row in DIVERGENCES.values()],
    "f_critic": [((SCORE, row), ITS_OWN) for row in DIVERGENCES.values()],
    "dual_rate": [((NU_XZ,), NOT_PRIOR), ((NU_Z,), NOT_PRIOR), ((NU_XZ, True), ALL)],
    "dual_critic": [((NU_XZ,), ITS_OWN), ((NU_Z,), ITS_OWN), ((NU_XZ, True), AND_PRIOR)],
    "off_diagonal": [((of,), ALL) for of in ("means", "samples")],
    "diagonal": [((of,), ALL) for of in ("means", "samples")],
    "third_moment": [((entries,), ALL) for entries in ("all", "diagonal")],
    "mmd": [((kernel, unbiased), NOT_PRIOR) for kernel in ("rbf", "imq") for unbiased in (False, True)],
    "mmd_per_dim": [((), NOT_PRIOR)],
    "place": [((), NOT_PRIOR)],
    "inclusive_kl": [((), NOT_PRIOR)],
    "cost": [(("squared",), ALL), (("nll",), ALL)],
    "own_spread": [((), ALL)],
    "log_variance": [((), ALL)],
    "free_bits": [
        ((kl(), FLOOR, unit, reduce, form), ALL)
        for unit in ("total", "per_dim")
        for reduce in ("sample", "batch")
        for form in ("hinge", "mask")
    ],
    "unrefined": [((nll(),), ALL), ((kl(),), ALL)],
    "amortised": [((), ALL)],
    "penalty": [(("kl", "example"), ALL), (("decorrelated", "aggregate"), ALL), (("mmd", "aggregate"), NOT_PRIOR)],
}
CASES = [(name, arguments, whose) for name, variants in TABLE.items() for arguments, whose in variants]


def test_the_table_has_every_term() -> None:
    assert found().keys() == TABLE.keys(), "give each term of elboroom/terms a line in TABLE"


class Value(nn.Module):
    """The mean of a term with the same noise every time, as a function of the parameters of the model and its critics."""

    def __init__(self, term: Term, likelihood: str, arguments: tuple[object, ...]) -> None:
        super().__init__()
        make = {"bernoulli": BernoulliLikelihood, "gaussian": GaussianLikelihood}[likelihood]
        self.model = LatentModel(GaussianPosterior(Net(D, 2 * J)), ConditionalNormal(J, 2), make(Net(J, D), 1)).double()
        self.critics = nn.ModuleList(module for module in arguments if isinstance(module, nn.Module)).double()
        nn.init.normal_(self.model.prior.table.weight, std=0.3)
        self.term, self.ball = term, Ball(1e-3)
        u = torch.eye(2).repeat(B // 2, 1).double()
        self.batch = Batch(torch.rand(B, D).double(), u, index=torch.arange(B), y=torch.arange(B).unsqueeze(1) % 3)
        self.contrast = Gaussian(torch.full((B, J), 0.2).double(), torch.full((B, J), -0.4).double())
        self.second = Batch(torch.rand(B, D).double(), u.flip(0), index=torch.arange(B, 2 * B))

    def forward(self) -> Tensor:
        reseed(3)
        draw = Draw(self.model, self.batch, self.term.samples, lambda: Draw(self.model, self.second))
        draw.q.moments = lambda: self.contrast  # constants for the terms that read them, as are those of an implicit q
        draw.q.features = self.contrast.loc
        draw.q.ball, draw.q.tangent = self.ball, draw.q  # as if it were on a ball
        if self.term.name in REFINED:  # for which what was made of the encoder's q is a constant
            draw.q, self.contrast.first = self.contrast, draw.q
        return self.term.mean(draw)


REFINED = ("nll_first", "kl_first", "kl_refined")
READS_PX = ("nll", "iw_bound", "cost")  # the others are checked beside one likelihood alone


@pytest.mark.parametrize(
    ("name", "arguments", "whose", "likelihood"),
    [(*case, "bernoulli") for case in CASES] + [(*case, "gaussian") for case in CASES if case[0] in READS_PX],
)
def test_gradients_are_those_of_finite_differences(
    name: str, arguments: tuple[object, ...], whose: str, likelihood: str
) -> None:
    value = Value(found()[name](*arguments), likelihood, arguments)
    chosen = dict(value.critics.named_parameters("critics") if whose == ITS_OWN else value.named_parameters())
    if whose == AND_PRIOR:
        chosen = {key: p for key, p in chosen.items() if key.startswith(("critics", "model.prior"))}
    if whose == NOT_PRIOR:
        chosen = {key: p for key, p in chosen.items() if not key.startswith("model.prior")}
    assert chosen

    def run(*tensors: Tensor) -> Tensor:
        result: Tensor = functional_call(value, dict(zip(chosen, tensors, strict=True)), ())
        return result

    tensors = tuple(p.detach().clone().requires_grad_() for p in chosen.values())
    assert torch.autograd.gradcheck(run, tensors)
    assert run(*tensors).dim() == 0


@pytest.mark.parametrize(("name", "arguments", "whose"), [case for case in CASES if case[2] == ITS_OWN])
def test_what_has_no_gradient_has_none(name: str, arguments: tuple[object, ...], whose: str) -> None:
    value = Value(found()[name](*arguments), "bernoulli", arguments)
    value().backward()
    assert all(p.grad is None for p in value.model.parameters())
    assert all(p.grad is not None for p in value.critics.parameters())
