"""The explorer in a real browser: what a hand does, what an eye sees, and that nothing leaves this machine."""

from __future__ import annotations

import base64
import io
import shutil
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from elboroom.explorer.serve import explorer
from elboroom.report import write_report
from elboroom.runs.lifecycle import load, train
from elboroom.runs.run import Run

HTML = "<img src=x onerror=alert(1)>"  # how every sentence of the text run ends
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium here")]
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield found
        found.close()


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens a page; at the end it must have logged no error, and asked nobody but this machine."""
    said: list[str] = []
    contexts: list[Any] = []

    def opened(url: str, wide: int = 1440, refusals: bool = False, **how: Any) -> Any:
        context = browser.new_context(viewport={"width": wide, "height": 900}, **how)
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        contexts.append(context)
        page = context.new_page()
        told = "server responded with a status of 422" if refusals else "\0"  # which a browser logs as an error
        page.on(
            "console",
            lambda line: (
                said.append(line.text) if line.type in ("error", "warning") and told not in line.text else None
            ),
        )
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: said.append(f"a dialog: {dialog.message}"))
        local = ("http://127.0.0.1:", "file:", "data:", "blob:http://127.0.0.1:")
        page.on("request", lambda asked: None if asked.url.startswith(local) else said.append(f"left: {asked.url}"))
        page.goto(url)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not said


@pytest.fixture(scope="module")
def two(pictures: Path, speaking: Run, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An explorer of an image run, another on the same data, and a text run."""
    other = tmp_path_factory.mktemp("other") / "run"
    spec = load(pictures).spec.data
    options = {"steps": 40, "batch_size": 32, "latent": 3, "net": "mlp-300", "device": "cpu", "threads": 1}
    train("beta-vae", spec["source"], other, labels=spec["labels"], beta=8, **options)
    for folder in (pictures, other):
        load(folder).evaluate(samples=2, most=50)
    served = explorer([pictures, other, speaking], port=0, points=200).beside()
    yield served.url
    served.stop()


def ready(page: Any) -> None:
    page.wait_for_selector("text=Point to decode", timeout=60_000)
    page.wait_for_selector(".stage")


def seen(page: Any, where: str = ".look figure:first-child canvas") -> str:
    found: str = page.locator(where).first.evaluate("canvas => canvas.toDataURL()")
    return found


def settled(page: Any, look: Callable[[], Any], before: Any) -> Any:
    """What is seen once it differs from what was."""
    for _ in range(600):
        if (now := look()) != before:
            return now
        page.wait_for_timeout(50)
    raise AssertionError("nothing changed")


def test_a_slider_changes_the_picture_and_undo_brings_it_back(two: str, visit: Callable[..., Any]) -> None:
    page = visit(two)
    ready(page)
    before = seen(page)
    dial = page.locator(".dial input").first
    at = dial.input_value()
    dial.focus()
    for _ in range(60):
        page.keyboard.press("ArrowRight")
    settled(page, lambda: seen(page), before)
    assert float(dial.input_value()) > float(at)
    page.locator("button.undo").click()
    settled(page, lambda: seen(page) == before, False)
    page.locator("button.draw").click()
    assert settled(page, lambda: seen(page), before)
    assert page.locator("text=A draw of the prior").count() == 1


@pytest.mark.parametrize("run", [0, 2], ids=["images", "sentences"])
def test_the_map_decodes_pins_and_makes_a_strip(two: str, visit: Callable[..., Any], run: int) -> None:
    page = visit(f"{two}#run={run}")
    ready(page)
    box = page.locator(".map").bounding_box()
    for count, (x, y) in enumerate(((0.4, 0.45), (0.62, 0.55), (0.5, 0.35)), 1):
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
        page.wait_for_selector(".tip:not([hidden])")
        page.mouse.down()
        page.mouse.up()
        page.wait_for_selector(f".pinned:nth-child({count})")
    page.wait_for_selector(".strip .frame:nth-child(9)")
    assert page.locator(".strip .frame").count() == 9
    (pictures_of if run == 0 else sentences_of)(page)


