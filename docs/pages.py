"""The pages of the methods in docs/methods, tables of other pages, and the catalogue that the commands read.

`python docs/pages.py` writes the text, `--curves` trains every method for a moment and draws its curves too (or only
the methods named after it), `--check` leaves with 1 if what is on disk is not what would be written.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel
from pydantic.fields import FieldInfo

sys.path.insert(0, str(Path(__file__).parent))

import axes

import elboroom.methods  # noqa: F401 registers every method
from elboroom.build import examples
from elboroom.build.parts import Choices
from elboroom.build.registry import ByData, Card, Option
from elboroom.build.suited import NAMES
from elboroom.commands import catalogue
from elboroom.core.problem import Problem
from elboroom.data import arrays, sentences
from elboroom.data import registry as data
from elboroom.data.dataset import DataSet
from elboroom.data.sequences import CONTEXT
from elboroom.data.text import Reading, gather
from elboroom.evaluate.disentanglement import metrics
from elboroom.methods import cards
from elboroom.plots.curves import series
from elboroom.report.chart import drawing
from elboroom.runs.lifecycle import train
from elboroom.training.fit import Fit
from elboroom.training.recipe import WORDS, recipes

FOLDER = Path(__file__).parent / "methods"
BENCH = FOLDER.parent / "benchmarks.md"
METRICS = FOLDER.parent / "metrics.md"
RECIPES = FOLDER.parent / "recipes.md"
STEPS, IMAGES, SIDE = 400, 4096, 32
CURVE = f"""From a run of {STEPS} steps on {IMAGES:,} images of dSprites, {SIDE} by {SIDE} pixels, with the net `mlp-300`: it
shows how the terms move, not what the method can reach. Weights that move are drawn in orange."""
PAIRS_CURVE = f"""From a run of {STEPS} steps on pairs of the generated corpus `sentences`, each with the same said of the
future, with states of 64 units: it shows how the terms move, not what the method can reach. Weights that move are drawn in
orange."""
TEXT_CURVE = f"""From a run of {STEPS} steps on the generated corpus `sentences`, with states of 64 units: it shows how the
terms move, not what the method can reach. Weights that move are drawn in orange."""
SIGNS = {"gt": ">", "ge": "≥", "lt": "<", "le": "≤"}


def page(card: Card) -> str:
    """The page of one method."""
    parts = [f"# {card.name}", card.summary, f"```\nloss = {card.formula}\n```", f"{card.paper}."]
    parts += [card.notes] if card.notes else []
    parts += ["For text only."] if card.on == ("tokens",) and not card.needs_context else []
    parts += ["For text with a context: [docs/context.md](../context.md)."] if card.needs_context else []
    rows = [(o.name, _default(o), _range(o.annotation), o.help) for o in card.options]
    parts += ["## Options", _options(rows) if rows else "None of its own."]
    parts.append("[Model and training options](README.md#options-of-every-method) are shared by all methods.")
    parts += ["## Example", _example(card)]
    if (FOLDER / f"{card.name}.svg").exists():
        parts += [
            "## Curves",
            f"![terms of {card.name} by step]({card.name}.svg)",
            CURVE if "pixels" in card.on else PAIRS_CURVE if card.needs_context else TEXT_CURVE,
        ]
    return "\n\n".join(parts) + "\n"


def contents() -> str:
    """The table of methods, and the options that all of them have."""
    rows = [
        (f"[{c.name}]({c.name}.md)", f"`{_cell(c.formula)}`", _cell(c.summary), _cell(c.paper))
        for c in cards().values()
    ]
    return (
        "\n\n".join(
            [
                "# Methods",
                "Every loss is in nats per example: summed over pixels or words and over latent dimensions, averaged over the "
                "batch. Methods are for images, vectors and text unless their page says otherwise.",
                _table(("method", "loss", "what it is", "paper"), rows),
                "## Posteriors and priors",
                axes.HEAD,
                _table(
                    ("posterior", "q(z\\|x)", "has a rate with the priors", "outputs of an encoder"), axes.posteriors()
                ),
                _table(("prior", "p(z)"), axes.priors()),
                "## Options of every method",
                "Of the model:",
                _options(_fields(Choices)),
                "Of training:",
                _options(_fields(Fit)),
                "Of text:",
                _options(_fields(Reading)),
            ]
        )
        + "\n"
    )


def pages() -> dict[Path, str]:
    """Every page by its path, and the catalogue that the commands read."""
    found = {FOLDER / f"{name}.md": page(card) for name, card in cards().items()}
    found[catalogue.FILE] = catalogue.derived()
    return {
        BENCH: bench_page(),
        METRICS: metrics_page(),
        RECIPES: recipes_page(),
        FOLDER / "README.md": contents(),
    } | found


def _errors_of_iw() -> list[str]:
    """How the error of an importance-weighted bound is found, and what it is worth: as measured by tools/iw_errors.py."""
    return [
        "## Errors of IW-K",
        "log (1/K) sum_k w_k has two errors: `sampling`, what another test set would change, and `importance noise`, what "
        "another K draws would. The second is read off the draws: they are dealt into eight parts, v(m) is half the mean "
        "squared difference of the bounds of two disjoint sets of m draws, and v(K) = v(K/2) v(K/2) / v(K/4), the last "
        "ratio held between 1/2 (no weight dominates) and 1 (one weight is all). The delta method, K Var(w) / (sum w)^2, "
        "cannot exceed one nat^2 a row.",
        "Beside the number stand the effective draws, (sum w)^2 / sum w^2, and where the last doubling of K raised the "
        "bound by more than 0.1 nats, `loose by ... nats or more`: gains fall by half at best, so that at least as much "
        "is still missing. `--iw-until NATS` doubles K until that raises the bound by less (at most 100,000 draws).",
        "Repeats with other draws on the same 50 rows, 40 times, K = 100; runs of 1,500 steps (dSprites) "
        "and 1,000 (`python tools/iw_errors.py FOLDER`, which has sentences of Multi30k too, not measured yet). "
        "The scatter of 40 repeats is known to 11 %.",
        _table(
            (
                "run",
                "method",
                "IW-100",
                "effective",
                "scatter of repeats",
                "printed",
                "delta method",
                "gain of the last doubling",
            ),
            (
                ("dSprites, convolutions", "vae", "-89.40", "3.0", "0.269", "0.274", "0.099", "0.66"),
                ("binarized MNIST", "vae", "-119.31", "2.9", "0.256", "0.242", "0.098", "0.58"),
                ("binarized MNIST, flow posterior", "vae-iaf", "-115.88", "3.0", "0.215", "0.232", "0.096", "0.55"),
                ("binarized MNIST, sampled posterior", "avb", "-129.98", "3.2", "0.213", "0.180", "0.093", "0.47"),
                ("binarized MNIST, points, post hoc", "wae-mmd", "-127.39", "5.4", "0.145", "0.149", "0.078", "0.29"),
            ),
        ),
    ]


def metrics_page() -> str:
    """The table of metrics with their modes."""
    rows = [(f"`{m.name}`", ", ".join(f"`{mode}`" for mode in m.modes), _cell(m.summary)) for m in metrics().values()]
    parts = [
        "# Metrics of latent spaces",
        "Each takes codes and factors, as arrays (`elboroom.evaluate.disentanglement.score`) or from the code table of a run "
        "(`elbo eval RUN --metrics NAME,NAME --mode MODE`), and carries its mode and settings. `dlib` draws and computes as "
        "the 12,600-model study of Locatello et al. 2019 did. The first mode is the default.",
        _table(("metric", "modes", "what it is"), rows),
        "Where several metrics are asked for, `--mode` holds for those that have it; a warning says which have not, and which "
        "mode they are measured in. `sap --mode group` is the variant that Kumar et al. 2018 describe for dimensions that "
        "share a factor: those correlated by more than 0.5 score as one.",
        "Beside these, `--metrics mmd` holds draws of q(z) against draws of the run's own prior, whatever it is: MMD² (U), "
        "RBF at the median distance, 2,000 of each, with the p-value of 500 permutations.",
        "`--metrics samples` holds samples against held-out examples, by features that it names: [samplers.md](samplers.md).",
        "Protocols ask for 10,000 rows and more: `--smaller` takes what a small data set has, and the record says how many. "
        "With one factor the beta-VAE and FactorVAE scores have no value, since any code would reach 1.",
        "`total-correlation`, `index-code-mi` and `dimension-wise-kl` sum q(z) over all rows in mode `full`. In mode `subset` "
        "2,000 samples are summed over 10,000 rows, and 200 of them over all rows too: their mean difference is added. Without "
        "it TC would be too low and MI too high (TC 0.6 for 1.3, with 200 of 20,000 rows of a Gaussian in six dimensions); "
        "with it both are unbiased, and the error is larger than that of `full`.",
        "InfoM counts a dimension without information as 0, and DCI depends on the version of scikit-learn; both stand in the "
        "record. More such conventions: [loss-scale.md](loss-scale.md).",
        "UDR compares several runs: `elbo eval RUN RUN ... --metrics udr`.",
        "`--metrics downstream` predicts every factor from 10, 100, 1,000 and 10,000 labelled codes (gradient boosting or "
        "logistic regression), with the share that 100 and 1,000 labels reach of the accuracy of 10,000.",
        *_errors_of_iw(),
    ]
    return "\n\n".join(parts) + "\n"


def recipes_page() -> str:
    """The page of the recipes with its table."""
    rows = []
    for recipe in recipes().values():
        methods = ", ".join(f"[{name}](methods/{name}.md)" for name in recipe.methods) or "any"
        kinds = ", ".join(WORDS[kind] for kind in recipe.on)
        data = f"`{recipe.data}`" if recipe.data else "your own"
        rows.append((f"`{recipe.name}`", _cell(recipe.summary), kinds, methods, data, _cell(recipe.source)))
    table = _table(("recipe", "what it is for", "kind", "methods", "data", "source"), rows)
    return _filled(RECIPES.read_text(encoding="utf-8"), {"recipes": table})


def bench_page() -> str:
    """The page of measured ratios with its table."""
    return _filled(BENCH.read_text(encoding="utf-8"), {"bench": _bench()})


def _filled(text: str, tables: Mapping[str, str]) -> str:
    """A page with these tables between the marks of their names."""
    for name, table in tables.items():
        block = f"<!-- {name} -->\n{table}\n<!-- /{name} -->"
        text = re.sub(f"<!-- {name} -->.*<!-- /{name} -->", lambda _, block=block: block, text, flags=re.DOTALL)
    return text


def _bench() -> str:
    """What `make bench` measured last, each with the first line of its docstring."""
    folder = BENCH.parents[1] / "benchmarks"
    kept = folder / "latest.json"
    measured = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    source = "\n".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.py")))
    said = dict(re.findall(r'@measurement\("([\w-]+)"\)\ndef \w+\(\) -> Result:\n    """(.+?)[.]?(?:"""|\n)', source))
    rows = []
    for name, m in measured.items():
        share = "" if m["fraction_of_sgemm"] is None else f"{m['fraction_of_sgemm']:.0%}"
        rows.append((_cell(said.get(name, name)), f"{m['value']:,.0f} {m['unit']}", f"**{m['ratio']:.3g}**", share))
    return _table(("what, against what", "ours", "ratio", "of sgemm speed"), rows)


def curve(card: Card, images: DataSet) -> str:
    """The curves of a short run as SVG."""
    pixels = "pixels" in card.on
    source: Any = images if pixels else pairs() if card.needs_context else "sentences"
    net: dict[str, Any] = {"net": "mlp-300"} if pixels else {"embed": 64, "hidden": 64}
    told = {"given": "polarity"} if card.needs_given and not pixels else {}
    fit = {"steps": STEPS, "lr": 1e-3, "log_every": 4, "threads": 1, "device": "cpu"}
    own = {"to": "2"} if "to" in {option.name for option in card.options} else {}  # hearts
    with tempfile.TemporaryDirectory() as folder:
        below = Path(folder) / "base"
        base = train(examples.base(card), source, below, **net, **fit).folder if card.needs_base else None
        run = train(card.name, source, Path(folder) / "run", base=base, **net, **told, **own, **fit)
        return drawing(series(run.log))


def sprites() -> DataSet:
    """Some dSprites images at half size, in black and white, with their shape as a label."""
    whole = data.load("dsprites")
    rows = np.sort(np.random.default_rng(0).choice(len(whole), IMAGES, replace=False))
    small = torch.nn.functional.avg_pool2d(whole.x(rows), 64 // SIDE)
    shapes = whole.labels[rows, list(whole.about.labels).index("shape")]
    return arrays.dataset((small[:, 0] >= 0.5).numpy().astype(np.uint8), labels=shapes)


def pairs() -> DataSet:
    """Sentences said of the future, given the same said of the past or the present; their polarity as a label."""
    chosen = sentences.factors(np.random.default_rng(0).choice(sentences.COUNT, IMAGES, replace=False))
    tense = sentences.FACTORS.index("tense")
    said = chosen[chosen[:, tense] != 2]
    future = said.copy()
    future[:, tense] = 2
    polarity = sentences.FACTORS.index("polarity")
    read = [
        (sentences.render(b), (str(b[polarity]),), ((sentences.render(a),),)) for a, b in zip(said, future, strict=True)
    ]
    return gather("pairs", {"train": read}, {"polarity": None}, beside=[CONTEXT])


def _example(card: Card) -> str:
    return f"""```sh
{examples.command(card)}
```

```python
import elboroom

run = {examples.call(card)}
```"""


def _range(annotation: Any) -> str:
    """What an annotation allows."""
    bounds = [_bounds(m) for m in getattr(annotation, "__metadata__", ()) if isinstance(m, FieldInfo)]
    plain = typing.get_args(annotation)[0] if bounds else annotation
    choices = typing.get_args(plain) if typing.get_origin(plain) is typing.Literal else ()
    return ", ".join([*filter(None, bounds), *(f"`{choice}`" for choice in choices)])


def _bounds(field: FieldInfo) -> str:
    found = [(SIGNS[k], getattr(m, k)) for m in field.metadata for k in SIGNS if hasattr(m, k)]
    return ", ".join(f"{sign} {bound:g}" for sign, bound in found)


def _fields(model: type[BaseModel]) -> list[tuple[str, str, str, str]]:
    return [
        (
            name,
            _value(None if name in NAMES else field.default),
            _bounds(field) or _range(field.annotation),
            field.description or "",
        )
        for name, field in model.model_fields.items()
    ]


def _default(option: Option) -> str:
    if isinstance(option.default, ByData):
        return ", ".join(
            [_value(option.default.other), *(f"{_value(v)} ({k})" for k, v in option.default.kinds.items())]
        )
    return _value(option.default)


def _value(value: Any) -> str:
    if value is None:
        return "varies"  # with the data or the net, as its text says
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else f"{value:.3g}"
    return str(value)


def _options(rows: list[tuple[str, str, str, str]]) -> str:
    shown = [(f"`--{name.replace('_', '-')}`", default, _cell(span), _cell(text)) for name, default, span, text in rows]
    return _table(("option", "default", "range", "meaning"), shown)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main(arguments: list[str] | None = None) -> int:
    """Writes or checks the pages."""
    parser = argparse.ArgumentParser(description="Write docs/methods from the registry.")
    parser.add_argument("--check", action="store_true", help="write nothing; leave with 1 if a page is out of date")
    parser.add_argument("--curves", nargs="*", metavar="METHOD", help="train and draw these methods, or all")
    chosen = parser.parse_args(arguments)
    if chosen.curves is not None:
        images = sprites()
        for name in chosen.curves or cards():
            try:
                (FOLDER / f"{name}.svg").write_text(curve(cards()[name], images), encoding="utf-8")
                print(f"{name}.svg")
            except Problem as problem:
                print(f"{name}: {problem}", file=sys.stderr)
    wanted = pages()
    stale = [p for p in FOLDER.glob("*.md") if p not in wanted]
    changed = [p for p, text in wanted.items() if not p.exists() or p.read_text(encoding="utf-8") != text]
    if chosen.check:
        for path in stale + changed:
            print(f"{path.name} is out of date: run python docs/pages.py", file=sys.stderr)
        return 1 if stale or changed else 0
    for path in stale:
        path.unlink()
    for path in changed:
        path.write_text(wanted[path], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
