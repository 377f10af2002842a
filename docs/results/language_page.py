"""multi30k.md and ptb.md from records: what was measured, beside what was published, and what the models say."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import mean, mode

from language import shown
from records import KEPT, outdated
from tables import EFFECTIVE, Records, measured, old_errors, rounding, table, value

LIKELIHOOD = {
    "log_likelihood": "NLL",
    EFFECTIVE: "effective of 100",
    "perplexity": "PPL",
    "distortion": "R",
    "rate": "KL",
    "mutual_information": "MI",
    "aggregate_rate": "KL(q(z) to p)",
    "active_units": "AU",
    "log_likelihood_posthoc": "post-hoc NLL",
}
SENTENCES = {
    "bleu": "BLEU",
    "self_bleu_2": "self-BLEU-2",
    "self_bleu_3": "self-BLEU-3",
    "dis_1": "Dis-1",
    "dis_2": "Dis-2",
    "unigram_kl": "UniKL",
    "unigram_entropy": "entropy",
    "average_length": "length",
    "forward_ppl": "forward PPL",
    "reverse_ppl": "reverse PPL",
}
DUAL = {
    "rate_dual": "dual KL",
    "rate": "exact KL",
    "elbo_dual": "dual -ELBO, not a bound",
    "elbo": "exact -ELBO",
    "log_likelihood": "NLL",
}
SILENT = 0.1  # nats of information below which z is taken to tell nothing
PRINTED = ("PPL", "NLL (= 21.917 ln PPL)", "R", "KL", "MI", "AU")
PTB: dict[
    str, tuple[str, tuple[float, ...]]
] = {  # Ding & Gimpel 2021: by the run that is nearest, or a name of its own
    "vae-annealed": ("VAE", (101.40, 101.24, 101.28, 0.00, 0.00, 0)),
    "vae-cyclical": ("cyclical", (107.73, 102.56, 101.17, 2.01, 1.24, 5)),
    "lagging-vae": ("lagging", (100.25, 100.99, 100.41, 1.04, 0.79, 3)),
    "free-bits": ("VAE + free bits", (101.56, 101.27, 99.84, 4.46, 0.90, 32)),
    "ae-pretrained-free-bits": ("AE-pretrained + free bits", (96.35, 100.12, 94.52, 8.15, 6.30, 32)),
    "mog-vae": ("MoG", (98.22, 100.54, 100.54, 0.00, 0.00, 0)),
    "vamp-vae": ("VampPrior", (98.27, 100.55, 100.56, 0.00, 0.00, 0)),
    "flow-prior": ("flow prior", (94.72, 99.74, 98.46, 3.28, 2.25, 2)),
    "flow-prior-free-bits": ("flow prior + free bits", (93.58, 99.48, 99.20, 7.21, 2.83, 31)),
}
WHY_PTB = {
    "flow-prior-free-bits": "Our floor is 8 nats of the mean of a batch, and stands below the rate of the second bound alone: "
    "the first has none. Where their floor stands is not known here.",
    "free-bits": "Their floor is not known here; ours is 8 nats, 0.25 in each dimension.",
}
DUAL_PTB = {  # dual -ELBO, dual KL, MI and AU as printed
    "implicit-vae": ("Fang et al. 2019", "87.6", "6.32", "3.5", "32"),
    "implicit-vae-mi": ("Fang et al. 2019", "87.2", "12.51", "12.2", "32"),
    "apo-vae": ("Dai et al. 2021", "87.2", "8.4", "4.8", "32"),
    "apo-vae-vamp": ("Dai et al. 2021", "87.0", "8.9", "4.5", "32"),
}
DUAL_WHY = """Their nu learns at 1e-5, ours at 1e-4. A nu that lags behind q(z|x) leaves rate unpaid and says little of the KL,
which may be all that the difference is; ours follows, and holds the rate down as the KL itself does, so that z goes unused as
in `vae-annealed`. The MI printed for implicit-vae-mi, 12.2, is above the log of the number of test sentences, 8.23. Dai et al.
also print rows for a VAE with von Mises-Fisher (-ELBO 95.8, PPL 93.70, KL 2.9, MI 3.2) and for a Poincare VAE (91.4, 76.13): at
21.917 words a sentence the two columns contradict each other, and MI cannot exceed KL, so that these rows are left out."""
BESIDE = {
    "published dual KL": {name: cells[2] for name, cells in DUAL_PTB.items()},
    "published dual -ELBO, not a bound": {name: cells[1] for name, cells in DUAL_PTB.items()},
}
CRITICS = """The dual value of a critic is a lower bound of the KL, so a dual -ELBO is no bound of -log p(x). Beside it
stand the exact one, where q(z|x) has a density, and NLL."""
HOW = """NLL is -log p(x) by the importance-weighted bound with 100 draws of q(z|x), in nats per sentence over the whole test
split, the error in brackets being that of the 100 draws (last digits); over the sentences its standard error is {spread}, and
mostly the same for all runs, which see the same sentences. PPL is that bound by word, ends of sentences
counted. R and KL are the two parts of the ELBO at weight one with one draw, whatever trained the model. MI is over the
split ({ceiling}), AU counts dimensions whose mean has a variance of 0.01 or more. Encoders without a density have no NLL; the
post-hoc one puts a Gaussian around each code and is not comparable with the first column; ‡ marks those under a prior that
was itself fitted to the codes, for want of another, which are not comparable with the others either. † marks q(z|x) that
can only be sampled: 90 of the draws are of a Gaussian fitted to it and widened, 10 of the prior, which is a bound too, and
a looser one. Beside NLL stands how many of the 100 draws are effective."""


def _critics(records: Records, prefix: str, more: dict[str, dict[str, str]] | None = None) -> str:
    """The table of dual values, if some run has them, and columns of `more`."""
    found = {name: r for name, r in records.items() if "rate_dual" in r["metrics"]}
    return f"{CRITICS}\n\n{measured(found, DUAL, prefix, more)}\n" if found else ""


def said(records: Records, prefix: str) -> str:
    """The sentences of each run."""
    parts = []
    for name in records:
        found = shown(KEPT / name)
        lines = [f"### {name.removeprefix(prefix)}", "", "Samples:", ""]
        lines += [f"- {sentence}" for sentence in found["samples"]]
        if "reconstructions" in found:
            lines += ["", "Test sentences and what the model makes of them:", ""]
            lines += [f"- {a}<br>*{b}*" for a, b in found["reconstructions"]]
            lines += ["", "Between two of them:", ""] + [f"{i}. {s}" for i, s in enumerate(found["interpolation"], 1)]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _how(records: Records) -> str:
    said = [HOW.format(ceiling=_ceiling(records), spread=_spread(records)), old_errors(records)]
    return "\n\n".join(part for part in said if part)


def _spread(records: Records) -> str:
    """The standard errors of the NLLs over the sentences, least and most."""
    entries = (r["metrics"]["log_likelihood"] for r in records.values())
    found = sorted(entry["errors"]["sampling"] for entry in entries if entry["value"] is not None)
    if not found:
        return "not measured"
    low, high = f"{found[0]:.2f}", f"{found[-1]:.2f}"
    return low if low == high else f"{low} to {high}"


def _ceiling(records: Records) -> str:
    found = (r["metrics"]["mutual_information"].get("parts", {}).get("ceiling") for r in records.values())
    ceiling = next((c for c in found if c is not None), None)
    return "" if ceiling is None else f"at most {ceiling:.2f}"


def _printed() -> str:
    body = [[name, *(f"{n:.2f}" for n in numbers[:-1]), f"{numbers[-1]:.0f}"] for name, numbers in PTB.values()]
    return table(["model", *PRINTED], body)


def _printed_dual() -> str:
    head = ["model", "paper", "dual -ELBO, not a bound", "dual KL", "MI as printed", "AU"]
    return table(head, ([name, *cells] for name, cells in DUAL_PTB.items()))


def _gaps(records: Records) -> str:
    """A sentence on every run that has a published number."""
    lines = [
        "Their net, optimiser and number of epochs are not known here: levels may differ, and the order of the methods is "
        "what to look at. Of each run:",
        "",
    ]
    for run, (name, (_, nll, _, kl, *_)) in PTB.items():
        found = records.get(f"ptb-{run}", {}).get("metrics", {})
        if found:
            ours = {n: found[n]["value"] for n in ("log_likelihood", "rate")}
            more = -ours["log_likelihood"] - nll
            lines.append(
                f"- {run}: NLL {abs(more):.1f} nats {'above' if more > 0 else 'below'} that of {name}, with a KL of "
                f"{round(ours['rate'], 1) + 0.0:.1f} where theirs is {kl:.1f}. {WHY_PTB.get(run, '')}".rstrip()
            )
    return "\n".join(lines)


def _numbers(records: Records, key: str) -> dict[str, float]:
    """A measured value of every run that has it."""
    found = {name: record["metrics"].get(key, {}).get("value") for name, record in records.items()}
    return {name: float(value) for name, value in found.items() if value is not None}


def _shorter(records: Records) -> dict[str, float]:
    """The runs that were given fewer epochs than most, and how many."""
    epochs = {name: float(r["spec"]["fit"]["epochs"]) for name, r in records.items()}
    return {name: n for name, n in epochs.items() if n < mode(epochs.values())}


def _falls(records: Records) -> dict[str, float]:
    """By how much the loss on the validation split fell between the last two looks at it, where the log has them."""
    looks = {name: [line["loss_valid"] for line in r["log"] if "loss_valid" in line] for name, r in records.items()}
    return {name: seen[-2] - seen[-1] for name, seen in looks.items() if len(seen) > 1}


def _seen(records: Records, prefix: str) -> str:
    """What the table says, in sentences made of its numbers."""
    of = {name.removeprefix(prefix): record for name, record in records.items()}
    nlls, rates, told = (_numbers(of, key) for key in ("log_likelihood", "rate", "mutual_information"))
    nlls, short = {name: -value for name, value in nlls.items()}, _shorter(of)
    silent = {name: nlls[name] for name in rates if told.get(name, rates[name]) < SILENT and name not in short}
    idle = [f"{name} ({rates[name]:.1f} nats)" for name in told if rates[name] > 0.5 and told[name] < SILENT]
    telling = [name for name in told if told[name] >= SILENT]
    best = sorted(telling, key=lambda name: nlls[name])[:3]
    most = sorted(telling, key=lambda name: -told[name])[:3]
    falls = [f"{name} {fall:.1f}" for name, fall in _falls(of).items() if fall > 0]
    lines = []
    if len(silent) > 1:
        lines.append(
            f"- One seed each. {len(silent)} runs carry no information in z (MI, or where that is not measured KL, below "
            f"{SILENT} nats) and are in effect language models: {', '.join(silent)}. Their NLLs lie from "
            f"{min(silent.values()):.2f} to {max(silent.values()):.2f}: no smaller difference means anything here."
        )
    if telling:
        lines.append(
            "- Best likelihood where z does tell something: "
            + ", ".join(f"{name} {nlls[name]:.2f}" for name in best)
            + ". Most information: "
            + ", ".join(f"{name} {told[name]:.2f} nats at NLL {nlls[name]:.2f}" for name in most)
            + "."
        )
    lines += [
        f"- {name} was trained for {epochs:g} epochs, a part of what the others had: its NLL is not to be held against theirs."
        for name, epochs in short.items()
    ]
    if idle:
        lines.append(f"- A rate that carries no information: {', '.join(idle)}.")
    if falls:
        lines.append(
            "- Not converged: the loss on the validation split still fell in the last epoch, in nats, where the log has it: "
            f"{', '.join(falls)}."
        )
    return "\n".join(lines)


def missing(records: Records, planned: Iterable[str], prefix: str) -> str:
    """The runs that are planned and have no record."""
    names = [name.removeprefix(prefix) for name in planned if name not in records]
    return f"Not yet run: {', '.join(names)}.\n\n" if names else ""


def multi30k(records: Records, planned: Iterable[str]) -> str:
    """The page of captions: runs with the defaults of today, then what is left of those with older ones."""
    records, before = _renewed(records)
    return f"""# Multi30k captions

