"""The networks of sentences by name.

name          encoder                                      decoder
lstm          LSTM, its last state                         LSTM
bilstm        LSTM in both directions, both last states    LSTM
gru, bigru    the same with gated recurrent units          GRU
transformer   LSTM, its last state                         causal transformer, 3 blocks, 8 heads, tied to its embeddings
dilated       LSTM, its last state                         causal dilated convolutions, 5 blocks

Recurrent nets follow one of two published trunks or our own, see `recurrent`. How z enters a decoder is `inject`: by default
state+concat in recurrent ones (the first state, and beside every word), memory in the transformer (every block attends
to it), concat in the convolutions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, cast

from torch import nn

from elboroom.core.problem import Problem, unknown
from elboroom.nets.attention import Kind
from elboroom.nets.autoregressive import Autoregressive
from elboroom.nets.context import ContextEncoder
from elboroom.nets.dilated import DilatedDecoder
from elboroom.nets.fast.memory import keep_memory
from elboroom.nets.recurrent import Cell, RecurrentDecoder, RecurrentEncoder, Trunk
from elboroom.nets.transformer import Transformer


@dataclass(frozen=True)
class Pair:
    """What reads and what writes: the cell, whether it reads both ways, and what writes, if not a net of such cells."""

    cell: Cell = "lstm"
    both: bool = False
    writer: Literal["cell", "transformer", "dilated"] = "cell"


_NETS = {
    "lstm": Pair(),
    "bilstm": Pair(both=True),
    "gru": Pair("gru"),
    "bigru": Pair("gru", both=True),
    "transformer": Pair(writer="transformer"),
    "dilated": Pair(writer="dilated"),
}
NETS = tuple(_NETS)
INJECTIONS = RecurrentDecoder.INJECTIONS + tuple(
    name for name in Transformer.INJECTIONS if name not in RecurrentDecoder.INJECTIONS
)


def encoder(
    name: str,
    vocabulary: int,
    outputs: int,
    given: int = 0,
    embed: int = 256,
    hidden: int = 256,
    trunk: Trunk = "a",
    layers: int = 1,
) -> nn.Module:
    """The encoder `net(x, u=None) -> (B, outputs)` of padded ids x (B, L).

    Its halves are `net.embed(x) -> (B, L, embed)` and `net.read(embedded, lengths, u) -> (B, outputs)`. With `given` > 0
    it takes u of shape (B, given).
    """
    pair = _pair(name)
    return RecurrentEncoder(pair.cell, vocabulary, outputs, given, embed, hidden, layers, trunk, pair.both)


def decoder(
    name: str,
    vocabulary: int,
    latent: int,
    given: int = 0,
    embed: int = 256,
    hidden: int = 256,
    layers: int | None = None,
    trunk: Trunk = "a",
    dropout: float | None = None,
    word_dropout: float = 0.0,
    inject: str = "auto",
    skip: bool = False,
    attention: str = "none",
    memory: int = 0,
    labels: int = 0,
) -> Autoregressive:
    """The decoder of codes of `latent` dimensions; of none, with nothing given, a language model.

    Left out, recurrent nets have 1 layer and dropout 0.5, convolutions 5 blocks and dropout 0.5, the transformer 3 blocks and
    dropout 0.2; its width is `embed` and its feed-forward layers have 4 `hidden` units. With `skip`, z also enters every
    higher layer and the softmax. With `attention`, dot or additive, it looks at a memory of so many features. The
    last `labels` columns of what is given are labels, one-hot.
    """
    pair = _pair(name)
    if pair.writer == "cell":
        return RecurrentDecoder(
            pair.cell,
            vocabulary,
            latent,
            given,
            embed,
            hidden,
            1 if layers is None else layers,
            trunk,
            0.5 if dropout is None else dropout,
            word_dropout,
            _injection(name, inject, RecurrentDecoder.INJECTIONS),
            skip,
            None if attention == "none" else cast(Kind, attention),
            memory,
            labels,
        )
    if skip:
        raise Problem(f"skip connections of z need a recurrent decoder, which {name} is not; use --net lstm or gru")
    if pair.writer == "dilated":
        if attention != "none":
            raise Problem(
                "convolutions do not attend to a context; use --net lstm, gru or transformer, or --attention none"
            )
        _injection(name, inject, DilatedDecoder.INJECTIONS)
        return DilatedDecoder(
            vocabulary,
            latent,
            given,
            embed,
            hidden,
            5 if layers is None else layers,
            0.5 if dropout is None else dropout,
            word_dropout,
        )
    if attention == "additive":
        raise Problem("a transformer attends by dot products; use --attention dot")
    return Transformer(
        vocabulary,
        latent,
        given,
        embed,
        3 if layers is None else layers,
        next((heads for heads in (8, 4, 2) if embed % (2 * heads) == 0), 1),
        4 * hidden,
        0.2 if dropout is None else dropout,
        word_dropout,
        _injection(name, inject, Transformer.INJECTIONS),
        memory=0 if attention == "none" else memory,
    )


def context(
    name: str,
    vocabulary: int,
    embed: int = 256,
    hidden: int = 256,
    trunk: Trunk = "a",
    turns: int = 1,
    remembers: bool = True,
) -> ContextEncoder:
    """The encoder of contexts of up to so many turns, its vector of `hidden` features; `memory_of(hidden)` in its memory."""
    return ContextEncoder(_pair(name).cell, vocabulary, embed, hidden, trunk, turns, remembers)


def is_recurrent(name: str) -> bool:
    """Whether the decoder of these nets is."""
    return _pair(name).writer == "cell"


def memory_of(hidden: int) -> int:
    """The features of a word in the memory of a context: a state of each direction."""
    return 2 * hidden


def _pair(name: str) -> Pair:
    keep_memory()
    if name not in _NETS:
        raise unknown("net for text", name, NETS)
    return _NETS[name]


def _injection(name: str, inject: str, names: Iterable[str]) -> str:
    known = tuple(names)
    if inject == "auto":
        return known[0]
    if inject not in known:
        raise Problem(f"'{name}' has no --inject {inject}; it has: {', '.join(known)}")
    return inject
