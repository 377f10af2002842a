"""Fit: the options of training that every method has."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from elboroom.core.problem import Problem
from elboroom.data.dataset import Kind


class Fit(BaseModel):
    """How long, how fast, on what."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    steps: int = Field(20_000, ge=1, description="optimiser steps")
    epochs: float = Field(0.0, ge=0, description="passes over the training data; if given, it sets the steps")
    batch_size: int = Field(64, ge=1, description="examples in a step, over all devices")
    lr: float | None = Field(
        None, gt=0, description="learning rate of Adam; 5e-4 for images and vectors, 1e-3 for text"
    )
    batches: Literal["auto", "buckets", "mixed", "constant"] = Field(
        "auto",
        description="sentences in a batch: of similar length, of any, or of one; auto is buckets, or mixed where the "
        "loss couples the examples of a batch",
    )
    clip: float = Field(0.0, ge=0, description="largest norm of the gradient; 0 is no limit")
    seed: int = Field(0, ge=0, description="of initial weights, batches and noise")
    log_every: int = Field(50, ge=1, description="steps between two lines of the log")
    checkpoint_every: int = Field(1000, ge=1, description="steps between two checkpoints")
    patience: int = Field(
        0, ge=0, description="looks at held-out data without a better ELBO before the end; 0 trains on"
    )
    look_every: int = Field(0, ge=0, description="steps between two such looks; 0 is a twentieth of the run")
    holdout: float | None = Field(
        None, ge=0, lt=1, description="share of the data held out as test split, where the data has none"
    )
    threads: int = Field(0, ge=0, description="CPU threads; 0 is as many as torch takes")
    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="where to train")
    devices: int = Field(1, ge=1, description="how many devices share the batch")
    precision: Literal["32-true", "bf16-mixed"] = Field("32-true", description="arithmetic of the nets")

    def order(self, kind: Kind, couples: bool = False) -> Literal["mixed", "buckets", "constant"]:
        """How batches of a kind of data are put together."""
        if kind != "tokens":
            if self.batches not in ("auto", "mixed"):
                raise Problem(f"--batches {self.batches} is for text")
            return "mixed"
        if self.batches == "auto":
            return "mixed" if couples else "buckets"
        if couples and self.batches != "mixed":
            raise Problem(
                f"--batches {self.batches}: this loss couples the examples of a batch, which should then be of any "
                "length: use --batches mixed"
            )
        return self.batches

    def for_kind(self, kind: Kind) -> Fit:
        """The same with the defaults that depend on the kind of data."""
        return self.model_copy(update={"lr": self.lr or (1e-3 if kind == "tokens" else 5e-4)})
