"""The pages of the methods are what the registry says."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest
from contract import talk

from elboroom.build import examples
from elboroom.data.dataset import DataSet
from elboroom.methods import cards
from elboroom.training import session
from elboroom.training.session import Own
from elboroom.training.spec import specify

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pages", ROOT / "docs" / "pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_page_is_out_of_date(pages: ModuleType) -> None:
    assert pages.main(["--check"]) == 0


@pytest.mark.slow
def test_a_page_that_differs_is_told(pages: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "FOLDER", tmp_path)
    assert pages.main(["--check"]) == 1
    assert pages.main([]) == 0
    assert pages.main(["--check"]) == 0
    (tmp_path / "vae.md").write_text("something else")
    (tmp_path / "gone.md").write_text("of a method that is no more")
    assert pages.main(["--check"]) == 1
    assert pages.main([]) == 0
    assert not (tmp_path / "gone.md").exists()
    assert pages.main(["--check"]) == 0


def test_every_method_is_in_the_table_and_has_its_options(pages: ModuleType) -> None:
    table = pages.contents()
    for name, card in cards().items():
        assert f"[{name}]({name}.md)" in table
        page = pages.page(card)
        assert card.formula in page
        assert card.paper in page
        assert all(f"`--{option.name.replace('_', '-')}`" in page for option in card.options)


@pytest.mark.parametrize("name", list(cards()))
def test_an_example_is_legal_and_does_something(
    pages: ModuleType, name: str, pixels: DataSet, sentences: DataSet
) -> None:
    if cards()[name].needs_base:
        assert " --base " in pages.page(cards()[name])
        return
    data, options = (
        (pixels if examples.data(cards()[name]) == "dsprites" else sentences),
        examples.option(cards()[name]),
    )
    data = talk() if cards()[name].needs_context else data
    spec = specify(name, data, "array", None, {**options, "batch_size": 8})
    session.build(spec, Own(data), new=True)  # which refuses what has no use
    usual = specify(name, data, "array", None, {"batch_size": 8})
    assert (spec.options, spec.model) != (usual.options, usual.model) or not options
    assert bool(options) == (name not in ("ae", "vae", "lm", "seq2seq", "cvae"))


def test_methods_against_collapse_are_shown_on_text_and_every_method_says_what_it_is_for() -> None:
    for name in ("bn-vae", "free-bits", "lagging-vae", "sa-vae", "lm"):
        assert examples.data(cards()[name]) == "sentences", name
    assert examples.command(cards()["beta-vae"]) == "elbo train beta-vae --data dsprites --beta 8"
    assert examples.call(cards()["style-vae"]).startswith('elboroom.train("style-vae", data="sentences"')
    assert all(5 < len(card.purpose) < 64 for card in cards().values())


@pytest.mark.parametrize("name", list(cards()))
def test_curves_are_small_drawings_of_every_term(name: str) -> None:
    path = ROOT / "docs" / "methods" / f"{name}.svg"
    assert path.stat().st_size < 20_000
    titles = [node.text for node in ElementTree.parse(path).iter() if node.get("class") == "name"]
    assert titles[-1] == "loss"
    assert len(titles) >= 2
