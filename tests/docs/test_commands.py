"""Every command that the pages show: its flags are real ones, and it runs, with a budget of two steps and small data.

reproduce.md has a test of its own, and tutorials are executed as they stand when the site is built. What serves a page or
waits for a person (`explore`, `chat`) is parsed and not run, as are `make`, `pip` and `tensorboard`: tests/explorer and
tests/commands/test_answer.py start and stop these. What asks the Hub is run by tests/share against a server of ours.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commanded import accept
from PIL import Image
from shell import elbo

from elboroom.methods import cards
from elboroom.training.recipe import recipes

ROOT = Path(__file__).parents[2]
PAGES = [
    path
    for path in (
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *sorted((ROOT / "docs").glob("*.md")),
        ROOT / "docs/site/index.md",
    )
    if path.name != "reproduce.md"
]
METHODS = sorted(path for path in (ROOT / "docs/methods").glob("*.md") if path.name != "README.md")
WAITING = ("explore", "chat")
HUB = ("push", "pull")
SMALL = ["--steps", "2", "--batch-size", "8", "--threads", "1", "--log-every", "1"]
IMAGES, WORDS = [*SMALL, "--net", "mlp-300"], [*SMALL, "--embed", "4", "--hidden", "4"]
STANDS_FOR = {  # small data of the same form
    "dsprites": "sprites.npz", "mnist": "sprites.npz", "ptb": "sentences.txt", "multi30k-fr-en": "pairs",
    "multi30k-en-fr": "pairs", "turkcorpus": "pairs", "dailydialog-replies": "talk.jsonl", "yelp-sentiment": "reviews.tsv",
    "sentences": "polar.tsv",
}  # fmt: skip
COLUMNS = {"talk.jsonl": ["--context-column", "context"], "polar.tsv": ["--label-column", "polarity"]}
TEXT = ("sentences.txt", "notes.tsv", "reviews.tsv", "talk.jsonl", "pairs", "pairs.tsv", "captions.jsonl", "polar.tsv")
TEXT_RUN = {"maps.md": "runs/dae-yelp-sentiment-0"}  # RUN of pages on text
STUDY = """
data = "sprites.npz"
seeds = 2
[every]
steps = 2
net = "mlp-300"
latent = 3
batch_size = 8
log_every = 1
[[runs]]
method = "beta-vae"
beta = [1, 4]
[measure]
metrics = ["mig", "dci"]
mode = {{ dci = "hist" }}
smaller = true
samples = 2
most = 40
codes = 40
"""


def commands(page: Path) -> list[list[str]]:
    """The words of every `elbo` command of a page, in its order."""
    found = []
    for block in re.findall(r"^```sh\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
        for line in re.sub(r"\\\n *", " ", block).splitlines():
            words = shlex.split(line, comments=True)
            while "&&" in words:
                found.append(words[: words.index("&&")])
                words = words[words.index("&&") + 1 :]
            found.append(words)
    plain = [[word for word in words if not re.fullmatch(r"[A-Z_]+=.*", word)] for words in found]
    return [words for words in plain if words and words[0] == "elbo"]


ALL = [(page, words) for page in (*PAGES, *METHODS) for words in commands(page)]


def test_there_are_commands() -> None:
    assert len(ALL) > 150
    assert {"README.md", "samplers.md", "text.md"} <= {page.name for page, _ in ALL}
    assert {f"{name}.md" for name in cards()} <= {page.name for page, _ in ALL}


@pytest.mark.parametrize(
    ("page", "words"), ALL, ids=lambda part: part.name if isinstance(part, Path) else " ".join(part)
)
def test_a_command_is_one_that_there_is(page: Path, words: list[str]) -> None:
    rest = words[1:]
    if rest[0] == "--with":  # a method of the page itself
        rest = rest[2:]
        rest = ["vae" if word == "mine" else word for word in rest if word not in ("--beta", "2")]
    if rest[:2] == ["train", "--recipe"]:
        rest = ["train", recipes()[rest[2]].usual_method(), *rest[1:]]
    accept(rest)


def staged(folder: Path) -> None:
    """Data as the pages speak of it, and runs by their names."""
    rng = np.random.default_rng(0)
    x, shape, scale = rng.integers(0, 2, (120, 16, 16)), rng.integers(0, 3, 120), rng.integers(0, 3, 120)
    np.savez(folder / "sprites.npz", x=x.astype(np.uint8), shape=shape, scale=scale)
    np.savez(folder / "faces.npz", images=rng.integers(0, 256, (60, 16, 16)).astype(np.uint8))
    for name in ("a", "b", "codes"):
        np.save(folder / f"{name}.npy", rng.normal(size=(60, 3)))
    np.save(folder / "labels.npy", rng.integers(0, 3, 40))  # as many as there are photos, whose codes a page writes
    for kind in ("cats", "dogs"):
        (folder / "photos" / kind).mkdir(parents=True)
        for k in range(20):
            pixels = rng.integers(0, 256, (64, 64, 3)).astype(np.uint8)
            Image.fromarray(pixels).save(folder / "photos" / kind / f"{kind}{k}.png")
    rows = [f"{kind}/{kind}{k}.png,{k % 2},{k % 5}" for kind in ("cats", "dogs") for k in range(20)]
    (folder / "people.csv").write_text("\n".join(["file,male,age", *rows]) + "\n")
    lines = [
        f"he said the food was awful , a dog runs on the beach . my new favorite place w{i % 7} !" for i in range(80)
    ]
    (folder / "sentences.txt").write_text("\n".join(lines) + "\n")
    tags = ["positive" if i % 2 else "negative" for i in range(80)]
    short = [
        f"the food was awful , he said : my new favorite place w{i % 7} !" for i in range(80)
    ]  # within --longest 15
    (folder / "reviews.tsv").write_text(
        "\n".join(f"{tag}\t{line}" for tag, line in zip(tags, short, strict=True)) + "\n"
    )
    polar = "".join(f"{line}\t{tag}\n" for line, tag in zip(short, tags, strict=True))
    (folder / "polar.tsv").write_text("text\tpolarity\n" + polar)
    (folder / "reviews.txt").write_text("\n".join(lines[:3]) + "\n")
    (folder / "notes.tsv").write_text("\n".join(["id\tbody", *(f"{i}\t{line}" for i, line in enumerate(lines))]) + "\n")
    talk = [{"text": line, "context": [f"how is w{i % 4} ?", "well ."]} for i, line in enumerate(lines)]
    (folder / "talk.jsonl").write_text("\n".join(map(json.dumps, talk)) + "\n")
    (folder / "captions.txt").write_text("\n".join(lines[:3]) + "\n")
    styles = [{"text": line, "style": ("romantic", "humorous")[i % 2], "french": line} for i, line in enumerate(lines)]
    (folder / "captions.jsonl").write_text("\n".join(map(json.dumps, styles)) + "\n")
    (folder / "pairs.tsv").write_text("\n".join(["complex\tsimple", *(f"{line}\t{line}" for line in lines)]) + "\n")
    (folder / "pairs").mkdir()
    for side in ("src", "tgt"):
        (folder / "pairs" / f"train.{side}").write_text("\n".join(lines) + "\n")
    (folder / "study.toml").write_text(STUDY.replace("{{", "{").replace("}}", "}"))
    train(folder, "RUN", "vae", "sprites.npz", IMAGES)
    train(folder, "runs/bn-vae-ptb-0", "bn-vae", "sentences.txt", WORDS)
    for name in ("OTHER", "runs/vae-mnist-0", "runs/demo"):
        shutil.copytree(folder / "RUN", folder / name)


def train(folder: Path, out: str, method: str, data: str, small: list[str]) -> None:
    done = elbo("train", method, "--data", folder / data, "--out", folder / out, *small)
    assert done.returncode == 0, done.stderr


def shortened(words: list[str]) -> list[str]:
    """A command that takes moments: two steps, small nets, small data in place of that which is downloaded or rendered."""
    verb = words[1]
    if verb == "train":
        return _train(words)
    words = [
        STANDS_FOR.get(word, word) if words[i - 1] == "--data" or verb == "compare" else word
        for i, word in enumerate(words)
    ]
    words = [f"{word}:x" if verb == "compare" and word == "sprites.npz" else word for word in words]
    more: dict[str, list[str]] = {
        "eval": ["--samples", "2", "--most", "40"] if "--metrics" not in words else ["--smaller"] * ("all" in words),
        "compare": ["--permutations", "20"],
        "resume": [] if "--steps" in words else ["--steps", "2"],
    }
    if words[1:3] == ["study", "run"]:
        words = ["elbo", "study", "run", "study.toml", *words[4:], "--workers", "1"]
        words = _without(words, {"--steps", "--seeds", "--trials", "--logger"})
        return [*words, *(["--trials", "2", "--out", "studies/search"] if "--search" in words else [])]
    return [*_without(words, {"--most"} if "doctor" not in words else set()), *more.get(verb, [])]


def _train(words: list[str]) -> list[str]:
    method = words[2] if not words[2].startswith("-") else recipes()[words[3]].usual_method()
    recipe = recipes()[words[words.index("--recipe") + 1]] if "--recipe" in words else None
    said = words[words.index("--data") + 1] if "--data" in words else (recipe.data if recipe else "dsprites")
    data = STANDS_FOR.get(said, said)
    small = WORDS if data in TEXT else IMAGES
    gone = {word for word in small if word.startswith("--")} | {
        "--epochs",
        "--data",
        "--size",
        "--recipe",
        "--vocabulary",
        "--warmup-steps",
    }
    rest = _without(words[3:] if words[2] == method else words[2:], gone)
    size = ["--size", "16"] if data == "photos/" else []
    size += COLUMNS.get(data, ["--label", "shape"] * (method == "probe"))
    size += ["--pretraining", "0.5"] * (method == "bst")  # one of two steps
    size += ["--steps", "16"] * ("--cycles" in words)  # two a cycle of the example
    out = ["--out", f"runs/{method}-{Path(said).stem}-0", "--overwrite"]
    return ["elbo", "train", method, "--data", data, *rest, *small, *size, *out]


def _without(words: list[str], flags: set[str]) -> list[str]:
    """The same without these options and their values."""
    return [word for i, word in enumerate(words) if word not in flags and (i == 0 or words[i - 1] not in flags)]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stage")
    staged(folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=lambda page: page.name)
def test_every_command_of_a_page_runs(page: Path, stage: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(stage)
    done: list[Any] = []
    for said in commands(page):
        words = [TEXT_RUN.get(page.name, word) if word == "RUN" else word for word in said]
        verb, hub = words[1], any(word.startswith("hf:") for word in words)
        if (
            verb in (*WAITING, *HUB) or hub or verb == "--with"
        ):  # the method of CONTRIBUTING is trained by a test of its own
            continue
        left = elbo(*shortened(words)[1:])
        assert left.returncode == 0, f"{shlex.join(words)} as {shlex.join(shortened(words))}: {left.stderr[-2000:]}"
        done.append(words)
    assert done or page.name in ("CONTRIBUTING.md", "explorer.md")


def base_of(words: list[str]) -> list[str]:
    """The command that trains the run under this one, by its name `runs/METHOD-DATA-0`."""
    name = Path(words[words.index("--base") + 1]).name.removesuffix("-0")
    method = max((known for known in cards() if name.startswith(f"{known}-")), key=len)
    return ["elbo", "train", method, "--data", name.removeprefix(f"{method}-")]


@pytest.mark.slow
@pytest.mark.parametrize("page", METHODS, ids=lambda page: page.stem)
def test_the_example_of_a_method_runs(page: Path, stage: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(stage)
    (words,) = commands(page)
    for said in ([base_of(words)] if "--base" in words else []) + [words]:
        left = elbo(*shortened(said)[1:])
        assert left.returncode == 0, f"{shlex.join(said)} as {shlex.join(shortened(said))}: {left.stderr[-2000:]}"
