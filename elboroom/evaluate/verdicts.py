"""Verdicts: what measured numbers mean, each in one sentence for a person; nothing where there is nothing to say."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

FAR = 1.0  # nats of KL(q(z) || p(z)) per active dimension above which samples of the prior are unlike the codes
MARGIN = 0.5  # nats below its ceiling at which an estimate of I(x; z) no longer tells
SOME = 0.005  # share of unknown words from which they are told
SETTLED = 0.02  # share of all that a run has learnt, below which its last quarter adds nothing
ROSE = 0.05  # the same by which a loss may rise at the end of a run that has settled
GAP = 0.02  # share of its nats by which held-out data may cost more
IDLE = 0.1  # nats of rate, or of information, below which z says nothing of x
TWINS = 0.95  # correlation of the means of two dimensions from which they say the same
GREY, FEW_GREY = 0.25, 0.01  # share of pixels that are neither black nor white: of photos, and of drawings
LINEAR = 0.01  # share of the variance by which PCA may keep more
APART = 5.0  # BLEU below which a reconstruction is another sentence
WIDE = 3.0  # times its error that a fixed sigma may be
State = Literal["problem", "note", "well"]


class Verdict(NamedTuple):
    """What one look at a run found: how it stands, a sentence, the numbers that it rests on and a command to try."""

    name: str
    state: State
    told: str
    evidence: dict[str, float | str]
    command: str = ""


def nats(value: float) -> str:
    """A number of nats in a sentence: two digits below ten, whole ones above."""
    return f"{value:.2g}" if abs(value) < 10 else f"{value:,.0f}"


def unused(active: int, rate: float | None = None, text: bool = False) -> str:
    """Whether z is used at all, by the number of active dimensions and the mean KL."""
    if active and (rate is None or rate >= IDLE):
        return ""
    told = "" if rate is None else f" (mean KL {rate:.2g} nats)"
    if rate is not None and rate >= IDLE:
        return f"z is not used yet: its mean is the same for every example, though the mean KL is {nats(rate)} nats."
    what = "this is a language model" if text else "moving it changes nothing"
    return (
        f"z is not used{told}: the decoder ignores it, so that {what} (posterior collapse); free-bits and bn-vae are methods "
        "that keep it in use."
    )


def passive(active: int, total: int) -> str:
    """How many dimensions do nothing, where some do and some do not."""
    idle = total - active
    if not idle or not active:
        return ""
    do = f"dimensions {'is' if idle == 1 else 'are'} passive"
    return f"{idle} of {total} {do}: the mean is nearly the same for every example, and sliders change nothing there."


def alive(active: int, total: int) -> str:
    """That every dimension is used."""
    return f"All {total} dimensions are active." if active == total and total else ""


def far(aggregate_rate: float | None, active: int, information: float = 0.0, ceiling: float = math.inf) -> str:
    """Whether q(z) is far from the prior, by KL(q(z) || p(z)) in nats over the active dimensions.

    That KL is the mean KL less I(x; z). An estimate of I(x; z) that stands at its ceiling, the logarithm of the number of
    examples, is too small, and the KL too large: then nothing is said.
    """
    if aggregate_rate is None or not active or aggregate_rate <= FAR * active or information > ceiling - MARGIN:
        return ""
    return (
        f"q(z) is {nats(aggregate_rate)} nats from the prior: draws of the prior fall where no data lies, "
        "so that samples will be poor."
    )


def doubled(pairs: Sequence[tuple[int, int, float]]) -> str:
    """Which dimensions say the same, by the correlation of their means; the closest pair is named."""
    if not pairs:
        return ""
    i, j, r = max(pairs, key=lambda pair: abs(pair[2]))
    more = (
        f", and so are {len(pairs) - 1} other pairs"
        if len(pairs) > 2
        else ", and so is one other pair" * (len(pairs) == 2)
    )
    return f"z{i} and z{j} are doubled (correlation {r:.2f}){more}: one of them would do."


def bits_of_grey(grey: float) -> str:
    """What a Bernoulli likelihood does to pixels that are neither black nor white, by their share."""
    if grey < FEW_GREY:
        return ""
    told = f"{grey:.0%} of the pixels are neither black nor white, and the Bernoulli likelihood takes them for probabilities: "
    if grey < GREY:
        return told + "usual for drawn digits, but its nats are no likelihood of these pixels."
    return told + "photos are blurred by it, and its nats are no likelihood of these pixels."


def black_and_white(levels: int | None) -> str:
    """What a likelihood of real numbers does to images of two levels, by the levels that it knows."""
    if levels == 2:
        return ""
    return (
        "The images are black and white, and the likelihood is one of many levels or of real numbers: its nats cannot be "
        "compared with those of a Bernoulli."
    )


def wide(sigma: float, error: float) -> str:
    """Whether a sigma that was fixed is far above the error of a pixel, so that the decoder need not be any better."""
    if sigma <= WIDE * error:
        return ""
    return (
        f"sigma is fixed at {sigma:.2g} and the error of a value is {error:.2g}: errors are cheap against the rate, so that z "
        "is used less than it could be."
    )


def strange(share: float) -> str:
    """What unknown words do to a perplexity, by their share."""
    if share < SOME:
        return ""
    return (
        f"{share:.1%} of the words are unknown to the model and read as `<unk>`, which lowers the perplexity: compare it only "
        "with those of the same vocabulary (--min-count, --vocabulary, --tokens bpe)."
    )


class Slope(NamedTuple):
    """How a loss moved at the end of a run: its last quarter against the one before, beside the noise of both."""

    fall: float  # nats
    noise: float
    learnt: float  # nats in the whole run

    @property
    def falls(self) -> bool:
        """Whether the run still learns."""
        return self.fall > 3 * self.noise and self.fall > SETTLED * self.learnt

    @property
    def rises(self) -> bool:
        """As where the weight of a term rises: nothing can be said then."""
        return self.fall < -3 * self.noise and -self.fall > ROSE * self.learnt


def slope(values: Sequence[float]) -> Slope | None:
    """The slope at the end of a loss; None of a run that is too short."""
    quarter = len(values) // 4
    if quarter < 1:
        return None
    first, before, late = (
        float(np.mean(values[part])) for part in (slice(quarter), slice(-2 * quarter, -quarter), slice(-quarter, None))
    )
    bends = np.abs(np.diff(values[-2 * quarter :], 2))  # a slope is no noise
    noise = (
        float(np.median(bends)) / (0.6745 * math.sqrt(6)) * math.sqrt(2 / quarter) if len(bends) else 0.0
    )  # of two means
    return Slope(before - late, noise, first - late)


def learning(values: Sequence[float]) -> str:
    """Whether a run still learns, by the loss along it."""
    found = slope(values)
    if found is None:
        return "The run is too short to tell whether it still learns."
    if found.rises:
        return ""
    if found.falls:
        fell = nats(found.fall)
        return (
            f"It still learns: the loss fell by {fell} nats in the last quarter of the run, so train longer (--steps)."
        )
    return f"It has settled: the loss changed by {nats(abs(found.fall))} nats in the last quarter of the run."


def overfit(trained: float, held_out: float, error: float) -> str:
    """Whether held-out examples cost clearly more nats than those that were trained on."""
    gap = held_out - trained
    if gap < 2.5 * error or gap < GAP * abs(held_out):
        return ""
    return (
        f"Held-out examples cost {nats(gap)} nats more than training examples: the model overfits. More data would help, and "
        "--patience 3 stops where held-out data is best."
    )


def beside_training(trained: float, held_out: float, error: float) -> tuple[State, str]:
    """What is said where `overfit` says nothing: that the two cost the same, or that there are too few examples to tell."""
    gap = held_out - trained
    if gap >= GAP * abs(held_out) and gap >= error / 2:
        told = f"they cost {nats(gap)} nats more than training examples, with an error of {nats(error)}."
        return "note", f"Too few held-out examples to tell whether the model overfits: {told}"
    return "well", f"Held-out examples cost about what training examples do: {nats(held_out)} and {nats(trained)} nats."


def apart(bleu: float) -> str:
    """Whether reconstructions of sentences are other sentences, by their BLEU."""
    if bleu >= APART:
        return ""
    return (
        f"Reconstructions share few words with their sentences (BLEU {bleu:.2g}): z tells what a sentence is about at most. To "
        "edit sentences, train longer or take an autoencoder (ae, dae, wae-d)."
    )


def against_pca(kept: float, linear: float, latent: int) -> str:
    """Reconstructions beside those of PCA with as many numbers, by the share of the variance that they keep."""
    ours, theirs = (f"{round(share, 2) + 0.0:.0%}" for share in (kept, linear))  # 0%, never -0%
    told = f"Reconstructions of held-out examples keep {ours} of the variance; PCA of the same size ({latent}) keeps {theirs}."
    return told + (" A linear map does better yet: train longer (--steps)." if kept < linear - LINEAR else "")


def verdicts(
    variances: Sequence[float],
    rate: float | None = None,
    aggregate_rate: float | None = None,
    information: float = 0.0,
    ceiling: float = math.inf,
    threshold: float = 0.01,
    text: bool = False,
) -> list[str]:
    """All that holds of a model, by the variance of each dimension's mean, the mean KL, KL(q(z) || p(z)) and I(x; z)."""
    total, active = len(variances), sum(v >= threshold for v in variances)
    if not total:
        return []
    if idle := unused(active, rate, text):
        return [idle]
    told = (passive(active, total), alive(active, total), far(aggregate_rate, active, information, ceiling))
    return [said for said in told if said]


def of_metrics(metrics: Mapping[str, Any]) -> list[str]:
    """The same of what metrics.json holds."""
    units, information = (metrics.get(name, {}) for name in ("active_units", "mutual_information"))
    rate, aggregate = (metrics.get(name, {}).get("value") for name in ("rate", "aggregate_rate"))
    words = metrics.get("perplexity", {})
    told = verdicts(
        units.get("parts", {}).get("variances", []), rate, aggregate, information.get("value") or 0.0,
        information.get("parts", {}).get("ceiling", math.inf), units.get("settings", {}).get("threshold", 0.01), bool(words),
    )  # fmt: skip
    if words.get("value") is not None and (said := strange(words.get("parts", {}).get("unknown_words", 0.0))):
        told.append(said)
    return told