def pictures_of(page: Any) -> None:
    """The strip of an image run changes, and is taken away as a film and as a sheet."""
    assert len({seen(page, f".strip .frame:nth-child({k}) canvas") for k in (1, 5, 9)}) == 3
    page.wait_for_selector(".analogy:not([hidden]) canvas")
    with page.expect_download() as film:
        page.locator("button.gif").click()
    assert Image.open(film.value.path()).format == "GIF"
    with page.expect_download() as sheet:
        page.locator("button.png").click()
    assert Image.open(sheet.value.path()).size[0] > 9 * 200


def sentences_of(page: Any) -> None:
    """The strip of a text run changes, its new words are marked, and it is taken away as lines."""
    lines = page.locator(".strip .frame .sentence").all_inner_texts()
    assert len(set(lines)) > 1
    assert all(line.endswith("<img src=x onerror=alert(1)>") for line in lines)
    marked = [page.locator(f".strip .frame:nth-child({k}) mark").count() for k in range(1, 10)]
    assert marked == [0, *(words_changed(a, b) for a, b in pairwise(lines))]
    page.wait_for_selector(".analogy:not([hidden]) .sentence")
    with page.expect_download() as text:
        page.locator(".paths >> text=Save text").click()
    assert Path(text.value.path()).read_text().splitlines() == lines
    assert page.locator("img, button.gif, button.png").count() == 0


def words_changed(a: str, b: str) -> int:
    return sum(one != other for one, other in zip(a.split(), b.split(), strict=True))


def test_a_lasso_selects_and_its_vector_edits(two: str, visit: Callable[..., Any]) -> None:
    page = visit(two)
    ready(page)
    box = page.locator(".map").bounding_box()
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.locator("button.lasso").click()
    page.mouse.move(middle[0] - 120, middle[1] - 120)
    page.mouse.down()
    for dx, dy in ((120, -120), (120, 120), (-120, 120)):
        page.mouse.move(middle[0] + dx, middle[1] + dy, steps=4)
    page.mouse.up()
    page.wait_for_selector(".selection:not([hidden]) >> text=examples selected")
    before = seen(page)
    page.locator(".edits input[type=range]").focus()
    for _ in range(40):
        page.keyboard.press("ArrowRight")
    settled(page, lambda: seen(page), before)
    assert page.locator(".map canvas").first.is_visible()


def test_a_double_click_on_the_map_pins_nothing(two: str, visit: Callable[..., Any]) -> None:
    page = visit(two)
    ready(page)
    box = page.locator(".map").bounding_box()
    at = (box["x"] + 0.4 * box["width"], box["y"] + 0.45 * box["height"])
    page.mouse.dblclick(*at)
    page.wait_for_timeout(1000)
    assert page.locator(".pinned").count() == 0
    page.mouse.click(*at)
    page.wait_for_selector(".pinned")


def test_each_of_two_sliders_keeps_its_last_value(two: str, visit: Callable[..., Any]) -> None:
    page = visit(two)
    ready(page)
    first, second = page.evaluate("elboroom.panels[0].sheet.dimensions.slice(0, 2).map((d) => d.index)")
    wanted = page.evaluate(
        """async ([a, b]) => {
          const panel = elboroom.panels[0];
          const all = [[a, 0.5], [a, 0.9], [b, -0.4], [b, -0.8]].map(([dim, value]) => panel.move(dim, value));
          await Promise.all(all);
          return [panel.point.at[a], panel.point.at[b]];
        }""",
        [first, second],
    )
    assert wanted == pytest.approx([0.9, -0.8], abs=1e-4)


def test_a_path_that_is_asked_for_while_another_is_drawn_takes_its_place(two: str, visit: Callable[..., Any]) -> None:
    page = visit(f"{two}#run=0&pin=row%3A1&pin=row%3A2&pin=row%3A3")
    ready(page)
    page.wait_for_selector(".strip button")
    page.evaluate("""async () => {
      const paths = elboroom.panels[0].paths, show = paths.show.bind(paths);
      let last = null;
      paths.show = (...given) => {
        paths.show = show;
        const shown = show(...given);
        paths.to.value = "2";
        last = paths.refresh();
        return shown;
      };
      await paths.refresh();
      await last;
    }""")
    ends = page.evaluate("(() => { const p = elboroom.panels[0].paths; return [p.way.z.at(-1), p.points[2].z]; })()")
    assert ends[0] == pytest.approx(ends[1], abs=1e-5)


