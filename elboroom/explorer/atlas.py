"""The atlas: maps of codes in two dimensions of choice, by PCA or by t-SNE, with the contours of the prior behind them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import contourpy
import numpy as np
from scipy.ndimage import gaussian_filter

from elboroom.core.files import write, write_json
from elboroom.core.problem import Problem
from elboroom.evaluate.codes import weights_hash
from elboroom.explorer.answer import Answer, plain
from elboroom.explorer.seen import Floats, Seen

TSNE_MOST = 5000  # codes at most: half a minute
DRAWS = 20_000  # of the prior, whose density is counted on a grid of SIDE x SIDE
SIDE = 96
MASSES = (0.5, 0.9, 0.99)  # of the prior within a contour


@dataclass(frozen=True)
class Plane:
    """A plane through the chart: x, y = (v - middle) @ axes, axes (J, 2)."""

    middle: Floats
    axes: Floats
    names: tuple[str, str]

    def of(self, v: Floats) -> Floats:
        """Codes on the plane, (n, 2)."""
        return np.asarray((v - self.middle) @ self.axes, np.float32)

    def lifted(self, xy: Floats, v: Floats) -> Floats:
        """The code nearest to v that lies at a place of the plane, (J,)."""
        return np.asarray(v + self.axes @ (xy - self.of(v[None])[0]), np.float32)


class Atlas:
    """The maps of one run; t-SNE is computed once and kept in its folder."""

    def __init__(self, seen: Seen) -> None:
        self.seen = seen

    def ready(self) -> None:
        """Computes what needs the model, which one thread alone may ask."""
        _ = self.seen.codes, self.draws, self._seal

    @cached_property
    def draws(self) -> Floats | None:
        """Draws of the prior in the chart; none where there is no prior, or one for every label."""
        run = self.seen.run
        return self.seen.flat(run.draw(DRAWS)) if self.seen.has_prior and not run.given else None

    def plane(self, view: str) -> Plane:
        """`pca`, or two dimensions as in `3,5`."""
        latent = self.seen.run.latent
        if view == "pca":
            return self._pca
        try:
            pair = [int(part) for part in view.split(",")]
        except ValueError:
            pair = []
        if len(pair) != 2 or not all(0 <= j < latent for j in pair):
            raise Problem(f"a map is pca, tsne or two dimensions from 0 to {latent - 1}, not '{view[:40]}'")
        axes = np.eye(latent, dtype=np.float32)[:, pair]
        return Plane(np.zeros(latent, np.float32), axes, (f"z{pair[0]}", f"z{pair[1]}"))

    @cached_property
    def _pca(self) -> Plane:
        codes = self.seen.codes
        middle = codes.mean(0)
        _, values, vectors = np.linalg.svd(codes - middle, full_matrices=False)
        axes = np.zeros((codes.shape[1], 2), np.float32)
        axes[:, : len(vectors[:2])] = vectors[:2].T
        share = np.append(values**2 / max(float((values**2).sum()), 1e-12), [0.0, 0.0])
        names = [f"PC {k + 1}, {share[k]:.0%} of the variance" for k in (0, 1)]
        return Plane(middle, axes, (names[0], names[1]))

    def map(self, view: str) -> Answer:
        """Places of the examples as float32 (n, 2), what the axes are, and contours of the prior."""
        if view == "tsne":
            points = self._tsne
            return Answer({"n": len(points), "axes": ["", ""], "contours": []}, points.tobytes())
        plane = self.plane(view)
        points = np.ascontiguousarray(plane.of(self.seen.codes))
        facts = {
            "n": len(points), "axes": list(plane.names), "contours": self._contours(plane),
            "middle": plain(plane.middle), "across": plain(plane.axes[:, 0]), "up": plain(plane.axes[:, 1]),
        }  # fmt: skip
        return Answer(facts, points.tobytes())

    def _contours(self, plane: Plane) -> list[dict[str, Any]]:
        """Lines within which so much of the prior lies, from its draws."""
        if self.draws is None:
            return []
        xy = plane.of(self.draws)
        reach = float(np.quantile(np.abs(xy), 0.9995)) * 1.2 + 1e-6
        counts, edges, _ = np.histogram2d(xy[:, 0], xy[:, 1], SIDE, ((-reach, reach), (-reach, reach)))
        density = gaussian_filter(counts, 2.0)
        centres = (edges[:-1] + edges[1:]) / 2
        ranked = np.sort(density.ravel())[::-1]
        mass = np.cumsum(ranked) / max(float(ranked.sum()), 1e-12)
        lines = contourpy.contour_generator(centres, centres, density.T)
        found = []
        for share in MASSES:
            level = float(ranked[min(int(np.searchsorted(mass, share)), len(ranked) - 1)])
            found += [{"mass": share, "line": plain(np.asarray(line).ravel())} for line in lines.lines(level)]
        return found

    @cached_property
    def _seal(self) -> str:
        """What a kept t-SNE belongs to: these weights, this data, these rows."""
        run, rows = self.seen.run, self.seen.rows[:TSNE_MOST]
        told = (weights_hash(run.model), str(run.spec.data["hash"]), hashlib.sha256(rows.tobytes()).hexdigest())
        return hashlib.sha256(" ".join(told).encode()).hexdigest()

    @cached_property
    def _tsne(self) -> Floats:
        codes, folder = self.seen.codes[:TSNE_MOST], self.seen.run.folder / "explorer"
        kept = self._kept(len(codes))
        if kept is not None:
            return kept
        from elboroom.plots.sentences import flattened

        points: Floats = np.ascontiguousarray(flattened(codes.astype(np.float64)), np.float32)
        try:
            folder.mkdir(exist_ok=True)
            write(folder / "tsne.f32", points.tobytes())
            write_json(folder / "tsne.json", {"seal": self._seal, "n": len(points)})
        except (OSError, Problem):
            pass  # a folder that cannot be written keeps nothing, and the map is there all the same
        return points

    def _kept(self, n: int) -> Floats | None:
        folder = self.seen.run.folder / "explorer"
        try:
            if json.loads((folder / "tsne.json").read_text()) != {"seal": self._seal, "n": n}:
                return None
            points = np.frombuffer((folder / "tsne.f32").read_bytes(), np.float32)
        except (OSError, ValueError, RecursionError):
            return None
        return points.reshape(n, 2) if points.size == 2 * n and np.isfinite(points).all() else None
