"""elbo doctor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from elboroom.commands.output import Folder, Handed, Json, harmless, print_json

if TYPE_CHECKING:
    from elboroom.evaluate.verdicts import Verdict

HEADS = {"problem": "What is wrong", "note": "What to know", "well": "What is well"}


def doctor(
    folder: Folder,
    most: Annotated[int, typer.Option("--most", min=2, help="largest number of examples to look at")] = 2000,
    data: Handed = None,
    json: Json = False,
) -> None:
    """Say what is wrong with a run, with the numbers that tell so and a command to try."""
    from elboroom.runs.doctor import examine
    from elboroom.runs.lifecycle import load

    run = load(folder, data=data)
    found = examine(run, most)
    if json:
        about = {"folder": str(folder), "method": run.spec.method, "step": run.step}
        return print_json({"run": about, "verdicts": [verdict._asdict() for verdict in found]})
    print(harmless(f"{folder}: {run.spec.title} on {run.spec.data['source']}, step {run.step:,}"))
    for state, head in HEADS.items():
        some = [verdict for verdict in found if verdict.state == state]
        if some:
            print(f"\n{head}\n")
        for verdict in some:
            print(harmless("\n".join(lines(verdict))))


def lines(verdict: Verdict) -> list[str]:
    """A verdict as the page has it."""
    numbers = verdict.evidence.items()
    said = (f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}" for name, value in numbers)
    told = ", ".join(said)
    return [
        f"  {verdict.name}: {verdict.told}",
        *([f"      evidence: {told}"] if told else []),
        *([f"      try: {verdict.command}"] if verdict.command else []),
    ]
