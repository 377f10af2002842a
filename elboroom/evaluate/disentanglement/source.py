"""Source: where the points of a metric come from, a full grid of factors or the rows that were observed."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal, get_args
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elboroom.core.problem import Problem, unknown
from elboroom.evaluate.disentanglement.factors import MOST, Factors, Floats, Ints, Kind, checked, checked_codes

Representation = Literal["mean", "sampled"]

CHUNK = 16  # points that the study draws at a time: part of the protocol, since it orders the draws
THRESHOLD = 0.05  # standard deviation from which a dimension counts as active
BLOCK = 1000  # votes drawn at a time, for memory


class Stream(np.random.RandomState):
    """A generator of draws, and one beside it for the noise of codes, so that noise moves no draw."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.noise = np.random.default_rng([seed, 1])


def stream(seed: int, metric: str, mode: str) -> Stream:
    """The generator of one metric: that of the study in its modes, elsewhere spawned from the seed and the name."""
    if mode.startswith("dlib"):
        return Stream(seed)
    return Stream(int(np.random.SeedSequence([seed, crc32(metric.encode())]).generate_state(1)[0]))


class Source(ABC):
    """Codes and factors by index. Indices are drawn first and codes gathered after, never one by one."""

    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    sizes: tuple[int, ...]
    dropped: tuple[str, ...]
    sampling: str
    nuisance: str = ""

    def __init__(self, mu: Floats, logvar: Floats | None, representation: str) -> None:
        if representation not in get_args(Representation):
            raise unknown("representation", representation, get_args(Representation))
        if representation == "sampled" and logvar is None:
            raise Problem("only the means of q(z|x) are given; use the representation 'mean'")
        if logvar is not None and logvar.shape != mu.shape:
            raise Problem(
                f"log-variances have shape {logvar.shape} but codes have shape {mu.shape}; they must be the same"
            )
        self.mu, self.logvar, self.representation = mu, logvar, representation  # (N, J)

    def __len__(self) -> int:
        return len(self.mu)

    @property
    def latent(self) -> int:
        """J, the number of dimensions."""
        return int(self.mu.shape[1])

    @property
    def settings(self) -> dict[str, Any]:
        """What every score that was measured here carries."""
        said = {
            "representation": self.representation,
            "sampling": self.sampling,
            "J": self.latent,
            "K": len(self.sizes),
        }
        said |= {"factors": list(self.names), "active": int(self.active.sum())}
        said |= {"dropped": list(self.dropped)} if self.dropped else {}
        return said | ({"nuisance": self.nuisance} if self.nuisance else {})

    @cached_property
    def active(self) -> NDArray[np.bool_]:
        """The dimensions whose means have a standard deviation of 0.05 or more, (J,)."""
        mean = np.mean(self.mu, 0, dtype=np.float64)
        square = np.zeros(self.latent)
        for at in range(0, len(self), 1 << 16):
            square += np.square(self.mu[at : at + (1 << 16)] - mean).sum(0)
        return np.asarray(np.sqrt(square / max(1, len(self) - 1)) >= THRESHOLD)

    @abstractmethod
    def represented(self, representation: str) -> Source:
        """The same points, seen by their means or by samples."""

    @abstractmethod
    def draw(self, rng: np.random.RandomState, n: int) -> Ints:
        """The index of n points, (n,)."""

    @abstractmethod
    def split(self, rng: np.random.RandomState, train: int, test: int) -> tuple[Ints, Ints]:
        """The index of points to fit on, then of points to test on."""

    @abstractmethod
    def factors_at(self, index: Ints) -> Ints:
        """The classes of the factors, (..., K)."""

    @abstractmethod
    def values_at(self, index: Ints) -> NDArray[np.float64]:
        """The factors as real values, (..., K)."""

    @abstractmethod
    def pairs(self, rng: np.random.RandomState, n: int, length: int) -> tuple[Ints, Ints, Ints]:
        """n batches of pairs that agree in one factor: which factor (n,), the two sides (n, length) each."""

    @abstractmethod
    def votes(self, rng: np.random.RandomState, n: int, length: int) -> tuple[Ints, Ints]:
        """n batches of points in which one factor is fixed: which factor (n,), the points (n, length)."""

    def require(self, need: str, metric: str, mode: str) -> None:
        """Refuses a metric for which these factors or codes do not do."""
        if need != "codes" and not self.sizes:
            raise Problem(f"{metric} compares codes with factors; no factors are given")
        if need == "density" and self.logvar is None:
            raise Problem(f"{metric} in mode '{mode}' needs the log-variances of q(z|x); none are given")

    def every(self) -> Ints:
        """The index of all points."""
        return np.arange(len(self))

    def batch(self, rng: np.random.RandomState, n: int) -> Ints:
        """The index of n points, drawn at once, (n,)."""
        return self.draw(rng, n)

    def points(self, rng: np.random.RandomState, n: int) -> tuple[Floats, Ints]:
        """n points: codes (n, J) and classes of their factors (n, K)."""
        index = self.draw(rng, n)
        return self.codes_at(index, rng), self.factors_at(index)

    def codes_at(self, index: Ints, rng: np.random.RandomState) -> Floats:
        """The codes at an index, (*index.shape, J); sampled ones have fresh noise at every occurrence."""
        mu = self.mu[index]
        if self.representation == "mean" or self.logvar is None:
            return np.asarray(mu)
        noise = rng.noise if isinstance(rng, Stream) else np.random.default_rng(rng.randint(2**31 - 1))
        kind: Any = np.float32 if mu.dtype == np.float32 else np.float64
        return np.asarray(mu + np.exp(self.logvar[index] / 2) * noise.standard_normal(mu.shape, dtype=kind))


