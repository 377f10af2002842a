"""The cross-aligned autoencoder: another style without a pair of sentences, by critics of the decoder's states."""

from __future__ import annotations

from dataclasses import replace

from elboroom.build.game import Critic, game
from elboroom.build.parts import Parts
from elboroom.build.registry import CriticLR, NonNegative, Positive, method, refuse_idle
from elboroom.build.styles import the_label
from elboroom.core.method import Method, descend
from elboroom.core.problem import Problem
from elboroom.nets.critics import Critics
from elboroom.nets.sentences import is_recurrent
from elboroom.terms.aligned import cross_aligned, cross_critic
from elboroom.terms.evidence import nll

PURPOSE = "another style, the same content"
SHOWN_ON = "sentences"  # the data of its examples

TEMPERATURE, GATE, CRITIC_LR = 0.1, 1.2, 5e-4
BETAS = (0.5, 0.999)  # of the critics' Adam, as published


@method(
    "cae",
    "nll + rho sum_k -log D_k(states of text transferred to style k)",
    paper="Shen et al. 2017",
    on=("tokens",),
    needs_given=True,
    autoencoder=True,
)
def cae(
    parts: Parts,
    rho: NonNegative = 1.0,
    temperature: Positive = TEMPERATURE,
    saturating: bool = False,
    gate: NonNegative = GATE,
    critic_lr: CriticLR = CRITIC_LR,
) -> Method:
    """A cross-aligned autoencoder: what is written in another style should pass, state by state, for real text of it.

    z and an embedding of the label of --given start the decoder; another label gives the sentence another style. For each
    style a critic (a CNN on sequences of states) tells the states in which the decoder reads real text of that style from
    those in which it writes, by soft words, text that was transferred to it. States are read without dropout. With rho 0
    this is `ae --given LABEL --inject state`. Needs a recurrent decoder. Where its nll rises again, the critics have won: on
    captions `--lr 1e-3 --clip 5 --critic-lr 1e-4` held.

    rho: weight of passing for real text, in nats a sentence
    temperature: of the Gumbel-softmax that makes soft words
    saturating: whether log (1 - D) is descended, as printed, in place of -log D, as released
    gate: the critics are listened to while the loss of each is below this; one that knows nothing is at 2 log 2 = 1.39
    """
    name, styles = the_label(parts)
    if parts.decoder is not None or not is_recurrent(parts.net):
        raise Problem("cae reads the states of a recurrent decoder of ours; use --net lstm, bilstm, gru or bigru")
    if parts.option("inject") == "auto":
        parts = replace(parts, choices=parts.choices.model_copy(update={"inject": "state"}))
    model = parts.vae("point", prior="none")
    if not rho:
        refuse_idle(
            "without critics; remove it",
            temperature=(temperature, TEMPERATURE),
            gate=(gate, GATE),
            saturating=(saturating, False),
            critic_lr=(critic_lr, CRITIC_LR),
        )
        return descend(model, nll())
    column = list(parts.about.labels).index(name)
    critics = Critics(parts.option("hidden"), styles, name, column)
    loss = nll() + rho * cross_aligned(critics, temperature, gate, saturating)
    return game(model, loss, Critic(critics, cross_critic(critics, temperature), critic_lr, BETAS), moves="ae")
