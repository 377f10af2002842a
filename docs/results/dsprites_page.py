"""dsprites.md from records: what was measured, beside what was published."""

from __future__ import annotations

from typing import Any

MEASURES = {
    "distortion": "distortion",
    "rate": "rate",
    "log_likelihood": "IW-100",
    "squared_error": "squared error",
    "active_units": "active",
    "beta-vae": "beta-VAE",
    "factor-vae": "FactorVAE",
    "mig": "MIG",
    "sap": "SAP",
    "dci": "DCI D",
    "modularity": "modularity",
    "irs": "IRS",
}
PUBLISHED = """| source | model | beta-VAE | FactorVAE | MIG |
|---|---|---|---|---|
| Mushom 2020, 10 seeds | beta-VAE, beta 1 | .867 ± .079 | .696 ± .065 | .201 ± .070 |
| Mushom 2020, 10 seeds | beta-VAE, beta 3 | .860 ± .055 | .737 ± .031 | .269 ± .028 |
| Mushom 2020, best strength | FactorVAE | .894 ± .033 | .758 ± .054 | .297 ± .061 |
| Mushom 2020, best strength | beta-TCVAE | .884 ± .049 | .736 ± .028 | .285 ± .060 |
| Locatello et al. 2019, medians (recalled, unverified) | beta-VAE | .82 | .66 | .10 |
| Lin et al. 2020, Table 1 | FactorVAE 10 | .83 ± .01 | .83 ± .01 | .40 ± .01 |"""


def page(records: dict[str, dict[str, Any]], steps: int) -> str:
    """The page; runs that are not there yet are missing from the table, not invented."""
    head = ["run", *MEASURES.values()]
    rows = [
        [name.removeprefix("dsprites-"), *(_shown(r["metrics"].get(m)) for m in MEASURES)]
        for name, r in records.items()
    ]
    table = "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])
    modes = ", ".join(
        sorted(
            {
                f"`{m}` {r['metrics'][m]['mode']}"
                for r in records.values()
                for m in MEASURES
                if "mode" in r["metrics"].get(m, {})
            }
        )
    )
    return f"""# dSprites

dSprites re-rendered (99.98 % bit-exact against 64,834 originals), all images. {len(records)} runs of {steps:,} steps of batch
64, burgess nets, 10 dimensions, Bernoulli likelihood, Adam 5e-4, schedules scaled to the run. Distortion, rate and the
IW-100 bound in nats per image; squared error per image; modes of the metrics: {modes}.

{table}

Published numbers, for orientation: other nets, budgets (150,000 to 345,600 updates against {steps:,} here) and, for Mushom
2020, metrics that count the constant colour as a sixth factor. They are not comparable line by line.

{PUBLISHED}

Made from the records in `runs/` by `python docs/results/dsprites.py`; `elbo train` with the options in a record's spec.json
makes its run again.
"""


def _shown(number: dict[str, Any] | None) -> str:
    if number is None or number["value"] is None:
        return ""
    value: float = number["value"]
    return (
        f"{value:.0f}" if number.get("estimator") == "au-var" else f"{value:.2f}" if abs(value) >= 2 else f"{value:.3f}"
    )
