"""Every recipe trains; what is said beside it wins; it is told afterwards; what does not fit is refused in a sentence."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contract import talk

import elboroom
from elboroom.core.problem import Problem
from elboroom.data.dataset import DataSet
from elboroom.data.sources import SOURCES
from elboroom.methods import cards
from elboroom.report.run import write_report
from elboroom.training.recipe import Recipe, find, recipes
from elboroom.training.spec import Spec, specify

TWO = {"steps": 2, "batch_size": 8, "threads": 1, "device": "cpu"}
TRAINED = [
    (name, method, kind)
    for name, recipe in recipes().items()
    for kind in recipe.on
    for method in recipe.methods or ["vae"]
]


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize(("name", "method", "kind"), TRAINED)
def test_it_trains_two_steps_on_data_of_its_kind(
    name: str, method: str, kind: str, binary: DataSet, vectors: DataSet, sentences: DataSet, tmp_path: Path
) -> None:
    data = (
        talk() if cards()[method].needs_context else {"pixels": binary, "vectors": vectors, "tokens": sentences}[kind]
    )
    said: dict[str, Any] = TWO | ({"embed": 8, "hidden": 9} if kind == "tokens" else {})
    run = elboroom.train(method, data, tmp_path / "run", recipe=name, **said)
    spec = Spec.read(run.folder)
    assert (run.step, spec.recipe) == (2, name)
    kept = spec.options | spec.model.model_dump() | spec.fit.model_dump()
    for option, value in find(name).sets(method, kind).items():
        assert kept[option] == (said | {"epochs": 0}).get(option, value), option


def test_each_says_where_it_is_from_and_names_what_there_is() -> None:
    assert {"lagging-ptb", "bn-vae-yahoo", "burgess-dsprites", "locatello-dsprites", "mushom-dsprites"} < set(recipes())
    assert {"kumar-shapes", "tomczak-mnist", "john-yelp", "zhao-dialogue", "fast"} < set(recipes())
    for recipe in recipes().values():
        assert recipe.summary
        assert recipe.source
        assert recipe.published or recipe.name == "fast"
        assert not {recipe.data} - {"", *SOURCES}
        assert {*recipe.methods, *recipe.method} <= set(cards())
        assert set(recipe.method) <= set(recipe.methods)
        assert all(set(recipe.on) <= set(cards()[method].on) for method in recipe.methods)


def spec_of(method: str, data: DataSet, recipe: str | Path | Recipe, **said: Any) -> Spec:
    found = recipe if isinstance(recipe, Recipe) else find(recipe)
    return specify(method, data, "array", None, said, recipe=found)


def test_what_is_said_wins_and_takes_along_what_belonged_to_the_other(sentences: DataSet, binary: DataSet) -> None:
    plain = spec_of("lagging-vae", sentences, "lagging-ptb")
    assert (plain.fit.optimiser, plain.fit.lr, plain.fit.decay, plain.fit.decay_from) == ("sgd", 1.0, "plateau", 15)
    assert (plain.fit.epochs, plain.options["warmup"]) == (100, 0.1)
    said = spec_of("lagging-vae", sentences, "lagging-ptb", lr=0.5, hidden=64, warmup=0.3)
    assert (said.fit.lr, said.model.hidden, said.options["warmup"], said.fit.clip) == (0.5, 64, 0.3, 5.0)
    assert said.fit.optimiser == "sgd"
    adam = spec_of("lagging-vae", sentences, "lagging-ptb", optimiser="adam", decay="none", steps=30)
    assert (adam.fit.lr, adam.fit.decay_from, adam.fit.steps, adam.fit.epochs) == (3e-3, 0, 30, 0)
    assert adam.fit.batches == "constant"
    short = spec_of("beta-vae", binary, "locatello-dsprites", epochs=2, batch_size=10)
    assert short.fit.steps == 2 * (short.about.n // 10)
    unending = spec_of("vae-annealed", binary, "tomczak-mnist", patience=0)
    assert unending.fit.look_every == 0
    assert spec_of("vae-annealed", binary, "tomczak-mnist", patience=5).fit.look_every == 500


def test_the_narrower_table_wins(binary: DataSet, vectors: DataSet) -> None:
    mine = Recipe(
        name="mine", options={"lr": 1.0, "latent": 3}, pixels={"lr": 0.1, "steps": 5}, method={"vae": {"lr": 0.01}}
    )
    assert mine.sets("vae", "pixels") == {"lr": 0.01, "latent": 3, "steps": 5}
    assert spec_of("ae", binary, mine).fit.lr == 0.1
    assert spec_of("ae", vectors, mine).fit.lr == 1.0


def test_the_same_options_make_the_same_run_without_it(binary: DataSet) -> None:
    """A run never depends on the file: its spec differs by a name alone."""
    by_name = spec_of("beta-vae", binary, "locatello-dsprites", steps=7)
    by_hand = specify(
        "beta-vae", binary, "array", None, {**find("locatello-dsprites").sets("beta-vae", "pixels"), "steps": 7}
    )
    assert by_name.id == by_hand.id
    assert by_name.model_copy(update={"recipe": ""}) == by_hand


@pytest.fixture
def images(tmp_path: Path) -> Path:
    np.save(tmp_path / "x.npy", (np.random.default_rng(0).random((80, 16, 16)) > 0.7).astype(np.uint8) * 255)
    return tmp_path / "x.npy"


def test_the_command_of_a_run_says_it_and_makes_the_run_again(images: Path, tmp_path: Path) -> None:
    """Also where what was said instead of it is the default, which a command leaves out otherwise."""
    own = tmp_path / "mine.toml"
    own.write_text(
        'methods = ["beta-vae"]\n[options]\nlatent = 3\nbatch_size = 16\nsteps = 4\n[method.beta-vae]\nbeta = 9\n'
    )
    made = elboroom.train(data=images, out=tmp_path / "a", recipe=own, batch_size=64, beta=4, threads=1).spec
    words = shlex.split(made.command)
    assert words[words.index("--recipe") + 1] == str(own)
    assert (made.method, made.fit.batch_size, made.model.latent, made.options["beta"]) == ("beta-vae", 64, 3, 4.0)
    said = {key[2:].replace("-", "_"): word for key, word in zip(words[3::2], words[4::2], strict=True)}
    again = elboroom.train(words[2], said.pop("data"), tmp_path / "b", **said).spec
    apart = {"versions", "suited", "id"}  # what was chosen for the first is said to the second
    assert again.model_dump(exclude=apart) == made.model_dump(exclude=apart)
    own.unlink()
    assert "--recipe" not in Spec.read(tmp_path / "a").command
    assert elboroom.load(tmp_path / "a").step == 4
    assert elboroom.resume(tmp_path / "a", 1).step == 5


@pytest.mark.slow
def test_the_report_says_it(images: Path, tmp_path: Path) -> None:
    run = elboroom.train("vae", images, tmp_path / "run", recipe="fast", net="mlp-300", **TWO)
    page = write_report(run, n=16).read_text()
    assert "recipe fast" in page
    assert "--recipe fast" in page


def test_it_reads_text_as_it_says(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("a a b\na b a\nb a c\n" * 10)
    (tmp_path / "mine.toml").write_text('on = ["tokens"]\n[options]\nvocabulary = 6\nembed = 4\nhidden = 4\n')
    own: dict[str, Any] = {"recipe": tmp_path / "mine.toml", **TWO}
    run = elboroom.train("vae", tmp_path / "x.txt", tmp_path / "run", **own)
    assert (run.spec.about.levels, run.spec.reading.vocabulary) == (6, 6)
    assert elboroom.train("vae", tmp_path / "x.txt", tmp_path / "all", vocabulary=0, **own).spec.about.levels == 7


@pytest.mark.parametrize(
    ("method", "recipe", "said", "sentence"),
    [
        ("vae", "burges-dsprites", {}, "unknown recipe 'burges-dsprites'; did you mean 'burgess-dsprites'"),
        ("vae", "no/such.toml", {}, "--recipe no/such.toml: there is no such file"),
        ("vae", "lagging-ptb", {}, "the recipe lagging-ptb is for text, and array is images"),
        (None, "fast", {}, "the recipe fast names no method: say which"),
        ("vae", "locatello-dsprites", {"latten": 3}, "vae has no option --latten; did you mean 'latent'"),
        ("vae", "options = 3", {}, "options: input should be a valid dictionary"),
        ("vae", "lr = 3", {}, "a recipe has no 'lr'; options stand under"),
        ("vae", "sumary = 'x'", {}, "a recipe has no 'sumary'; did you mean 'summary'"),
        ("vae", "[options", {}, "is not valid TOML"),
        ("vae", "[options]\ndata = 'ptb'", {}, "options: 'data' is not an option of training"),
        ("vae", "[options]\nlr = [1, 2]", {}, "options.lr: input should be"),
        ("vae", "[options]\nbeta = 3", {}, r"vae has no option --beta.* \(the recipe .*mine.toml sets it\)"),
        ("vae", "[options]\nlr = -1", {}, r"--lr -1: .*\(the recipe .*mine.toml sets it\)"),
        ("vae", "[options]\nlr = -1", {"lr": -2}, r"--lr -2: input should be greater than 0$"),
        ("vae", "[options]\nhidden = 7", {}, r"--hidden 7 has no effect here; remove it \(the recipe .*sets it\)"),
        ("vae", "[method.vea]\nlr = 1", {}, "unknown method 'vea'"),
        ("vae", "[options]\nmin_count = 2", {}, "vae has no option --min-count"),
    ],
)
def test_what_does_not_fit_is_refused(
    method: str | None, recipe: str, said: dict[str, Any], sentence: str, binary: DataSet, tmp_path: Path
) -> None:
    place: Any = recipe
    if "=" in recipe or "[" in recipe:
        place = tmp_path / "mine.toml"
        place.write_text(recipe)
    with pytest.raises(Problem, match=sentence):
        elboroom.train(method, binary, tmp_path / "run", recipe=place, **(TWO | said))
    assert not (tmp_path / "run").exists()


def test_data_that_there_is_not_has_to_be_said() -> None:
    with pytest.raises(Problem, match="the recipe bn-vae-yahoo names no data that elbo has: say which with --data"):
        elboroom.train(recipe="bn-vae-yahoo")
