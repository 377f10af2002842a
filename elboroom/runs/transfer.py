"""Transfer: an example said in another style. What a model can change, to what, and how its codes are changed for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from elboroom.core.batch import Batch
from elboroom.core.problem import Problem, unknown
from elboroom.data.sequences import CONTEXT
from elboroom.data.tokens import MARKERS
from elboroom.evaluate.subject import reads_pivot
from elboroom.families.decoding import Beam, Decoding, Greedy
from elboroom.families.reading import Blind
from elboroom.families.styled import ClassMeans, Remembered
from elboroom.runs.answers import Context, as_contexts, context_ids, written
from elboroom.runs.edit import changes, check, edited
from elboroom.runs.inputs import handed
from elboroom.runs.media import real
from elboroom.training.base import spelled

if TYPE_CHECKING:
    from elboroom.runs.run import Run

By = Literal["style", "offset", "map", "fgim", "map+fgim"]
To = str | Mapping[str, str | int] | None
Wanted = dict[str, Tensor]  # of each label the value that every row is to have, (n,)
Read = Callable[[Any, ArrayLike | None], Batch]  # examples and u as the model takes them
BEAM = 5  # of the translation to a pivot language
NO_STYLE = (
    "{} has no style: train style-vae or style-embedding, or use --by offset, which adds the difference of class means"
)


def means_of(run: Run) -> dict[str, ClassMeans]:
    """The mean styles that a model remembers, by label; none of a model without blocks of style."""
    posterior = run.model.posterior
    return posterior.styles if isinstance(posterior, Remembered) else {}


def styles(run: Run, by: By = "style") -> dict[str, list[str]]:
    """The labels that a run can change, each with what its values are called."""
    if "map" in by:
        names = list(changes(run))
    elif by != "style":
        names = list(run.spec.about.labels)
    else:
        names = list(means_of(run)) or list(run.given)
    return {name: values(run, name) for name in names}


def values(run: Run, label: str) -> list[str]:
    """What the values of a label are called."""
    named = run.spec.data.get("classes", {}).get(label, ())
    return [str(value) for value in named] or [str(i) for i in range(run.spec.about.labels[label])]


def transfer(
    run: Run,
    read: Read,
    x: Any,
    to: To = None,
    like: Any = None,
    strength: float = 1.0,
    by: By = "style",
    decoding: Decoding | None = None,
    u: ArrayLike | None = None,
    context: Sequence[Context] | None = None,
    through: Run | str | Path | None = None,
) -> Any:
    """Examples in another style, made by the means of q(z|x) with another style, or of what a model reads in their place.

    See `Run.transfer`.
    """
    if decoding is None and run.tokeniser is not None:
        decoding = Greedy(unknown=False)
    if reads_pivot(run):
        if by != "style":
            run.require_codes()
        _check(run, to, like, strength, by)
        return _written(run, x, to, decoding, u, context, through)
    if context is not None or through is not None:
        raise Problem(f"--through is for a run that reads translations, which {run.spec.method} does not; remove it")
    run.require_codes()
    _check(run, to, like, strength, by)
    batch = _read(run, read, x, _other(run, x, to) if u is None else u)
    known = styles(run, by)
    if by != "style":
        given = to or (changes(run) if "map" in by else None) or None  # a map knows one value
        return _edited(run, batch, _wanted(known, given, len(batch.x)), by, strength, decoding)
    z = torch.from_numpy(run.encode(batch))
    remembered = means_of(run)
    if not remembered:
        other = _told(run, batch, _wanted(known, to, len(z)))
        return run.decode(z.numpy(), other, decoding)
    if like is None:
        return run.decode(restyled(run, z, to, strength).numpy(), batch.u, decoding)
    model = torch.from_numpy(run.encode(_model(run, read, like, u)))
    if len(model) not in (1, len(z)):
        raise Problem(f"{len(model)} examples to be like do not fit {len(z)}; give one, or one for each")
    styled = {name: model[:, means.where] for name, means in remembered.items()}
    return run.decode(_moved(remembered, z, styled, strength).numpy(), batch.u, decoding)


def _written(
    run: Run,
    x: Any,
    to: To,
    decoding: Decoding | None,
    u: ArrayLike | None,
    context: Sequence[Context] | None,
    through: Run | str | Path | None,
) -> list[str]:
    """Sentences written anew from their translations, with the labels that are wanted."""
    if isinstance(x, Batch) and x.context is not None and context is None and through is None:
        ids, known = x.context, x.u
    else:
        ids, known = context_ids(run, as_contexts(_translated(run, x, context, through))), None
    known = known if u is None else run.labels_of(u, len(ids))
    wanted = _wanted(styles(run), to, len(ids))
    if known is None and len(wanted) < len(run.given):
        raise Problem(f"this model is given {', '.join(run.given)}; say all of them with --to")
    blank = torch.zeros(len(ids), sum(run.spec.about.labels[name] for name in run.given))
    other = _told(run, Batch(ids, blank if known is None else known), wanted)
    return written(run, ids, other, run.medium(decoding), seed=0)


def _translated(
    run: Run, x: Any, context: Sequence[Context] | None, through: Run | str | Path | None
) -> Sequence[Context]:
    """The translations of sentences: as handed in, or by another run with a beam of 5."""
    from elboroom.runs.lifecycle import load

    if (context is None) == (through is None):
        raise Problem(
            f"{run.spec.method} writes from the translation of a sentence: say which run translates it, with --through RUN"
            + (", or hand in the context, not both" if context is not None else ", or hand in the context")
        )
    if isinstance(x, Batch):
        if x.index is None:
            raise Problem("a batch without rows of the data has no sentences to translate; hand in the sentences")
        sentences = run.data.sentences(x.index)
    else:
        sentences = [x] if isinstance(x, str) else list(x)
    if context is not None:
        if len(context) != len(sentences):
            raise Problem(f"there are {len(sentences)} sentences and {len(context)} contexts; give one for each")
        return context
    there = load(through) if isinstance(through, str | Path) else through
    assert there is not None
    if not reads_pivot(there) or there.given:
        raise Problem(f"--through {there.folder}: {there.spec.method} is no translation; use a seq2seq without labels")
    reads, writes = (spelled(there.tokenisers[of], sentences) for of in (CONTEXT, "x"))
    if reads < writes:
        raise Problem(f"--through {there.folder} is of the wrong direction: it writes the language of these sentences")
    return [one for (one,) in there.generate([[text] for text in sentences], 1, Beam(width=BEAM, unknown=False))]


def restyled(run: Run, z: Tensor, to: To = None, strength: float = 1.0) -> Tensor:
    """Codes of a model with blocks of style, their styles moved to the means of the classes that are wanted, (n, J)."""
    remembered = means_of(run)
    if not remembered:
        raise Problem(NO_STYLE.format(run.spec.method))
    wanted = _wanted(styles(run), to, len(z), lambda name: _opposite(remembered[name], z))
    styled = {name: remembered[name].means.cpu()[value] for name, value in wanted.items()}
    return _moved(remembered, z, styled, strength)


def _moved(remembered: dict[str, ClassMeans], z: Tensor, styled: Wanted, strength: float) -> Tensor:
    """Codes whose blocks of style are moved towards others, all the way at strength one."""
    z = z.clone()
    for name, style in styled.items():
        where = remembered[name].where
        z[:, where] += strength * (style - z[:, where])
    return z


def _check(run: Run, to: To, like: Any, strength: float, by: By) -> None:
    """Refuses, in a sentence, what this run cannot do."""
    if not np.isfinite(strength):
        raise Problem(f"the strength of a transfer is a finite number, not {strength}")
    if by == "style" and not styles(run):
        raise Problem(NO_STYLE.format(run.spec.method))
    if by != "style":
        check(run, by, strength)
    if by != "style" and not run.spec.about.labels:
        raise Problem(f"{run.spec.about.name} has no labels, so there are no class means")
    if like is not None and to is not None:
        raise Problem("--to and --like both say the style; give one of them")
    block = by == "style" and bool(means_of(run))
    if like is not None and not block:
        raise Problem(f"--like needs a block of style, which {run.spec.method} has not; use --to")
    if strength != 1.0 and by == "style" and not block:
        raise Problem(f"--strength has no effect with {run.spec.method}, whose decoder is given the label; remove it")


def unread(run: Run, x: Any) -> ArrayLike | None:
    """Stands for the labels of examples where the encoder is not told them, though the decoder is."""
    if isinstance(x, Batch) or not isinstance(run.model.posterior, Blind):
        return None
    x = handed(run, x)
    return np.zeros((1 if isinstance(x, str) else len(x), sum(run.spec.about.labels[name] for name in run.given)))


def _other(run: Run, x: Any, to: To) -> ArrayLike | None:
    """The label of sentences of which none is said, for an encoder that is told it: of two styles the one not asked for."""
    if isinstance(x, Batch) or to is None or len(run.given) != 1 or isinstance(run.model.posterior, Blind):
        return None
    (name,) = run.given
    if len(values(run, name)) != 2:
        return None
    n = 1 if isinstance(x, str) else len(x)
    return torch.nn.functional.one_hot(1 - _wanted(styles(run), to, n)[name], 2).float().numpy()


def _read(run: Run, read: Read, x: Any, u: ArrayLike | None) -> Batch:
    """Examples as the model takes them; refuses sentences of which it knows no word."""
    batch = read(x, unread(run, x) if u is None else u)
    if run.tokeniser is not None and not isinstance(x, Batch):
        for row, sentence in zip(batch.x, [x] if isinstance(x, str) else x, strict=True):
            if not (row >= MARKERS).any():
                raise Problem(f"this model knows no word of '{sentence}'")
    return batch


def _model(run: Run, read: Read, like: Any, u: ArrayLike | None) -> Batch:
    """Examples to be like as the model takes them; one is read with the labels of each that is to be like it."""
    like = like if isinstance(like, Batch) else handed(run, like)
    if u is None or isinstance(like, Batch) or not (isinstance(like, str) or len(like) == 1):
        return _read(run, read, like, u)
    labels = u if isinstance(u, Tensor) else torch.from_numpy(real(u, "u"))
    batch = _read(run, read, like, labels[:1])
    tensors = {name: value for name, value in vars(batch).items() if isinstance(value, Tensor)}
    each: dict[str, Any] = {name: value.repeat_interleave(len(labels), 0) for name, value in tensors.items()}
    return Batch(**each | {"u": labels})


def _wanted(known: dict[str, list[str]], to: To, n: int, opposite: Any = None) -> Wanted:
    """The value of each label that is to change, for every row, as numbers."""
    if to is None:
        many = next((name for name in known if len(known[name]) > 2), None)
        if len(known) > 1:
            raise Problem(f"this run changes {', '.join(known)}; say which with --to LABEL=VALUE")
        if many is not None:
            raise Problem(f"{many} is {', '.join(known[many])}; say which with --to")
        if opposite is None:
            raise Problem(f"say the style with --to: {', '.join(next(iter(known.values())))}")
        return {name: opposite(name) for name in known}
    said = dict(to) if isinstance(to, Mapping) else _said(known, to)
    wanted = {}
    for name, value in said.items():
        if name not in known:
            raise unknown("label that this run changes", name, known)
        if str(value) not in known[name]:
            raise unknown("value", str(value), known[name], name)
        wanted[name] = torch.full((n,), known[name].index(str(value)))
    return wanted


def _said(known: dict[str, list[str]], to: str) -> dict[str, str]:
    """`positive`, `sentiment=positive`, or several of these, comma-separated."""
    said: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in to.split(","))):
        name, sign, value = (word.strip() for word in part.partition("="))
        if not sign:
            has = [label for label, names in known.items() if part in names]
            if len(has) > 1:
                raise Problem(f"'{part}' is a value of {' and of '.join(has)}; write --to {has[0]}={part}")
            name, value = has[0] if has else next(iter(known)), part
            if not has and len(known) > 1:
                raise unknown("style", part, [f"{label}={v}" for label, names in known.items() for v in names])
        said[name] = value
    if not said:
        raise Problem("--to is empty; it names a style")
    return said


def _opposite(means: ClassMeans, z: Tensor) -> Tensor:
    """Of two styles the one that each code is farther from, (n,)."""
    return torch.cdist(z[:, means.where], means.means.cpu()).argmax(1)


def _told(run: Run, batch: Batch, wanted: Wanted) -> Tensor:
    """u with the labels that are wanted; those that are not are as they were."""
    assert batch.u is not None
    parts = list(torch.split(batch.u.cpu(), [run.spec.about.labels[name] for name in run.given], 1))
    for name, value in wanted.items():
        place = run.given.index(name)
        parts[place] = torch.nn.functional.one_hot(value, parts[place].shape[1]).to(parts[place])
    return torch.cat(parts, 1)


def _edited(run: Run, batch: Batch, wanted: Wanted, by: By, strength: float, decoding: Decoding | None) -> Any:
    """Examples whose codes are moved to one value of one label."""
    if len(wanted) > 1:
        raise Problem(f"--by {by} changes one label at a time, not {', '.join(wanted)}")
    ((name, value),) = wanted.items()
    return edited(run, batch, name, values(run, name)[int(value[0])], by, strength, decoding)
