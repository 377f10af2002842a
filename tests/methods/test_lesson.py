"""What a critic of a dual KL learns by, unless it is told."""

from __future__ import annotations

import pytest

from elboroom.build.parts import Parts
from elboroom.data.dataset import DataSet
from elboroom.methods.implicit import lesson


@pytest.mark.parametrize(
    ("posterior", "on_text"),
    [
        ("implicit-linear", "dual"),
        ("wrapped-linear", "dual"),
        ("gaussian", "dual"),
        ("implicit", "logistic"),
        ("wrapped-implicit", "logistic"),
    ],
)
def test_the_dual_is_for_posteriors_of_text_with_a_density(
    sentences: DataSet, pixels: DataSet, posterior: str, on_text: str
) -> None:
    for data, expected in ((sentences, on_text), (pixels, "logistic")):
        parts = Parts(data.about)
        assert lesson(parts, parts.vae(posterior, fixed_prior=True), "auto") == expected


def test_what_is_told_is_done(sentences: DataSet) -> None:
    parts = Parts(sentences.about)
    assert lesson(parts, parts.vae("implicit"), "dual") == "dual"
    assert lesson(parts, parts.vae("implicit-linear"), "logistic") == "logistic"
