"""Methods of style and content: codes of which a part says how something is said, and the rest what is said."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from torch import nn

from elboroom.build.game import Critic, game
from elboroom.build.parts import Parts
from elboroom.build.registry import Count, CriticLR, Warmup, Weighing, by_data, method, refuse_idle
from elboroom.build.styles import CONTENT, HIDDEN, Styles, per_example, the_label
from elboroom.core.blocks import of
from elboroom.core.method import Group, Method, Player
from elboroom.core.model import LatentModel
from elboroom.core.objective import Objective, Term, Weight
from elboroom.core.optimiser import rmsprop
from elboroom.core.problem import Problem
from elboroom.families.reading import Blind
from elboroom.families.styled import MisreadPosterior
from elboroom.terms.evidence import kl, nll
from elboroom.terms.labels import SMOOTHING, DeepClassifier, entropy, label_nll
from elboroom.terms.words import bag_nll
from elboroom.weights.schedules import Linear, Tanh

PURPOSE = "another style, the same content"
SHOWN_ON = "sentences"  # the data of its examples

MUL_STYLE, ADV_STYLE, MUL_CONTENT, ADV_CONTENT, RATE = 10.0, 1.0, 3.0, 0.03, 0.03  # published, beside nats a token
WARMUP, CRITIC_LR = 0.25, 1e-3


MulStyle = Annotated[
    Weighing,
    Field(
        description="weight of telling the label from the style; left out, 10 times the mean length of a sentence in tokens"
    ),
]
AdvStyle = Annotated[
    Weighing,
    Field(description="weight of hiding the label from an adversary that reads the content; left out, the mean length"),
]
MulContent = Annotated[
    Weighing,
    Field(description="weight of telling the words of content from the content; left out, 3 times the mean length"),
]
AdvContent = Annotated[
    Weighing,
    Field(
        description="weight of hiding them from an adversary that reads the style; left out, 0.03 times the mean length"
    ),
]
Rate = Annotated[
    Weighing, Field(description="weight of the KL after the warm-up; left out, 0.03 times the mean length")
]
Hiding = Annotated[
    Weighing,
    Field(description="weight of hiding the label from an adversary that reads z; left out, the mean length in tokens"),
]
StyleSize = Annotated[Count, Field(description="dimensions of the style, of each label")]
ContentSize = Annotated[Count, Field(description="dimensions of the content")]
Faithful = Annotated[
    bool,
    Field(
        description="as the released code computes it where that is not the formula: a softmax of a softmax, logits through "
        "LeakyReLU, and of style-vae a KL weight that stops early and a variance read in two ways"
    ),
]


@method(
    "style-vae",
    "nll + rate (kl_style + kl_content) + mul_style label_nll(style) - adv_style H(label told from content) "
    "+ mul_content bag_nll(content) - adv_content H(words told from style)",
    paper="John et al. 2019",
)
def style_vae(
    parts: Parts,
    label: str = "",
    style_size: StyleSize = 8,
    content_size: ContentSize = by_data(16, tokens=128),
    mul_style: MulStyle = None,
    adv_style: AdvStyle = None,
    mul_content: MulContent = None,
    adv_content: AdvContent = None,
    rate: Rate = None,
    style_rate: Weighing = None,
    warmup: Warmup = WARMUP,
    critic_lr: CriticLR = CRITIC_LR,
    faithful: Faithful = False,
) -> Method:
    """A VAE whose z has a block for the style, which tells the label, and one for the content, which does not.

    The style is changed by `elbo transfer`. Two heads must succeed, two adversaries must fail: they read codes as constants,
    the mean of the content and a draw of the style, and descend losses of their own. Words of content are those that are no
    stop words and do not tell the label. Images have none: there both terms of words fall away. What the style holds beside
    the label is lost when it is changed; a --style-rate above --rate leaves it little room.

    label: the label that is the style, or several, comma-separated; may be left out where there is one
    style_rate: weight of the KL of the style after the warm-up; left out, as that of the content
    warmup: how long the weights of the KL rise from 0 to --rate and --style-rate: up to 1 a fraction of the run, above it steps
    """
    styles = Styles(parts, label)
    model = parts.vae(blocks=styles.blocks(style_size, content_size))
    if faithful:
        model = model.with_posterior(MisreadPosterior(model.posterior))
        refuse_idle("with --faithful, whose rise is that of the released code; remove it", warmup=(warmup, WARMUP))
    content_rate = per_example(parts, RATE, rate)
    style_rate = content_rate if style_rate is None else style_rate

    def rising(weight: float) -> Weight:
        return Tanh(weight, 30_000, 20_000 / 3, 20_000) if faithful else Linear(0, weight, parts.span(warmup))

    loss = nll() + rising(content_rate) * of(CONTENT, kl())
    for block in styles.fields:
        loss = loss + rising(style_rate) * of(block, kl())
    return _apart(
        parts, styles, model, loss, mul_style, adv_style, mul_content, adv_content, critic_lr, faithful
    )  # fmt: skip


@method(
    "style-ae",
    "nll + mul_style label_nll(style) - adv_style H(label told from content) "
    "+ mul_content bag_nll(content) - adv_content H(words told from style)",
    paper="John et al. 2019",
    autoencoder=True,
)
def style_ae(
    parts: Parts,
    label: str = "",
    style_size: StyleSize = 8,
    content_size: ContentSize = by_data(16, tokens=128),
    mul_style: MulStyle = None,
    adv_style: AdvStyle = None,
    mul_content: MulContent = None,
    adv_content: AdvContent = None,
    critic_lr: CriticLR = CRITIC_LR,
    faithful: Faithful = False,
) -> Method:
    """The same with a deterministic encoder: no rate, no prior.

    Adversaries and heads are those of `style-vae`.

    label: the label that is the style, or several, comma-separated; may be left out where there is one
    """
    styles = Styles(parts, label)
    model = parts.vae("point", prior="none", blocks=styles.blocks(style_size, content_size))
    return _apart(
        parts, styles, model, 1.0 * nll(), mul_style, adv_style, mul_content, adv_content, critic_lr, faithful
    )  # fmt: skip


def _apart(
    parts: Parts,
    styles: Styles,
    model: LatentModel,
    loss: Objective,
    mul_style: float | None,
    adv_style: float | None,
    mul_content: float | None,
    adv_content: float | None,
    critic_lr: float,
    faithful: bool,
) -> Method:
    """Style and content told apart: what a weight of zero stands before is left out, with the head that it would need."""
    ms, as_ = per_example(parts, MUL_STYLE, mul_style), per_example(parts, ADV_STYLE, adv_style)
    mc, ac = _of_words(parts, MUL_CONTENT, mul_content), _of_words(parts, ADV_CONTENT, adv_content)
    model, sizes = styles.remembered(model), model.sizes
    heads: dict[str, nn.Module] = {}  # that must succeed
    rivals: dict[str, tuple[nn.Module, Term]] = {}  # that must fail, and what they descend
    for block, field in styles.fields.items():
        which = "" if len(styles.fields) == 1 else f"_{field}"
        if ms:
            heads[f"label{which}"] = tell = styles.teller(block, sizes[block])
            loss = loss + ms * of(block, label_nll(tell, twice=faithful))
        if as_:
            spy = styles.spy(block, sizes[CONTENT])
            loss = loss - as_ * of(CONTENT, entropy(spy, means=True, name=f"label{which}_entropy"))
            guess = label_nll(spy, True, constant=True, smoothing=SMOOTHING, twice=faithful, name=f"label{which}_nll")
            rivals[f"spy{which}"] = spy, of(CONTENT, guess)
        if ac:
            thief = styles.bag(sizes[block], HIDDEN)
            loss = loss - ac * of(block, entropy(thief, name="bag_entropy"))
            guess = bag_nll(thief, constant=True, smoothing=SMOOTHING, twice=faithful)
            rivals[f"thief{which}"] = thief, of(block, guess)
    if mc:
        heads["bag"] = bag = styles.bag(sizes[CONTENT], leaky=faithful)
        loss = loss + mc * of(CONTENT, bag_nll(bag))
    model = model.with_heads(**heads, **{name: rival for name, (rival, _) in rivals.items()})
    if not rivals:
        refuse_idle("without an adversary; remove it", critic_lr=(critic_lr, CRITIC_LR))
    own = Group([model.posterior, model.prior, model.likelihood, *model.conditioners, *heads.values()])
    theirs = {name: Group(rival, rmsprop(critic_lr)) for name, (rival, _) in rivals.items()}
    chase = [Player(guess, name, rival=True) for name, (_, guess) in rivals.items()]
    return Method(model, [Player(loss, "vae"), *chase], watches=(), vae=own, **theirs)


def _of_words(parts: Parts, published: float, said: float | None) -> float:
    """The weight of a term of words of content; images have none."""
    if parts.about.kind == "tokens":
        return per_example(parts, published, said)
    if said:
        raise Problem(
            f"--mul-content and --adv-content need the words of a text, and {parts.about.name} is {parts.about.kind}; "
            "remove them"
        )
    return 0.0


@method("style-embedding", "nll - lam H(label told from z)", paper="Fu et al. 2018", needs_given=True, autoencoder=True)
def style_embedding(parts: Parts, lam: Hiding = None, critic_lr: CriticLR = 1e-3) -> Method:
    """An autoencoder that hides the label from an adversary and is given it, as an embedding, to decode.

    The label is that of --given; the encoder is not told it. Another label gives the sentence another style.
    """
    bare = parts.unconditional.vae("point", prior="none")
    return _hidden(parts, LatentModel(Blind(bare.posterior), bare.prior, parts.likelihood()), lam, critic_lr)


@method(
    "multi-decoder",
    "nll - lam H(label told from z), one decoder a label",
    paper="Fu et al. 2018; Zhao et al. 2018",
    needs_given=True,
    autoencoder=True,
)
def multi_decoder(parts: Parts, lam: Hiding = None, critic_lr: CriticLR = 1e-3) -> Method:
    """The same with a decoder for every label in place of an embedding.

    All decode all rows of a batch, so a step takes as many times as long as there are labels.
    """
    model = parts.unconditional.vae("point", prior="none", decoders=the_label(parts)[1])
    return _hidden(parts, LatentModel(Blind(model.posterior), model.prior, model.likelihood), lam, critic_lr)


def _hidden(parts: Parts, model: LatentModel, lam: float | None, critic_lr: float) -> Method:
    """nll less what an adversary does not know of the label."""
    name, classes = the_label(parts)
    spy = DeepClassifier(parts.latent, classes, name, list(parts.about.labels).index(name), HIDDEN)
    weight = per_example(parts, ADV_STYLE, lam)
    guess = label_nll(spy, constant=True, smoothing=SMOOTHING)
    return game(model, nll() - weight * entropy(spy), Critic(spy, guess, critic_lr), moves="ae")
