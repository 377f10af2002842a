"""Run: a trained model with its folder, and the verbs on it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.distributions import MultivariateNormal

from elboroom.core.batch import Batch
from elboroom.core.model import LatentModel
from elboroom.core.problem import Problem, unknown
from elboroom.core.stages import Trainable
from elboroom.data.dataset import DataSet
from elboroom.data.tokens import Tokeniser
from elboroom.evaluate import likelihood
from elboroom.evaluate.likelihood.posthoc import gaussian_of
from elboroom.evaluate.likelihood.proposal import Kind
from elboroom.evaluate.registry import described
from elboroom.evaluate.result import Result
from elboroom.evaluate.split import Split
from elboroom.families.decoding import Decoding, Greedy, Sampling
from elboroom.families.gaussian import NoPrior
from elboroom.geometry.point import Point
from elboroom.geometry import paths
from elboroom.geometry.spaces import Euclidean, Space, space_of
from elboroom.runs.media import Arrays, Medium, Sentences
from elboroom.training import session
from elboroom.training.base import latent_of, weights
from elboroom.training.batches import batch_of, reseed
from elboroom.training.checkpoint import write_json
from elboroom.training.recorder import read_log
from elboroom.training.session import Own
from elboroom.training.spec import Spec


class Run:
    """A trained model: `encode, decode, reconstruct, sample, traverse, interpolate, analogy, elbo, log_likelihood, ...`.

    Examples go in and come out as numpy arrays, images (n, C, H, W) in [0, 1], or as lists of sentences; codes are
    (n, J), and u (n, U) for conditional models.
    """

    def __init__(
        self, folder: Path, spec: Spec, method: Trainable, step: int, own: Own, tokeniser: Tokeniser | None = None
    ) -> None:
        self.folder, self.spec, self.method, self.step = folder, spec, method.eval(), step
        self._own, self.tokeniser = own, tokeniser

    def __reduce__(self) -> Any:
        """A copy or a pickle is the spec and the weights, built anew where it is read."""
        weights = dict(self.method.state_dict())
        return rebuilt, (self.folder, self.spec, weights, self.step, self._own, self.tokeniser)

    def __repr__(self) -> str:
        return f"Run({self.spec.title} on {self.spec.data['source']}, step {self.step:,}, {self.folder})"

    @property
    def model(self) -> LatentModel:
        """The three conditional distributions."""
        return self.method.model

    @cached_property
    def data(self) -> DataSet:
        """What it was trained on, split as then."""
        return session.data_of(self.spec, self._own)

    @property
    def log(self) -> list[dict[str, float]]:
        """Every term and weight, by step."""
        return read_log(self.folder / "log.jsonl")

    @property
    def latent(self) -> int:
        """The dimensions of z: those that its nets were sized for, or none."""
        return latent_of(self.spec, self.model)

    @cached_property
    def space(self) -> Space:
        """Where its codes live."""
        return space_of(self.model)

    @property
    def given(self) -> tuple[str, ...]:
        """The labels that it is conditional on."""
        return self.spec.model.given_names

    def rows(self, split: str | None = None) -> tuple[str, NDArray[np.int64]]:
        """The name and rows of a split; by default test where there is one, else train."""
        name = split or ("test" if "test" in self.data.splits else "train")
        return name, Split.of(self.model, self.data, name, self.given).rows

    def examples(self, n: int, split: str | None = None, seed: int = 0) -> Batch:
        """n examples of a split, drawn once and the same every time."""
        rows = self.rows(split)[1]
        chosen = np.random.default_rng(seed).choice(rows, min(n, len(rows)), replace=False)
        return batch_of(self.data, chosen, self.given)

    def sentences(self, n: int, split: str | None = None, seed: int = 0) -> list[str]:
        """n sentences of a split, drawn once and the same every time."""
        index = self.examples(n, split, seed).index
        assert index is not None
        return self.data.sentences(index.numpy())

    def seen(self, sentence: str) -> str:
        """A sentence as the model sees it: words that it does not know are <unk>."""
        if self.tokeniser is None:
            raise Problem("this model is not a model of text")
        return self.tokeniser.decode(self.tokeniser.encode(sentence))

    def medium(self, decoding: Decoding | None = None) -> Medium:
        """How examples are handed in and shown; sentences are decoded as said, or greedily."""
        if self.tokeniser is None:
            if decoding is not None:
                raise Problem("only sentences are decoded; this model is of images or vectors")
            return Arrays(self.spec.about)
        return Sentences(self.tokeniser, decoding or Greedy(), max(100, self.spec.about.shape[0]))

    def encode(self, x: Any, u: ArrayLike | None = None) -> NDArray[np.float32]:
        """The means of q(z|x), (n, J); of all rows of a DataSet."""
        self.require_codes()
        if isinstance(x, DataSet):
            mine, other = (
                "text" if a.kind == "tokens" else f"{a.kind} of shape {a.shape}" for a in (self.spec.about, x.about)
            )
            if mine != other:
                raise Problem(f"this model takes {mine}, not {other}")
            parts = np.array_split(np.arange(len(x)), max(1, len(x) // 1024))
            return np.concatenate([self.encode(self._read(x, rows)) for rows in parts])
        found: NDArray[np.float32] = torch.cat(
            self._in_parts(lambda b: self.model.q(b).mean.float().cpu(), self._batch(x, u))
        ).numpy()
        return found

    def decode(self, z: ArrayLike, u: ArrayLike | None = None, decoding: Decoding | None = None) -> Any:
        """What p(x|z) stands for: its means, (n, *shape), or sentences."""
        return self._decoded(torch.as_tensor(np.asarray(z, dtype=np.float32)), u, decoding)

    def _decoded(self, z: Tensor, u: ArrayLike | None, decoding: Decoding | None) -> Any:
        """The same of a tensor; a point of the ball that carries its distance from the boundary keeps it."""
        if z.dim() != 2 or z.shape[1] != self.latent:
            raise Problem(f"codes have shape (n, {self.latent}), not {tuple(z.shape)}")
        medium, like = self.medium(decoding), next(self.model.parameters())
        codes = z.to(like.device) if isinstance(z, Point) else z.to(like)

        def made(b: Batch) -> Any:
            return medium.made(self.model.px(codes[b.index].unsqueeze(0), b))

        batch = replace(medium.blank(len(z)), u=self._u(u, len(z)), index=torch.arange(len(z)))
        return medium.join(self._in_parts(made, batch))

    def reconstruct(self, x: Any, u: ArrayLike | None = None, decoding: Decoding | None = None) -> Any:
        """Examples decoded from the means of q(z|x)."""
        self.require_codes()
        medium, batch = self.medium(decoding), self._batch(x, u)
        return medium.join(
            self._in_parts(lambda b: medium.made(self.model.px(self.model.q(b).mean[None], b)), batch)
        )

    def sample(self, n: int = 25, seed: int = 0, u: ArrayLike | None = None, decoding: Decoding | None = None) -> Any:
        """Examples for z from the prior; given labels are taken from the data where u is left out.

        Images are the means of p(x|z), sentences are drawn from it unless a decoding is said. A model without a prior is
        sampled from the Gaussian fitted to its codes.
        """
        if n < 1:
            raise Problem(f"at least one sample is needed, not {n}")
        given = self._u(u, n) if u is not None or not self.given else self._some_u(n, seed)
        p = self.fitted if isinstance(self.model.prior, NoPrior) else self.model.p(Batch(torch.empty(n), given))
        reseed(seed)
        z: Tensor = p.sample(torch.Size(() if p.batch_shape else (n,)))
        drawn = Sampling() if decoding is None and self.tokeniser is not None else decoding
        return self._decoded(z, given, drawn)

    def _some_u(self, n: int, seed: int) -> Tensor:
        """Labels of training examples, each of another one as long as there are enough."""
        rows = self.rows("train")[1]
        return self.data.u(np.random.default_rng(seed).choice(rows, n, replace=n > len(rows)), self.given)

    def traverse(
        self,
        x: Any = None,
        dims: list[int] | None = None,
        points: int = 10,
        reach: float = 3.0,
        u: ArrayLike | None = None,
    ) -> Any:
        """Examples along each dimension, the code of one example otherwise kept, (dims, points, *shape).

        Dimensions come sorted by their mean rate, the highest first, and go from -reach to reach. On the sphere a coordinate
        ends at one, and the others make room for it; on the ball they are those of log_0(z).
        """
        batch = self.examples(1) if x is None else self._batch(x, u)
        values = paths.spread(points, self.space.reach(reach))
        if dims is not None and not all(0 <= j < self.latent for j in dims):
            raise Problem(f"the dimensions of this model are 0 to {self.latent - 1}, not {dims}")
        grid = self.space.along(torch.from_numpy(self.encode(batch)[0]), self.order if dims is None else dims, values)
        given = None if batch.u is None else batch.u[:1].expand(grid[..., 0].numel(), -1)
        return self.medium().grid(self.decode(grid.flatten(0, 1).numpy(), given), *grid.shape[:2])

    def interpolate(
        self,
        a: Any,
        b: Any,
        points: int = 10,
        spherical: bool = False,
        decoding: Decoding | None = None,
        u: ArrayLike | None = None,
    ) -> Any:
        """Examples on the shortest way from a to b where codes live, or along a great circle, (n, points, *shape)."""
        left, right = (self._batch(x, u) for x in (a, b))
        if len(left.x) != len(right.x):
            raise Problem(f"{len(left.x)} examples and {len(right.x)} cannot be paired; give as many of each")
        if spherical and not isinstance(self.space, Euclidean):
            raise Problem("--spherical has no effect here, since the codes of this model lie on a curved space; remove it")
        way = paths.arc if spherical else self.space.way
        codes = zip(torch.from_numpy(self.encode(left)), torch.from_numpy(self.encode(right)), strict=True)
        grid = torch.stack([way(z, w, points) for z, w in codes])  # (n, points, J)
        given = None if left.u is None else left.u.repeat_interleave(points, 0)
        made = self.decode(grid.flatten(0, 1).numpy(), given, decoding)
        return self.medium().grid(made, *grid.shape[:2])

    def analogy(
        self,
        a: Any,
        b: Any,
        c: Any,
        strength: float = 1.0,
        decoding: Decoding | None = None,
        u: ArrayLike | None = None,
    ) -> Any:
        """a - b + c: examples decoded from c + strength (a - b), the codes being means of q(z|x)."""
        if not np.isfinite(strength):
            raise Problem(f"the strength of an analogy is a finite number, not {strength}")
        one, two, three = (self.space.flat(torch.from_numpy(self.encode(x, u))) for x in (a, b, c))
        if not len(one) == len(two) == len(three):
            raise Problem(
                f"an analogy needs as many examples of each of its three, not {len(one)}, {len(two)}, {len(three)}"
            )
        return self.decode(self.space.back(three + strength * (one - two)).numpy(), u, decoding)

    @cached_property
    def fitted(self) -> MultivariateNormal:
        """The Gaussian of the codes of at most 10,000 training examples, for models that have no prior."""
        return gaussian_of(self.split("train").codes[0])

    def split(self, split: str | None = None, most: int | None = 10_000, seed: int = 0) -> Split:
        """The model beside the rows that it is measured on; the seed is of the noise."""
        return Split.of(self.model, self.data, self.rows(split)[0], self.given, most, seed)

    def elbo(self, split: str | None = None, samples: int = 1) -> Result:
        """The evidence lower bound at weight one, in nats per example."""
        return likelihood.evidence(self.split(split), samples)["elbo"]

    def log_likelihood(self, split: str | None = None, samples: int = 100, most: int = 1000) -> Result:
        """The importance-weighted bound of log p(x), in nats per example."""
        return described("log_likelihood", likelihood.log_likelihood(self.split(split, most), samples))

    def kl_per_dim(self, split: str | None = None) -> list[float]:
        """The mean rate of each dimension, in nats."""
        found = likelihood.evidence(self.split(split)).get("rate_per_dim")
        if found is None:
            why = self.split(split, 1).lacking or "its KL is no sum over dimensions"
            raise Problem(f"this model has no KL per dimension: {why}")
        return list(found.parts["dims"])

    @cached_property
    def order(self) -> list[int]:
        """Dimensions by mean rate, highest first; by variance of the codes where there is no rate."""
        split = self.split(most=2000)
        rates = likelihood.evidence(split).get("rate_per_dim")
        score = rates.parts["dims"] if rates else split.codes[0].var(0).tolist()
        return sorted(range(len(score)), key=lambda j: -score[j])

    def evaluate(
        self,
        split: str | None = None,
        samples: int = 100,
        most: int = 10_000,
        iw_most: int | None = 1000,
        seed: int = 0,
        proposal: Kind = "gaussian",
    ) -> dict[str, Any]:
        """Every measure, kept in metrics.json with estimator and settings; IW-K looks at `iw_most` examples, None at all.

        proposal: gaussian or flow, what is fitted to a q(z|x) that can only be sampled.
        """
        return self.record(likelihood.evaluate(self.split(split, most, seed), samples, iw_most, proposal))

    def record(self, results: Mapping[str, Result], without: tuple[str, ...] = ()) -> dict[str, Any]:
        """Adds results to metrics.json, which is returned; without: how names begin that are left out of it first."""
        kept = {name: entry for name, entry in self.measured.items() if not name.startswith(without)}
        content = kept | {name: result.to_json() for name, result in results.items()}
        write_json(self.folder / "metrics.json", content)
        return content

    @property
    def parameters(self) -> int:
        """How many numbers the model has learned."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    @property
    def measured(self) -> dict[str, Any]:
        """What metrics.json holds of this checkpoint, under the heading of the run."""
        own = {"method": self.spec.method, "step": self.step, "seed": self.spec.fit.seed}
        path = self.folder / "metrics.json"
        kept = json.loads(path.read_text()) if path.exists() else {}
        ours = own.items() <= kept.get("run", {}).items()
        return (kept if ours else {}) | {"run": own | {"title": self.spec.title, "parameters": self.parameters}}

    def _read(self, data: DataSet, rows: NDArray[np.int64]) -> Batch:
        """Rows of any data set, its sentences in the words of this model."""
        for name in self.given:
            mine, theirs = (tuple(c.get(name, ())) for c in (self.spec.data.get("classes", {}), data.classes))
            if name in data.about.labels and mine != theirs:
                raise Problem(
                    f"{name} is {', '.join(theirs)} in {data.about.name}, and this model knows {', '.join(mine)}"
                )
        batch = batch_of(data, rows, self.given)
        return batch if self.tokeniser is None else self._batch(data.sentences(rows), batch.u)

    def _batch(self, x: Any, u: ArrayLike | None) -> Batch:
        if isinstance(x, Batch):
            return x if u is None else replace(x, u=self._u(u, len(x.x)))
        batch = self.medium().batch(x)
        return replace(batch, u=self._u(u, len(batch.x)))

    def require_codes(self) -> None:
        """Refuses a model without z."""
        if not self.latent:
            raise Problem(f"{self.spec.method} has no z: it can be sampled, and nothing can be encoded")

    def labelled(self, n: int = 1, **labels: str | int) -> Tensor:
        """u of n examples that all have these labels, by name or by number: `run.labelled(3, label="pos")`."""
        classes, parts = self.spec.data.get("classes", {}), []
        if unused := set(labels) - set(self.given):
            raise Problem(f"this model is not conditional on {', '.join(sorted(unused))}")
        for name in self.given:
            if name not in labels:
                raise Problem(f"this model is conditional on {', '.join(self.given)}; set {name} too")
            count, known = self.spec.about.labels[name], [str(c) for c in classes.get(name, ())]
            known = known or [str(i) for i in range(count)]
            if str(labels[name]) not in known:
                raise unknown(name, str(labels[name]), known)
            hot = torch.zeros(n, count)
            hot[:, known.index(str(labels[name]))] = 1
            parts.append(hot)
        return torch.cat(parts, 1)

    @property
    def _given(self) -> int:
        return sum(self.spec.about.labels[name] for name in self.given)

    def _u(self, u: ArrayLike | Tensor | None, n: int) -> Tensor | None:
        width = self._given
        if not width:
            return None
        if u is None:
            raise Problem(
                f"this model is conditional on {', '.join(self.given)}; set it with --as {self.given[0]}=..., or pass u of "
                f"shape ({n}, {width})"
            )
        tensor = u if isinstance(u, Tensor) else torch.as_tensor(np.asarray(u, dtype=np.float32))
        if tuple(tensor.shape) != (n, width):
            raise Problem(f"u has shape ({n}, {width}), not {tuple(tensor.shape)}")
        return tensor

    @torch.no_grad()
    def _in_parts(self, f: Callable[[Batch], Any], batch: Batch, size: int = 256) -> list[Any]:
        like = next(self.model.parameters())
        whole = {name: tensor for name, tensor in vars(batch).items() if isinstance(tensor, Tensor)}
        done = []
        for at in range(0, len(batch.x), size):
            part: dict[str, Any] = {
                k: t[at : at + size].to(like.dtype if t.is_floating_point() else t.dtype) for k, t in whole.items()
            }
            done.append(f(Batch(**part).to(like.device)))
        return done


def rebuilt(
    folder: Path,
    spec: Spec,
    state: dict[str, Tensor],
    step: int,
    own: Own,
    tokeniser: Tokeniser | None = None,
    method: Trainable | None = None,
) -> Run:
    """A run of a spec, with these weights, in a method that is built already or in a new one."""
    method = session.build(spec, own) if method is None else method.cpu()
    weights(spec, method, state, folder)
    return Run(folder, spec, method, step, own, tokeniser)
