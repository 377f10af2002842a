"""The pages of the methods, written from the registry into docs/methods, and the catalogue that the commands read.

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
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel
from pydantic.fields import FieldInfo

sys.path.insert(0, str(Path(__file__).parent))

import axes

import elboroom.methods  # noqa: F401 registers every method
from elboroom.build.parts import Choices
from elboroom.build.registry import ByData, Card, Option, checked
from elboroom.commands import catalogue
from elboroom.core.problem import Problem
from elboroom.data import arrays
from elboroom.data import registry as data
from elboroom.data.dataset import DataSet
from elboroom.data.text import Reading
from elboroom.evaluate.disentanglement import metrics
from elboroom.methods import cards
from elboroom.plots.curves import series
from elboroom.report.chart import drawing
from elboroom.runs.lifecycle import train
from elboroom.training.fit import Fit

FOLDER = Path(__file__).parent / "methods"
README = FOLDER.parents[1] / "README.md"
METRICS = FOLDER.parent / "metrics.md"
STEPS, IMAGES, SIDE = 400, 4096, 32
CURVE = f"""From a run of {STEPS} steps on {IMAGES:,} images of dSprites, {SIDE} by {SIDE} pixels, with the net `mlp-300`: it
shows how the terms move, not what the method can reach. Weights that move are drawn in orange."""
TEXT_CURVE = f"""From a run of {STEPS} steps on the generated corpus `sentences`, with states of 64 units: it shows how the
terms move, not what the method can reach. Weights that move are drawn in orange."""
SIGNS = {"gt": ">", "ge": "≥", "lt": "<", "le": "≤"}


def page(card: Card) -> str:
    """The page of one method."""
    parts = [f"# {card.name}", card.summary, f"```\nloss = {card.formula}\n```", f"{card.paper}."]
    parts += [card.notes] if card.notes else []
    parts += ["For text only."] if card.on == ("tokens",) else []
    rows = [(o.name, _default(o), _range(o.annotation), o.help) for o in card.options]
    parts += ["## Options", _options(rows) if rows else "None of its own."]
    parts.append("[Model and training options](README.md#options-of-every-method) are shared by all methods.")
    parts += ["## Example", _example(card)]
    if (FOLDER / f"{card.name}.svg").exists():
        parts += [
            "## Curves",
            f"![terms of {card.name} by step]({card.name}.svg)",
            CURVE if "pixels" in card.on else TEXT_CURVE,
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
    return {README: readme(), METRICS: metrics_page(), FOLDER / "README.md": contents()} | found


def metrics_page() -> str:
    """The table of metrics with their modes."""
    rows = [(f"`{m.name}`", ", ".join(f"`{mode}`" for mode in m.modes), _cell(m.summary)) for m in metrics().values()]
    parts = [
        "# Metrics of latent spaces",
        "Each takes codes and factors, as arrays (`elboroom.evaluate.disentanglement.score`) or from the code table of a run "
        "(`elbo eval RUN --metrics NAME,NAME --mode MODE`), and carries its mode and settings. `dlib` draws and computes as "
        "the 12,600-model study of Locatello et al. 2019 did. The first mode is the default.",
        _table(("metric", "modes", "what it is"), rows),
        "Protocols ask for 10,000 rows and more: `--smaller` takes what a small data set has, and the record says how many. "
        "With one factor the beta-VAE and FactorVAE scores have no value, since any code would reach 1.",
        "UDR compares several runs: `elbo eval RUN RUN ... --metrics udr`.",
        "`--metrics downstream` predicts every factor from 10, 100, 1,000 and 10,000 labelled codes (gradient boosting or "
        "logistic regression), with the share that 100 and 1,000 labels reach of the accuracy of 10,000.",
    ]
    return "\n\n".join(parts) + "\n"


def readme() -> str:
    """The README with its tables of methods and of measured ratios."""
    rows = [
        (f"[{c.name}](docs/methods/{c.name}.md)", f"`{_cell(c.formula)}`", _cell(c.paper)) for c in cards().values()
    ]
    tables = {"methods": _table(("method", "loss", "paper"), rows), "bench": _bench()}
    text = README.read_text(encoding="utf-8")
    for name, table in tables.items():
        block = f"<!-- {name} -->\n{table}\n<!-- /{name} -->"
        text = re.sub(f"<!-- {name} -->.*<!-- /{name} -->", lambda _, block=block: block, text, flags=re.DOTALL)
    return text


def _bench() -> str:
    """What `make bench` measured last, each with the first line of its docstring."""
    folder = README.parent / "benchmarks"
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
    source: Any = images if pixels else "sentences"
    net = {"net": "mlp-300"} if pixels else {"embed": 64, "hidden": 64}
    fit = {"steps": STEPS, "lr": 1e-3, "log_every": 4, "threads": 1, "device": "cpu"}
    with tempfile.TemporaryDirectory() as folder:
        base = train("vae", source, Path(folder) / "base", **net, **fit).folder if card.needs_base else None
        return drawing(series(train(card.name, source, Path(folder) / "run", base=base, **net, **fit).log))


def sprites() -> DataSet:
    """Some dSprites images at half size, in black and white, with their shape as a label."""
    whole = data.load("dsprites")
    rows = np.sort(np.random.default_rng(0).choice(len(whole), IMAGES, replace=False))
    small = torch.nn.functional.avg_pool2d(whole.x(rows), 64 // SIDE)
    shapes = whole.labels[rows, list(whole.about.labels).index("shape")]
    return arrays.dataset((small[:, 0] >= 0.5).numpy().astype(np.uint8), labels=shapes)


def example(card: Card) -> dict[str, Any]:
    """An option that is worth a try, with a value that is not its default.

    It is one of the model that the first line of the method names, else a number of its own: the one that gave the method
    its name, or the first.
    """
    kind = "pixels" if "pixels" in card.on else "tokens"
    for flag in re.findall(r"--([\w-]+)", card.summary):
        name = flag.replace("-", "_")
        field = Choices.model_fields[name]
        for value in [*(field.examples or ()), *_around(field.default)]:
            if _is_legal(lambda name=name, value=value: checked(Choices, {name: value})):
                return {name: value}
    for option in sorted(card.options, key=lambda option: option.name not in card.name.split("-")):
        for value in _around(option.default_for(kind)):
            if _is_legal(lambda option=option, value=value: card.validate({option.name: value}, kind)):
                return {option.name: value}
    return {}


def _around(value: Any) -> tuple[Any, ...]:
    """Twice a number and half of it; nothing for what is none, or 0."""
    return (2 * value, type(value)(value / 2)) if type(value) in (int, float) and value else ()


def _is_legal(make: Callable[[], Any]) -> bool:
    try:
        make()
    except Problem:
        return False
    return True


def _example(card: Card) -> str:
    data, options = "dsprites" if "pixels" in card.on else "sentences", example(card)
    options |= {"base": "runs/vae-dsprites-0", "label": "shape"} if card.needs_base else {}
    flags = "".join(f" --{name.replace('_', '-')} {_value(value)}" for name, value in options.items())
    said = "".join(f", {name}={json.dumps(value)}" for name, value in options.items())
    return f"""```sh
elbo train {card.name} --data {data}{flags}
```

```python
import elboroom

run = elboroom.train("{card.name}", data="{data}"{said})
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
        (name, _value(field.default), _bounds(field) or _range(field.annotation), field.description or "")
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
