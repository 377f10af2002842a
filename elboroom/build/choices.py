"""Choices: the options of the model that every method has. Neither torch nor any net is imported for them."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from elboroom.core.problem import Problem

if TYPE_CHECKING:
    from elboroom.data.dataset import Kind

NETS = ("burgess", "locatello", "locatello-4x4", "mlp-300", "mlp-300-300", "mlp-1200", "gated-300-300")
GAUSSIAN = ("gaussian", "gaussian-learned", "gaussian-optimal", "gaussian-per-pixel")  # likelihoods
TEXT_NETS = ("lstm", "bilstm", "gru", "bigru", "transformer", "dilated")
INJECTIONS = ("state+concat", "state", "concat", "add", "state+add", "memory", "prefix", "memory+add", "prefix+add")
POSTERIORS = (
    "gaussian",
    "point",
    "iaf",
    "nsf",
    "vmf",
    "power-spherical",
    "implicit",
    "implicit-linear",
    "wrapped",
    "wrapped-implicit",
    "wrapped-linear",
)
PRIORS = ("normal", "anisotropic", "student", "clustered", "sparse", "wrapped", "sphere", "ar1", "mog", "vamp", "flow")

DEFAULT_TRUNK: Literal["c"] = "c"  # of nets of text


def default_latent(kind: Kind) -> int:
    """The dimensions of z, unless said."""
    return 32 if kind == "tokens" else 10


class Choices(BaseModel):
    """The options of the model that every method has."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    latent: int | None = Field(None, ge=1, description="latent dimensions; 10 for images and vectors, 32 for text")
    net: str = Field(
        "auto",
        description=f"{', '.join(NETS)}, each also with +linear, a linear map beside it; for text {', '.join(TEXT_NETS)}; "
        "auto is burgess, mlp-300 for vectors, lstm for text",
    )
    posterior: str = Field("auto", description=f"q(z|x): auto (the default of the method) or {', '.join(POSTERIORS)}")
    prior: str = Field(
        "auto", description=f"p(z): auto (the default of the method) or {', '.join(PRIORS)}", examples=["sparse"]
    )
    flow_steps: int = Field(4, ge=1, description="autoregressive steps of --posterior iaf and nsf")
    flow_layers: int = Field(6, ge=1, description="couplings of --prior flow")
    components: int = Field(10, ge=1, description="Gaussians of --prior mog")
    pseudo_inputs: int | None = Field(
        None,
        ge=1,
        description="components of --prior vamp; 500 for images and vectors, 100 for text, and 500 for apo-vae-vamp",
        examples=[200],
    )
    ar1_alpha: float = Field(
        0.5, ge=0, lt=1, description="correlation of a step of --prior ar1 with the one before", examples=[0.9]
    )
    ar1_channels: int = Field(1, ge=1, description="chains of --prior ar1, side by side")
    kappa: float = Field(
        35.0, gt=0, le=1e6, description="concentration of --posterior vmf and power-spherical", examples=[13.0]
    )
    kappa_learned: bool = Field(False, description="whether kappa is predicted from x, starting near --kappa")
    prior_sigma: float = Field(1.0, gt=0, description="standard deviation of --prior normal", examples=[2.0])
    clusters: int = Field(
        4,
        ge=1,
        description="Gaussians of --prior clustered, even on the unit circle of the first two axes",
        examples=[6],
    )
    cluster_variance: float = Field(0.03, gt=0, description="variance of each of them")
    sparse_share: float = Field(0.8, ge=0, lt=1, description="share of dimensions near zero for --prior sparse")
    sparse_sigma: float = Field(0.05, gt=0, description="standard deviation of those dimensions")
    variances_learned: bool = Field(
        False, description="whether the variances of --prior anisotropic and student are learned"
    )
    curvature: float = Field(
        1.0, gt=0, description="c of the ball of --posterior wrapped and the like: curvature -c, radius 1/sqrt(c)"
    )
    curvature_learned: bool = Field(False, description="whether c is learned")
    likelihood: Literal[
        "auto", "bernoulli", "gaussian", "gaussian-learned", "gaussian-optimal", "gaussian-per-pixel", "logistic"
    ] = Field(
        "auto",
        description="p(x|z); bernoulli for black and white images, else gaussian-optimal; auto is what it was before: "
        "bernoulli for bytes too, gaussian for reals",
    )
    sigma: float = Field(
        1.0, gt=0, description="standard deviation of the gaussian likelihood (initial value, if learned)"
    )
    standardise: bool = Field(
        False,
        description="whether nets work in units of the training data's mean and width, kept in the model; nats, and what is "
        "decoded, are of the data as it came",
    )
    trunk: Literal["a", "b", "c"] | None = Field(
        None, description="how nets of text begin and read: a or b as published, c as measured; c, and a for sgd"
    )
    embed: int = Field(256, ge=1, description="size of the word embeddings, for text")
    hidden: int = Field(256, ge=1, description="size of the recurrent states, for text")
    layers: int | None = Field(
        None, ge=1, description="layers of the decoder of text; 1, for a transformer 3, dilated 5"
    )
    dropout: float | None = Field(
        None,
        ge=0,
        lt=1,
        description="dropout on inputs and outputs of the decoder of text; 0.5, transformer 0.2, autoencoders 0.1",
    )
    word_dropout: float = Field(
        0.0, ge=0, lt=1, description="share of the decoder's input words hidden (word dropout), for text"
    )
    inject: str = Field("auto", description=f"how z enters the decoder of text: auto, {', '.join(INJECTIONS)}")
    attention: Literal["auto", "none", "dot", "additive"] = Field(
        "auto", description="how the decoder of text looks at the words of a context; auto: by dot in seq2seq, else not"
    )
    given: str = Field(
        "",
        description="what to condition on, labels or context: encoder, decoder, and a normal or wrapped p(z), e.g. shape,scale",
    )
    init: Literal["kaiming", "small", "principal", "glorot", "torch"] = Field(
        "kaiming",
        description="initialisation of the nets; small begins with codes near the prior, principal as probabilistic PCA",
    )

    @field_validator("posterior", "prior")
    @classmethod
    def _known(cls, name: str, info: ValidationInfo) -> str:
        names = ("auto", *(POSTERIORS if info.field_name == "posterior" else PRIORS))
        if name not in names:
            raise ValueError(f"is none of {', '.join(names)}")
        return name

    def for_kind(self, kind: Kind, optimiser: str = "adam") -> Choices:
        """The same with the defaults that depend on the kind of data and, for text, on the optimiser."""
        trunk = self.trunk or (None if kind != "tokens" else "a" if optimiser == "sgd" else DEFAULT_TRUNK)
        return self.model_copy(update={"latent": self.latent or default_latent(kind), "trunk": trunk})

    @property
    def given_names(self) -> tuple[str, ...]:
        """The names in `given`."""
        return tuple(name.strip() for name in self.given.split(",") if name.strip())

    def refuse_unused(self, used: Collection[str], kind: Kind, optimiser: str = "adam") -> None:
        """Refuses an option that was set to something else than its default and that nothing of the model uses."""
        default = Choices().for_kind(kind, optimiser)
        for name in Choices.model_fields:
            value = getattr(self, name)
            if name not in used and value != getattr(default, name):
                flag = "--" + name.replace("_", "-") + ("" if isinstance(value, bool) else f" {value}")
                raise Problem(f"{flag} has no effect here; remove it")
