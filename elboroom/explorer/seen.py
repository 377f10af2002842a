"""Seen: a run as the explorer looks at it, with what is computed once of its codes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from elboroom.core.problem import Problem
from elboroom.data.sequences import CONTEXT
from elboroom.evaluate.verdicts import of_metrics, verdicts
from elboroom.explorer.answer import Answer, plain, sprite
from elboroom.families.decoding import Decoding
from elboroom.families.gaussian import NoPrior
from elboroom.geometry.spaces import Sphere
from elboroom.plots.codes import Codes
from elboroom.plots.images import extent
from elboroom.runs.run import Run
from elboroom.runs.transfer import means_of, styles
from elboroom.training.batches import batch_of

Floats = NDArray[np.float32]
Given = Mapping[str, str]  # the value of each label that the model is conditional on
FEW = 2000  # examples by which dimensions are ranked
PART = 256  # examples that are encoded at a time


@dataclass(frozen=True)
class Dimension:
    """One dimension of z: how much it says, and how far a slider moves it."""

    index: int
    kl: float | None
    variance: float
    active: bool
    low: float
    high: float


class Seen:
    """A run, the codes of some of its examples, and its dimensions; codes are moved in the chart of its space."""

    def __init__(self, run: Run, points: int = 10_000) -> None:
        if run.model.conditioner is None:
            run.require_codes()
        self.run, self.points = run, points
        self._encoded: list[Floats] = []

    @property
    def answers(self) -> bool:
        """Whether it reads a context and answers it: a code of such a model is no sentence without one."""
        return self.run.model.conditioner is not None

    @property
    def kind(self) -> str:
        """What it shows: pixels, tokens or vectors."""
        return self.run.spec.about.kind

    @cached_property
    def looked(self) -> Codes:
        """The codes of a few examples, with their rates."""
        return Codes.of(self.run, FEW)

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """The examples of the map, as rows of the data, in an order of chance: the first are as good as any."""
        rows = self.run.split(most=self.points).rows
        return np.random.default_rng(0).permutation(rows)

    def advance(self) -> bool:
        """Encodes the next examples of the map, and says whether all are: between two such parts sliders are answered."""
        done = sum(map(len, self._encoded))
        rows = self.rows[done : done + PART]
        if len(rows):
            z = self.run.encode(batch_of(self.run.data, rows, self.run.given))
            self._encoded.append(self.flat(z))
        return done + len(rows) == len(self.rows)

    @cached_property
    def codes(self) -> Floats:
        """The codes of the map in the chart, (n, J)."""
        while not self.advance():
            pass
        return np.concatenate(self._encoded)

    @cached_property
    def dimensions(self) -> list[Dimension]:
        """All of them, the one that says most first."""
        looked, chart = self.looked, self.flat(self.looked.z)
        low, high = np.quantile(chart, (0.002, 0.998), axis=0)
        margin = 0.1 * np.maximum(high - low, 1e-3)
        ends = np.stack([low - margin, high + margin])
        reach = self.run.space.reach(np.inf)
        ends = np.clip(ends, -reach, reach).round(3)
        return [
            Dimension(
                j, None if looked.rate is None else float(looked.rate[j]), float(looked.variance[j]),
                bool(looked.active[j]), float(ends[0, j]), float(ends[1, j]),
            )
            for j in looked.order
        ]  # fmt: skip

    @property
    def has_prior(self) -> bool:
        """Whether there is a p(z) to draw from."""
        return not isinstance(self.run.model.prior, NoPrior)

    @cached_property
    def origin(self) -> Floats:
        """The middle of its space: zero, or on a sphere the direction of the mean."""
        middle = np.zeros(self.run.latent, np.float32)
        return self.back(self.looked.mean.mean(0)) if isinstance(self.run.space, Sphere) else middle

    def flat(self, z: Any) -> Floats:
        """Codes in the chart."""
        return self.run.space.flat(torch.as_tensor(np.asarray(z, np.float32))).numpy()

    def back(self, v: Any) -> Floats:
        """Codes from the chart."""
        return self.run.space.back(torch.as_tensor(np.asarray(v, np.float32))).numpy()

    def u(self, given: Given | None, n: int) -> Any:
        """The labels that a conditional model is given, for n codes."""
        return self.run.labelled(n, **dict(given or {})) if self.run.given else None

    def named(self, row: int) -> dict[str, str]:
        """The labels of an example by name."""
        data = self.run.data
        classes = {name: self.classes(name) for name in data.about.labels}
        return {
            name: classes[name][int(value)] for name, value in zip(data.about.labels, data.labels[row], strict=True)
        }

    def classes(self, label: str) -> list[str]:
        """What the values of a label are called."""
        data = self.run.data
        return list(data.classes.get(label) or map(str, range(data.about.labels[label])))

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The values shown as black and white."""
        return extent(self.run)

    def shown(self, made: Any) -> Answer:
        """Examples as the page shows them: one picture, sentences, or numbers."""
        if self.kind == "pixels":
            return sprite(np.asarray(made), *self.ends)
        if self.kind == "tokens":
            return Answer({"count": len(made), "sentences": list(made)})
        return Answer({"count": len(made), "values": [plain(row) for row in made]})

    def decoded(self, z: Any, given: Given | None, decoding: Decoding | None = None) -> Answer:
        """What codes (n, J) stand for."""
        codes = np.asarray(z, np.float32)
        return self.shown(self.run.decode(codes, self.u(given, len(codes)), decoding))

    def place(self, z: Any) -> dict[str, Any]:
        """A code, and where the sliders stand for it."""
        code = np.asarray(z, np.float32)
        if code.shape != (self.run.latent,) or not np.isfinite(code).all():
            raise Problem(f"a code of this model has {self.run.latent} numbers")
        return {"z": plain(code), "at": plain(self.flat(code))}

    def sheet(self) -> dict[str, Any]:
        """What the page is built from."""
        run, spec, measured = self.run, self.run.spec, self.run.measured
        told = {
            "title": spec.title,
            "folder": str(run.folder),
            "data": Path(spec.about.name).name,
            "same": spec.data["hash"],  # runs on the same data can be shown the same examples
            "kind": self.kind,
            "shape": list(spec.about.shape),
            "binary": spec.about.levels == 2,
            "latent": run.latent,
            "step": run.step,
            "formula": spec.card.formula,
            "paper": spec.card.paper,
            "given": {name: self.classes(name) for name in run.given},
            "answers": self.answers,
            "verdicts": of_metrics(measured),
            "numbers": measured,
        }
        return told | (self._context() if self.answers else self._codes(told["verdicts"]))

    def _context(self) -> dict[str, Any]:
        """What the page of a model that answers has beside: a context of the data to begin with."""
        return {"turns": self.run.data.turns(CONTEXT, self.run.rows()[1][:1])[0]}

    def _codes(self, told: list[str]) -> dict[str, Any]:
        """What the page of a model of codes has beside."""
        run, looked = self.run, self.looked
        rate = None if looked.rate is None else float(looked.rate.sum())
        return {
            "space": type(run.space).__name__.lower(),
            "prior": self.has_prior,
            "dimensions": [asdict(d) for d in self.dimensions],
            "ranked": "KL" if looked.rate is not None else "variance of the mean",
            "verdicts": told or verdicts([float(v) for v in looked.variance], rate),
            "labels": {name: self.classes(name) for name in run.data.about.labels},
            "styles": styles(run) if means_of(run) else {},
            "rows": len(self.rows),
            "points": self.points,
            "split": run.rows()[0],
        }