class Grid(Source):
    """Every combination of K factors once, the last varying fastest: row = ravel_multi_index(factors, sizes).

    Draws are those of the study: for each factor in order one `randint(size, size=n)`.
    """

    sampling = "grid"

    def __init__(
        self,
        mu: ArrayLike,
        logvar: ArrayLike | None = None,
        sizes: Sequence[int] = (),
        names: Sequence[str] | None = None,
        representation: str = "mean",
        kinds: Sequence[Kind] | None = None,
        nuisance: str = "",
    ) -> None:
        table = checked_codes(mu)
        super().__init__(table, None if logvar is None else np.asarray(logvar), representation)
        if math.prod(sizes) != len(table):
            raise Problem(f"a grid of {' x '.join(map(str, sizes)) or 'no'} factors does not have {len(table):,} codes")
        names = [f"factor {k}" for k in range(len(sizes))] if names is None else list(names)
        kinds = ["ordinal"] * len(sizes) if kinds is None else list(kinds)
        if len(names) != len(sizes) or len(kinds) != len(sizes):
            raise Problem(f"there are {len(sizes)} factors but {len(names)} names and {len(kinds)} kinds")
        strides = np.cumprod([1, *reversed(sizes)])[:-1][::-1]
        kept = [k for k, size in enumerate(sizes) if size > 1]
        self.dropped = tuple(names[k] for k in range(len(sizes)) if k not in kept)
        if not kept:
            raise Problem(f"no factor varies: {', '.join(names) or 'there is none'}")
        for name in self.dropped:
            warnings.warn(f"factor '{name}' has a single value and is left out", stacklevel=2)
        self.sizes, self.names = tuple(int(sizes[k]) for k in kept), tuple(names[k] for k in kept)
        self.kinds, self.strides = tuple(kinds[k] for k in kept), strides[kept]  # (K,)
        self.nuisance = nuisance

    def represented(self, representation: str) -> Grid:
        """The same grid, seen by its means or by samples."""
        seen = Grid(self.mu, self.logvar, self.sizes, self.names, representation, self.kinds, self.nuisance)
        seen.dropped = self.dropped
        return seen

    def factors_at(self, index: Ints) -> Ints:
        """The classes of the factors, (..., K)."""
        return np.asarray(index[..., None] // self.strides % np.asarray(self.sizes))

    def values_at(self, index: Ints) -> NDArray[np.float64]:
        """The classes as real values, (..., K)."""
        return self.factors_at(index).astype(np.float64)

    def draw(self, rng: np.random.RandomState, n: int) -> Ints:
        """The index of n points, drawn 16 at a time, (n,)."""
        whole, rest = divmod(n, CHUNK)
        high = np.tile(np.repeat(self.sizes, CHUNK), whole)
        drawn = rng.randint(0, high).reshape(whole, len(self.sizes), CHUNK)
        index = np.einsum("ckl,k->cl", drawn, self.strides).reshape(-1)
        return np.concatenate([index, self.batch(rng, rest)]) if rest else index

    def batch(self, rng: np.random.RandomState, n: int) -> Ints:
        """The index of n points, drawn at once, (n,)."""
        return np.asarray(self.strides @ rng.randint(0, np.repeat(self.sizes, n)).reshape(-1, n))

    def split(self, rng: np.random.RandomState, train: int, test: int) -> tuple[Ints, Ints]:
        """The index of points to fit on, then of points to test on."""
        return self.draw(rng, train), self.draw(rng, test)

    def _blocks(self, rng: np.random.RandomState, n: int, length: int, sides: int) -> tuple[Ints, NDArray[np.int32]]:
        """n times: a factor, then `sides` batches of factors. One call draws what as many single calls would."""
        count = len(self.sizes)
        one = np.concatenate([[count], np.tile(np.repeat(self.sizes, length), sides)])
        labels, drawn = np.empty(n, np.int64), np.empty((n, sides, count, length), np.int32)
        for at in range(0, n, BLOCK):
            size = min(BLOCK, n - at)
            block = rng.randint(0, np.tile(one, size)).reshape(size, -1)
            labels[at : at + size] = block[:, 0]
            drawn[at : at + size] = block[:, 1:].reshape(size, sides, count, length)
        return labels, drawn

    def pairs(self, rng: np.random.RandomState, n: int, length: int) -> tuple[Ints, Ints, Ints]:
        """Two batches whose pairs agree in factor k."""
        labels, drawn = self._blocks(rng, n, length, 2)
        rows = np.arange(n)
        drawn[rows, 1, labels] = drawn[rows, 0, labels]
        first, second = (np.einsum("nkl,k->nl", drawn[:, side], self.strides) for side in (0, 1))
        return labels, first, second

    def votes(self, rng: np.random.RandomState, n: int, length: int) -> tuple[Ints, Ints]:
        """A batch that has factor k of its first entry."""
        labels, drawn = self._blocks(rng, n, length, 1)
        rows = np.arange(n)
        drawn[rows, 0, labels] = drawn[rows, 0, labels, :1]
        return labels, np.einsum("nkl,k->nl", drawn[:, 0], self.strides)


class Rows(Source):
    """Observed codes with their factors, no grid: values keep their frequencies, dependent factors stay dependent."""

    sampling = "observed"

    def __init__(
        self,
        codes: ArrayLike,
        factors: ArrayLike | Factors | None,
        kinds: Sequence[str] | None = None,
        names: Sequence[str] | None = None,
        logvar: ArrayLike | None = None,
        representation: str = "mean",
        allow_smaller: bool = False,
        factor_bins: int | None = None,
    ) -> None:
        if isinstance(factors, Factors):
            z, table = np.asarray(codes), factors
        else:
            z, table = checked(codes, factors, kinds, names, factor_bins)
        super().__init__(z, None if logvar is None else np.asarray(logvar), representation)
        self.factors, self.allow_smaller = table, allow_smaller
        self.names, self.kinds, self.sizes, self.dropped = table.names, table.kinds, table.sizes, table.dropped

    def represented(self, representation: str) -> Rows:
        """The same rows, seen by their means or by samples."""
        return Rows(self.mu, self.factors, None, None, self.logvar, representation, self.allow_smaller)

    def take(self, rows: Ints) -> Rows:
        """Some of the rows, of which a protocol may ask for more than there are."""
        logvar = None if self.logvar is None else self.logvar[rows]
        return Rows(self.mu[rows], self.factors.take(rows), None, None, logvar, self.representation, True)

    def require(self, need: str, metric: str, mode: str) -> None:
        """Refuses continuous factors where classes are told apart."""
        super().require(need, metric, mode)
        if need not in ("classes", "density"):
            return
        for name, kind, size in zip(self.names, self.kinds, self.sizes, strict=True):
            mend = "bin it with factor_bins=10, or set its kind to ordinal"
            if kind == "continuous":
                raise Problem(f"factor '{name}' is continuous, but {metric} in mode '{mode}' needs classes; {mend}")
            if size > MOST:
                raise Problem(
                    f"factor '{name}' has {size:,} values, so it is probably continuous; set its kind to continuous"
                )

    def factors_at(self, index: Ints) -> Ints:
        """The classes of the factors, (..., K)."""
        return self.factors.classes[index]

    def values_at(self, index: Ints) -> NDArray[np.float64]:
        """The factors as real values, (..., K)."""
        return self.factors.values[index]

    def _enough(self, n: int) -> None:
        if n > len(self) and not self.allow_smaller:
            raise Problem(
                f"this protocol needs {n:,} rows but there are {len(self):,}; give more, or use all there are "
                "(--smaller, allow_smaller=True)"
            )

    def draw(self, rng: np.random.RandomState, n: int) -> Ints:
        """The index of n different rows, or of all."""
        self._enough(n)
        return np.asarray(rng.permutation(len(self))[:n]) if n < len(self) else self.every()

    def split(self, rng: np.random.RandomState, train: int, test: int) -> tuple[Ints, Ints]:
        """Disjoint rows; where there are too few, in the same proportion."""
        self._enough(train + test)
        if train + test > len(self):
            if len(self) < 2:
                raise Problem("at least 2 rows are needed, one for training and one for testing")
            train = min(len(self) - 1, max(1, round(len(self) * train / (train + test))))
            test = len(self) - train
        order = np.asarray(rng.permutation(len(self)))
        return order[:train], order[train : train + test]

    @cached_property
    def _shelves(self) -> list[tuple[int, Ints, Ints, Ints, Ints]]:
        """Each factor that can be fixed: its rows in the order of its values; for each row where its value starts there
        and how many rows share it; and the rows whose value is shared at all."""
        usable = []
        for k, column in enumerate(self.factors.classes.T):
            count = np.bincount(column)
            order, start = np.argsort(column, kind="stable"), np.cumsum(count) - count
            if np.sum(count >= 2) >= 2:
                usable.append((k, order, start[column], count[column], np.flatnonzero(count[column] >= 2)))
        if not usable:
            raise Problem("no factor has two values with two rows each, so none can be fixed")
        return usable

    @property
    def rare(self) -> dict[str, int]:
        """For each factor, how many values are held by a single row and so are never fixed."""
        return {
            name: int(np.sum(np.bincount(column) == 1))
            for name, column in zip(self.names, self.factors.classes.T, strict=True)
        }

    def _fixed(self, rng: np.random.RandomState, n: int, length: int, paired: bool) -> tuple[Ints, Ints, Ints]:
        """Factors (n,), rows (n, length or 1) and for each `length` rows that share the value."""
        shelves = self._shelves
        alone = [f"{rare} of '{name}'" for name, rare in self.rare.items() if rare]
        if alone:
            warnings.warn(f"values with a single row are left out: {', '.join(alone)}", stacklevel=4)
        which = np.asarray(rng.randint(len(shelves), size=n))
        labels = np.array([shelf[0] for shelf in shelves])[which]
        rows, partners = np.empty((n, length if paired else 1), np.int64), np.empty((n, length), np.int64)
        for s, (_, order, start, count, pool) in enumerate(shelves):
            here = np.flatnonzero(which == s)
            rows[here] = pool[rng.randint(len(pool), size=(len(here), rows.shape[1]))]
            place = (rng.random_sample((len(here), length)) * count[rows[here]]).astype(np.int64)
            partners[here] = order[start[rows[here]] + place]
        return labels, rows, partners

    def pairs(self, rng: np.random.RandomState, n: int, length: int) -> tuple[Ints, Ints, Ints]:
        """Rows, and for each a partner with the same value of factor k."""
        return self._fixed(rng, n, length, paired=True)

    def votes(self, rng: np.random.RandomState, n: int, length: int) -> tuple[Ints, Ints]:
        """Rows that share the value of factor k with a row drawn uniformly."""
        labels, _, partners = self._fixed(rng, n, length, paired=False)
        return labels, partners
