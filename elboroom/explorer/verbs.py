"""Verbs of the explorer: each a question about one run and its answer. Signatures are the protocol, and are checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import torch
from pydantic import ConfigDict, Field, ValidationError, validate_call

from elboroom.core.problem import Problem, unknown
from elboroom.explorer import picture
from elboroom.explorer.answer import Answer, plain
from elboroom.explorer.atlas import Atlas
from elboroom.families.decoding import Sampling
from elboroom.geometry import paths
from elboroom.geometry.spaces import Euclidean
from elboroom.latent.attributes import attribute_vector
from elboroom.plots.pictures import animation
from elboroom.runs.transfer import restyled
from elboroom.training.batches import batch_of, reseed

Number = Annotated[float, Field(allow_inf_nan=False, ge=-1e6, le=1e6)]
Code = Annotated[list[Number], Field(min_length=1, max_length=65_536)]
Codes = Annotated[list[Code], Field(min_length=1, max_length=128)]
Count = Annotated[int, Field(ge=0, le=2**31 - 1)]
Points = Annotated[int, Field(ge=2, le=33)]
Labels = Annotated[dict[str, str], Field(max_length=64)] | None
Name = Annotated[str, Field(max_length=200)]

LONGEST = 2000  # characters of a sentence
Verb = Callable[..., Answer]
VERBS: dict[str, Verb] = {}
SLOW = {"chart", "labels", "rows"}  # those that ask no model once the atlas is ready
ANSWERING = {"sheet", "reply"}  # those of a model that reads a context
NEEDS_CODES = {"chart", "vector", "select", "spot"}  # of all examples of the map
_checked = validate_call(config=ConfigDict(arbitrary_types_allowed=True, strict=False, extra="forbid"))


def verb(function: Verb) -> Verb:
    """Registers a question under the name of its function."""
    VERBS[function.__name__] = _checked(function)
    return function


def ask(name: str, atlas: Atlas, asked: dict[str, Any]) -> Answer:
    """The answer to a question; what is wrong with it is said in a sentence."""
    if name not in VERBS:
        raise unknown("question", name[:40], VERBS)
    if atlas.seen.answers and name not in ANSWERING:
        raise Problem("this model reads a context, without which a code is no sentence; ask it for a reply")
    try:
        return VERBS[name](atlas, **asked)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"][:2])) or name
        raise Problem(f"{where[:60]}: {first['msg']}") from None
    except TypeError as error:  # an argument given twice
        raise Problem(f"{name}: {error}"[:200]) from None


@verb
def sheet(atlas: Atlas) -> Answer:
    """What the page is built from."""
    return Answer(atlas.seen.sheet())


@verb
def example(atlas: Atlas, row: Count | None = None, seed: Count = 0) -> Answer:
    """An example of the data: itself and its reconstruction, its code and its labels."""
    seen = atlas.seen
    if row is None:
        row = int(seen.rows[seed % len(seen.rows)])
    if row >= len(seen.run.data):
        raise Problem(f"the data has {len(seen.run.data):,} examples; there is no number {row:,}")
    batch = batch_of(seen.run.data, np.array([row]), seen.run.given)
    z = seen.run.encode(batch)
    labels = seen.named(row)
    given = {name: labels[name] for name in seen.run.given}
    return _both(atlas, _one(atlas, batch, row), z, given, row=row, labels=labels)


def _one(atlas: Atlas, batch: Any, row: int) -> Any:
    """An example as it is shown."""
    return atlas.seen.run.data.sentences([row]) if atlas.seen.kind == "tokens" else batch.x.numpy()


def _both(atlas: Atlas, x: Any, z: Any, given: dict[str, str], **facts: Any) -> Answer:
    """An input beside what is decoded from its code."""
    seen = atlas.seen
    made = seen.run.decode(z, seen.u(given, 1))
    both = [*x, *made] if seen.kind == "tokens" else np.concatenate([np.asarray(x), made])
    shown = seen.shown(both)
    return Answer(shown.facts | seen.place(z[0]) | {"u": given} | facts, shown.body)


@verb
def prior(atlas: Atlas, seed: Count = 0, u: Labels = None) -> Answer:
    """A draw of the prior; of a model without one, of the Gaussian fitted to its codes."""
    seen = atlas.seen
    return _at(atlas, seen.run.draw(1, seed, seen.u(u, 1))[0], u)


@verb
def zero(atlas: Atlas, u: Labels = None) -> Answer:
    """The middle of the space."""
    return _at(atlas, atlas.seen.origin, u)


@verb
def move(atlas: Atlas, z: Code, dim: Count, value: Number, u: Labels = None) -> Answer:
    """A code with one dimension set, along what its space says."""
    seen = atlas.seen
    seen.place(z)
    if dim >= seen.run.latent:
        raise Problem(f"the dimensions of this model are 0 to {seen.run.latent - 1}, not {dim}")
    return _at(atlas, seen.run.space.along(torch.tensor(z), [dim], torch.tensor([value]))[0, 0].numpy(), u)


@verb
def spot(atlas: Atlas, view: Name, x: Number, y: Number, z: Code, u: Labels = None) -> Answer:
    """What lies at a place of a map: the code nearest to z that is projected there."""
    seen = atlas.seen
    lifted = atlas.plane(view).lifted(np.array([x, y], np.float32), seen.flat(_code(atlas, z)))
    return _at(atlas, seen.back(lifted), u)


def _at(atlas: Atlas, z: Any, u: Labels) -> Answer:
    """A code and what it stands for."""
    shown = atlas.seen.decoded(np.asarray(z, np.float32)[None], u)
    return Answer(shown.facts | atlas.seen.place(z) | {"u": u or {}}, shown.body)


def _code(atlas: Atlas, z: list[float]) -> Any:
    return np.asarray(atlas.seen.place(z)["z"], np.float32)


@verb
def decode(atlas: Atlas, z: Codes, u: Labels = None) -> Answer:
    """What several codes stand for."""
    for code in z:
        atlas.seen.place(code)
    return atlas.seen.decoded(z, u)


@verb
def alternatives(atlas: Atlas, z: Code, n: Points = 6, temperature: Number = 1.0, seed: Count = 0,
                 u: Labels = None) -> Answer:  # fmt: skip
    """Other sentences that one code may stand for, by sampling."""
    if not 0.01 <= temperature <= 10:
        raise Problem("a temperature is from 0.01 to 10")
    reseed(seed)
    return atlas.seen.decoded([_code(atlas, z)] * n, u, Sampling(temperature=temperature))


@verb
def path(atlas: Atlas, a: Code, b: Code, points: Points = 9, spherical: bool = False, u: Labels = None) -> Answer:
    """What lies on the shortest way from a to b, or on the great circle."""
    seen = atlas.seen
    if spherical and not isinstance(seen.run.space, Euclidean):
        raise Problem("the codes of this model lie on a curved space, whose own way is taken")
    way = paths.arc if spherical else seen.run.space.way
    z = way(torch.from_numpy(_code(atlas, a)), torch.from_numpy(_code(atlas, b)), points).numpy()
    shown = seen.decoded(z, u)
    return Answer(shown.facts | {"z": [plain(c) for c in z], "at": [plain(v) for v in seen.flat(z)]}, shown.body)


@verb
def vector(atlas: Atlas, label: Name, value: Name) -> Answer:
    """The attribute vector of a value of a label: from the mean code of all others to that of those that have it."""
    seen = atlas.seen
    names = list(seen.run.data.about.labels)
    if label not in names:
        raise unknown("label", label[:40], names)
    if value not in (classes := seen.classes(label)):
        raise unknown(label, value[:40], classes)
    has = seen.run.data.labels[seen.rows, names.index(label)] == classes.index(value)
    return _vector(atlas, has)


@verb
def select(
    atlas: Atlas, rows: Annotated[list[Count], Field(min_length=1, max_length=100_000)], shown: Count | None = None,
    label: Name = "", off: Annotated[list[Count], Field(max_length=100_000)] | None = None,
) -> Answer:  # fmt: skip
    """What a lasso holds: its mean code, and the attribute vector of the selection against the rest of what the map shows.

    shown: how many points it has; off: the values of the label that it hides.
    """
    seen = atlas.seen
    has = np.zeros(len(seen.rows), bool)
    if max(rows) >= len(has):
        raise Problem(f"the map has {len(has):,} points; there is no number {max(rows):,}")
    has[rows] = True
    among = np.arange(len(has)) < (len(has) if shown is None else shown)
    if label:
        among &= ~np.isin(_column(atlas, label), off or [])
    z = seen.back(seen.codes[has].mean(0))
    u = seen.named(int(seen.rows[rows[0]])) if seen.run.given else {}
    given = {name: u[name] for name in seen.run.given}
    found, mean = _vector(atlas, has, among), _at(atlas, z, given)
    return Answer(mean.facts | found.facts, mean.body)


def _vector(atlas: Atlas, has: Any, among: Any = None) -> Answer:
    codes = atlas.seen.codes
    if among is not None:
        codes, has = codes[among | has], has[among | has]
    if has.all() or not has.any():
        raise Problem("an attribute vector needs examples with the attribute and examples without it")
    return Answer({"vector": plain(attribute_vector(codes, has)), "selected": int(has.sum())})


def _column(atlas: Atlas, label: str) -> Any:
    """The values of a label of the examples of the map."""
    data = atlas.seen.run.data
    if label not in data.about.labels:
        raise unknown("label", label[:40], data.about.labels)
    return data.labels[atlas.seen.rows, list(data.about.labels).index(label)]


@verb
def edit(atlas: Atlas, z: Code, vector: Code, strength: Number = 1.0, u: Labels = None) -> Answer:
    """z + strength times a vector, added where codes are flat."""
    seen = atlas.seen
    if len(vector) != seen.run.latent:
        raise Problem(f"a vector of this model has {seen.run.latent} numbers")
    moved = seen.flat(_code(atlas, z)) + strength * np.asarray(vector, np.float32)
    return _at(atlas, seen.back(moved), u)


@verb
def restyle(
    atlas: Atlas, z: Code, label: Name, value: Name, strength: Annotated[float, Field(ge=-10, le=10)] = 1.0,
    u: Labels = None,
) -> Answer:  # fmt: skip
    """z with its block of style moved to the mean style of a class, all the way at strength one; its content stays."""
    code = torch.from_numpy(_code(atlas, z))[None]
    return _at(atlas, restyled(atlas.seen.run, code, {label: value}, strength)[0].numpy(), u)


@verb
def reply(
    atlas: Atlas, turns: Annotated[list[str], Field(max_length=50)], n: Annotated[int, Field(ge=1, le=20)] = 5,
    seed: Count = 0, u: Labels = None,
) -> Answer:  # fmt: skip
    """Answers to a context: one from a greedy search, several drawn, each from a z of its own."""
    seen = atlas.seen
    said = [turn for turn in turns if turn.strip()]
    if not said:
        raise Problem("there is nothing to answer; write at least one turn")
    if any(len(turn) > LONGEST for turn in said):
        raise Problem(f"a turn has at most {LONGEST:,} characters here")
    made = seen.run.generate(said, n, seed=seed, u=seen.u(u, n))
    return Answer({"sentences": made, "count": len(made)})


@verb
def analogy(atlas: Atlas, a: Code, b: Code, c: Code, strength: Number = 1.0, u: Labels = None) -> Answer:
    """a - b + c."""
    seen = atlas.seen
    one, two, three = (seen.flat(_code(atlas, code)) for code in (a, b, c))
    return _at(atlas, seen.back(three + strength * (one - two)), u)


@verb
def read(atlas: Atlas, text: str = "", content: bytes = b"", invert: bool = False, u: Labels = None) -> Answer:
    """An input of the user's own: its code, its reconstruction, and a bound of -log p(x)."""
    seen = atlas.seen
    if seen.kind == "tokens":
        if len(text) > LONGEST:
            raise Problem(f"a sentence has at most {LONGEST:,} characters here, and this one has {len(text):,}")
        x: Any = [text]
    elif seen.kind == "pixels":
        x = picture.read(content, seen.run.spec.about, invert)
    else:
        raise Problem("this model takes vectors; use run.encode in Python")
    given = {name: (u or {}).get(name, seen.classes(name)[0]) for name in seen.run.given}
    z = seen.run.encode(x, seen.u(given, 1))
    try:
        nll, reason = -float(seen.run.score_samples(x, seen.u(given, 1), samples=100)[0]), ""
    except Problem as problem:
        nll, reason = None, str(problem)
    shown = [seen.run.seen(text)] if seen.kind == "tokens" else x
    return _both(atlas, shown, z, given, nll=nll, estimator="iw-100", reason=reason)


@verb
def labels(atlas: Atlas, label: Name) -> Answer:
    """The values of a label of the examples of the map, as int32."""
    column, kind = _column(atlas, label), atlas.seen.run.data.about.kinds[label]
    return Answer({"classes": atlas.seen.classes(label), "kind": kind}, column.astype("<i4").tobytes())


@verb
def rows(atlas: Atlas) -> Answer:
    """Which rows of the data the points of the map are, as int32."""
    return Answer({"n": len(atlas.seen.rows)}, atlas.seen.rows.astype("<i4").tobytes())


@verb
def chart(atlas: Atlas, view: Name = "pca") -> Answer:
    """The map of the codes."""
    return atlas.map(view)


@verb
def gif(atlas: Atlas, z: Codes, u: Labels = None) -> Answer:
    """A film through several codes, forth and back."""
    seen = atlas.seen
    if seen.kind != "pixels":
        raise Problem("a film is of images; sentences are kept as text")
    for code in z:
        seen.place(code)
    low, high = seen.ends
    frames = seen.run.decode(np.asarray(z, np.float32), seen.u(u, len(z)))
    return Answer({"name": "path.gif"}, animation(np.clip((frames - low) / max(high - low, 1e-12), 0, 1), cell=128))
