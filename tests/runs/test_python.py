"""What the README shows: train, load, verbs, own modules, the scikit-learn estimator."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from torch import Tensor, nn

import elboroom
from elboroom.build.user_nets import check_net

SMALL: dict[str, Any] = {"steps": 6, "batch_size": 16, "latent": 3, "threads": 1}


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    return (np.random.default_rng(0).random((120, 16, 16)) * 255).astype(np.uint8)


def test_files_of_images_are_examples(images: np.ndarray, tmp_path: Path) -> None:
    run = elboroom.train("vae", images, tmp_path / "run", **SMALL)
    for at in (0, 1):
        Image.fromarray(images[at]).save(tmp_path / f"{at}.png")
    for file in (tmp_path / "0.png", str(tmp_path / "0.png")):
        assert np.allclose(run.encode(file), run.encode(images[:1]), atol=1e-6)
    assert np.allclose(
        run.reconstruct([tmp_path / "0.png", tmp_path / "1.png"]), run.reconstruct(images[:2]), atol=1e-6
    )
    with pytest.raises(elboroom.Problem, match=r"nofile.png does not exist"):
        run.encode("nofile.png")
    with pytest.raises(elboroom.Problem, match=r"not words or names of files .'a.jpg'"):
        run.encode(np.array(["a.jpg", "b.jpg"]))


def test_the_verbs(images: np.ndarray, tmp_path: Path) -> None:
    run = elboroom.train("beta-vae", images, tmp_path / "run", beta=4, **SMALL)
    x = images[:5]
    assert run.encode(x).shape == (5, 3)
    assert run.decode(run.encode(x)).shape == (5, 1, 16, 16)
    assert np.allclose(run.reconstruct(x), run.decode(run.encode(x)), atol=1e-6)
    assert run.sample(7).shape == (7, 1, 16, 16)
    assert np.array_equal(run.sample(7, seed=1), run.sample(7, seed=1))
    assert run.traverse(x[:1], points=4).shape == (3, 4, 1, 16, 16)
    assert run.interpolate(x[:2], x[2:4], points=6).shape == (2, 6, 1, 16, 16)
    assert np.allclose(run.interpolate(x[:1], x[1:2])[0, -1], run.reconstruct(x[1:2])[0], atol=1e-5)
    assert len(run.kl_per_dim()) == 3
    elbo, bound = run.elbo(), run.log_likelihood(samples=50)
    assert elbo.estimator == "elbo"
    assert bound.estimator == "iw-50"
    again = elboroom.load(tmp_path / "run", data=images)
    assert np.array_equal(again.encode(x), run.encode(x))
    assert again.elbo() == elbo
    copied = pickle.loads(pickle.dumps(run))
    assert np.array_equal(copied.encode(x), run.encode(x))


@pytest.mark.parametrize("tokens", ["words", "bpe"])
def test_sentences_are_read_in_the_words_the_model_was_trained_on(tokens: str, tmp_path: Path) -> None:
    """Which are those of the training split: with rare words held out, other ids than those of all sentences."""
    rng = np.random.default_rng(0)
    lines = [" ".join(f"w{int(word)}" for word in rng.integers(0, 300, 5)) for _ in range(400)]
    (tmp_path / "lines.txt").write_text("\n".join(lines), encoding="utf-8")
    read = {"tokens": tokens, "vocabulary": 0 if tokens == "words" else 280}
    for data, patience in [(lines, 0), (str(tmp_path / "lines.txt"), 2)]:
        out = tmp_path / f"run-{patience}"
        run = elboroom.train("vae", data, out, embed=4, hidden=4, patience=patience, **read, **SMALL)
        words, some = run.tokeniser, run.examples(8)
        assert words is not None
        for row, ids in zip(some.index.tolist(), some.x.tolist(), strict=True):
            assert words.decode(ids) == words.decode(words.encode(lines[row]))
        again = elboroom.load(out, data=None if patience else data)
        assert np.array_equal(again.encode(lines[:3]), run.encode(lines[:3]))


def test_wrong_arrays_are_refused(images: np.ndarray, tmp_path: Path) -> None:
    run = elboroom.train("vae", images, tmp_path / "run", **SMALL)
    with pytest.raises(elboroom.Problem, match=r"\(n, 1, 16, 16\)"):
        run.encode(np.zeros((3, 8, 8)))
    with pytest.raises(elboroom.Problem, match="NaN"):
        run.encode(np.full((3, 16, 16), np.nan))
    with pytest.raises(elboroom.Problem, match=r"\(n, 3\)"):
        run.decode(np.zeros((3, 4)))
    for nonsense, sentence in (
        (lambda: run.elbo(samples=0), "at least 1, not 0"),
        (lambda: run.log_likelihood(samples=0), "at least 1, not 0"),
        (lambda: run.traverse(images[:1], dims=[99]), "dimensions of this model are 0 to 2"),
        (lambda: run.interpolate(images[:1], images[:2]), "1 examples and 2 cannot be paired"),
        (lambda: run.analogy(images[:2], images[:1], images[:2]), "not 2, 1, 2"),
    ):
        with pytest.raises(elboroom.Problem, match=sentence):
            nonsense()
    with pytest.raises(elboroom.Problem, match="did you mean 'batch-size'"):
        elboroom.train("vae", images, tmp_path / "other", batchsize=3)


def test_a_conditional_run_asks_for_labels(images: np.ndarray, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=images, y=np.arange(120) % 4)
    run = elboroom.train("vae", tmp_path / "x.npz", tmp_path / "run", given="label", **SMALL)
    assert run.sample(9).shape == (9, 1, 16, 16)
    u = np.eye(4, dtype=np.float32)[[0, 1, 2]]
    assert run.encode(images[:3], u).shape == (3, 3)
    with pytest.raises(elboroom.Problem, match=r"conditional on label; set it with.* u of shape \(3, 4\)"):
        run.encode(images[:3])


class Own(nn.Module):
    """An encoder of one's own."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.layer = nn.Linear(inputs, outputs)

    def forward(self, x: Tensor, u: Tensor | None = None) -> Tensor:
        out: Tensor = self.layer(x.flatten(1))
        return out


