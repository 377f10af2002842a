"""Stages: a method in two stages, what the first has learnt carried over to the second."""

from __future__ import annotations

import re
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from elboroom.core.method import Group, MakeOptimiser, Method, Player, Watch
from elboroom.core.model import LatentModel
from elboroom.core.objective import Term, Weight

STAGES = ("first", "then")
_STAGE = "|".join(rf"{name}\." for name in STAGES)
AVERAGE = re.compile(rf"({_STAGE})?average\.weights\.(.+)")  # an averaged weight in a state: its stage and its name


class Stages(nn.Module):
    """`first` up to step `until`, then `then`, which takes over the parts of the model named in `carry`.

    The two may have different models: a part is named as it is in both, `posterior` or `heads.label`, and is of one
    architecture in both. Everything else of `then` starts at its own initial weights. A run is read back with the model of
    the stage that it is in. What the second stage is to keep as it was carried has `requires_grad_(False)`; `frozen`, whose
    weights come from elsewhere, would not take it. Watches of the run look at the second stage only; those of the first
    may end that early. Schedules of the second begin when it does.
    """

    stage: Tensor

    def __init__(self, first: Method, then: Method, until: int, carry: Sequence[str] = ("posterior",)) -> None:
        super().__init__()
        self.first, self.then, self.carry = first, then, tuple(carry)
        self.register_buffer("stage", torch.tensor(False))
        self._begin(until)
        for part in self.carry:
            shapes = [{k: v.shape for k, v in module.state_dict().items()} for module in self._both(part)]
            if shapes[0] != shapes[1]:
                raise ValueError(f"the two stages carry over '{part}', which is of another architecture in each")

    def _both(self, part: str) -> tuple[nn.Module, nn.Module]:
        """A part of the model in either stage."""
        try:
            return self.first.model.get_submodule(part), self.then.model.get_submodule(part)
        except AttributeError as error:
            raise ValueError(f"the two stages carry over '{part}', which one of them does not have") from error

    def _begin(self, step: int) -> None:
        """Has the second stage begin at a step."""
        self.until = step
        for weight in (module for module in self.then.modules() if isinstance(module, Weight)):
            weight.begin(step)

    def ended(self, verdicts: Sequence[bool], step: int) -> bool:
        """Whether watches end the run after so many steps; those of the first stage end that."""
        if any(verdicts) and not self.stage:
            self._begin(step)
            return False
        return any(verdicts)

    def stage_bounds(self, step: int, steps: int) -> tuple[int, int]:
        """From which step to which the stage lasts that is in charge of a step, in a run of so many."""
        return (0, min(self.until, steps)) if step < self.until else (self.until, steps)

    @property
    def current(self) -> Method:
        """The stage that it is in."""
        return self.then if self.stage else self.first

    def at(self, step: int) -> Method:
        """The stage in charge of a step; entering the second carries over what it takes from the first."""
        if step >= self.until and not self.stage:
            for part in self.carry:
                of_first, of_then = self._both(part)
                of_then.load_state_dict(of_first.state_dict())
            self.stage.fill_(True)
        return self.current

    @property
    def final(self) -> Method:
        """The stage that it ends in."""
        return self.then

    @property
    def model(self) -> LatentModel:
        """The model of the stage that it is in."""
        return self.current.model

    @property
    def players(self) -> list[Player]:
        """Those of the stage that it is in."""
        return self.current.players

    @property
    def groups(self) -> dict[str, Group]:
        """Those of the stage that it is in."""
        return self.current.groups

    @property
    def owned(self) -> dict[str, list[nn.Parameter]]:
        """The parameters of each group."""
        return self.current.owned

    @property
    def watches(self) -> list[Watch]:
        """Those of the stage that it is in."""
        return self.current.watches

    @property
    def coupled(self) -> list[Term | nn.Module]:
        """What couples the examples of a batch in either stage."""
        return self.first.coupled + self.then.coupled

    @property
    def couples(self) -> bool:
        """Whether either stage couples the examples of a batch."""
        return bool(self.coupled)

    def prepare(self, optimiser: MakeOptimiser, clip: float = 0.0, average: float = 0.0) -> None:
        """Makes the optimisers of both."""
        self.first.prepare(optimiser, clip, average)
        self.then.prepare(optimiser, clip, average)

    def watch(self, watch: Watch) -> None:
        """One more watch, on the second stage."""
        self.then.watch(watch)

    def state(self) -> dict[str, Tensor]:
        """The whole run: the stage, and the state of both."""
        both = {f"{name}.{k}": v for name in STAGES for k, v in getattr(self, name).state().items()}
        return {"stage": self.stage.clone(), **both}

    def restore(self, state: dict[str, Tensor]) -> None:
        """The inverse of `state`."""
        self.stage.copy_(state["stage"])
        for name in STAGES:
            getattr(self, name).restore({k.removeprefix(f"{name}."): v for k, v in state.items() if k.startswith(name)})
        for step in (watch.over for watch in self.first.watches if watch.over):
            self._begin(step)


def model_state(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """What a checkpoint holds of the model: of the present stage, where there are two, and averaged, where an average is."""
    stage = f"{STAGES[int(state['stage'])]}." if "stage" in state else ""
    model, average = (
        {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
        for prefix in (f"{stage}model.", f"{stage}average.weights.")
    )
    return {k.replace("/", "."): v for k, v in average.items()} or model


def learnt(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """What a checkpoint holds of a method but for what its optimisers remember; averaged, where an average is."""
    found = {k: v for k, v in state.items() if not re.match(rf"({_STAGE})?(optimiser/|average\.)", k)}
    for name, tensor in state.items():
        if average := AVERAGE.fullmatch(name):
            found[f"{average[1] or ''}model.{average[2].replace('/', '.')}"] = tensor
    return found


Trainable = Method | Stages
