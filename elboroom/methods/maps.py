"""Maps of codes: a trained run becomes a conditional generator, and is not trained again."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from elboroom.build.maps import pairing, restyling
from elboroom.build.parts import Parts
from elboroom.build.registry import Count, NonNegative, Places, Positive, Share, Span, method, refuse_idle
from elboroom.core.method import Group, Method, Player, adam
from elboroom.core.objective import Term, logged
from elboroom.core.problem import Problem
from elboroom.core.stages import Stages
from elboroom.nets import mapping as nets
from elboroom.terms.labels import CodeClassifier, accuracy, label_nll
from elboroom.terms.maps import among, cosine, having, told_as
from elboroom.weights.schedules import After, Linear

PURPOSE = "edits and translations: maps of the codes of a trained run"
SHOWN_ON = "sentences"  # the data of its examples

STYLE_WEIGHT, RAMP, PRETRAINING, CLASSIFIER_LR = 0.9, 0.15, 0.2, 1e-3
DROPOUT = 0.5  # of the classifier of codes, as it learns


@method(
    "emb2emb",
    "style_weight (-log c(f(z))) + (1 - style_weight) (1 - cos(f(z), z)) + adversary (-log D(f(z))); "
    "of pairs 1 - cos(f(z), z') + adversary (-log D(f(z)))",
    paper="Mai et al. 2020",
    needs_base=True,
)
def emb2emb(
    parts: Parts,
    label: str = "",
    to: str = "",
    mapping: nets.Mapping = "offset",
    layers: Count = 1,
    width: Places = 0,
    style_weight: Annotated[float, Field(ge=0, le=1)] = STYLE_WEIGHT,
    ramp: Span = RAMP,
    adversary: NonNegative = 0.008,
    pretraining: Share = PRETRAINING,
    critic_lr: Positive = 3e-4,
    classifier_lr: Positive = CLASSIFIER_LR,
) -> Method | Stages:
    """A map of the codes of another run, which stands frozen under it; to reconstruct with it is to edit.

    The other run is named by --base. With --to it learns from labels: first a classifier of codes, which then stands still,
    then the map f, which is to convince the classifier c and to stay near the code z that it came from. Examples that have
    the value already only show the critic D what codes look like. Without --to it learns from pairs: x and its target
    (--target-column), or a context and its x. Codes are worked out once, and the decoder never runs in training.

    label: the label that --to is a value of; may be left out where there is one
    to: the value that examples are to have; left out, the map learns from pairs
    mapping: offset, x + W2 SELU(W1 x) a layer; resnet; mlp; or identity, which learns nothing
    layers: of the map
    width: units of its hidden layers; 0 is as many as a code has dimensions
    style_weight: of the classifier, against the distance from the input, with --to (published: 0.1 to 0.99)
    ramp: how long it rises from 0: up to 1 a fraction of the run, above it steps (published: 10,000 steps of 69,000)
    adversary: weight of what keeps mapped codes among codes; 0 leaves it out (published: 0.008, for long text 0.032)
    pretraining: share of the run in which the classifier of codes is learnt, with --to
    critic_lr: learning rate of the critic, a tenth of 3e-3, the usual rate of text (published: a tenth of that of the map)
    classifier_lr: learning rate of the classifier of codes
    """
    base = parts.require_base()
    learnt = nets.mapping(mapping, base.latent, layers, width)
    if not to:
        if label:
            raise Problem("--label is of --to: say the value that examples are to have, or remove it")
        refuse_idle(
            "on pairs: it is for --to; remove it",
            style_weight=(style_weight, STYLE_WEIGHT),
            ramp=(ramp, RAMP),
            pretraining=(pretraining, PRETRAINING),
            classifier_lr=(classifier_lr, CLASSIFIER_LR),
        )
        path = pairing(parts, base, learnt)
        distance = cosine(path.codes, path.real, "distance")
        return path.learnt(1.0 * distance, distance, adversary, critic_lr)
    name = parts.label(label)
    value, share = parts.having(name, to)
    column, classes = list(parts.about.labels).index(name), parts.about.labels[name]
    learns = CodeClassifier(base.latent, classes, name, column, dropout=DROPOUT)
    stands = CodeClassifier(base.latent, classes, name, column).requires_grad_(False)
    first = Method(
        base.model.with_posterior(base.codes).with_heads(label=learns),
        [Player(label_nll(learns, means=True) + logged(accuracy(learns, means=True)), "classifier")],
        classifier=Group(learns, adam(classifier_lr)),
    )
    others, same = having(column, value, share, but=True), having(column, value, share)
    path = restyling(base, learnt, others, same)
    path.model.with_heads(label=stands)
    style = among(others, told_as(stands, value))
    content = among(others, cosine(path.codes, path.real, "content"))
    judged = Term("loss", lambda draw: style_weight * style(draw) + (1 - style_weight) * content(draw))
    until, rise = parts.span(pretraining), parts.span(ramp)
    loss = (
        After(until, Linear(0, style_weight, rise)) * style + After(until, Linear(1, 1 - style_weight, rise)) * content
    )
    return Stages(first, path.learnt(loss, judged, adversary, critic_lr), until, carry=("heads.label",))
