"""Figures of a run: `f(run) -> Figure`, and plain pictures from arrays of images."""

from elboroom.plots.curves import curves
from elboroom.plots.exhibit import Exhibit
from elboroom.plots.figures import gallery
from elboroom.plots.images import densities, interpolations, reconstructions, samples, traversals
from elboroom.plots.latent import aggregate, collapse, dimensions, pairs, rates
from elboroom.plots.pictures import contact_sheet, mosaic, save_gif, save_grid
from elboroom.plots.style import save

__all__ = [
    "Exhibit",
    "aggregate",
    "collapse",
    "contact_sheet",
    "curves",
    "densities",
    "dimensions",
    "gallery",
    "interpolations",
    "mosaic",
    "pairs",
    "rates",
    "reconstructions",
    "samples",
    "save",
    "save_gif",
    "save_grid",
    "traversals",
]
