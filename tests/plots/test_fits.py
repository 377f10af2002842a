"""Forward and reverse KL fits: the closed forms, and minima."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from elboroom.core.problem import Problem
from elboroom.plots.figures import named
from elboroom.plots.fits import AT, MEANS, WEIGHTS, WIDTHS, forward, kl, reverse, target


def test_kl_on_the_grid_is_that_of_two_gaussians() -> None:
    p, q = norm.pdf(AT, 0.5, 0.7), norm.pdf(AT, -0.3, 1.2)
    truth = np.log(1.2 / 0.7) + (0.7**2 + 0.8**2) / (2 * 1.2**2) - 0.5
    assert kl(p, q) == pytest.approx(truth, abs=1e-6)


def test_forward_has_the_moments_of_the_mixture() -> None:
    w, m, s = map(np.array, (WEIGHTS, MEANS, WIDTHS))
    found = forward()
    assert found.mean == pytest.approx(w @ m, abs=1e-6)
    assert found.width**2 == pytest.approx(w @ (s**2 + m**2) - (w @ m) ** 2, abs=1e-6)
    assert found.value < kl(target(AT), norm.pdf(AT, found.mean, 1.1 * found.width))


@pytest.mark.parametrize("mode", [0, 1])
def test_reverse_settles_on_a_mode(mode: int) -> None:
    found = reverse(MEANS[mode])
    assert (found.mean, found.width) == (pytest.approx(MEANS[mode], abs=0.05), pytest.approx(WIDTHS[mode], abs=0.05))
    assert found.value == pytest.approx(-np.log(WEIGHTS[mode]), abs=0.02)  # nearly apart
    for mean, width in ((0.1, 0), (-0.1, 0), (0, 0.1), (0, -0.1)):
        near = norm.pdf(AT, found.mean + mean, found.width + width)
        assert kl(near, target(AT)) > found.value


def test_the_figure_says_what_it_fitted_and_takes_no_run() -> None:
    figure = named("kl-fits").figure([])
    assert [ax.get_title(loc="left")[:10] for ax in figure.axes] == ["KL(p || q)", "KL(q || p)"] * 2
    assert f"{forward().value:.3f} nats" in figure.axes[0].texts[0].get_text()
    radii = [patch.get_width() / 2 for patch in figure.axes[3].patches]
    assert radii == pytest.approx([np.sqrt(1 - 0.85**2), 2 * np.sqrt(1 - 0.85**2)])
    with pytest.raises(Problem, match="takes no run"):
        named("kl-fits").figure([None])  # type: ignore[list-item]
