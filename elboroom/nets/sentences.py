"""The networks of sentences by name.

name          encoder                                      decoder
lstm          LSTM, its last state                         LSTM
bilstm        LSTM in both directions, both last states    LSTM
gru, bigru    the same with gated recurrent units          GRU
transformer   LSTM, its last state                         causal transformer, 3 blocks, 8 heads, tied to its embeddings

Recurrent nets follow one of two published trunks, see `recurrent`. How z enters a decoder is `inject`: by default
state+concat in recurrent ones (the first state, and beside every word), memory in the transformer (every block attends
to it).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from torch import nn

from elboroom.core.problem import Problem, unknown
from elboroom.nets.autoregressive import Autoregressive
from elboroom.nets.fast.memory import keep_memory
from elboroom.nets.recurrent import Cell, RecurrentDecoder, RecurrentEncoder, Trunk
from elboroom.nets.transformer import Transformer


@dataclass(frozen=True)
class Pair:
    """What reads and what writes: the cell, whether it reads both ways, and whether a transformer writes."""

    cell: Cell = "lstm"
    both: bool = False
    attentive: bool = False


_NETS = {
    "lstm": Pair(),
    "bilstm": Pair(both=True),
    "gru": Pair("gru"),
    "bigru": Pair("gru", both=True),
    "transformer": Pair(attentive=True),
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
) -> Autoregressive:
    """The decoder of codes of `latent` dimensions; of none, with nothing given, a language model.

    Left out, recurrent nets have 1 layer and dropout 0.5, the transformer 3 blocks and dropout 0.2; its width is `embed`
    and its feed-forward layers have 4 `hidden` units. With `skip`, z also enters every higher layer and the softmax.
    """
    pair = _pair(name)
    if not pair.attentive:
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
        )
    if skip:
        raise Problem("skip connections of z need a recurrent decoder; for a transformer use --inject memory")
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
    )


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
