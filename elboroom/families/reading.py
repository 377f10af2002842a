"""Posteriors that read something other than their batch as it comes: without its labels, or its context in place of x."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

from torch import nn

from elboroom.core.batch import Batch


class Reading(nn.Module, ABC):
    """q(z|x) of a posterior that is shown what `seen` makes of a batch."""

    def __init__(self, posterior: nn.Module) -> None:
        super().__init__()
        self.posterior = posterior

    @property
    def family(self) -> Any:
        """The family of the posterior."""
        return self.posterior.family

    @abstractmethod
    def seen(self, batch: Batch) -> Batch:
        """What the posterior is shown."""

    def forward(self, batch: Batch) -> Any:
        return self.posterior(self.seen(batch))


class Blind(Reading):
    """q(z|x) that is not told the labels that the decoder is given, so that these may be others."""

    def seen(self, batch: Batch) -> Batch:
        """The batch without its labels."""
        return replace(batch, u=None)


class OfContext(Reading):
    """q(z|context) of a posterior that reads sentences."""

    def seen(self, batch: Batch) -> Batch:
        """The context in place of x."""
        return batch.instead("context")
