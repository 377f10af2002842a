"""Builds the site: `python docs/site/build.py`, or `make docs`. No network is needed beyond the data that tutorials read.

Pages are those of docs/, of the README and CONTRIBUTING, as they stand, so that links in a clone and on the site are the same.
Written here are a page for every metric, the reference of the Python interface and the menus. Tutorials are executed.
"""

from __future__ import annotations

import argparse
import inspect
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build" / "docs"
TUTORIALS = ("faces", "beta", "collapse", "style", "method", "cluster")
GUIDES = (
    "commands",
    "images",
    "text",
    "style",
    "maps",
    "context",
    "training",
    "recipes",
    "studies",
    "explorer",
    "doctor",
    "samplers",
    "recommend",
    "sharing",
    "reproduce",
)
PROJECT = (
    "docs/promises",
    "docs/comparison",
    "docs/benchmarks",
    "docs/architecture",
    "CONTRIBUTING",
    "CHANGELOG",
    "README",
    "SECURITY",
)
NUMBERS = ("glossary", "loss-scale", "defaults")
EXECUTED = "Executed on the machine that built this site: what stands below a block is what it printed and drew there."
PUBLIC = {
    "Functions": ("function", ("train", "load", "resume", "recipes", "method", "penalty")),
    "Classes": ("class", ("Run", "VAE", "Problem")),
}


def source(folder: Path) -> None:
    """The tree that Sphinx reads: the pages of the repository at their places."""
    shutil.copytree(
        ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("*.pyc", "__pycache__", "site", "tutorials")
    )
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "LICENSE", "CITATION.cff"):
        shutil.copy(ROOT / name, folder / name)
    for name in ("conf.py", "index.md"):
        shutil.copy(HERE / name, folder / name)
    (folder / "_static").mkdir()
    shutil.copy(HERE / "site.css", folder / "_static" / "site.css")
    (folder / "docs" / "tutorials").mkdir()
    _menus(folder)
    _metrics(folder / "docs" / "metrics")
    (folder / "api.md").write_text(api(), encoding="utf-8")


def menu(pages: list[str], hidden: bool = False, caption: str = "") -> str:
    """A toctree."""
    options = [":hidden:"] * hidden + [f":caption: {caption}"] * bool(caption) + [":maxdepth: 1"]
    return "\n".join(["```{toctree}", *options, "", *pages, "```"])


def _menus(folder: Path) -> None:
    docs = folder / "docs"
    guides = [name for name in GUIDES if (docs / f"{name}.md").exists()]
    _write(folder / "tutorials.md", "# Tutorials", EXECUTED, menu([f"docs/tutorials/{name}" for name in TUTORIALS]))
    _write(folder / "guides.md", "# Guides", "How to do one thing.", menu([f"docs/{name}" for name in guides]))
    _write(folder / "project.md", "# Project", menu(list(PROJECT)))
    _write(folder / "numbers.md", "# Units and defaults", menu([f"docs/{name}" for name in NUMBERS]))
    _append(
        docs / "methods" / "README.md",
        menu(sorted(p.stem for p in (docs / "methods").glob("*.md") if p.stem != "README"), True),
    )
    results = sorted(p.stem for p in (docs / "results").glob("*.md") if p.stem != "README")
    _append(docs / "results" / "README.md", menu(results, True))


