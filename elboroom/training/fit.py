"""Fit: the options of training that every method has."""

from __future__ import annotations

import math
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from elboroom.core.method import adam
from elboroom.core.optimiser import MakeOptimiser, adamw, sgd
from elboroom.core.problem import Problem
from elboroom.data.dataset import Kind

MANY = 10**12  # steps: a century at a thousand in a second


class Fit(BaseModel):
    """How long, how fast, on what."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    steps: int = Field(
        20_000,
        ge=1,
        le=MANY,
        description="optimiser steps; 50 epochs of images and vectors, at most 20,000; 5 of text, at least 3,000 and at most "
        "6,000; 20,000 of dsprites",
    )
    epochs: float = Field(0.0, ge=0, le=MANY, description="passes over the training data; if given, it sets the steps")
    batch_size: int = Field(
        0,
        ge=0,
        description="examples in a step, over all devices; 0 is 32 for text, and for few images or vectors, else 64",
    )
    lr: float | None = Field(
        None,
        gt=0,
        description="learning rate; 3e-3 for text, 1e-3 for vectors and small or black and white images, else 5e-4; to "
        "be said for sgd",
    )
    optimiser: Literal["adam", "adamw", "sgd"] = Field("adam", description="of all groups without one of their own")
    momentum: float = Field(0.0, ge=0, lt=1, description="of sgd")
    weight_decay: float | None = Field(None, ge=0, description="of adamw, 0.01 there if not said, and sgd")
    decay: Literal["auto", "none", "cosine", "linear", "plateau"] = Field(
        "auto",
        description="of the learning rate: over the run, or halved when the held-out ELBO stays; auto is cosine for text under "
        "adam and adamw, and for images and vectors unless --lr or --optimiser is said; else none, as of dsprites",
    )
    warmup_steps: int = Field(0, ge=0, description="steps over which the learning rate rises from 0")
    lr_end: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="share of the learning rate that cosine and linear end at; if decay is not said, 0.01, of text 0.05",
    )
    decay_patience: int | None = Field(
        None, ge=1, description="of plateau: looks without a better ELBO before a halving; 2 if not said"
    )
    decay_times: int | None = Field(None, ge=1, description="of plateau: halvings before the end; 5 if not said")
    decay_from: int = Field(0, ge=0, description="of plateau: the first look that may halve")
    accumulate: int = Field(1, ge=1, description="parts in which a batch is taken, to save memory")
    average: float = Field(
        0.0, ge=0, lt=1, description="decay of a moving average of the weights, which is what is evaluated; 0 is none"
    )
    batches: Literal["auto", "buckets", "mixed", "constant"] = Field(
        "auto",
        description="sentences in a batch: of similar length, of any, or of one; auto is buckets, or mixed where the "
        "loss couples the examples of a batch",
    )
    clip: float = Field(0.0, ge=0, description="largest norm of the gradient; 0 is no limit")
    seed: int = Field(0, ge=0, lt=2**63, description="of initial weights, batches and noise")
    log_every: int = Field(50, ge=1, description="steps between two lines of the log")
    checkpoint_every: int = Field(1000, ge=1, description="steps between two checkpoints")
    patience: int = Field(
        0,
        ge=0,
        description="looks at held-out data without a better ELBO, or loss of a probe, before the end; 0 trains on",
    )
    look_every: int = Field(
        0, ge=0, description="steps between two such looks; 0 is a twentieth of the run, or, of plateau, an epoch"
    )
    holdout: float | None = Field(
        None, ge=0, lt=1, description="share of the data held out as test split, where the data has none"
    )
    threads: int = Field(0, ge=0, le=1024, description="CPU threads; 0 is as many as torch takes")
    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="where to train")
    devices: int = Field(1, ge=1, le=1024, description="how many devices share the batch")
    precision: Literal["32-true", "32-fast", "bf16-mixed"] = Field(
        "32-true",
        description="arithmetic of the nets; 32-fast: 32 bits, but what matrix products read is rounded to bf16 (TF32 on GPUs)",
    )

    @model_validator(mode="after")
    def _refuse_idle(self) -> Self:
        """What would have no effect, or two ends of one run."""
        plateau = self.decay == "plateau"
        idle = {
            "--momentum is for --optimiser sgd": self.momentum and self.optimiser != "sgd",
            "--weight-decay is for --optimiser adamw or sgd": self.weight_decay is not None
            and self.optimiser == "adam",
            "--lr-end is for --decay cosine or linear": self.lr_end and self.decay not in ("auto", "cosine", "linear"),
            "--decay-patience is for --decay plateau": self.decay_patience is not None and not plateau,
            "--decay-times is for --decay plateau": self.decay_times is not None and not plateau,
            "--decay-from is for --decay plateau": self.decay_from and not plateau,
            "--decay plateau ends the run by itself, so --patience is idle": plateau and self.patience,
        }
        for sentence, wrong in idle.items():
            if wrong:
                raise Problem(f"{sentence}; remove it")
        if self.optimiser == "sgd" and self.lr is None:
            raise Problem("--optimiser sgd has no default learning rate; set --lr (1 with --clip 5 is common for text)")
        return self

    @property
    def looks(self) -> bool:
        """Whether held-out data is looked at for the best weights."""
        return self.patience > 0 or self.decay == "plateau"

    @property
    def moves_rate(self) -> bool:
        """Whether the learning rate moves."""
        return self.decay != "none" or self.warmup_steps > 0

    def rate(self, step: int, of: int | None = None) -> float:
        """The learning rate of a step by warm-up, cosine and linear; beyond the end of the run it stays as it is there.

        of: how many steps fall along one curve, if not all of the run.
        """
        assert self.lr is not None
        if step < self.warmup_steps:
            return self.lr * (step + 1) / self.warmup_steps
        done = min(1.0, (step - self.warmup_steps) / max(1, (of or self.steps) - self.warmup_steps))
        left = {"cosine": (1 + math.cos(math.pi * done)) / 2, "linear": 1 - done}.get(self.decay, 1.0)
        return self.lr * (self.lr_end + (1 - self.lr_end) * left)

    def make_optimiser(self) -> MakeOptimiser:
        """The optimiser of all groups that have none of their own."""
        assert self.lr is not None
        if self.optimiser == "sgd":
            return sgd(self.lr, self.momentum, self.weight_decay or 0.0)
        if self.optimiser == "adamw":
            return adamw(self.lr, 0.01 if self.weight_decay is None else self.weight_decay)
        return adam(self.lr)

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
        text = kind == "tokens"
        chosen: dict[str, Any] = {
            "lr": self.lr or (3e-3 if text else 5e-4),
            "batch_size": self.batch_size or (32 if text else 64),
        }
        if self.decay == "auto":
            fades = text and self.optimiser != "sgd"
            if self.lr_end and not fades:
                raise Problem("--lr-end is for --decay cosine or linear; remove it")
            chosen |= {"decay": "cosine", "lr_end": self.lr_end or 0.05} if fades else {"decay": "none"}
        return self.model_copy(update=chosen)
