"""elbo methods, eval, plot, compare."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from elboroom.commands.output import Folders, Json, Seed, SplitName, print_json, print_table, say
from elboroom.core.problem import Problem, unknown

if TYPE_CHECKING:
    from elboroom.evaluate.registry import Metric


def methods(name: Annotated[str | None, typer.Argument(help="one method")] = None, json: Json = False) -> None:
    """List the methods with formula, citation and options."""
    from elboroom.build.registry import ByData
    from elboroom.methods import card, cards

    chosen = [card(name)] if name else list(cards().values())
    if json:
        print_json(
            [
                {
                    "name": c.name,
                    "summary": c.summary,
                    "formula": c.formula,
                    "paper": c.paper,
                    "options": {
                        o.name: {"other": o.default.other, **o.default.kinds}
                        if isinstance(o.default, ByData)
                        else o.default
                        for o in c.options
                    },
                }
                for c in chosen
            ]
        )
        return
    print_table(["method", "loss", "paper"], [[c.name, c.formula, c.paper] for c in chosen])


def evaluate(
    ctx: typer.Context,
    folders: Folders,
    metrics: Annotated[
        str,
        typer.Option(
            "--metrics",
            help="likelihood, or all, or names of metrics with commas; text is of the sentences that a model makes, probe of "
            "its first label from few examples; all leaves out downstream, the prediction of every factor with 10 to 10,000 "
            "labels, which takes minutes; udr takes several runs",
        ),
    ] = "likelihood",
    mode: Annotated[
        str, typer.Option("--mode", help="of the metrics, where they have it; boosting or logistic of downstream")
    ] = "dlib",
    representation: Annotated[str, typer.Option("--representation", help="mean or sampled")] = "mean",
    interval: Annotated[bool, typer.Option("--interval", help="with intervals: every metric several times")] = False,
    smaller: Annotated[
        bool, typer.Option("--smaller", help="metrics of data with fewer rows than a protocol asks for")
    ] = False,
    split: SplitName = None,
    samples: Annotated[int, typer.Option("--samples", min=1, help="K of the importance-weighted bound")] = 100,
    most: Annotated[int, typer.Option("--most", min=2, help="at most this many examples")] = 10_000,
    iw_most: Annotated[int, typer.Option("--iw-most", min=0, help="of which IW-K looks at this many; 0 is all")] = 1000,
    proposal: Annotated[
        str, typer.Option("--proposal", help="gaussian or flow, fitted to a q(z|x) that can only be sampled")
    ] = "gaussian",
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Measure a run: ELBO and its parts, IW-K, active units, mutual information; with --metrics, its codes too."""
    from elboroom.evaluate.likelihood.proposal import NAMES
    from elboroom.evaluate.registry import chosen
    from elboroom.families.fitted import is_sampled
    from elboroom.runs import load, measure

    names = [name.strip() for name in metrics.split(",") if name.strip()]
    if proposal not in NAMES:
        raise unknown("proposal", proposal, NAMES)
    asked = chosen(names, has_sentences=True)
    options = ctx.params | {"iw_most": iw_most or None}
    _refuse_idle(ctx, asked)
    if len(asked) == 1 and asked[0].needs == "several runs":
        results = measure.agreement([load(folder) for folder in folders], asked[0].name)
        found = {name: result.to_json() for name, result in results.items()}
        return print_json(found) if json else _table({"run": {"method": asked[0].name, "step": 0}} | found)
    runs, everything = {folder: load(folder) for folder in folders}, {}
    if _was_said(ctx, "proposal") and not any(is_sampled(run.model) for run in runs.values()):
        raise Problem("q(z|x) has a density of its own or is a point, so that nothing is fitted: leave --proposal out")
    for folder, run in runs.items():
        content = everything[str(folder)] = measure.metrics(run, names, **options)
        if not json:
            _table(content, f"{folder}: ")
    if json:
        print_json(everything if len(folders) > 1 else everything[str(folders[0])])


def _refuse_idle(ctx: typer.Context, asked: list[Metric]) -> None:
    """Refuses, in a sentence, an option that none of the metrics asked for would read."""
    read = {option for entry in asked for option in entry.options} | {"folders", "metrics", "json"}
    for option in ctx.params:
        if option not in read and _was_said(ctx, option):
            names = ",".join(sorted(ctx.params["metrics"].split(",")))
            raise Problem(f"--metrics {names} has no use for --{option.replace('_', '-')}: leave it out")


