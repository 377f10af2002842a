"""Run: a trained model with its folder, and the verbs on it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.distributions import MultivariateNormal

from elboroom.core.batch import Batch
from elboroom.core.calls import asked_of
from elboroom.core.locks import one_process
from elboroom.core.memory import require
from elboroom.core.model import LatentModel
from elboroom.core.problem import Problem
from elboroom.core.stages import Trainable
from elboroom.data.dataset import DataSet
from elboroom.data.tokens import Tokeniser
from elboroom.evaluate import likelihood
from elboroom.evaluate.likelihood.posthoc import gaussian_of
from elboroom.evaluate.likelihood.proposal import Kind
from elboroom.evaluate.registry import described
from elboroom.evaluate.result import Result
from elboroom.evaluate.split import Split
from elboroom.families.decoding import Decoding, Greedy
from elboroom.geometry.point import Point
from elboroom.geometry.spaces import Space, space_of
from elboroom.runs import answers, moves, record, samples
from elboroom.runs.answers import Context
from elboroom.runs.attribute import Attribute, attribute
from elboroom.runs.card import card
from elboroom.runs.edit import Way, changes, edited, maps_in_the_end
from elboroom.runs.inputs import as_batch, labelled, labels_of, of_rows, require_alike
from elboroom.runs.media import Arrays, Medium, Sentences, real
from elboroom.runs.samplers import Name as Sampler
from elboroom.runs.transfer import By, To, styles, transfer, unread
from elboroom.training import session
from elboroom.training.base import latent_of, weights
from elboroom.training.batches import batch_of, reseed
from elboroom.training.recorder import read_log
from elboroom.training.session import Own
from elboroom.training.spec import Spec

if TYPE_CHECKING:
    from elboroom.explorer.serve import Explorer
    from elboroom.plots.exhibit import Exhibit


@asked_of
class Run:
    """A trained model: `encode, decode, reconstruct, sample, traverse, interpolate, analogy, elbo, log_likelihood, ...`.

    Examples go in and come out as numpy arrays, images (n, C, H, W) in [0, 1], or as lists of sentences; codes are
    (n, J), and u (n, U) for conditional models.
    """

    def __init__(
        self, folder: Path, spec: Spec, method: Trainable, step: int, own: Own, tokeniser: Tokeniser | None = None,
        beside: Mapping[str, Tokeniser] | None = None,
    ) -> None:  # fmt: skip
        self.folder, self.spec, self.method, self.step = folder, spec, method.eval(), step
        self._own, self.tokeniser, self._beside = own, tokeniser, dict(beside or {})
        self.attributes = dict[str, Attribute]()  # those that were asked for, by label

    def __reduce__(self) -> Any:
        """A copy or a pickle is the spec and the weights, built anew where it is read."""
        weights = dict(self.method.state_dict())
        return copied, (self.folder, self.spec, weights, self.step, self._own, self.tokeniser, self._beside)

    def _repr_html_(self) -> str:
        return card(self)

    def __repr__(self) -> str:
        return f"Run({self.spec.title} on {self.spec.data['source']}, step {self.step:,}, {self.folder})"

    @property
    def model(self) -> LatentModel:
        """The three conditional distributions."""
        return self.method.model

    @cached_property
    def data(self) -> DataSet:
        """What it was trained on, split as then."""
        return session.data_of(self.spec, replace(self._own, folder=self.folder))

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
        return tuple(name for name in self.spec.model.given_names if name not in self.spec.about.sequences)

    @property
    def tokenisers(self) -> dict[str, Tokeniser]:
        """What makes tokens of x, and of contexts and targets, which may share that or have their own."""
        if self.tokeniser is None:
            return dict(self._beside)
        return {"x": self.tokeniser} | {n: self._beside.get(n, self.tokeniser) for n in self.spec.about.sequences}

    def rows(self, split: str | None = None) -> tuple[str, NDArray[np.int64]]:
        """The name and rows of a split; by default test where there is one, else train."""
        name = split or ("test" if "test" in self.data.splits else "train")
        return name, Split.of(self.model, self.data, name, self.given).rows

    def examples(self, n: int = 10, split: str | None = None, seed: int = 0) -> Batch:
        """n examples of a split, drawn once and the same every time."""
        rows = self.rows(split)[1]
        if n < 1 or seed < 0:
            raise Problem(f"at least one example and a seed of at least 0 are needed, not {n} and {seed}")
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
            require_alike(self, x)
            parts = np.array_split(np.arange(len(x)), max(1, len(x) // 1024))
            return np.concatenate([self.encode(of_rows(self, x, rows)) for rows in parts])
        batch = as_batch(self, x, unread(self, x) if u is None else u)
        found: NDArray[np.float32] = torch.cat(
            self.in_parts(lambda b: self.model.q(b).mean.float().cpu(), batch)
        ).numpy()
        return found

    def generate(
        self, context: Context | Sequence[Sequence[str]], n: int | None = None, decoding: Decoding | None = None,
        seed: int = 0, u: ArrayLike | None = None,
    ) -> Any:  # fmt: skip
        """n answers to a context, a text or the turns of a dialogue; of a list of such lists, n answers to each.

        Each is from a z of its own, drawn word by word unless a decoding is said; one is greedy. n is 10, or 1 of translations.
        """
        one = isinstance(context, str) or all(isinstance(turn, str) for turn in context)
        made = answers.generate(self, [cast(Context, context)] if one else context, n, decoding, seed, u)
        return made[0] if one else made

    def decode(self, z: ArrayLike, u: ArrayLike | None = None, decoding: Decoding | None = None) -> Any:
        """What p(x|z) stands for: its means, (n, *shape), or sentences."""
        return self._decoded(torch.from_numpy(real(z, "codes")), u, decoding)

    def _decoded(self, z: Tensor, u: ArrayLike | None, decoding: Decoding | None, context: Tensor | None = None) -> Any:
        """The same of a tensor; a point of the ball that carries its distance from the boundary keeps it."""
        if z.dim() != 2 or z.shape[1] != self.latent:
            raise Problem(f"codes have shape (n, {self.latent}), not {tuple(z.shape)}")
        require(8 * len(z) * math.prod(self.spec.about.shape), f"to decode {len(z):,} codes")
        if self.model.conditioner is not None and context is None:
            raise Problem("this model reads a context, without which a code is no sentence; use generate")
        medium, like = self.medium(decoding), next(self.model.parameters())
        codes = z.to(like.device) if isinstance(z, Point) else z.to(like)

        def made(b: Batch) -> Any:
            return medium.made(self.model.px(codes[b.index].unsqueeze(0), b))

        batch = replace(medium.blank(len(z)), u=self.labels_of(u, len(z)), index=torch.arange(len(z)), context=context)
        return medium.join(self.in_parts(made, batch))

    def reconstruct(self, x: Any, u: ArrayLike | None = None, decoding: Decoding | None = None) -> Any:
        """Examples decoded from the means of q(z|x)."""
        self.require_codes()
        medium, batch = self.medium(decoding), as_batch(self, x, u)
        return medium.join(self.in_parts(lambda b: medium.made(self.model.px(self.model.q(b).mean[None], b)), batch))

    def sample(
        self, n: int = 25, seed: int = 0, u: ArrayLike | None = None, decoding: Decoding | None = None,
        sampler: Sampler = "prior", components: int | None = None,
    ) -> Any:  # fmt: skip
        """Examples for z from the prior; given labels and contexts are those of the data where u is left out.

        Images are the means of p(x|z), sentences are drawn from it unless a decoding is said. A model without a prior is
        sampled from the Gaussian fitted to its codes. sampler: "gmm", "flow" or "kmeans" draw z from such a law of the codes
        of training examples, fitted when it is first asked for and kept in the run; components: of gmm and kmeans, 10.
        """
        return samples.sample(self, n, seed, u, decoding, sampler, components)

    def draw(
        self, n: int = 1, seed: int = 0, u: ArrayLike | None = None, sampler: Sampler = "prior", components: int | None = None
    ) -> NDArray[np.float32]:
        """Codes from the prior or another sampler, (n, J): those that `sample` decodes."""
        self.require_codes()
        codes: NDArray[np.float32] = samples.draw(self, n, seed, u, sampler, components)[0].float().cpu().numpy()
        return codes

    def traverse(
        self, x: Any = None, dims: list[int] | None = None, points: int = 10, reach: float = 3.0,
        u: ArrayLike | None = None, decoding: Decoding | None = None,
    ) -> Any:  # fmt: skip
        """Examples along each dimension, the code of one example otherwise kept, (dims, points, *shape).

        Dimensions come sorted by their mean rate, the highest first, and go from -reach to reach. On the sphere a coordinate
        ends at one, and the others make room for it; on the ball they are those of log_0(z).
        """
        return moves.traverse(self, x, dims, points, reach, u, decoding)

    def interpolate(
        self, a: Any, b: Any, points: int = 10, spherical: bool = False, decoding: Decoding | None = None,
        u: ArrayLike | None = None,
    ) -> Any:  # fmt: skip
        """Examples on the shortest way from a to b where codes live, or along a great circle, (n, points, *shape)."""
        return moves.interpolate(self, a, b, points, spherical, decoding, u)

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
        return moves.analogy(self, a, b, c, strength, decoding, u)

    def styles(self, by: By = "style") -> dict[str, list[str]]:
        """The labels that `transfer` can change, each with its values; none of a model without style."""
        return styles(self, by)

    def transfer(
        self, x: Any, to: To = None, like: Any = None, strength: float = 1.0, by: By = "style",
        decoding: Decoding | None = None, u: ArrayLike | None = None, context: Sequence[Context] | None = None,
        through: Run | str | Path | None = None,
    ) -> Any:  # fmt: skip
        """Examples with their content and another style: `run.transfer(["the food was awful"], to="positive")`.

        The style is the mean of a class (`to`: a value, `label=value`, or a dict) or that of another example (`like`); of two
        styles `to` may be left out, which gives the other one. strength: 0 reconstructs, above 1 exaggerates. by: "offset" adds
        the difference of class means, for models without a block of style; "fgim", "map" and "map+fgim" are those of `edit`.
        A model that writes from translations (`bst`) is handed them (`context`), or the run that translates (`through`); rows of
        its data have them.
        """
        return transfer(self, partial(as_batch, self), x, to, like, strength, by, decoding, u, context, through)

    def edit(
        self, x: Any, to: str | int | None = None, label: str = "", by: Way | None = None, strength: float = 1.0,
        decoding: Decoding | None = None, u: ArrayLike | None = None,
    ) -> Any:  # fmt: skip
        """Examples with another value of a label: `run.edit(["the food was awful"], to="positive")`.

        by: "offset" adds the difference of class means; "fgim" moves the code down the loss of a classifier of codes until
        that is sure; "map" maps it, of a run of emb2emb, where that is the default; "map+fgim" both. strength: 0 reconstructs,
        1 goes all the way, more goes on.
        """
        way = by or ("map" if maps_in_the_end(self) else "offset")
        return edited(self, as_batch(self, x, u), label, to, way, strength, decoding)

    def changes(self, by: By = "map") -> dict[str, str]:
        """The label that its map changes with the value that it gives; none where nothing is mapped."""
        return changes(self) if "map" in by else {}

    def attribute(self, label: str = "") -> Attribute:
        """What codes tell of a label: the mean of every value, and a classifier; fitted once and kept with the run."""
        return attribute(self, label)

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

    def score_samples(
        self, x: Any, u: ArrayLike | None = None, samples: int = 100, seed: int = 0
    ) -> NDArray[np.float64]:
        """The importance-weighted bound of log p(x) for examples of your own, in nats, (n,)."""
        batch = as_batch(self, x, u)
        reseed(seed)
        return torch.cat(self.in_parts(lambda b: likelihood.bound(self.model, b, samples), batch, 16)).numpy()

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
        self, split: str | None = None, samples: int = 100, most: int = 10_000, iw_most: int | None = 1000, seed: int = 0,
        proposal: Kind = "gaussian", iw_until: float | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Every measure, kept in metrics.json with estimator and settings; IW-K looks at `iw_most` examples, None at all.

        proposal: gaussian or flow, what is fitted to a q(z|x) that can only be sampled. iw_until: K is doubled until that
        raises the bound by less than so many nats.
        """
        with one_process(self.folder):
            part = self.split(split, most, seed)
            return self.record(likelihood.evaluate(part, samples, iw_most, proposal, iw_until))

    def record(self, results: Mapping[str, Result], without: tuple[str, ...] = ()) -> dict[str, Any]:
        """Adds results to metrics.json, which is returned; without: how names begin that are left out of it first."""
        return record.add(self, results, without)

    def plot(self, kind: str, label: str = "") -> Exhibit:
        """A figure by its name, as in `elbo plot list`; a notebook shows it, `.figure` is that of matplotlib."""
        from elboroom.plots.figures import exhibit

        return exhibit(self, kind, label)

    def report(self, path: str | Path | None = None) -> Path:
        """Writes the report of the run, by default as report.html in its folder, and returns where it is."""
        from elboroom.report import write_report

        return write_report(self, path)

    def export(self, to: str = "onnx", out: str | Path | None = None) -> Path:
        """Writes encoder and decoder as "onnx", or codes for TensorBoard's "projector", into a folder, and returns it."""
        from elboroom.share.export import export

        return Path(export(self, to, out)["out"])

    def explore(self, *others: Run, points: int = 10_000) -> Explorer:
        """The explorer of this run, and of others to compare it with, beside this process; a notebook shows its page."""
        try:
            from elboroom.explorer.serve import BESIDE, explorer
        except ImportError as error:
            if error.name not in ("starlette", "uvicorn"):
                raise
            raise Problem("run.explore() needs starlette and uvicorn: pip install 'elboroom[explore]'") from None
        view = BESIDE if len(others) == 1 else ""
        return explorer([self, *others], port=0, points=points, view=view, framed=True).beside()

    @property
    def parameters(self) -> int:
        """How many numbers the model has learned."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    @property
    def measured(self) -> dict[str, Any]:
        """What metrics.json holds of this checkpoint, under the heading of the run."""
        return record.kept(self)

    def require_codes(self) -> None:
        """Refuses a model without z."""
        if not self.latent:
            raise Problem(f"{self.spec.method} has no z: it can be sampled, and nothing can be encoded")

    def labelled(self, n: int = 1, **labels: str | int) -> Tensor:
        """u of n examples that all have these labels, by name or by number: `run.labelled(3, label="pos")`."""
        return labelled(self, n, labels)

    def labels_of(self, u: ArrayLike | Tensor | None, n: int) -> Tensor | None:
        """The labels of n examples as they are given, checked; None of a model that is given none."""
        return labels_of(self, u, n)

    @torch.no_grad()
    def in_parts(self, f: Callable[[Batch], Any], batch: Batch, size: int = 256) -> list[Any]:
        """What `f` makes of a batch, some rows at a time, without gradients."""
        like = next(self.model.parameters())
        whole = {name: tensor for name, tensor in vars(batch).items() if isinstance(tensor, Tensor)}
        done = []
        for at in range(0, len(batch.x), size):
            part: dict[str, Any] = {
                k: t[at : at + size].to(like.dtype if t.is_floating_point() else t.dtype) for k, t in whole.items()
            }
            done.append(f(Batch(**part).to(like.device)))
        return done


def copied(
    folder: Path, spec: Spec, state: dict[str, Tensor], step: int, own: Own, tokeniser: Tokeniser | None,
    beside: Mapping[str, Tokeniser],
) -> Run:  # fmt: skip
    """A run of a spec, with these weights, in the precision that they have, which a caller may have raised."""
    method = session.build(spec, own)
    for name, model in method.named_modules():
        if isinstance(model, LatentModel):
            mine = (v.dtype for key, v in state.items() if key.startswith(f"{name}.") and v.is_floating_point())
            model.to(next(mine, torch.float32))
    return rebuilt(folder, spec, state, step, own, tokeniser, method, beside)


def rebuilt(
    folder: Path, spec: Spec, state: dict[str, Tensor], step: int, own: Own, tokeniser: Tokeniser | None = None,
    method: Trainable | None = None, beside: Mapping[str, Tokeniser] | None = None,
) -> Run:  # fmt: skip
    """A run of a spec, with these weights, in a method that is built already or in a new one."""
    method = session.build(spec, own) if method is None else method.cpu()
    weights(spec, method, state, folder)
    return Run(folder, spec, method, step, own, tokeniser, beside)
