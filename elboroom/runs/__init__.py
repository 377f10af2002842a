"""Runs: a trained model with its folder, how it is trained, resumed and loaded, and how it is measured."""

from elboroom.runs.lifecycle import load, resume, train
from elboroom.runs.run import Run

__all__ = ["Run", "load", "resume", "train"]