def test_an_address_keeps_paths_edits_the_window_of_the_map_and_the_second_run(
    two: str, visit: Callable[..., Any]
) -> None:
    page = visit(f"{two}#run=0&with=1&pin=row%3A1&pin=row%3A2&pin=row%3A3&pin=row%3A4")
    ready(page)
    panel = page.locator(".panel").first
    panel.locator("[aria-label=from]").select_option("2")
    panel.locator("[aria-label=to]").select_option("3")
    panel.locator("[aria-label='kind of path']").select_option("spherical")
    panel.locator("[aria-label=c]").select_option("1")
    box = panel.locator(".map").bounding_box()
    page.mouse.move(box["x"] + 50, box["y"] + 50)
    page.mouse.wheel(0, -400)
    page.locator(".panel:nth-child(2) .dial input").first.focus()
    page.keyboard.press("End")
    panel.locator(".edits select").select_option(label="half low")
    page.wait_for_selector(".edits input:not([disabled])")
    panel.locator(".edits input[type=range]").focus()
    page.keyboard.press("End")
    state = """() => elboroom.panels.map((p) => [p.point.z, p.map.code.window, p.paths.from.value, p.paths.to.value,
      p.paths.curve.value, p.paths.c.value, p.edits.choice.value, p.edits.strength.value])"""
    page.wait_for_timeout(3000)
    here = page.evaluate(state)
    assert here[0][2:6] == ["2", "3", "spherical", "1"]
    assert here[0][7] == "3"
    again = visit(page.evaluate("location.href"))
    ready(again)
    again.wait_for_timeout(3000)
    there = again.evaluate(state)
    assert there[0][2:] == here[0][2:]
    for k in (0, 1):
        assert there[k][0] == pytest.approx(here[k][0], abs=5e-3), "codes of both runs"
    assert there[0][1] == pytest.approx(here[0][1], rel=1e-3)
    again.locator("text=Copy as Python").click()
    again.wait_for_selector("#toast:not([hidden])")
    scope: dict[str, Any] = {}
    code = again.evaluate("navigator.clipboard.readText()")
    assert "half low" in code
    exec(compile(code, "copied", "exec"), scope)
    assert scope["z"][0].tolist() == pytest.approx(there[0][0], abs=5e-3), "the edit is in the script"
    assert scope["path"].shape == (9, 1, 16, 16)
    again.locator("text=Copy as command").click()
    command = settled(again, lambda: again.evaluate("navigator.clipboard.readText()"), code)
    assert "--points 200 --view" in command
    assert "edit=" in command


def test_a_legend_filters_and_html_in_it_is_text(two: str, visit: Callable[..., Any]) -> None:
    page = visit(two)
    ready(page)
    page.wait_for_selector(".chip")
    assert page.locator(".chip", has_text="<img src=x onerror=alert(1)>").count() == 1
    assert page.locator("img").count() == 0
    dots = "canvas:nth-child(2)"
    before = seen(page, f".map {dots}")
    page.locator(".chip").first.click()
    settled(page, lambda: seen(page, f".map {dots}"), before)
    assert page.locator(".chip").first.get_attribute("aria-pressed") == "false"