class OwnDecoder(Own):
    def forward(self, x: Tensor, u: Tensor | None = None) -> Tensor:
        return self.layer(x).view(-1, 1, 16, 16)  # type: ignore[no-any-return]


def test_own_modules_are_asked_for_again(images: np.ndarray, tmp_path: Path) -> None:
    mine = {"encoder": Own(256, 6), "decoder": OwnDecoder(3, 256)}
    run = elboroom.train("vae", images, tmp_path / "run", **mine, **SMALL)  # type: ignore[arg-type]
    assert run.spec.own == ["data", "encoder", "decoder"]
    with pytest.raises(elboroom.Problem, match="your own encoder"):
        elboroom.load(tmp_path / "run")
    again = elboroom.load(tmp_path / "run", encoder=Own(256, 6), decoder=OwnDecoder(3, 256))
    assert np.array_equal(again.encode(images), run.encode(images))
    assert again.elbo() == run.elbo(), "the run keeps data that is small"
    (tmp_path / "run" / "data.npz").unlink()
    again = elboroom.load(tmp_path / "run", encoder=Own(256, 6), decoder=OwnDecoder(3, 256))
    with pytest.raises(elboroom.Problem, match="your own array"):
        again.elbo()
    with pytest.raises(elboroom.Problem, match="your own array"):
        elboroom.resume(tmp_path / "run", 3, **mine)  # type: ignore[arg-type]
    more = elboroom.resume(tmp_path / "run", 3, data=images, **mine)  # type: ignore[arg-type]
    assert more.step == 9