The English captions of Multi30k that were translated: 29,000 to train, 1,014 for validation, 1,000 to test; words seen twice
or more. LSTM 128/128, 32 dimensions, 5 epochs (ae, wae-d and ae-pretrained-free-bits-16: 10; dae and
ae-pretrained-free-bits: 15; sa-vae: 3, with 5 inner steps, differentiated by central differences, those of the paper being
one-sided; lagging-vae: at most 15 turns of the encoder), all else as `elbo train` has it where nothing is said
([defaults](../defaults.md#text)): trunk c, Adam 3e-3 with a cosine, batch 32, schedules scaled to the run, the weights of the
last step. Floors and targets are 8 nats (free-bits, ae-pretrained-free-bits, control-vae, mdr-vae and rows that end in
free-bits); a number in a name is beta, gamma or kappa; vamp-vae has 100 pseudo-inputs, apo-vae-vamp 500, flow-prior 5 draws.
All options are in `runs/*/spec.json`;
one of the runs by hand:

```sh
elbo train bn-vae --data multi30k --gamma 0.6 --min-count 2 --embed 128 --hidden 128 --latent 32 --epochs 5
elbo eval runs/bn-vae-multi30k-0 --metrics likelihood,text --samples 100
```

{missing(records, planned, "multi30k-")}{_how(records)}

{measured(records, LIKELIHOOD, "multi30k-")}

{_seen(records, "multi30k-")}

{_critics(records, "multi30k-")}
10,000 samples word by word from z of the prior (of `ae` and `dae`, which have none, from the Gaussian of their codes), and
greedy reconstructions of the test split:

{measured(records, SENTENCES, "multi30k-")}

No published table uses these captions in this way; the numbers are to be read against each other.

## Samples and reconstructions

{said(records, "multi30k-")}
{_before(before, "multi30k-", "10 epochs, the best of ten checkpoints by the ELBO of the validation split")}"""


def _renewed(records: Records) -> tuple[Records, Records]:
    """The runs with the defaults of today, and those with older ones."""
    before = {name: r for name, r in records.items() if outdated(r["spec"])}
    return {name: r for name, r in records.items() if name not in before}, before


def _before(records: Records, prefix: str, how: str) -> str:
    """Runs that were not made again since the defaults changed."""
    if not records:
        return ""
    return f"""
## Earlier defaults

Not made again yet: trunk a, Adam 1e-3 without decay, dropout 0.5, batch 64, {how}.
Not to be held against the rows above: their nets began with states that are nearly alike, and most make no use of z.

{measured(records, LIKELIHOOD, prefix)}

{old_errors(records)}
"""


def _convolutions(records: Records) -> str:
    """Why convolutions are behind the LSTM."""
    both = [records.get(f"ptb-{name}") for name in ("vae-annealed-dilated", "lm")]
    if None in both:
        return ""
    ends, tests = [], []
    for record in filter(None, both):
        losses = [line["nll"] for line in record["log"] if "nll" in line]
        ends.append(mean(losses[-len(losses) // 10 :]))
        tests.append(value(record, "distortion") or 0.0)
    (end, lm_end), (test, lm_test) = ends, tests
    return f"""
Convolutions are far behind the LSTM here, as they are not on [captions](multi30k.md): the last tenth of their training is at
{end:.1f} nats, that of `lm` at {lm_end:.1f}, with dropout; on the test split they have {test:.1f} and {lm_test:.1f}. So they
learn less, and carry less of it over. More blocks, fewer epochs and dropout between blocks were not tried.
"""


def ptb(records: Records, planned: Iterable[str]) -> str:
    """The page of the Penn Treebank: runs with the defaults of today, then what is left of those with older ones."""
    every, (records, before) = records, _renewed(records)
    return f"""# Penn Treebank

Mikolov's split: 42,068 sentences to train, 3,370 for validation, 3,761 (82,430 tokens) to test. LSTM 256/256, 32 dimensions,
20 epochs, all else as `elbo train` has it where nothing is said ([defaults](../defaults.md#text)): trunk c, Adam 3e-3 with a
cosine, batch 32, schedules scaled to the run, the weights of the last step. Floors and targets are 8 nats where no other
number is said; a number in a name is gamma, kappa or the target; flow-prior has two draws, vamp-vae 100 pseudo-inputs.
{rounding({name.removeprefix("ptb-"): record for name, record in records.items()})} One of the runs by hand:

```sh
elbo train bn-vae --data ptb --gamma 0.6 --embed 256 --hidden 256 --latent 32 --epochs 20 --precision 32-fast
elbo eval runs/bn-vae-ptb-0 --metrics likelihood,text --samples 100
```

{missing(records, planned, "ptb-")}{_how(records)}

{measured(records, LIKELIHOOD, "ptb-")}

{_seen(records, "ptb-")}
{_convolutions(records)}
10,000 samples word by word from z of the prior, and greedy reconstructions of the test split:

{measured(records, SENTENCES, "ptb-")}

Published (Ding & Gimpel 2021):

{_printed()}

{_gaps(records)}

## Critics

{_critics(every, "ptb-", BESIDE)}
Published by the value of a critic, which is why these seem so much better:

{_printed_dual()}

{DUAL_WHY}

## Samples and reconstructions

{said(records, "ptb-")}
{_before(before, "ptb-", "12 epochs with patience, schedules scaled to the run")}"""
