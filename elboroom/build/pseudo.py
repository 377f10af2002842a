"""Where pseudo-inputs start: at training examples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from elboroom.core.problem import Problem
from elboroom.core.vocabulary import END, PAD
from elboroom.families.pseudo import PseudoImages, PseudoInputs, PseudoSentences

if TYPE_CHECKING:
    from elboroom.build.parts import Parts

LONGEST = 40  # tokens of a pseudo-input


def pseudo_inputs(parts: Parts, net: nn.Module, count: int | None = None) -> PseudoInputs:
    """K training examples: pixels kept in [0, 1], sentences as the word vectors that the net has for them.

    Where the data is not at hand (a checkpoint has them) they are noise. Neither takes from the noise of the weights.
    """
    if parts.context is not None:
        raise Problem(
            "pseudo-inputs have no context to be read with; use --prior mog or flow, or remove --given context"
        )
    tokens = parts.about.kind == "tokens"
    count = count or (100 if tokens else 500)
    u: Tensor | None = torch.zeros(count, parts.given) if parts.given else None
    x = None
    if parts.data is not None:
        train = parts.data.splits["train"]
        more = np.random.default_rng(0).choice(train, count % len(train), replace=False)
        rows = np.concatenate([*[train] * (count // len(train)), more])  # every row before any copy
        x, u = parts.data.x(rows), parts.data.u(rows, parts.choices.given_names) if parts.given else None
    if tokens:
        return _sentences(parts, net, count, x, u)
    if x is None:
        x = torch.rand(count, *parts.about.shape, generator=torch.Generator().manual_seed(0))
    return PseudoImages(x, u) if parts.about.kind == "pixels" else PseudoInputs(x, u)


def _sentences(parts: Parts, net: nn.Module, count: int, x: Tensor | None, u: Tensor | None) -> PseudoSentences:
    """Of L words at most, which does not depend on which sentences were drawn."""
    if not (hasattr(net, "embed") and hasattr(net, "read")):
        raise Problem("--prior vamp uses word embeddings; your own encoder needs `embed` and `read` for them")
    longest = min(parts.about.shape[0] + 1, LONGEST)
    if x is None:
        noise = torch.Generator().manual_seed(0)
        x = torch.randint(END + 1, parts.about.levels, (count, longest), generator=noise)
    ids = torch.full((count, longest), PAD)
    ids[:, : x.shape[1]] = x[:, :longest]
    lengths = (ids != PAD).sum(1)
    cut = (x != PAD).sum(1) > lengths
    ids[cut, -1] = END  # what is too long ends there
    width = net.embed(ids[:1]).shape[-1]  # type: ignore[operator]
    return PseudoSentences(ids, lengths, width, u)
