"""Critic and game: a net that is taught to tell two laws apart, and the method of a model that learns against it."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from elboroom.core.method import Group, Method, Player, adam, times
from elboroom.core.model import LatentModel
from elboroom.core.objective import Objective, Term

BETAS = (0.5, 0.9)  # of a critic's Adam: one draw with a large gradient is to be forgotten in tens of turns


@dataclass(frozen=True)
class Critic:
    """A net beside the model: what it descends, in how many turns of a step, and by which Adam."""

    net: nn.Module
    loss: Term  # reads codes as constants: nothing reaches the encoder
    lr: float
    betas: tuple[float, float] = BETAS
    turns: int = 1
    clip: float | None = None  # that of the run, unless said

    @property
    def group(self) -> Group:
        """Its parameters."""
        return Group(self.net, adam(self.lr, self.betas), self.clip)

    def player(self, *moves: str) -> Player:
        """Its turns, in which it moves these groups."""
        return Player(self.loss, moves or ("critic",), times(self.turns), rival=True)


def game(model: LatentModel, objective: Objective | Term, critic: Critic, moves: str = "vae") -> Method:
    """The whole model descends its objective, then the critic its loss, on one Draw."""
    groups = {moves: Group(model), "critic": critic.group}
    return Method(model, [Player(objective, moves), critic.player()], watches=(), **groups)