def _was_said(ctx: typer.Context, option: str) -> bool:
    source = ctx.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"


def _table(found: dict[str, Any], title: str = "") -> None:
    from elboroom.evaluate.result import Result

    rows: list[list[object]] = []
    shown = {name: entry for name, entry in found.items() if name not in ("run", "rate_per_dim")}  # the rate again
    results = {name: Result.from_json(name, entry) for name, entry in shown.items()}
    settings: dict[str, Any] = next((r.settings for r in results.values() if "data" in r.settings), {})
    for name, result in results.items():
        value = "—" if result.value is None else f"{round(result.value, 4) + 0.0:.4f}".rstrip("0").rstrip(".")
        errors = ", ".join(f"± {e:.2g} {kind.replace('_', ' ')}" for kind, e in result.errors.items())
        if result.interval:
            errors = f"{result.interval['low']:.3f} to {result.interval['high']:.3f}"
        ceiling, how = result.parts.get("ceiling"), result.estimator
        unit = result.unit + (f" (at most {ceiling:.2f})" if isinstance(ceiling, float) else "")
        n = result.settings.get("n", settings.get("n"))
        if "fitted" in how and result.value is not None and "effective_samples" in result.parts:
            how += f", {result.parts['effective_samples']:.1f} effective of {result.settings['K']}"
        how += f", {n:,} row{'s' * (n != 1)}" if result.value is not None and n != settings.get("n") else ""
        rows.append([name.replace("_", " "), value, errors or result.reason, unit, how])
    run, on = found["run"], ""
    if settings:
        on = f", on {settings['n']:,} rows of {settings['split']} of {settings['data']}"
    print_table(
        ["measure", "value", "error or interval", "unit", "estimator"],
        rows,
        f"{title}{run.get('title', run['method'])}, step {run['step']:,}{on}",
    )


def plot(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="what to draw; elbo plot list names them")],
    folders: Annotated[list[Path] | None, typer.Argument(metavar="DIR...", help="the folders of runs")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="a .png, .svg or .pdf file", show_default="KIND.png")
    ] = None,
    json: Json = False,
) -> None:
    """Draw one figure of a run, or of several."""
    from elboroom.plots.kinds import KINDS
    from elboroom.plots.style import save
    from elboroom.runs.lifecycle import load

    if kind == "list":
        told = {name: entry.what for name, entry in KINDS.items()}
        return print_json(told) if json else print_table(["kind", "what it shows"], [[k, v] for k, v in told.items()])
    if kind not in KINDS:
        raise unknown("figure", kind, KINDS)
    path = _figure(out or Path(f"{kind}.png"))
    save(KINDS[kind].draw([load(folder) for folder in folders or []]), path)
    print_json({"out": str(path)}) if json else say(str(path))


def compare(
    a: Annotated[str, typer.Argument(metavar="A.npy", help="a sample, one row an example")],
    b: Annotated[str, typer.Argument(metavar="B.npy", help="another")],
    out: Annotated[Path | None, typer.Option("--out", help="a picture of the witness function")] = None,
    kernel: Annotated[str, typer.Option("--kernel", help="rbf or imq")] = "rbf",
    permutations: Annotated[int, typer.Option("--permutations", min=1)] = 1000,
    divergences: Annotated[str, typer.Option("--divergences", help="f-divergences to bound too, with commas")] = "",
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Say whether two samples differ: MMD with a permutation test, and a picture of where."""
    from elboroom.divergences import compare as compared
    from elboroom.plots.style import save
    from elboroom.plots.witness import witness

    path = None if out is None else _figure(out)
    also = [name.strip() for name in divergences.split(",") if name.strip()]
    x, y = _sample(a), _sample(b)
    found = compared(x, y, kernel=kernel, permutations=permutations, divergences=also, seed=seed, names=(a, b))
    if path is not None:
        save(witness(found), path)
    if json:
        return print_json(found.to_json())
    print(found.verdict)
    for name, value in found.divergences.items():
        print(f"{name}: {value}")


def _figure(path: Path) -> Path:
    """Where a figure goes."""
    if path.suffix not in (".png", ".svg", ".pdf"):
        raise Problem(f"--out {path}: a figure is a .png, .svg or .pdf file")
    return path


def _sample(path: str) -> Any:
    import numpy as np

    from elboroom.data import registry

    data = registry.load(Path(path))
    return data.x(np.arange(len(data))).flatten(1).numpy()
