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
from elboroom.core.draw import Batch, Draw, LatentModel
from elboroom.core.objective import Term
from elboroom.families.gaussian import ConditionalNormal, GaussianPosterior
from elboroom.families.pixels import BernoulliLikelihood, GaussianLikelihood
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


CRITIC = Critic()
ALL, ITS_OWN = "all", "its own"  # whose gradient is checked: everyone's, or that of the modules that the term reads
# One line for every variant of a term: its function, its arguments, and whose gradient it has.
TABLE: dict[str, list[tuple[tuple[object, ...], str]]] = {
    "nll": [((), ALL)],
    "kl": [((), ALL)],
    "iw_bound": [((1,), ALL), ((5,), ALL)],
    "index_code_mi": [((N, e), ALL) for e in ("mss-sym", "mss", "mws")],
    "total_correlation": [((N, e), ALL) for e in ("mss-sym", "mss", "mws")],
    "dimwise_kl": [((N, e), ALL) for e in ("mss-sym", "mss", "mws")],
    "density_ratio": [((CRITIC,), ALL)],
    "critic_nll": [((CRITIC,), ITS_OWN)],
}
CASES = [(name, arguments, whose) for name, variants in TABLE.items() for arguments, whose in variants]


def test_the_table_has_every_term() -> None:
    assert found().keys() == TABLE.keys(), "give each term of elboroom/terms a line in TABLE"


class Value(nn.Module):
    """The mean of a term with the same noise every time, as a function of the parameters of the model and its critics."""

    def __init__(self, term: Term, likelihood: str) -> None:
        super().__init__()
        make = {"bernoulli": BernoulliLikelihood, "gaussian": GaussianLikelihood}[likelihood]
        self.model = LatentModel(GaussianPosterior(Net(D, 2 * J)), ConditionalNormal(J, 2), make(Net(J, D), 1)).double()
        self.critics = nn.ModuleList(term.modules).double()
        nn.init.normal_(self.model.prior.table.weight, std=0.3)
        self.term = term
        u = torch.eye(2).repeat(B // 2, 1).double()
        self.batch = Batch(torch.rand(B, D).double(), u, index=torch.arange(B))
        self.second = Batch(torch.rand(B, D).double(), u.flip(0), index=torch.arange(B, 2 * B))

    def forward(self) -> Tensor:
        reseed(3)
        return self.term.mean(Draw(self.model, self.batch, self.term.samples, lambda: Draw(self.model, self.second)))


@pytest.mark.parametrize("likelihood", ["bernoulli", "gaussian"])
@pytest.mark.parametrize(("name", "arguments", "whose"), CASES)
def test_gradients_are_those_of_finite_differences(
    name: str, arguments: tuple[object, ...], whose: str, likelihood: str
) -> None:
    value = Value(found()[name](*arguments), likelihood)
    chosen = dict(value.named_parameters() if whose == ALL else value.critics.named_parameters("critics"))
    assert chosen

    def run(*tensors: Tensor) -> Tensor:
        result: Tensor = functional_call(value, dict(zip(chosen, tensors, strict=True)), ())
        return result

    tensors = tuple(p.detach().clone().requires_grad_() for p in chosen.values())
    assert torch.autograd.gradcheck(run, tensors)
    assert run(*tensors).dim() == 0


@pytest.mark.parametrize(("name", "arguments", "whose"), [case for case in CASES if case[2] == ITS_OWN])
def test_what_has_no_gradient_has_none(name: str, arguments: tuple[object, ...], whose: str) -> None:
    value = Value(found()[name](*arguments), "bernoulli")
    value().backward()
    assert all(p.grad is None for p in value.model.parameters())
    assert all(p.grad is not None for p in value.critics.parameters())
