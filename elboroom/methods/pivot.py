"""Style transfer through a pivot: what a sentence means is what is left of it in another language."""

from __future__ import annotations

from typing import Literal

from elboroom.build.parts import Parts
from elboroom.build.registry import Positive, Span, Weighing, method, refuse_idle
from elboroom.build.styles import per_example, the_label
from elboroom.core.freeze import frozen, held
from elboroom.core.method import Group, Method, Player
from elboroom.core.model import LatentModel
from elboroom.core.objective import logged
from elboroom.core.problem import Problem
from elboroom.core.stages import Stages, Trainable
from elboroom.families.gaussian import NoLatent, StandardNormal
from elboroom.nets.guide import Guide
from elboroom.terms.evidence import nll
from elboroom.terms.guided import guide_accuracy, guide_nll, guided

TAU, PRETRAINING = 1.0, 0.2
PURPOSE = "another style, the same content"
SHOWN_ON = "captions.jsonl"  # the data of its examples: a table with a column of translations


@method(
    "bst",
    "-log q(style|x) for the guide; then nll of x given c + guide -log q(style | soft words)",
    paper="Prabhumoye et al. 2018",
    on=("tokens",),
    needs_base=True,
    needs_given=True,
    needs_context=True,
)
def bst(
    parts: Parts,
    guide: Weighing = None,
    tau: Positive = TAU,
    decoders: Literal["each", "given"] = "each",
    pretraining: Span = PRETRAINING,
) -> Trainable:
    """Style transfer by back-translation: a sentence is written from its translation, in the style of --given.

    The context is the translation of x to a pivot language. It is read by the encoder of a `seq2seq` that translates back
    (--base), which stands frozen; decoders of the styles attend to its states. The guide, a CNN, first learns to tell the
    style of real text (windows of 5 words, 100 filters, dropout 0.2), then stands still and reads soft words,
    softmax(logits / tau) E. The logits are those of the likelihood and are trained: the released code builds its optimiser
    before it attaches the softmax and the guide's projection, so that both stay random, and its guide reads the latter.
    Without a guide (0) this is `seq2seq` with a label on a frozen encoder.

    guide: weight of writing what the guide takes for the style, in nats a sentence; left out, the mean length of a sentence
    in tokens, since the published 1 stands beside nats a token
    tau: temperature of soft words
    decoders: each: a decoder for every style; given: one, which is given the style
    pretraining: how long the guide learns first: up to 1 a fraction of the run, above it steps
    """
    parts.refuse_axes("bst")
    name, styles = the_label(parts)
    told = parts.read_by_base().answering("dot")
    untold = parts.read_by_base().unconditional.answering("dot")

    def model() -> LatentModel:
        one = decoders == "given"
        likelihood = told.likelihood(latent=0) if one else untold.likelihood(latent=0, decoders=styles)
        return LatentModel(NoLatent(), StandardNormal(0), likelihood, conditioner=told.conditioner())

    final = model()
    weight = per_example(parts, 1.0, guide)
    if not weight:
        refuse_idle("without a guide; remove it", tau=(tau, TAU), pretraining=(pretraining, PRETRAINING))
        return Method(final, [Player(nll(), "model")], model=Group(final.likelihood))
    if not (until := parts.span(pretraining)):
        raise Problem("--pretraining 0: the guide would know nothing; give it steps, or use --guide 0")
    column = list(parts.about.labels).index(name)

    def new_guide() -> Guide:
        return Guide(parts.about.levels, styles, name, column, parts.option("embed"))

    waiting = model()
    frozen(waiting.likelihood)  # its turn comes with weights of its own
    learns, knows = new_guide(), held(new_guide())
    told_style = guide_nll(learns)
    first = Method(
        waiting.with_heads(guide=learns),
        [Player(told_style + logged(guide_accuracy(learns)), "guide")],
        guide=Group(learns),
    ).judged(told_style)
    objective = nll() + weight * guided(knows, tau)
    then = Method(final.with_heads(guide=knows), [Player(objective, "model")], model=Group(final.likelihood))
    return Stages(first, then, until, carry=("heads.guide",))
