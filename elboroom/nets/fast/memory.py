"""The processor and its memory, told what a training step likes."""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache

import torch

_TRIM, _TOP_PAD, _MMAP = -1, -2, -3  # the parameters of mallopt, from malloc.h
_OWN = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_", "MALLOC_MMAP_THRESHOLD_", "LD_PRELOAD")


@cache
def keep_memory() -> bool:
    """Whether glibc was told to hold on to what a step frees.

    By default it gives large blocks back to the system, and the next step pays for every page again: thousands of page
    faults, up to a third of a convolutional step. Where the environment chooses an allocator or its settings, those stay.
    """
    if sys.platform != "linux" or any(name in os.environ for name in _OWN):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return all([mallopt(_MMAP, 32 << 20), mallopt(_TRIM, 1 << 30), mallopt(_TOP_PAD, 64 << 20)])


def flush_denormals() -> bool:
    """Whether the processor was told to take numbers next to zero (below 1e-38 in float32) for zero.

    Saturated pixels and dead units fill the gradients of a trained net with them, and each one costs a hundred cycles: a
    step of beta-VAE on dSprites took 134 ms with them and 60 ms without. Threads inherit the setting when they start.
    """
    return torch.set_flush_denormal(True)