class Alone(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x


@pytest.mark.parametrize(
    ("mine", "sentence"),
    [
        ({"encoder": Own(256, 5)}, r"encoder\(x, u\) returns \(B, 5\) for x of shape \(B, 1, 16, 16\); .* \(B, 6\)"),
        ({"encoder": Own(255, 6)}, r"encoder\(x, u\) fails for x of shape \(B, 1, 16, 16\): "),
        ({"encoder": Alone()}, r"encoder\(x, u\) fails"),
        ({"decoder": Own(3, 256)}, r"decoder\(z, u\) returns \(B, 256\) for z of shape \(B, 3\); .* \(B, 1, 16, 16\)"),
        ({"decoder": OwnDecoder(4, 256)}, r"decoder\(z, u\) fails for z of shape \(B, 3\)"),
    ],
)
def test_own_modules_that_do_not_fit_are_refused(
    images: np.ndarray, tmp_path: Path, mine: dict[str, nn.Module], sentence: str
) -> None:
    with pytest.raises(elboroom.Problem, match=sentence):
        elboroom.train("vae", images, tmp_path / "run", **mine, **SMALL)  # type: ignore[arg-type]
    assert not (tmp_path / "run").exists()


def test_trying_a_module_leaves_it_as_it_was() -> None:
    net = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(4), nn.Dropout())
    net[2].eval()
    check_net(Of(net), "encoder", torch.ones(2, 4), 0, (4,))
    assert [m.training for m in net] == [True, True, False]
    assert int(net[1].num_batches_tracked) == 0


class Of(nn.Module):
    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Tensor, u: Tensor | None) -> Tensor:
        return self.net(x)  # type: ignore[no-any-return]


@pytest.mark.parametrize("likelihood", ["bernoulli", "gaussian", "gaussian-learned", "gaussian-per-pixel", "logistic"])
def test_every_likelihood_on_colour_images(likelihood: str, tmp_path: Path) -> None:
    images = (np.random.default_rng(0).random((60, 20, 28, 3)) * 255).astype(np.uint8)
    run = elboroom.train("vae", images, tmp_path / "run", likelihood=likelihood, **SMALL)
    assert run.sample(2).shape == (2, 3, 20, 28)
    measured = run.evaluate(samples=3)
    assert ("bits_per_dim" in measured) == (likelihood == "logistic")


def test_early_stopping_keeps_the_best(images: np.ndarray, tmp_path: Path) -> None:
    options = {**SMALL, "steps": 400, "lr": 3e-3}
    run = elboroom.train("vae", images, tmp_path / "run", patience=2, look_every=5, **options)
    ended = int(max((tmp_path / "run" / "checkpoints").glob("step-*.json")).stem[5:])
    assert ended < 400, "noise cannot be learned for long"
    assert run.step < ended
    assert run.spec.data["splits"].keys() == {"train", "test", "valid"}


def test_threads_and_global_noise_are_left_alone(images: np.ndarray, tmp_path: Path) -> None:
    run = elboroom.train("vae", images, tmp_path / "run", **SMALL)
    first = run.elbo()
    torch.manual_seed(123)
    assert run.elbo() == first


def test_codes_of_the_prior_are_those_that_samples_are_made_of(images: np.ndarray, tmp_path: Path) -> None:
    run = elboroom.train("vae", images, tmp_path / "run", **SMALL)
    z = run.draw(5, seed=3)
    assert z.shape == (5, run.latent)
    np.testing.assert_array_equal(run.decode(z), run.sample(5, seed=3))
    with pytest.raises(elboroom.Problem, match="at least one"):
        run.draw(0)


def test_examples_of_ones_own_are_scored_as_a_split_is(images: np.ndarray, tmp_path: Path) -> None:
    run = elboroom.train("vae", images, tmp_path / "run", **SMALL)
    each = run.score_samples(run.examples(12), samples=200)
    assert each.shape == (12,)
    assert each.mean() == pytest.approx(run.log_likelihood(samples=200).value, rel=0.05)
    assert run.score_samples(run.examples(12), samples=200)[0] == each[0], "the same every time"
    plain = elboroom.train("ae", images, tmp_path / "plain", **SMALL)
    with pytest.raises(elboroom.Problem, match="density"):
        plain.score_samples(plain.examples(2))


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"method": "beta-vae", "beta": 4, "net": "mlp-300"}], ids=["plain", "options"])
def test_scikit_learn_s_own_checks(options: dict[str, Any]) -> None:
    checked = check_estimator(elboroom.VAE(steps=5, **options), on_skip=None)
    assert sum(result["status"] == "passed" for result in checked) >= 40


