"""How a model takes images that it was not made for: flipped pixels, an unseen shape, the inverted image."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elboroom.core.batch import Batch
from elboroom.core.draw import Draw
from elboroom.core.kl import has_density, per_example, variances
from elboroom.core.model import LatentModel
from elboroom.core.problem import Problem
from elboroom.evaluate.registry import Quantity, family, named
from elboroom.evaluate.result import Result

if TYPE_CHECKING:
    from elboroom.evaluate.subject import Subject

FLIPS = (0.001, 0.01, 0.05)
GIVES = {
    "drift-*": Quantity("Drift of codes, * of pixels flipped", "low"),
    "overlap-*": Quantity("Overlap of images, * of pixels flipped", "high"),
}


def flipped(x: Tensor, share: float, seed: int = 0) -> Tensor:
    """x with each pixel replaced by 1 - x with probability `share`."""
    if not 0 <= share <= 1:
        raise Problem(f"the share of flipped pixels must be between 0 and 1, not {share:g}")
    mask = torch.rand(x.shape, generator=torch.Generator().manual_seed(seed)) < share
    return torch.where(mask.to(x.device), 1 - x, x)


def triangle(shape: tuple[int, ...]) -> Tensor:
    """A filled triangle in the middle, a shape that sprites do not have, (1, C, H, W)."""
    channels, high, wide = shape
    row = torch.arange(high).unsqueeze(1) + 0.5
    column = torch.arange(wide).unsqueeze(0) + 0.5
    top, bottom = 0.35 * high, 0.62 * high
    inside = (row >= top) & (row <= bottom) & ((column - wide / 2).abs() <= 0.55 * (row - top))
    return inside.float().expand(1, channels, high, wide)


@dataclass(frozen=True)
class Response:
    """What a model makes of disturbed images."""

    x: NDArray[np.float32]  # (n, C, H, W)
    reconstruction: NDArray[np.float32]  # (n, C, H, W)
    drift: float | None  # mean |mu(x') - mu(x)|, in standard deviations of the prior
    overlap: float | None  # mean intersection over union of the reconstruction and the clean image
    rank: float | None  # share of the data whose ELBO is lower than that of the disturbed image


@torch.inference_mode()
def respond(
    model: LatentModel, disturbed: Batch, clean: Batch | None = None, elbos: NDArray[np.float64] | None = None
) -> Response:
    """The reconstruction of disturbed images, beside that of the clean ones and the ELBOs of the data where they are given."""
    q = model.q(disturbed)
    made = model.px(q.mean.unsqueeze(0), disturbed).mean[0]
    drift = overlap = rank = None
    if clean is not None:
        moved = q.mean - model.q(clean).mean
        drift = float((moved / variances(model.p(clean), moved).sqrt()).norm(dim=1).mean())
        a, b = made > 0.5, clean.x > 0.5
        union = (a | b).flatten(1).sum(1)
        overlap = float(((a & b).flatten(1).sum(1) / union.clamp_min(1)).mean())
    if elbos is not None and has_density(model.families[0]):
        own = elbo_per_example(model, disturbed)
        rank = float(np.mean([(elbos < value).mean() for value in own]))
    return Response(disturbed.x.numpy(), made.numpy(), drift, overlap, rank)


@torch.inference_mode()
def elbo_per_example(model: LatentModel, batch: Batch) -> NDArray[np.float64]:
    """-(nll + kl) of one sample for each example."""
    draw = Draw(model, batch)
    return -(draw.nll[0] + per_example(draw.rate)).double().numpy()


def noise(model: LatentModel, clean: Batch, shares: tuple[float, ...] = FLIPS) -> dict[float, Response]:
    """The response to each share of flipped pixels."""
    return {share: respond(model, replace(clean, x=flipped(clean.x, share)), clean) for share in shares}


@family("flips", "split", GIVES, by_name=True)
def flips(subject: Subject) -> dict[str, Result]:
    """How far codes move and what is left of the image when pixels are flipped."""
    found, batch, about = {}, subject.run.examples(256), subject.run.data.about
    responses = noise(subject.run.model, batch) if about.kind == "pixels" and about.levels else {}
    for share in FLIPS:
        settings = {"n": len(batch.x), "share": share, "seed": 0}
        for name, unit, value in (
            ("drift", "sd of p(z)", responses[share].drift if responses else None),
            ("overlap", "IoU", responses[share].overlap if responses else None),
        ):
            reason = "" if value is not None else "pixels can be flipped only in images with values in [0, 1]"
            found[f"{name}-{share:g}"] = Result(value, "flips", unit, settings, reason=reason)
    return named(found)


def domain_shift(model: LatentModel, clean: Batch, elbos: NDArray[np.float64]) -> dict[str, Response]:
    """The response to an unseen triangle and to inverted images."""
    one = replace(clean, x=triangle(tuple(clean.x.shape[1:])), u=None if clean.u is None else clean.u[:1])
    inverted = replace(clean, x=1 - clean.x)
    return {"triangle": respond(model, one, None, elbos), "inverted": respond(model, inverted, clean, elbos)}
