"""Edits: an example whose code is moved until it has another value of a label."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor

from elboroom.core.batch import Batch
from elboroom.core.problem import Problem
from elboroom.core.stages import Stages
from elboroom.families.decoding import Decoding, Greedy
from elboroom.families.mapped import Mapped, Moved
from elboroom.runs.attribute import attribute, codes_of
from elboroom.runs.inputs import as_batch

if TYPE_CHECKING:
    from elboroom.runs.run import Run

Way = Literal["offset", "map", "fgim", "map+fgim"]


def has_map(run: Run) -> bool:
    """Whether its codes are mapped."""
    return run.model.families[0] is Moved


def maps_in_the_end(run: Run) -> bool:
    """Whether its codes are mapped once it is trained to its end."""
    return run.method.final.model.families[0] is Moved


def require_map(run: Run) -> None:
    """Refuses a run without a map, or one that was stopped before its map was begun."""
    if has_map(run):
        return
    if isinstance(run.method, Stages) and maps_in_the_end(run):
        raise Problem(
            f"the map of this run has not been trained yet: it stopped at step {run.step:,}, and its map begins at step "
            f"{run.method.until:,}; continue with: elbo resume {run.folder}"
        )
    raise Problem(f"{run.spec.method} of this run has no map; train one: elbo train emb2emb --base {run.folder}")


def changes(run: Run) -> dict[str, str]:
    """The label that the map of a run changes, with the value that it gives; none of a map that learnt from pairs."""
    to, label = (run.spec.options.get(name, "") for name in ("to", "label")) if has_map(run) else ("", "")
    return {label or next(iter(run.spec.about.labels)): to} if to else {}


def check(run: Run, by: str, strength: float) -> None:
    """Refuses, in a sentence, what this run cannot do."""
    if not np.isfinite(strength):
        raise Problem(f"the strength of an edit is a finite number, not {strength}")
    if "map" in by:
        require_map(run)


def edited(
    run: Run, batch: Batch, label: str, to: str | int | None, by: str, strength: float, decoding: Decoding | None
) -> Any:
    """Examples decoded from codes that were moved; see `Run.edit`."""
    run.require_codes()
    check(run, by, strength)
    known = changes(run)
    if known and "map" in by:
        label = label or next(iter(known))
        wanted = known.get(label)
        if wanted is None or str(wanted if to is None else to) != wanted:
            said = ", ".join(f"{name}={value}" for name, value in known.items())
            raise Problem(f"the map of this run gives {said} and nothing else; use that, or another --by")
        to = wanted
    if by != "map" and to is None:
        raise Problem("say the value that the examples are to have with --to")
    if by == "map" and not known and (label or to is not None):
        raise Problem("the map of this run learnt from pairs and gives no value of a label; remove --label and --to")
    if decoding is None and run.tokeniser is not None:
        decoding = Greedy(unknown=False)
    source = codes_of(run, batch)
    z = moved(run, source, label, to, by)
    return run._decoded(run.space.back(source + strength * (z - source)), batch.u, decoding, batch.context)


def missed(run: Run, made: Any, label: str, to: str | int | None, u: Any = None) -> tuple[int, str]:
    """How many edits the classifier of codes does not take for the value that they were given, once they are read again.

    With the value; none where a map of pairs gives no value of a label, or where a context is read too.
    """
    known = changes(run)
    label = label or next(iter(known), "")
    to = known.get(label) if to is None else to
    if to is None or run.model.conditioner is not None:
        return 0, ""
    rows = [row for row, one in enumerate(made) if not isinstance(one, str) or one.strip()]  # the others are no sentence
    found, some = attribute(run, label), [made[row] for row in rows] if run.tokeniser is not None else made[rows]
    if run.spec.about.kind == "pixels":
        some = np.clip(some, 0, 1)
    given = None if u is None else np.asarray(u)[rows]
    told = found.probabilities(codes_of(run, as_batch(run, some, given)).numpy()).argmax(1) if rows else np.zeros(0)
    return len(made) - int((told == found.index(to)).sum()), str(to)


def moved(run: Run, source: Tensor, label: str, to: str | int | None, by: str) -> Tensor:
    """Codes moved all the way, (n, J)."""
    z = mapped(run, source) if "map" in by else source
    if by == "map":
        return z
    assert to is not None
    found = attribute(run, label)
    return z + found.offset(to) if by == "offset" else found.descend(z, to).codes


@torch.no_grad()
def mapped(run: Run, codes: Tensor) -> Tensor:
    """What the map of a run makes of codes, (n, J)."""
    posterior = run.model.posterior
    assert isinstance(posterior, Mapped)
    made: Tensor = posterior.mapping(codes.to(next(run.model.parameters())))
    return made.float().cpu()
