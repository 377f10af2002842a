"""Group, Player and Method: which parameters there are, who descends what, and all of it as one module."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from elboroom.core import distributed
from elboroom.core.average import Average
from elboroom.core.batch import Batch
from elboroom.core.draw import Draw
from elboroom.core.freeze import thawed
from elboroom.core.kl import require_moving
from elboroom.core.model import LatentModel
from elboroom.core.objective import Loss, Objective, Term
from elboroom.core.optimiser import Adam, is_by_rows
from elboroom.core.optimiser import MakeOptimiser as MakeOptimiser
from elboroom.core.problem import Problem
from elboroom.core.reference import require_parts


def adam(lr: float, betas: tuple[float, float] = (0.9, 0.999)) -> MakeOptimiser:
    """Adam for a group of parameters."""
    return lambda parameters: Adam(parameters, lr, betas)


@dataclass(frozen=True)
class Group:
    """A named set of parameters with its optimiser. Left out, optimiser and clip are those of the run."""

    modules: nn.Module | Sequence[nn.Module]
    optimiser: MakeOptimiser | None = None
    clip: float | None = None

    def all(self) -> list[nn.Module]:
        """Its modules as a list."""
        return [self.modules] if isinstance(self.modules, nn.Module) else list(self.modules)

    def parameters(self) -> list[nn.Parameter]:
        """The trainable parameters of its modules, each once."""
        return list({id(p): p for m in self.all() for p in m.parameters() if p.requires_grad}.values())


Turns = Callable[[int, Sequence[Tensor]], Iterable[int]]  # of a step, given what the turns taken in it have cost


def once(step: int, costs: Sequence[Tensor]) -> Iterable[int]:
    """One turn a step."""
    return (0,)


def times(n: int) -> Turns:
    """n turns a step."""
    return lambda step, costs: range(n)


def until_flat(window: int = 15, at_most: int = 99) -> Turns:
    """Turns until the mean cost of a window of them is above that of the window before it, `at_most` in all."""

    def turns(step: int, costs: Sequence[Tensor]) -> Iterator[int]:
        before = math.inf
        for turn in range(at_most):
            yield turn
            if (turn + 1) % window == 0:
                now = distributed.mean(torch.stack(list(costs[-window:])).mean()).item()
                if now > before:
                    return
                before = now

    return turns


def cost(loss: Loss, batch: Batch) -> Tensor:
    """What a turn has cost, in nats per example, or per token where examples differ in length."""
    total = loss.total.detach()
    return total if batch.lengths is None else total / batch.lengths.to(total).mean()


class Player:
    """Who descends what, how often in a step, on which batch.

    `shared` reads the Draw that the players of a step have in common (detached: another player may have moved since),
    `again` draws anew on the same batch, `fresh` on another one; `onward` draws on the same batch in its first turn
    and on another one in each turn after that. The loss of a rival, a critic, is not that of the step in the log.
    """

    def __init__(
        self,
        objective: Objective | Term,
        moves: str | Sequence[str],
        turns: Turns = once,
        batch: Literal["shared", "again", "fresh", "onward"] = "shared",
        rival: bool = False,
    ) -> None:
        self.objective = objective if isinstance(objective, Objective) else 1.0 * objective
        self.moves = (moves,) if isinstance(moves, str) else tuple(moves)
        self.turns, self.batch, self.rival = turns, batch, rival


class Watch(nn.Module, ABC):
    """Looks every `every` steps, remembers in buffers, and may switch a player off, or end the run or its first stage."""

    every: int = 0
    improved: bool = False  # whether the last look was the best so far
    valid: Callable[[], Iterable[Batch]]  # the validation split, in order

    def attach(self, valid: Callable[[], Iterable[Batch]], epoch: int) -> None:
        """Is told, before training, where the validation split is and how many steps make an epoch."""
        self.valid, self.every = valid, self.every or epoch

    def told(self) -> dict[str, float]:
        """What the last look adds to the log."""
        return {}

    @property
    def over(self) -> int:
        """The step after which it ended its stage; 0 if it did not."""
        return 0

    @abstractmethod
    def look(self, method: Method, step: int) -> bool:
        """Whether the run should end."""


class Method(nn.Module):
    """A model with its groups, players and watches. Its state is the whole run.

    `judged_by` is the term that --patience and --decay plateau look at on the validation split, where that is not the ELBO.
    """

    def __init__(
        self, model: LatentModel, /, players: Sequence[Player], watches: Sequence[Watch] = (), **groups: Group
    ) -> None:
        super().__init__()
        self.model = model
        self.judged_by: Term | None = None
        self.groups = groups
        self.players, self.watches = list(players), list(watches)
        self.objectives = nn.ModuleList(player.objective for player in players)
        self.memory = nn.ModuleList(watches)
        own = set(model.modules())
        apart = {name: [m for m in group.all() if m not in own] for name, group in groups.items()}
        self.others = nn.ModuleDict({name: nn.ModuleList(modules) for name, modules in apart.items() if modules})
        self.owned: dict[str, list[nn.Parameter]] = {name: group.parameters() for name, group in groups.items()}
        self.optimisers: dict[str, Optimizer] = {}
        self.clips: dict[str, float] = {}
        self.average: Average | None = None
        self._check()

    def _check(self) -> None:
        """Every term can be had of this model, and every trainable parameter is in exactly one group."""
        require_parts(self.modules())
        for player in self.players:
            for weight, term in player.objective.parts:
                term.check(self.model)
                if term.is_rate and weight.steers:
                    require_moving(self.model, "a weight on it")
        owner: dict[int, str] = {}
        for name, parameters in self.owned.items():
            for parameter in parameters:
                if id(parameter) in owner:
                    raise Problem(
                        f"a parameter is in two groups that this method trains separately: {owner[id(parameter)]} and {name}; "
                        "if it is the curvature of the ball, remove --curvature-learned"
                    )
                owner[id(parameter)] = name
        for name, parameter in self.named_parameters():
            if parameter.requires_grad and id(parameter) not in owner:
                raise ValueError(f"parameter {name} is in no group")

    @property
    def coupled(self) -> list[Term | nn.Module]:
        """What couples the examples of a batch: terms, weights and parts of the model."""
        parts = [part for player in self.players for pair in player.objective.parts for part in pair]
        return [part for part in (*parts, *thawed(self.model)) if getattr(part, "couples", False)]

    @property
    def couples(self) -> bool:
        """Whether a loss or the model couples the examples of a batch, which should then be of mixed lengths."""
        return bool(self.coupled)

    def prepare(self, optimiser: MakeOptimiser, clip: float = 0.0, average: float = 0.0) -> None:
        """Makes the optimisers; groups without one of their own take these. An average of the weights is kept if asked."""
        if average:
            self.average = Average(self.model, average)
        for name, group in self.groups.items():
            self.optimisers[name] = (group.optimiser or optimiser)(self.owned[name])
            self.clips[name] = clip if group.clip is None else group.clip
            for module in (m for top in group.all() for m in top.modules() if isinstance(m, nn.Embedding)):
                module.sparse = is_by_rows(self.optimisers[name])

    @property
    def of_run(self) -> list[Optimizer]:
        """The optimisers of the groups that have none of their own: the learning rate of the run is theirs."""
        return [self.optimisers[name] for name, group in self.groups.items() if group.optimiser is None]

    def set_rate(self, lr: float) -> None:
        """Another learning rate, for the groups that take the run's."""
        for group in (group for optimiser in self.of_run for group in optimiser.param_groups):
            group["lr"] = lr

    def averaged(self) -> AbstractContextManager[None]:
        """Inside, the model has the averaged weights, where an average is kept."""
        return self.average.worn_by(self.model) if self.average is not None else nullcontext()

    def judged(self, term: Term) -> Method:
        """The same method, for which this term is what tells good weights."""
        self.judged_by = term
        return self

    def watch(self, watch: Watch) -> None:
        """One more watch, such as the run's own."""
        self.watches.append(watch)
        self.memory.append(watch)

    def ended(self, verdicts: Sequence[bool], step: int) -> bool:
        """Whether watches end the run after so many steps. Those of the first of two stages end that alone."""
        return any(verdicts)

    @property
    def final(self) -> Method:
        """The method that a run ends in: itself. Of a Stages, the second."""
        return self

    def stage_bounds(self, step: int, steps: int) -> tuple[int, int]:
        """From which step to which a learning rate falls along one curve, in a run of so many: all of it."""
        return 0, steps

    def at(self, step: int) -> Method:
        """The method in charge of a step: itself. A Stages names one of its stages."""
        return self

    def draw(self, player: Player, batch: Batch, another: Callable[[], Draw] | None = None) -> Draw:
        """A Draw with as many samples as the player's objective asks for."""
        return Draw(self.model, batch, player.objective.samples, another)

    def update(self, step: int, losses: dict[int, Loss]) -> None:
        """Lets the controllers of each player see its last loss, once per step."""
        for number, loss in losses.items():
            self.players[number].objective.update(step, loss.logged)

    def state(self) -> dict[str, Tensor]:
        """The whole run as named tensors: parameters, buffers and what the optimisers remember."""
        state: dict[str, Tensor] = dict(self.state_dict())
        for name, optimiser in self.optimisers.items():
            for number, memory in optimiser.state_dict()["state"].items():
                for key, value in memory.items():
                    if isinstance(value, Tensor):
                        state[f"optimiser/{name}/{number}/{key}"] = value
        return state

    def restore(self, state: dict[str, Tensor]) -> None:
        """The inverse of `state`."""
        mine = self.state_dict()
        self.load_state_dict({key: value for key, value in state.items() if key in mine})
        for name, optimiser in self.optimisers.items():
            memory: dict[int, dict[str, Any]] = {}
            for key, value in state.items():
                parts = key.split("/")
                if parts[0] == "optimiser" and parts[1] == name:
                    memory.setdefault(int(parts[2]), {})[parts[3]] = value.clone()
            optimiser.load_state_dict({"state": memory, "param_groups": optimiser.state_dict()["param_groups"]})


def descend(model: LatentModel, objective: Objective | Term) -> Method:
    """The method of one player: the whole model descends one objective."""
    return Method(model, [Player(objective, moves="model")], model=Group(model))
