"""VAE: any method as a scikit-learn transformer."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from elboroom.core.problem import Problem
from elboroom.runs.lifecycle import load, train


class VAE(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """`VAE("beta-vae", beta=4).fit(X).transform(X)`: rows of real features to codes.

    X is (n, D), with a Gaussian likelihood of unit sigma on columns that are brought to mean 0 and deviation 1 first
    (`standardise`). Every option of the method, of the model and of training is a keyword. A batch larger than the data
    is clipped to it.
    """

    def __init__(self, method: str = "vae", *, latent: int = 2, steps: int = 1000, batch_size: int = 64, lr: float = 1e-3,
                 standardise: bool = True, random_state: Any = 0, **options: Any) -> None:  # fmt: skip
        self.method, self.latent, self.steps, self.batch_size, self.lr = method, latent, steps, batch_size, lr
        self.standardise, self.random_state = standardise, random_state
        self.__dict__.update(options)

    def _options(self) -> dict[str, Any]:
        """The options of the method: what was set and is neither a named parameter nor fitted."""
        return {
            k: v for k, v in vars(self).items() if not (k.endswith("_") or k[0] == "_" or k in self._get_param_names())
        }

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters, the method's own options among them."""
        return {**super().get_params(deep), **self._options()}

    def set_params(self, **params: Any) -> VAE:
        """Sets parameters; what is not named in the signature is an option of the method."""
        self.__dict__.update(params)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X: Any, y: Any = None) -> VAE:
        """Trains on the rows of X."""
        raw = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        scale = raw.std(0)
        self.mean_ = raw.mean(0) if self.standardise else np.zeros(raw.shape[1])
        varies = scale > 10 * np.finfo(np.float64).eps * np.abs(raw).max(0)  # a constant column has rounding, no scale
        self.scale_ = np.where(varies, scale, 1.0) if self.standardise else np.ones(raw.shape[1])
        values = ((raw - self.mean_) / self.scale_).astype(np.float32)
        with tempfile.TemporaryDirectory() as folder:
            run = train(
                self.method,
                values,
                Path(folder) / "run",
                latent=self.latent,
                steps=self.steps,
                lr=self.lr,
                batch_size=min(self.batch_size, len(values)),
                **({"holdout": 0, "seed": self._seed()} | self._options()),
            )
            self.run_ = load(run.folder)
        self.run_.model.double()  # so that a row's code does not depend on the rows beside it
        self._n_features_out = self.latent
        return self

    def transform(self, X: Any) -> NDArray[np.floating[Any]]:
        """The means of q(z|x), (n, latent), in the precision of X."""
        check_is_fitted(self)
        values = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        return self.run_.encode((values - self.mean_) / self.scale_).astype(values.dtype)

    def inverse_transform(self, Z: Any) -> NDArray[np.floating[Any]]:
        """The means of p(x|z), (n, D)."""
        check_is_fitted(self)
        return np.asarray(self.run_.decode(Z) * self.scale_ + self.mean_)

    def _seed(self) -> int:
        if self.random_state is None:
            return int(np.random.default_rng().integers(2**31))
        if isinstance(self.random_state, np.random.RandomState):
            return int(self.random_state.randint(2**31 - 1))
        if not isinstance(self.random_state, int | np.integer) or self.random_state < 0:
            raise Problem(f"random_state is a number of at least 0, not {self.random_state!r}")
        return int(self.random_state)