def test_a_picture_of_ones_own_is_encoded(two: str, visit: Callable[..., Any], tmp_path: Path) -> None:
    page = visit(two, refusals=True)
    ready(page)
    x = np.zeros((40, 40), np.uint8)
    x[10:30, 10:30] = 255
    Image.fromarray(x).save(tmp_path / "mine.png")
    page.locator(".own input[type=file]").set_input_files(tmp_path / "mine.png")
    page.wait_for_selector("text=/log p\\(x\\) ≤ [0-9]/")
    assert page.locator(".look .input canvas").is_visible()
    (tmp_path / "text.png").write_text("no picture")
    page.locator(".own input[type=file]").set_input_files(tmp_path / "text.png")
    page.wait_for_selector("#alert:not([hidden]) >> text=not an image")
    told, mine = page.locator(".look .caption").inner_text(), seen(page, ".look .input canvas")
    before = seen(page)
    page.locator(".dial input").first.focus()
    page.keyboard.press("End")
    settled(page, lambda: seen(page), before)
    page.locator("button.pin").click()
    page.wait_for_selector(".pinned")
    page.locator("button.undo").click()
    settled(page, lambda: close(seen(page), before), False)
    assert page.locator(".look .caption").inner_text() == told, "undo brings back what was said of the input"
    assert seen(page, ".look .input:not([hidden]) canvas") == mine
    page.locator("button.pin").click()
    page.wait_for_selector(".pinned:nth-child(2)")
    settled(page, lambda: page.evaluate("location.hash").count("pin="), 1)
    again = visit(page.evaluate("location.href"))
    ready(again)
    assert again.locator(".pinned canvas").count() == 2, "the pin of an uploaded picture stays"


def test_sentences_change_word_by_word(two: str, visit: Callable[..., Any]) -> None:
    page = visit(f"{two}#run=2")
    ready(page)
    page.locator(".own input[type=text]").fill(f"she likes {HTML}")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Your input")
    text = page.locator(".look figure:first-child .sentence")
    first = text.inner_text()
    assert first == f"she likes {HTML}", "it says again what it reads"
    page.locator(".dial input").first.focus()
    page.keyboard.press("End")
    page.wait_for_timeout(1500)
    for end in ("Home", "End"):
        before = text.inner_text()
        page.locator(".dial input").first.focus()
        page.keyboard.press(end)
        now = settled(page, text.inner_text, before)
        marked = page.locator(".look figure:first-child mark").count()
        assert marked == words_changed(first, now), "a word that is not as at first is marked"
    assert "<img src=x onerror=alert(1)>" in text.inner_text()
    page.locator("button.alternatives").click()
    page.wait_for_selector(".others li:nth-child(6)")
    assert page.locator("img").count() == 0


def test_two_runs_see_the_same_inputs(two: str, visit: Callable[..., Any]) -> None:
    page = visit(two)
    ready(page)
    page.locator("#with").select_option("1")
    page.wait_for_selector("main.two .panel:nth-child(2) .dial")
    first, second = page.locator(".panel").all()
    captions = [panel.locator(".caption").first for panel in (first, second)]
    settled(page, lambda: captions[1].inner_text() == captions[0].inner_text(), False)
    before = captions[0].inner_text()
    first.locator("button.example").click()
    told = settled(page, captions[0].inner_text, before)
    settled(page, lambda: captions[1].inner_text() == told, False)
    first.locator("button.pin").click()
    page.wait_for_selector(".panel:nth-child(2) .pinned canvas")
    assert seen(page, ".panel:nth-child(1) .input canvas") == seen(page, ".panel:nth-child(2) .input canvas")
    for panel in (first, second):
        told = panel.locator(".numbers tr", has_text="elbo").first.inner_text()
        assert "±" in told, "each run has its numbers with their errors"
    assert first.locator(".numbers").inner_text() != second.locator(".numbers").inner_text()


def test_an_address_restores_the_view(two: str, visit: Callable[..., Any]) -> None:
    page = visit(two)
    ready(page)
    page.locator("button.pin").click()
    page.wait_for_selector(".pinned:nth-child(1)")
    before = seen(page)
    page.locator(".dial input").nth(1).focus()
    for _ in range(50):
        page.keyboard.press("ArrowLeft")
    after = settled(page, lambda: seen(page), before)
    page.locator(".mapcard select").first.select_option("dims")
    page.wait_for_timeout(1500)
    after = seen(page)
    again = visit(page.evaluate("location.href"))
    ready(again)
    assert again.locator(".pinned").count() == 1
    assert again.locator(".mapcard select").first.input_value() == "dims"
    settled(again, lambda: close(seen(again), after), False)
    again.locator("text=Copy as Python").click()
    again.wait_for_selector("#toast:not([hidden])")
    code = again.evaluate("navigator.clipboard.readText()")
    scope: dict[str, Any] = {}
    exec(compile(code, "copied", "exec"), scope)
    assert scope["made"].shape == (1, 1, 16, 16)
    again.locator("text=Copy as command").click()
    command = settled(again, lambda: again.evaluate("navigator.clipboard.readText()"), code)
    assert command.startswith("elbo explore '")
    assert " --view 'run=0&" in command


