"""The site: tutorials run, links lead somewhere, and Sphinx builds it without a warning."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from elboroom.methods import cards

ROOT = Path(__file__).parents[2]
SITE = ROOT / "docs" / "site"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\(([^)\s]+)\)")


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, SITE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def anchors(page: Path) -> set[str]:
    """Headings as GitHub and the site name them."""
    heads = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
    base = ROOT if page.parent == SITE else page.parent  # the front page stands at the top of the tree
    for link in LINK.findall(text):
        if link.startswith(("http://", "https://", "mailto:")):
            continue
        place, _, anchor = link.partition("#")
        target = (base / place).resolve() if place else page
        assert target.exists(), f"{page.name} links to {link}"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{page.name} links to {link}"


def test_every_picture_is_shown() -> None:
    shown = {Path(link).name for page in PAGES for link in LINK.findall(page.read_text())}
    assert {path.name for path in (ROOT / "docs").glob("*.png")} <= shown


@pytest.mark.parametrize("page", ["README.md", "docs/comparison.md", "docs/site/index.md"])
def test_the_number_of_methods_is_the_number_of_methods(page: str) -> None:
    text = (ROOT / page).read_text()
    said = re.findall(r"(\d+) (?:methods|losses)", text)
    assert said[:1] == [str(len(cards()))]
    assert "ixty" not in text


def test_what_a_block_prints_and_draws_stands_below_it(tmp_path: Path) -> None:
    execute = module("execute")
    page = tmp_path / "page.md"
    page.write_text(
        "# A page\n\n```python\nx = 2\nprint('said')\nx + 1\n```\n\nand\n\n```sh\necho \"$((x + 3))\"\n```\n\n"
        "```toml\nx = 1\n```\n\n"
        "```python\nfrom matplotlib.figure import Figure\n\nclass Shown:\n    figure = Figure()\n\nShown()\n```\n"
    )
    execute.executed(page, tmp_path / "out")
    made = (tmp_path / "out" / "page.md").read_text()
    assert "```text\nsaid\n3\n```\n\nand" in made, "the value of the last expression too"
    assert "```text\n3\n```" in made.split("echo")[1]
    assert made.count("```toml") == 1
    assert "(page-3-0.png)" in made
    assert (tmp_path / "out" / "page-3-0.png").read_bytes().startswith(b"\x89PNG")


def test_a_block_that_fails_ends_the_build(tmp_path: Path) -> None:
    execute, page = module("execute"), tmp_path / "page.md"
    for code in ("```python\n1 / 0\n```", "```sh\nfalse\necho not reached\n```"):
        page.write_text(f"{code}\n")
        with pytest.raises(SystemExit, match="block 1"):
            execute.executed(page, tmp_path / "out")
    assert not (tmp_path / "out" / "page.md").exists()


def test_a_budget_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    shortened = module("execute").shortened
    said = (
        "elbo train vae --steps 20000 --beta 4; train(steps=20_000, epochs=10)\nsteps = 150\nelbo train x --epochs 12"
    )
    assert (
        shortened(said, "2")
        == "elbo train vae --steps 2 --beta 4; train(steps=2, steps=2)\nsteps = 2\nelbo train x --steps 2"
    )
    assert shortened(said) == said
    monkeypatch.setenv("ELBOROOM_DOCS_STEPS", "3")
    assert "--steps 3" in shortened(said)


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "ELBOROOM_DATA" not in os.environ:
        pytest.skip("tutorials train on real data, and ELBOROOM_DATA does not name a folder of it")
    monkeypatch.setenv("ELBOROOM_DOCS_STEPS", "2")
    done = subprocess.run([sys.executable, SITE / "build.py", "--out", tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    html = tmp_path / "html"
    for page in (
        "index",
        "api",
        "docs/tutorials/faces",
        "docs/methods/vae",
        "docs/metrics/mig",
        "docs/metrics/samples",
    ):
        assert (html / f"{page}.html").exists(), page
    faces = (html / "docs" / "tutorials" / "faces.html").read_text()
    assert faces.count("<img") >= 3
    assert "elboroom.train" in (html / "api.html").read_text()
