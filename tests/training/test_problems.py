"""What ends a run is told by its class: how the command leaves, and across processes."""

from __future__ import annotations

import traceback

import pytest

from elboroom.core.problem import Problem
from elboroom.data.dataset import DataSet
from elboroom.training import session
from elboroom.training.recorder import Diverged
from elboroom.training.session import Own, Stopped
from elboroom.training.spec import specify


@pytest.mark.parametrize(("kind", "code"), [(Problem, 2), (Diverged, 2), (Stopped, 130)])
def test_a_problem_of_another_process_keeps_its_class(kind: type[Problem], code: int) -> None:
    """Of a process that was started, no more comes back than the text of its error."""
    try:
        raise kind("stopped at nothing: it said so")
    except Problem:
        text = f"-- Process 1 terminated with the following error:\n{traceback.format_exc()}\n"
    found = session._problem_in(text)
    assert type(found) is kind
    assert str(found) == "stopped at nothing: it said so"
    assert found.code == code


def test_any_other_error_of_another_process_is_no_problem() -> None:
    assert session._problem_in("Traceback (most recent call last):\nValueError: no Problem: really") is None


@pytest.mark.parametrize(
    ("name", "options", "culprit"),
    [
        ("factor-vae", {}, "critic"),
        ("mmd-vae", {}, "mmd"),
        ("free-bits", {"reduce": "batch"}, "kl_hinge"),
        ("free-bits", {}, None),
        ("beta-vae-capacity", {}, None),  # a distance of the mean, which one example has too
        ("ae-pretrained-free-bits", {}, None),
    ],
)
def test_one_example_is_refused_where_a_term_needs_two(
    vectors: DataSet, name: str, options: dict[str, str], culprit: str | None
) -> None:
    spec = specify(name, vectors, "array", None, {**options, "batch_size": 1, "latent": 2})
    if culprit is None:
        session.build(spec, Own(vectors))
        return
    with pytest.raises(Problem, match=f"--batch-size 1: {culprit} needs several examples in a batch"):
        session.build(spec, Own(vectors))
