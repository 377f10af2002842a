"""elbo methods, eval, plot, compare."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, cast

import typer

from elboroom.commands.output import Folders, Json, Seed, SplitName, print_json, print_table, say
from elboroom.core.problem import Problem, unknown

BESIDE = ("likelihood", "downstream", "text", "probe")  # of --metrics, what is not of the code table


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
    from elboroom.families.fitted import is_sampled
    from elboroom.runs import load, measure

    names = [name.strip() for name in metrics.split(",") if name.strip()]
    if "udr" in names and names != ["udr"]:
        raise Problem("udr compares several runs: ask for it alone, elbo eval RUN RUN ... --metrics udr")
    if names == ["udr"]:
        found = measure.agreement([load(folder) for folder in folders])
        return print_json(found) if json else _table({"run": {"method": "udr", "step": 0}} | found)
    if proposal not in NAMES:
        raise unknown("proposal", proposal, NAMES)
    _refuse_idle(ctx, set(names))
    runs, everything = {folder: load(folder) for folder in folders}, {}
    if _was_said(ctx, "proposal") and not any(is_sampled(run.model) for run in runs.values()):
        raise Problem("q(z|x) has a density of its own or is a point, so that nothing is fitted: leave --proposal out")
    for folder, run in runs.items():
        if "likelihood" in names or "all" in names:
            content = run.evaluate(split, samples, most, iw_most or None, seed, cast(Any, proposal))
        else:
            content = run.measured
        chosen: Any = "all" if "all" in names else [name for name in names if name not in BESIDE]
        if chosen:
            content = measure.disentanglement(run, chosen, mode, representation, seed, interval, smaller)
        if "downstream" in names:
            content = measure.downstream(run, mode, representation, seed)
        if "text" in names or ("all" in names and run.tokeniser is not None):
            content = measure.text(run, most=most, seed=seed, split=split)
        if "probe" in names:
            content = measure.probe(run, seed, split)
        everything[str(folder)] = content
        if not json:
            _table(content, f"{folder}: ")
    if json:
        print_json(everything if len(folders) > 1 else everything[str(folders[0])])


# Which of --metrics an option is for; of codes are all that have no other place.
_FOR = {
    "mode": {"all", "codes", "downstream"},
    "representation": {"all", "codes", "downstream"},
    "interval": {"all", "codes"},
    "smaller": {"all", "codes"},
    "split": {"all", "likelihood", "text", "probe"},
    "samples": {"all", "likelihood"},
    "most": {"all", "likelihood", "text"},
    "iw_most": {"all", "likelihood"},
    "proposal": {"all", "likelihood"},
}


def _refuse_idle(ctx: typer.Context, names: set[str]) -> None:
    """Refuses, in a sentence, an option that none of the metrics asked for would read."""
    kinds = {name if name in (*BESIDE, "all") else "codes" for name in names}
    for option, readers in _FOR.items():
        if _was_said(ctx, option) and not kinds & readers:
            flag = option.replace("_", "-")
            raise Problem(f"--metrics {','.join(sorted(names))} has no use for --{flag}: leave it out")


def _was_said(ctx: typer.Context, option: str) -> bool:
    source = ctx.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"


def _table(found: dict[str, Any], title: str = "") -> None:
    rows: list[list[object]] = []
    numbers = {name: number for name, number in found.items() if name not in ("run", "rate_per_dim")}  # the rate again
    settings: dict[str, Any] = next((n["settings"] for n in numbers.values() if "data" in n.get("settings", {})), {})
    for name, number in numbers.items():
        value = "—" if number["value"] is None else f"{round(number['value'], 4) + 0.0:.4f}".rstrip("0").rstrip(".")
        errors = ", ".join(f"± {e:.2g} {kind.replace('_', ' ')}" for kind, e in number.get("errors", {}).items())
        if number.get("interval"):
            errors = f"{number['interval']['low']:.3f} to {number['interval']['high']:.3f}"
        ceiling = number.get("parts", {}).get("ceiling")
        unit = number.get("unit", "") + (f" (at most {ceiling:.2f})" if isinstance(ceiling, float) else "")
        how = number.get("estimator") or number.get("mode", "")
        n = number.get("settings", {}).get("n", settings.get("n"))
        if "fitted" in how and number["value"] is not None and "effective_samples" in number.get("parts", {}):
            how += f", {number['parts']['effective_samples']:.1f} effective of {number['settings']['K']}"
        how += f", {n:,} row{'s' * (n != 1)}" if number["value"] is not None and n != settings.get("n") else ""
        rows.append([name.replace("_", " "), value, errors or number.get("reason", ""), unit, how])
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
    from elboroom.plots.figures import listing, named
    from elboroom.plots.style import save
    from elboroom.runs.lifecycle import load

    if kind == "list":
        told = listing()
        return print_json(told) if json else print_table(["kind", "what it shows"], [[k, v] for k, v in told.items()])
    plotted = named(kind)
    path = _figure(out or Path(f"{kind}.png"))
    save(plotted.figure([load(folder) for folder in folders or []]), path)
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
