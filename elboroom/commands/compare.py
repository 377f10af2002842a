"""elbo compare."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from elboroom.commands.output import Json, Seed, figure_file, print_json, print_table
from elboroom.core.problem import Problem

if TYPE_CHECKING:
    from elboroom.runs.sources import Sample

Test = Literal["differ", "fit", "independence"]
READ: dict[Test, tuple[str, ...]] = {  # which of the options that not every test has
    "differ": ("kernel", "divergences", "most", "out"),
    "fit": ("kernel", "models", "most"),
    "independence": (),
}


def compare(
    ctx: typer.Context,
    a: Annotated[
        str, typer.Argument(metavar="A", help="a sample: .npy, file.npz:key, a data set (mnist, mnist:train), a run")
    ],
    b: Annotated[str | None, typer.Argument(metavar="[B]", help="the other sample; none with --test fit")] = None,
    test: Annotated[
        Test,
        typer.Option(
            "--test",
            help="differ: are A and B of one distribution; fit: which model is A a sample of; independence: do rows of A "
            "tell of the same rows of B",
        ),
    ] = "differ",
    out: Annotated[
        Path | None, typer.Option("--out", help="of differ: a figure of the witness function: .png, .svg or .pdf")
    ] = None,
    kernel: Annotated[str, typer.Option("--kernel", help="rbf or imq")] = "rbf",
    permutations: Annotated[int, typer.Option("--permutations", min=1)] = 1000,
    divergences: Annotated[
        str, typer.Option("--divergences", help="of differ: f-divergences to bound as well, comma-separated")
    ] = "",
    models: Annotated[
        str, typer.Option("--models", help="of fit: normal is N(0, I); gaussian, gaussians-2, ... are fitted to half of A")
    ] = "gaussian,gaussians-2",
    most: Annotated[int, typer.Option("--most", min=5, help="rows of each sample at most; how many a run draws")] = 2000,
    seed: Seed = 0,
    json: Json = False,
) -> None:  # fmt: skip
    """Test whether two samples differ, and show where; or how well a model fits one, or whether two are independent."""
    for option in {name for names in READ.values() for name in names} - {*READ[test]}:
        source = ctx.get_parameter_source(option)
        if source is not None and source.name == "COMMANDLINE":
            raise Problem(f"--{option} has no effect with --test {test}; remove it")
    if (b is None) != (test == "fit"):
        raise Problem("--test fit takes one sample, A" if b else f"--test {test} takes two samples, A and B")
    path = None if out is None else figure_file(out)
    from elboroom.runs.sources import sample

    first = sample(a, most, seed, paired=test == "independence")
    if b is None:
        return _fit(first, _words(models), kernel, permutations, seed, json)
    second = sample(b, most, seed, paired=test == "independence")
    if test == "independence":
        return _independence(first, second, permutations, seed, json)
    _differ(first, second, path, kernel, permutations, _words(divergences), seed, json)


def _differ(
    a: Sample, b: Sample, path: Path | None, kernel: str, permutations: int, divergences: list[str], seed: int, json: bool
) -> None:  # fmt: skip
    from elboroom.divergences import compare as compared
    from elboroom.plots.style import save
    from elboroom.plots.witness import witness

    names = (a.name, b.name)
    how: dict[str, Any] = {
        "kernel": kernel,
        "permutations": permutations,
        "divergences": divergences,
        "most": max(len(a), len(b)),
    }
    found = compared(a.rows, b.rows, **how, seed=seed, names=names)
    if path is not None:
        shapes = {sample.shape for sample in (a, b)} - {None}  # vectors of as many values may be images too
        save(witness(found, shapes.pop() if len(shapes) == 1 else None), path)
    if json:
        return print_json(found.to_json())
    print(found.verdict)
    print(_rows(a, b))
    for name, value in found.divergences.items():
        print(f"{name}: {value}")


def _fit(a: Sample, names: list[str], kernel: str, permutations: int, seed: int, json: bool) -> None:
    from elboroom.divergences import goodness, model

    models = {name: model(name) for name in names}
    found = goodness(a.rows, models, kernel=kernel, permutations=permutations, most=len(a), seed=seed)
    if json:
        return print_json(found.to_json())
    print(found.verdict)
    print(_rows(a))
    rows: list[list[object]] = [
        [name, f"{fit.log_density:.4g} ± {fit.error:.2g}", f"{fit.behind:.3g} ± {fit.behind_error:.2g}",
         f"{fit.mmd2_u:.3g}", f"{fit.p:.3g}"] for name, fit in found.fits.items()
    ]  # fmt: skip
    print_table(["model", "log-density, nats per row", "behind the best", "MMD² of draws", "p"], rows)


def _independence(a: Sample, b: Sample, permutations: int, seed: int, json: bool) -> None:
    from elboroom.divergences import independence

    found = independence(a.rows, b.rows, permutations=permutations, seed=seed, names=(a.name, b.name))
    if json:
        return print_json(found.to_json())
    print(found.verdict)
    print(_rows(a))
    for estimate in (found.variational, found.neighbours):
        if estimate is not None:
            print(f"mutual information, {estimate.estimator}: {estimate}")


def _rows(*samples: Sample) -> str:
    """How many rows were looked at."""
    parts = [f"{len(s):,}" + (f" of {s.total:,}" if s.total > len(s) else "") for s in samples]
    return f"rows: {' and '.join(parts)}"


def _words(said: str) -> list[str]:
    return [word.strip() for word in said.split(",") if word.strip()]
