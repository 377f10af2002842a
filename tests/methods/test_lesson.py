"""What a critic of a dual KL learns by, unless it is told."""

from __future__ import annotations

import pytest

from elboroom.data.dataset import DataSet
from elboroom.methods.implicit import Generator, lesson
from elboroom.methods.parts import Parts


@pytest.mark.parametrize(("generator", "on_text"), [("linear", "dual"), ("mlp", "logistic")])
def test_the_dual_is_for_a_linear_generator_of_text(
    sentences: DataSet, pixels: DataSet, generator: Generator, on_text: str
) -> None:
    assert lesson(Parts(sentences.about), generator, "auto") == on_text
    assert lesson(Parts(pixels.about), generator, "auto") == "logistic"


def test_what_is_told_is_done(sentences: DataSet) -> None:
    assert lesson(Parts(sentences.about), "mlp", "dual") == "dual"
    assert lesson(Parts(sentences.about), "linear", "logistic") == "logistic"
