"""elbo eval."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from elboroom.commands.output import (
    Components,
    Handed,
    Json,
    SamplerName,
    Seed,
    SplitName,
    print_json,
    print_table,
    sampler_of,
    say,
)
from elboroom.core.problem import Problem, unknown

if TYPE_CHECKING:
    from elboroom.evaluate.registry import Metric


def evaluate(
    ctx: typer.Context,
    folders: Annotated[list[Path] | None, typer.Argument(metavar="DIR...", help="the folders of runs")] = None,
    metrics: Annotated[
        str,
        typer.Option(
            "--metrics",
            help="likelihood, all, or names of metrics, comma-separated; text measures generated sentences, transfer "
            "those that are given another style, blocks what parts of z tell of a label, probe predicts the first label "
            "from few examples; all leaves out downstream, which predicts every factor from 10 to 10,000 labels and takes "
            "minutes; samples says how far samples are from held-out data; udr needs several runs",
        ),
    ] = "likelihood",
    mode: Annotated[
        str, typer.Option("--mode", help="mode of the metrics that have modes; for downstream: boosting or logistic")
    ] = "dlib",
    representation: Annotated[str, typer.Option("--representation", help="mean or sampled")] = "mean",
    interval: Annotated[
        bool, typer.Option("--interval", help="add intervals: compute every metric several times")
    ] = False,
    smaller: Annotated[
        bool, typer.Option("--smaller", help="allow data with fewer rows than a protocol needs")
    ] = False,
    split: SplitName = None,
    data: Handed = None,
    samples: Annotated[int, typer.Option("--samples", min=1, help="K of the importance-weighted bound")] = 100,
    most: Annotated[int, typer.Option("--most", min=2, help="largest number of examples")] = 10_000,
    iw_most: Annotated[int, typer.Option("--iw-most", min=0, help="examples for IW-K; 0 is all")] = 1000,
    iw_until: Annotated[
        float | None,
        typer.Option(
            "--iw-until", help="double K until that raises IW-K by less than so many nats (at most 100,000 draws)"
        ),
    ] = None,
    proposal: Annotated[
        str, typer.Option("--proposal", help="gaussian or flow: fitted to a q(z|x) without a density")
    ] = "gaussian",
    sampler: SamplerName = "prior",
    components: Components = None,
    features: Annotated[
        str,
        typer.Option("--features", help="of samples: pca, pixels, codes, or the folder of another run, whose codes they are",
                     show_default="pca; codes of text"),
    ] = "",
    label: Annotated[
        str, typer.Option("--label", help="of transfer and blocks: the label", show_default="the first that is the style")
    ] = "",
    by: Annotated[
        str, typer.Option("--by", help="of transfer: style, or as elbo edit: offset, fgim, map, map+fgim")
    ] = "style",
    to: Annotated[
        str, typer.Option("--to", help="of transfer: give all others this value", show_default="the other one, or the next")
    ] = "",
    strength: Annotated[
        float, typer.Option("--strength", help="of transfer: 0 reconstructs, 1 is the style as it is, more exaggerates it")
    ] = 1.0,
    vectors: Annotated[
        Path | None,
        typer.Option("--vectors", help="of transfer and replies: word vectors as text, GloVe or word2vec",
                     show_default="trained on the corpus"),
    ] = None,
    through: Annotated[
        Path | None,
        typer.Option("--through", metavar="RUN", help="of transfer by bst: the run that translates to the pivot",
                     show_default="the contexts of the data"),
    ] = None,
    references: Annotated[
        str,
        typer.Option("--references", help="of transfer: yelp-sentiment or caption-style, where your data is made from it",
                     show_default="the data's own"),
    ] = "",
    sheet: Annotated[
        Path | None, typer.Option("--sheet", help="write the transfers of all runs, shuffled, to a .csv file for judges")
    ] = None,
    pairs: Annotated[int, typer.Option("--pairs", min=1, help="sentences of --sheet")] = 50,
    score: Annotated[
        list[Path] | None, typer.Option("--score", help="read such sheets back, one a rater; takes no run")
    ] = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:  # fmt: skip
    """Measure a run: ELBO and its parts, IW-K, active units, mutual information; with --metrics, its codes too."""
    if score or sheet is not None:
        return _people(ctx, folders or [], sheet, score or [])
    if not folders:
        raise Problem("which run? Use: elbo eval DIR")
    from elboroom.commands.doctor import lines
    from elboroom.commands.progress import Measuring
    from elboroom.core.progress import stage
    from elboroom.evaluate.likelihood.proposal import NAMES
    from elboroom.evaluate.registry import chosen
    from elboroom.evaluate.verdicts import of_metrics
    from elboroom.families.fitted import is_sampled
    from elboroom.runs import load, measure
    from elboroom.runs.closing import ROWS
    from elboroom.runs.doctor import examine

    names = [name.strip() for name in metrics.split(",") if name.strip()]
    if proposal not in NAMES:
        raise unknown("proposal", proposal, NAMES)
    asked = chosen(names, has_sentences=True)
    options = ctx.params | {"iw_most": iw_most or None, "sampler": sampler_of(sampler)}
    if (Path(features) / "spec.json").is_file():
        options["features"] = load(Path(features))
    _refuse_idle(ctx, asked)
    if len(asked) == 1 and asked[0].needs == "several runs":
        results = measure.agreement([load(folder, data=data) for folder in folders], asked[0].name)
        found = {name: result.to_json() for name, result in results.items()}
        return print_json(found) if json else _table({"run": {"method": asked[0].name, "step": 0}} | found)
    runs, everything = {folder: load(folder, data=data) for folder in folders}, {}
    if _was_said(ctx, "proposal") and not any(is_sampled(run.model) for run in runs.values()):
        raise Problem("--proposal has no effect here; remove it (q(z|x) has a density or is a point)")
    for folder, run in runs.items():
        with Measuring():
            content = measure.metrics(run, names, **options)
            with stage("verdicts"):
                told = [verdict for verdict in examine(run, ROWS) if verdict.state != "well"]
        everything[str(folder)] = content | {"verdicts": [verdict._asdict() for verdict in told]}
        if not json:
            _table(content, f"{folder}: ")
            for sentence in of_metrics(content):
                if sentence not in [verdict.told for verdict in told]:
                    say(sentence)
            if told:
                say(f"what to look at, which elbo doctor {folder} tells with what is well:")
            for verdict in told:
                say("\n".join(lines(verdict)))
    if json:
        print_json(everything if len(folders) > 1 else everything[str(folders[0])])


def _people(ctx: typer.Context, folders: list[Path], sheet: Path | None, filled: list[Path]) -> None:
    """Writes the sheet that people judge, or reads it back."""
    said, json = ctx.params, ctx.params["json"]
    from elboroom.evaluate.transfer import sheet as sheets
    from elboroom.runs import load
    from elboroom.runs.sheet import write

    if filled:
        if folders or sheet is not None:
            raise Problem("--score reads what people said and takes neither a run nor --sheet")
        _refuse(ctx, {"score", "json"}, "--score")
        results = sheets.score(filled)
        found = {name: result.to_json() for name, result in results.items()}
        return print_json(found) if json else _table({"run": {"method": "what people said", "step": 0}} | found)
    if not folders:
        raise Problem("--sheet needs the runs whose transfers are judged")
    assert sheet is not None
    read = ("label", "by", "split", "seed", "to", "through")
    _refuse(ctx, {*read, "folders", "data", "sheet", "pairs", "json"}, "--sheet")
    runs = {name: load(folder, data=said["data"]) for name, folder in _called(folders).items()}
    key = write(sheet, runs, n=said["pairs"], **{name: said[name] for name in read})
    print_json({"sheet": str(sheet), "key": str(key)}) if json else say(f"{sheet}, to be judged; whose is whose: {key}")


def _called(folders: list[Path]) -> dict[str, Path]:
    """Runs by the names of their folders; by their paths where two have one name."""
    names = [folder.resolve().name for folder in folders]
    found = dict(zip(names if len({*names}) == len(names) else map(str, folders), folders, strict=True))
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise Problem("--sheet takes each run once; the same folder is given twice")
    return found


def _refuse_idle(ctx: typer.Context, asked: list[Metric]) -> None:
    """Refuses, in a sentence, an option that none of the metrics asked for would read."""
    read = {option for entry in asked for option in entry.options} | {"folders", "metrics", "data", "json"}
    _refuse(ctx, read, f"--metrics {','.join(sorted(ctx.params['metrics'].split(',')))}")


def _refuse(ctx: typer.Context, read: set[str], beside: str) -> None:
    for option in ctx.params:
        if option not in read and _was_said(ctx, option):
            raise Problem(f"--{option.replace('_', '-')} has no effect with {beside}; remove it")


def _was_said(ctx: typer.Context, option: str) -> bool:
    source = ctx.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"


def _value(value: float, error: float = 0.0) -> str:
    """A value as far as its error lets it be known; without one, at most four places."""
    from elboroom.plots.style import MINUS
    from elboroom.report.numbers import rounded

    if error > 1e-4:
        return rounded(value, error).replace(MINUS, "-")
    return f"{round(value, 4) + 0.0:,.4f}".rstrip("0").rstrip(".")


def _table(found: dict[str, Any], title: str = "") -> None:
    from elboroom.evaluate.result import Result
    from elboroom.report.numbers import remarks, two

    rows: list[list[object]] = []
    shown = {name: entry for name, entry in found.items() if name not in ("run", "rate_per_dim")}  # the rate again
    results = {name: Result.from_json(name, entry) for name, entry in shown.items()}
    settings: dict[str, Any] = next((r.settings for r in results.values() if "data" in r.settings), {})
    for name, result in results.items():
        value = "—" if result.value is None else _value(result.value, max(result.errors.values(), default=0.0))
        errors = ", ".join(f"± {two(e)} {kind.replace('_', ' ')}" for kind, e in result.errors.items())
        if result.interval:
            errors = f"{result.interval['low']:.3f} to {result.interval['high']:.3f}"
        ceiling, how = result.parts.get("ceiling"), result.estimator
        unit = result.unit + (f" (at most {ceiling:.2f})" if isinstance(ceiling, float) else "")
        n = result.settings.get("n", settings.get("n"))
        how = ", ".join([how, *remarks(result)])
        how += f", {n:,} row{'s' * (n != 1)}" if result.value is not None and n != settings.get("n") else ""
        rows.append([name, value, errors or result.reason, unit, how])
        for other, end in (result.parts.get("beside") or {}).items():
            rows.append(["", "—" if end is None else _value(end), "", unit, other])
    run, on = found["run"], ""
    if settings:
        on = f", on {settings.get('n', 0):,} rows of {settings.get('split', '?')} of {settings['data']}"
    print_table(
        ["measure", "value", "error or interval", "unit", "estimator"],
        rows,
        f"{title}{run.get('title', run['method'])}, step {run['step']:,}{on}",
    )
