"""Misused calls: whatever a caller got wrong is elboroom.Problem, and no run is broken by it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import elboroom
from elboroom import Problem, Run
from elboroom.divergences import compare
from elboroom.evaluate.disentanglement import evaluate, score
from elboroom.runs.measure import metrics
from elboroom.studies import Study, query, run_study, summarise
from elboroom.studies import write_report as studies_report
from elboroom.training.spec import Spec

SMALL: dict[str, Any] = {"steps": 2, "batch_size": 8, "latent": 2, "threads": 1, "device": "cpu"}
HUGE = np.full((2, 2), 1e300)
ODD: tuple[Any, ...] = (
    None,
    5,
    1.5,
    "x",
    b"x",
    object(),
    [],
    {},
    [[1], [1, 2]],
    np.ones((2, 2), complex),
    HUGE,
    np.nan,
    [object()],
)


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Run:
    x = np.random.default_rng(0).integers(0, 256, (40, 8, 8)).astype(np.uint8)
    folder = tmp_path_factory.mktemp("runs")
    np.save(folder / "x.npy", x)
    return elboroom.train("vae", str(folder / "x.npy"), folder / "image", **SMALL)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("runs")
    (folder / "words.txt").write_text("".join(f"w{i % 7} w{i % 5} w{i % 3}\n" for i in range(60)))
    return elboroom.train("vae", str(folder / "words.txt"), folder / "text", **SMALL, embed=4, hidden=5)


def some(odd: Any, instead: Any) -> Any:
    """Something that is wrong here, where nothing at all would be right."""
    return instead if odd is None or (isinstance(odd, list | dict) and not odd) else odd


STUDY = Study.of({"data": "x", "runs": [{"method": "vae"}]})
CALLS: dict[str, Callable[[Run, Any], Any]] = {
    "encode": lambda run, odd: run.encode(odd),
    "decode": lambda run, odd: run.decode(odd),
    "reconstruct": lambda run, odd: run.reconstruct(odd),
    "interpolate": lambda run, odd: run.interpolate(odd, odd),
    "analogy": lambda run, odd: run.analogy(odd, odd, odd),
    "sample": lambda run, odd: run.sample(odd if not isinstance(odd, int) else -odd),
    "seed": lambda run, odd: run.sample(2, seed=odd if not isinstance(odd, int) else -odd),
    "split": lambda run, odd: run.split(odd if odd is not None else 5),
    "dims": lambda run, odd: run.traverse(dims=some(odd, 5)),
    "reach": lambda run, odd: run.traverse(reach=odd if not isinstance(odd, int | float) else np.nan),
    "points": lambda run, odd: run.traverse(points=odd if not isinstance(odd, int) else -odd),
    "evaluate": lambda run, odd: run.evaluate(samples=odd if not isinstance(odd, int) else -odd),
    "most": lambda run, odd: run.log_likelihood(most=odd if not isinstance(odd, int) else -odd),
    "metrics": lambda run, odd: metrics(run, some(odd, "no-such")),
    "resume": lambda run, odd: elboroom.resume(run.folder, steps=odd if isinstance(odd, float) else -1),
    "resume where": lambda run, odd: elboroom.resume(odd),
    "load": lambda run, odd: elboroom.load(odd),
    "load data": lambda run, odd: elboroom.load(run.folder, data=odd if odd is not None else 5),
    "compare": lambda run, odd: compare(odd, odd),
    "train": lambda run, odd: elboroom.train("vae", 5 if odd is None else odd, run.folder.parent / "new"),
    "train method": lambda run, odd: elboroom.train(odd, "no-such"),
    "train option": lambda run, odd: elboroom.train(
        "vae", run.spec.data["source"], run.folder.parent / "new", no_such=odd
    ),
    "study": lambda run, odd: Study.of({"runs": some(odd, 5)}).cells(),
    "study of": lambda run, odd: Study.of(some(odd, 5)),
    "study read": lambda run, odd: Study.read(odd),
    "study scaled": lambda run, odd: STUDY.scaled(steps=-5 if odd is None or isinstance(odd, int) else odd),
    "study seeds": lambda run, odd: STUDY.scaled(seeds=-5 if odd is None or isinstance(odd, int) else odd),
    "summarise": lambda run, odd: summarise(some(odd, 5)),
    "summarise by": lambda run, odd: summarise([], some(odd, 5)),
    "study report": lambda run, odd: studies_report(odd),
    "score": lambda run, odd: score("mig", odd, np.arange(40)[:, None] % 2),
    "score name": lambda run, odd: score(odd, np.zeros((40, 2)), np.arange(40)[:, None] % 2),
    "score kinds": lambda run, odd: score("mig", np.zeros((40, 2)), np.arange(40)[:, None] % 2, some(odd, 5)),
    "evaluate codes": lambda run, odd: evaluate(odd),
    "generate": lambda run, odd: run.generate(odd),
    "transfer": lambda run, odd: run.transfer(odd),
    "edit": lambda run, odd: run.edit(odd),
    "attribute": lambda run, odd: run.attribute(odd),
    "export": lambda run, odd: run.export(odd),
    "export where": lambda run, odd: run.export("projector", 5 if odd is None or isinstance(odd, str) else odd),
    "plot": lambda run, odd: run.plot(odd),
    "report": lambda run, odd: run.report(5 if odd is None or isinstance(odd, str) else odd),
    "study where": lambda run, odd: run_study(odd, run.folder),
    "query": lambda run, odd: query(run.folder, odd),
}


@pytest.mark.parametrize("kind", ["images", "text"])
@pytest.mark.parametrize("name", CALLS)
def test_every_misuse_is_a_problem(kind: str, name: str, request: pytest.FixtureRequest) -> None:
    run: Run = request.getfixturevalue(kind)
    reads = kind == "text" and name in (
        "encode",
        "reconstruct",
        "interpolate",
        "analogy",
    )  # a sentence of one word is one
    for odd in (value for value in ODD if not (reads and isinstance(value, str))):
        with pytest.raises(Problem) as caught:
            CALLS[name](run, odd)
        assert str(caught.value)
        assert "\n" not in str(caught.value)


def test_half_a_step_breaks_no_run(images: Run) -> None:
    before = (images.folder / "spec.json").read_bytes()
    for steps in (1.5, "2", True, -1, 0, 10**40):
        with pytest.raises(Problem):
            elboroom.resume(images.folder, steps=steps)  # type: ignore[arg-type]
    assert (images.folder / "spec.json").read_bytes() == before
    assert Spec.read(images.folder).until == 2
    assert elboroom.resume(images.folder, steps=np.int64(1)).step == 3  # type: ignore[arg-type]


def test_lengths_and_numbers_that_are_right_are_taken(images: Run) -> None:
    assert images.decode([[0, 0]]).shape == (1, 1, 8, 8)
    assert images.sample(np.int32(2)).shape == (2, 1, 8, 8)  # type: ignore[arg-type]
    assert images.traverse(dims=np.array([0]), points=3).shape == (1, 3, 1, 8, 8)  # type: ignore[arg-type]
    with pytest.raises(Problem, match="GB of memory"):
        images.sample(10**15)


def test_a_comparison_of_texts_is_refused(tmp_path: Path) -> None:
    from shell import elbo

    (tmp_path / "a.txt").write_text("a b\nb a\n" * 20)
    done = elbo("compare", tmp_path / "a.txt", tmp_path / "a.txt")
    assert done.returncode == 2
    assert "is text" in done.stderr


@pytest.mark.parametrize(
    "option", ["--latent=1000000000", "--threads=1000000", "--seed=36893488147419103232", "--steps=1e40"]
)
def test_numbers_that_are_too_large_are_one_sentence(images: Run, option: str) -> None:
    from shell import elbo

    done = elbo(
        "train",
        "vae",
        "--data",
        images.spec.data["source"],
        "--batch-size",
        8,
        "--out",
        images.folder.parent / "b",
        option,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("elbo: ")
    assert done.stderr.count("\n") == 1
