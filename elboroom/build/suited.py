"""Suited: the options that a run takes where nothing was said; docs/defaults.md has the measurements.

They are written into the spec of a run as if they had been said, so that what a run is made from does not change when
these do. dSprites keep the pace of the papers on disentanglement.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from elboroom.build.choices import DEFAULT_TRUNK, GAUSSIAN
from elboroom.data.dataset import About

FLAT = 40 * 40  # values of an image up to which a fully connected net learns more in the same time
FEW = 1_000  # examples below which batches are halved, for the sake of more steps
EPOCHS, LEAST = 50, 400  # of a run, and its fewest steps
MOST = 20_000  # steps of images and vectors
TEXT_EPOCHS, TEXT_LEAST, TEXT_MOST = 5, 3_000, 6_000  # the same of text: three to five minutes of two cores
TEXT_BATCH, TEXT_LR, TEXT_LR_END = 32, 3e-3, 0.05  # of text, as Fit.for_kind has them
COPY_DROPOUT = 0.1  # of an autoencoder of text: its decoder reads from the code what a language model guesses
LINEAR = "+linear"
OF_PAPERS = ("dsprites",)  # data whose runs are compared with those of papers
FULL = {"net": "mlp-300-300", "init": "small"}  # of small images that are black and white
NAMES = ("likelihood", "standardise", "net", "init", "trunk", "dropout", "batch_size", "steps", "lr", "decay", "lr_end")


def suited(about: About, said: Mapping[str, Any], autoencoder: bool = False) -> dict[str, Any]:
    """Options for data like this, those that were said left out; `said` has the method's own options too."""
    if about.kind == "tokens":
        return _of_text(about, said, autoencoder)
    flat = about.kind == "vectors" or prod(about.shape) <= FLAT
    if about.name in OF_PAPERS:
        return {}
    black = FULL if flat else {"init": FULL["init"]}  # and white, of which the Bernoulli has no sigma
    options = (black if about.levels == 2 else _with_sigma(said, flat)) | _pace(about, said, flat)
    return {name: value for name, value in options.items() if name not in said}


def _with_sigma(said: Mapping[str, Any], flat: bool) -> dict[str, Any]:
    """A Gaussian that learns its sigma, data standardised for it, and a net that begins as PCA."""
    squared = said.get("reconstruction") == "squared"  # a squared error cannot learn a sigma
    units = "sigma" not in said  # a sigma that is said is fixed, and in the units of the data
    likelihood = said.get("likelihood", "gaussian-optimal" if units and not squared else "gaussian")
    standardise = said.get("standardise", units and likelihood in GAUSSIAN)
    net = said.get("net", f"mlp-300-300{LINEAR}" if flat else f"burgess{LINEAR}")
    init = "principal" if standardise and net.endswith(LINEAR) else "small"
    return {"likelihood": likelihood, "standardise": standardise, "net": net, "init": init}


def _pace(about: About, said: Mapping[str, Any], flat: bool) -> dict[str, Any]:
    """Batch, length and learning rate of images and vectors."""
    asked = said.get("batch_size")  # 0 is the default, and what is no number is refused later
    batch = min(asked if isinstance(asked, int) and asked else 64 if about.n >= FEW else 32, about.n)
    steps = min(MOST if flat else 6_000, max(LEAST, round(EPOCHS * about.n / batch)))
    rate = {"lr": 1e-3 if flat or about.levels == 2 else 5e-4, "decay": "cosine", "lr_end": 0.01}
    own = bool({"lr", "decay", "optimiser"} & said.keys())  # a pace of one's own
    return {"batch_size": batch} | ({} if "epochs" in said else {"steps": steps}) | ({} if own else rate)


def _of_text(about: About, said: Mapping[str, Any], autoencoder: bool) -> dict[str, Any]:
    """Options for text; sgd has no usual pace, and the trunk that is published with it."""
    steps = min(TEXT_MOST, max(TEXT_LEAST, round(TEXT_EPOCHS * about.n / (said.get("batch_size") or TEXT_BATCH))))
    ends = {"steps", "epochs", "patience"} & said.keys() or said.get("decay") == "plateau"  # otherwise
    by_adam, fades = said.get("optimiser") != "sgd", not {"decay", "lr_end"} & said.keys()
    options = (
        ({"trunk": DEFAULT_TRUNK} if by_adam else {})
        | ({"dropout": COPY_DROPOUT} if autoencoder else {})
        | {"batch_size": TEXT_BATCH}
        | ({} if ends else {"steps": steps})
        | ({"lr": TEXT_LR} if by_adam else {})
        | ({"decay": "cosine", "lr_end": TEXT_LR_END} if by_adam and fades else {})
    )
    return {name: value for name, value in options.items() if name not in said}
