"""VAE: any method as a scikit-learn transformer."""

from __future__ import annotations

import tempfile
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from elboroom.build.choices import GAUSSIAN
from elboroom.build.registry import cards
from elboroom.core.problem import Problem
from elboroom.families.pixels import Normal
from elboroom.runs.lifecycle import load, train
from elboroom.training.spec import refuse_unknown


class VAE(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """`VAE("beta-vae", beta=4).fit(X).transform(X)`: rows of real features to codes.

    X is (n, D), with a Gaussian likelihood whose sigma is the best for the data, on columns that are brought to mean 0 and
    deviation 1 first (`standardise`), or images (n, H, W), (n, H, W, C), (n, C, H, W) as `elboroom.train` takes them: black
    and white ones with a Bernoulli likelihood. Only Gaussian likelihoods are standardised. Every option of the method, of the
    model and of training is a keyword. A batch larger than the data is clipped to it. `score` is the mean bound of log p(x) in
    nats: of a Gaussian likelihood a density of X in its own units, of others a probability.
    """

    def __init__(self, method: str = "vae", *, latent: int = 2, steps: int = 1000, batch_size: int = 64, lr: float = 1e-3,
                 standardise: bool = True, random_state: Any = 0, **options: Any) -> None:  # fmt: skip
        self.method, self.latent, self.steps, self.batch_size, self.lr = method, latent, steps, batch_size, lr
        self.standardise, self.random_state = standardise, random_state
        self._options = dict(options)  # of the method, the model and training, read and set as attributes

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_options"][name]
        except KeyError:
            raise AttributeError(f"'VAE' object has no attribute '{name}'") from None

    def __setattr__(self, name: str, value: Any) -> None:
        """What is neither named in the signature nor private nor fitted is an option."""
        if name.startswith("_") or name.endswith("_") or name in self._get_param_names():
            super().__setattr__(name, value)
        else:
            self._options[name] = value

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters, the method's own options among them."""
        return {**super().get_params(deep), **self._options}

    def set_params(self, **params: Any) -> VAE:
        """Sets parameters; what is not named in the signature must be an option of the method, the model or training."""
        method = params.get("method", self.method)
        if isinstance(method, str) and method in cards():  # if not, `fit` says so
            others = (name for name, p in signature(train).parameters.items() if p.kind is Parameter.KEYWORD_ONLY)
            refuse_unknown(method, params, [*self._get_param_names(), *others])
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X: Any, y: Any = None) -> VAE:
        """Trains on the rows of X."""
        images = len(getattr(X, "shape", ())) > 2
        raw = validate_data(self, X, dtype="numeric" if images else np.float64, ensure_min_samples=2, allow_nd=True)
        if images:
            return self._fit_images(raw)
        self._shape = raw.shape[1:]
        scale, scaled = raw.std(0), self.standardise and self._options.get("likelihood", "auto") in ("auto", *GAUSSIAN)
        self.mean_ = raw.mean(0) if scaled else np.zeros(raw.shape[1])
        varies = scale > 10 * np.finfo(np.float64).eps * np.abs(raw).max(0)  # a constant column has rounding, no scale
        self.scale_ = np.where(varies, scale, 1.0) if scaled else np.ones(raw.shape[1])
        return self._trained(((raw - self.mean_) / self.scale_).astype(np.float32))

    def _fit_images(self, images: NDArray[Any]) -> VAE:
        """Trains on images, which a Gaussian likelihood standardises inside the model; white is what `scale_` says."""
        self._shape, self.mean_ = images.shape[1:], np.zeros(())
        self._trained(images, **({} if self.standardise else {"standardise": False}))
        top = float(images.max()) / max(float(self.run_.data.x(np.arange(len(images))).max()), 1e-30)
        self.scale_ = np.asarray(float(round(top)) if images.max() > 1 else 1.0)
        return self

    def _trained(self, values: NDArray[Any], **options: Any) -> VAE:
        with tempfile.TemporaryDirectory() as folder:
            run = train(
                self.method,
                values,
                Path(folder) / "run",
                latent=self.latent,
                steps=self.steps,
                lr=self.lr,
                batch_size=min(self.batch_size, len(values)),
                **({"holdout": 0, "seed": self._seed()} | options | self._options),
            )
            self.run_ = load(run.folder, data=run.data)
        self.run_.model.double()  # so that a row's code does not depend on the rows beside it
        self._n_features_out = self.latent
        return self

    def transform(self, X: Any) -> NDArray[np.floating[Any]]:
        """The means of q(z|x), (n, latent), in the precision of X."""
        values = self._checked(X)
        return self.run_.encode((values - self.mean_) / self.scale_).astype(values.dtype)

    def inverse_transform(self, Z: Any) -> NDArray[np.floating[Any]]:
        """The means of p(x|z), in the units and the shape of X."""
        check_is_fitted(self)
        return self._as_given(self.run_.decode(Z))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> NDArray[np.floating[Any]]:
        """The means of p(x|z) for z of the prior, in the units and the shape of X."""
        check_is_fitted(self)
        return self._as_given(self.run_.sample(n_samples, seed=self._seed(random_state)))

    def score(self, X: Any, y: Any = None) -> float:
        """The mean importance-weighted bound of log p(x), in nats: the higher the better."""
        values = self._checked(X)
        bounds = self.run_.score_samples((values - self.mean_) / self.scale_)
        family: Any = self.run_.model.likelihood.family
        if not issubclass(family, Normal):  # a probability, which has no units
            return float(bounds.mean())
        size = int(np.prod(self._shape)) if self.scale_.ndim == 0 else 1  # one unit for all pixels
        return float(bounds.mean() - size * np.log(self.scale_).sum())

    def _checked(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self)
        return np.asarray(validate_data(self, X, dtype=[np.float64, np.float32], reset=False, allow_nd=len(self._shape) > 1))

    def _as_given(self, made: NDArray[Any]) -> NDArray[np.floating[Any]]:
        """What the model makes in the units and the layout of X: channels last, or none, where it had them so."""
        last = len(self._shape) == 3 and made.shape[1:] != self._shape
        return np.asarray((np.moveaxis(made, 1, -1) if last else made).reshape(-1, *self._shape) * self.scale_ + self.mean_)

    def _seed(self, said: Any = None) -> int:
        state = self.random_state if said is None else said
        if state is None:
            return int(np.random.default_rng().integers(2**31))
        if isinstance(state, np.random.RandomState):
            return int(state.randint(2**31 - 1))
        if not isinstance(state, int | np.integer) or state < 0:
            raise Problem(f"random_state is a number of at least 0, not {state!r}")
        return int(state)