def _metrics(folder: Path) -> None:
    """A page for every metric of the registry, below docs/metrics.md."""
    from elboroom.evaluate.registry import metrics

    folder.mkdir()
    for name, metric in metrics().items():
        rows = "\n".join(f"| `{key}` | {said.title} | {_better(said.better)} |" for key, said in metric.gives.items())
        options = sorted(metric.options)
        flags = ", ".join(f"`--{option.replace('_', '-')}`" for option in options if option != "smaller") or "none"
        several = "elbo eval RUN RUN" if metric.needs == "several runs" else "elbo eval RUN"
        _write(
            folder / f"{name}.md",
            f"# {name}",
            _text(inspect.getdoc(metric.measure) or metric.summary),
            f"```sh\n{several} --metrics {name}\n```",
            f"Needs: {metric.needs}." + (" Measured only where it is asked for by name." if metric.by_name else ""),
            f"Modes: {', '.join(f'`{mode}`' for mode in metric.modes)}; the first is the default."
            if metric.modes
            else "",
            f"Reads the options {flags}.",
            f"| in metrics.json | what it is | better |\n| --- | --- | --- |\n{rows}",
        )
    _append(folder.with_suffix(".md"), "## Every metric", menu([f"metrics/{name}" for name in metrics()]))


def _better(way: str) -> str:
    return {"high": "higher", "low": "lower", "neither": "neither"}[way]


def _text(doc: str) -> str:
    """A docstring as Markdown: its signs are no markup."""
    return doc.replace("*", "\\*").replace("<", "\\<").replace("|", "\\|").replace("_", "\\_")


def api() -> str:
    """The reference of what a user calls."""
    parts = ["# Python", "What `import elboroom` gives. Everything else may move."]
    for head, (kind, names) in PUBLIC.items():
        parts.append(f"## {head}")
        for name in names:
            members = "\n   :members:" if name in ("Run", "VAE") else ""
            parts.append(f"```{{eval-rst}}\n.. auto{kind}:: elboroom.{name}{members}\n```")
    modules = {
        "elboroom.divergences": ("compare",),
        "elboroom.runs.doctor": ("examine",),
        "elboroom.runs.measure": ("metrics",),
        "elboroom.studies": ("Study", "run_study", "summarise"),
    }
    parts.append("## Beside these")
    for module, found in modules.items():
        for name in found:
            kind = "class" if name[0].isupper() else "function"
            parts.append(f"```{{eval-rst}}\n.. auto{kind}:: {module}.{name}\n```")
    return "\n\n".join(parts) + "\n"


def _write(path: Path, *parts: str) -> None:
    path.write_text("\n\n".join(part for part in parts if part) + "\n", encoding="utf-8")


def _append(path: Path, *parts: str) -> None:
    before = path.read_text(encoding="utf-8") if path.exists() else f"# {path.parent.name.capitalize()}\n"
    path.write_text("\n\n".join([before, *parts]) + "\n", encoding="utf-8")


def tutorials(out: Path) -> None:
    """Executes every tutorial, each in a process of its own."""
    for name in TUTORIALS:
        page = ROOT / "docs" / "tutorials" / f"{name}.md"
        print(f"executing {page.relative_to(ROOT)}", flush=True)
        subprocess.run(
            [sys.executable, HERE / "execute.py", page, out], check=True, env=os.environ | {"PYTHONPATH": str(ROOT)}
        )


def main(words: list[str] | None = None) -> int:
    """Puts the tree together, executes the tutorials, and calls Sphinx, to which a warning is an error."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=BUILD, help="where to build; by default build/docs")
    parser.add_argument(
        "--keep", action="store_true", help="do not execute again tutorials that were executed there before"
    )
    asked = parser.parse_args(words)
    tree, done, html = (asked.out / name for name in ("source", "executed", "html"))
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    source(tree)
    if not (asked.keep and all((done / f"{name}.md").exists() for name in TUTORIALS)):
        shutil.rmtree(done, ignore_errors=True)
        done.mkdir(parents=True)
        tutorials(done)
    for path in (*done.glob("*.md"), *done.glob("*.png")):
        shutil.copy(path, tree / "docs" / "tutorials" / path.name)
    shutil.rmtree(html, ignore_errors=True)
    build = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", tree, html]
    code = subprocess.run(build, env=os.environ | {"PYTHONPATH": str(ROOT)}).returncode
    if not code:
        print(html / "index.html")
    return code


if __name__ == "__main__":
    sys.exit(main())
