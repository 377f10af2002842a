"""Fit: the options of training that every method has."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Fit(BaseModel):
    """How long, how fast, on what."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    steps: int = Field(20_000, ge=1, description="optimiser steps")
    epochs: float = Field(0, ge=0, description="passes over the training data; if given, it sets the steps")
    batch_size: int = Field(64, ge=1, description="examples in a step, over all devices")
    lr: float = Field(5e-4, gt=0, description="learning rate of Adam")
    clip: float = Field(0, ge=0, description="largest norm of the gradient; 0 is no limit")
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