def close(a: str, b: str) -> bool:
    """Whether two pictures are the same but for a rounded code: the addresses of PNGs, compared as pixels."""
    one, two = (np.asarray(Image.open(io.BytesIO(base64.b64decode(s.partition(",")[2]))), float) for s in (a, b))
    return one.shape == two.shape and float(np.abs(one - two).max()) <= 3


def test_it_fits_a_telephone(two: str, visit: Callable[..., Any]) -> None:
    page = visit(two, wide=390, color_scheme="dark")
    ready(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_sliders_of_a_report_need_no_network(pictures: Path, speaking: Run, visit: Callable[..., Any]) -> None:
    for run in (load(pictures), speaking):
        page = visit(write_report(run, n=50).as_uri(), offline=True)
        page.wait_for_selector("#sliders .dial")
        stage, is_text = page.locator("#sliders .stage"), run.tokeniser is not None
        look = stage.inner_text if is_text else (lambda s=stage: s.evaluate("c => c.toDataURL()"))
        page.locator("#sliders input").first.focus()
        page.keyboard.press("Home")
        page.wait_for_timeout(500)
        before = look()
        page.keyboard.press("End")
        after = settled(page, look, before)
        page.locator("#sliders button", has_text="Example 1").click()
        page.wait_for_timeout(500)
        shown = look()
        page.locator("#sliders input").first.focus()
        page.keyboard.press("End")
        settled(page, lambda look=look, after=after: look() == after, False)
        if is_text:
            assert shown == run.reconstruct(run.examples(1))[0], "an example is its reconstruction"
        assert page.locator("#sliders img").count() == 0


@pytest.fixture(scope="module")
def more(styled: Path, answering: Path) -> Iterator[str]:
    """An explorer of a run of style and of one that answers."""
    served = explorer([styled, answering], port=0, points=100).beside()
    yield served.url
    served.stop()


def test_a_sentence_takes_another_style(more: str, visit: Callable[..., Any]) -> None:
    page = visit(more)
    ready(page)
    before = page.evaluate("elboroom.panels[0].point.z")
    for value in ("good", "bad"):  # at least one of them is not its own
        page.select_option(".edits select", label=f"to mood {value}")
        settled(page, lambda: page.evaluate("document.querySelector('.edits output').value") == "1.00", False)
        page.wait_for_timeout(1000)
    after = page.evaluate("elboroom.panels[0].point.z")
    assert before[:2] != after[:2]
    assert before[2:] == after[2:]
    page.click(".undo")


def test_a_dialogue_goes_on_with_the_answer_that_is_clicked(more: str, visit: Callable[..., Any]) -> None:
    page = visit(f"{more.split('#')[0]}#run=1&context=how+is+he+%3F")
    page.wait_for_selector(".reply")
    assert page.locator(".reply").count() == 5
    page.fill(".answers textarea", "how is the man ?")
    page.select_option(".answers select", label="10 by chance")
    page.click(".answers button[type=submit]")
    settled(page, lambda: page.locator(".reply").count() == 10, False)
    answer = page.locator(".reply").first.inner_text()
    page.locator(".reply").first.click()
    assert page.input_value(".answers textarea") == f"how is the man ?\n{answer}"
    settled(page, lambda: "context=how+is+the+man" in page.evaluate("location.hash"), False)
    page.click("text=Copy as Python")
    settled(page, lambda: "run.generate([" in page.evaluate("navigator.clipboard.readText()"), False)