def test_the_estimator_in_a_pipeline() -> None:
    X = np.random.default_rng(0).normal(size=(50, 6))
    model = elboroom.VAE("beta-vae", beta=4, steps=10)
    assert clone(model).get_params()["beta"] == 4
    assert model.set_params(beta=2, latent=3).fit(X).transform(X).shape == (50, 3)
    assert model.inverse_transform(model.transform(X)).shape == (50, 6)
    assert make_pipeline(StandardScaler(), clone(model)).fit_transform(X).shape == (50, 3)
    with pytest.raises(elboroom.Problem, match="no option --bta"):
        elboroom.VAE("beta-vae", bta=4).fit(X)
    with pytest.raises(elboroom.Problem, match="beta-vae has no option --lattent; did you mean 'latent'"):
        model.set_params(lattent=3)
    assert "lattent" not in model.get_params()
    model.beta = 3
    assert (model.beta, model.get_params()["beta"], clone(model).beta) == (3, 3, 3)
    assert model.set_params(method="info-vae", alpha=0.5).alpha == 0.5
    assert not hasattr(model, "gamma")
    kept = pickle.loads(pickle.dumps(elboroom.VAE("beta-vae", beta=4)))
    assert kept.get_params() == elboroom.VAE("beta-vae", beta=4).get_params()


def test_a_fitted_estimator_scores_and_samples_in_the_units_of_its_data() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 5)) * 40 + 7 + rng.normal(size=(200, 5))
    made = elboroom.VAE(steps=300, latent=2, threads=1).fit(X)
    assert made.inverse_transform(made.transform(X)).shape == X.shape
    assert np.abs(made.sample(500).mean(0) - X.mean(0)).max() < 0.3 * X.std(0).max()
    np.testing.assert_array_equal(made.sample(3, random_state=1), made.sample(3, random_state=1))
    assert made.score(X) > made.score(X + 100)
    wide = elboroom.VAE(steps=300, latent=2, threads=1).fit(10 * X)
    assert made.score(X) - wide.score(10 * X) == pytest.approx(5 * np.log(10), abs=0.1), "a density is per unit"


def test_a_fitted_estimator_is_pickled_in_its_precision() -> None:
    X = np.random.default_rng(0).normal(size=(50, 6))
    made = elboroom.VAE(steps=3, latent=2, threads=1).fit(X)
    again = pickle.loads(pickle.dumps(made))
    assert next(again.run_.model.parameters()).dtype == torch.float64
    np.testing.assert_array_equal(again.transform(X), made.transform(X))


@pytest.mark.parametrize(
    ("top", "likelihood", "standardise"),
    [(1, None, True), (255, None, False), (255, "bernoulli", True), (255, "logistic", True), (255, "logistic", False)],
)
def test_an_estimator_of_pixels_that_have_a_probability(top: int, likelihood: str | None, standardise: bool) -> None:
    """Its score is one, in whatever numbers black and white are written."""
    levels = 2 if likelihood is None else 256
    X = (np.random.default_rng(0).integers(0, levels, (40, 6, 6)) * (top // (levels - 1))).astype(np.uint8)
    options: dict[str, Any] = {"likelihood": likelihood} if likelihood else {}
    made = elboroom.VAE(steps=3, latent=2, threads=1, net="mlp-300", standardise=standardise, **options).fit(X)
    assert made.inverse_transform(made.transform(X)).max() <= top
    x = X[:, None] / np.float32(top)
    assert made.score(X) == pytest.approx(made.run_.score_samples(x).mean())


def test_an_estimator_of_rows_between_0_and_1() -> None:
    X = np.random.default_rng(0).uniform(size=(40, 5))
    made = elboroom.VAE(steps=3, latent=2, threads=1, likelihood="bernoulli").fit(X)
    assert made.inverse_transform(made.transform(X)).min() >= 0
    assert made.scale_.tolist() == [1.0] * 5


@pytest.mark.parametrize("shape", [(60, 8, 8), (60, 8, 8, 3), (60, 3, 8, 8)])
def test_an_estimator_takes_images(shape: tuple[int, ...]) -> None:
    X = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    made = elboroom.VAE(steps=3, latent=2, threads=1, net="mlp-300").fit(X)
    codes = made.transform(X)
    assert codes.shape == (60, 2)
    back = made.inverse_transform(codes)
    assert back.shape == X.shape
    assert 60 < back.mean() < 200, "in the units of X"
    assert made.sample(4).shape == (4, *shape[1:])
    assert np.isfinite(made.score(X))
