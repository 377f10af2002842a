"""binarized-mnist.md from records: likelihoods by one estimator, beside what was published."""

from __future__ import annotations

from tables import EFFECTIVE, Records, measured, old_errors

PREFIX = "binarized-mnist-"
COLUMNS = {
    "log_likelihood": "NLL",
    EFFECTIVE: "effective of 500",
    "elbo": "-ELBO",
    "distortion": "R",
    "rate": "KL",
    "mutual_information": "MI",
    "active_units": "AU",
}
PUBLISHED = {"vae": 88.56, "vamp-vae": 85.57}  # Tomczak & Welling 2018, static MNIST, one layer of latents

WHY = {
    True: "Fewer epochs, plain ReLU layers, no warm-up and a tenth of the draws may each be part of it.",
    False: "Fewer draws can only raise ours, so nets, optimiser or stopping suit these data better here.",
}


def page(records: Records, epochs: int) -> str:
    """The page; what is not measured yet is missing from the table."""
    printed = {"published NLL": {name: f"{nll:.2f}" for name, nll in PUBLISHED.items()}}
    return f"""# Binarized MNIST

The static binarisation: 50,000 digits to train, 10,000 for validation, 10,000 to test. {len(records)} runs with MLPs of
two layers of 300 (`--net mlp-300-300`), 40 dimensions, Adam 5e-4, batch 100, {epochs} epochs with patience; one seed each.
iwae has 5 draws, flow-prior 2, vamp-vae 500 pseudo-inputs.

NLL is -log p(x) by the importance-weighted bound with 500 draws of q(z|x), in nats per image over the whole test split, the
error in brackets being that of the draws (last digits); beside it, how many of the 500 draws are effective. R and KL are the
two parts of the ELBO with one draw; AU counts dimensions whose mean has a variance of 0.01 or more. MI is over the split, at
most ln 10,000 = 9.21.

{measured(records, COLUMNS, PREFIX, printed)}

{old_errors(records)}

{_differences(records)}

Made from the records in `runs/` by `python docs/results/binarized_mnist.py`.
"""


def _differences(records: Records) -> str:
    lines = [
        "Published: Tomczak & Welling 2018, static MNIST, gated layers, warm-up of 100 epochs, early stopping after 50 "
        "epochs without a better bound, 5,000 draws (not verified here)."
    ]
    found = {name: records.get(PREFIX + name) for name in PUBLISHED}
    ours = {name: -record["metrics"]["log_likelihood"]["value"] for name, record in found.items() if record is not None}
    for above in (True, False):
        gaps = {name: nll - PUBLISHED[name] for name, nll in ours.items() if (nll > PUBLISHED[name]) == above}
        if gaps:
            told = ", ".join(f"{name} {abs(gap):.2f} nats" for name, gap in gaps.items())
            lines.append(f"{'Above' if above else 'Below'} the published number: {told}. {WHY[above]}")
    if len(ours) == len(PUBLISHED):
        here, there = ours["vae"] - ours["vamp-vae"], PUBLISHED["vae"] - PUBLISHED["vamp-vae"]
        lines.append(f"vamp-vae gains {here:.2f} nats on vae here, {there:.2f} in the paper.")
    return "\n\n".join(lines)
