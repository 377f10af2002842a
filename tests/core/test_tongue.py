"""Options in messages: flags at a command line, arguments in Python."""

from __future__ import annotations

import pytest

from elboroom.core.calls import asked
from elboroom.core.problem import Problem
from elboroom.core.tongue import spoken, typed

pytestmark = pytest.mark.arguments


@pytest.mark.parametrize(
    ("flags", "arguments"),
    [
        ("--batch-size 64 is more than 29", "batch_size=64 is more than 29"),
        ("use --no-standardise", "use standardise=False"),
        ("use --label-column none to read a TAB", "use label_column='none' to read a TAB"),
        ("choose another --out, or --overwrite", "choose another out, or overwrite=True"),
        ("--lr-end is for --decay cosine or linear; remove it", "lr_end is for decay='cosine' or linear; remove it"),
        ("pass it again with --data FILE.npy", "pass it again with data=FILE.npy"),
        ("--warmup-steps 3 is not less", "warmup_steps=3 is not less"),
        (
            "vae has no option --batchsize; did you mean 'batch-size'?",
            "vae has no option batchsize; did you mean 'batch_size'?",
        ),
        ("a -- b", "a -- b"),
    ],
)
def test_flags_become_arguments(flags: str, arguments: str) -> None:
    assert spoken(flags) == arguments
    with typed():
        assert spoken(flags) == flags


def test_a_function_that_a_user_calls_speaks_of_arguments() -> None:
    @asked
    def wrong() -> None:
        raise Problem("--size must be 1 to 16,384")

    with pytest.raises(Problem, match=r"^size must be"):
        wrong()
    with typed(), pytest.raises(Problem, match=r"^--size must be"):
        wrong()
