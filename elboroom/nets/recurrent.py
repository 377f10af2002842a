"""Recurrent encoders and decoders of sentences.

Two published pairs of nets differ in a few places, here as trunk a and b. Trunk c is b, begun as we found it to learn best:

                 a (Lag-VAE, AE + FB, BN-VAE)              b (SA-VAE, Skip-VAE, implicit VAE)
beginnings       U(+-0.01), embeddings U(+-0.1)            U(+-0.1) everywhere
z to the state   c_0 = W z, h_0 = tanh c_0                 h_0 = W z + b, c_0 = 0
biases           none in the encoder's head and softmax    in both

The beginnings of a belong to plain gradient descent with a learning rate of one. In c the encoder's words begin as N(0, 1)
and its head wider, and an LSTM begins by not forgetting: of small words and weights all states are nearly alike, and for a
thousand steps of Adam a code tells little more than the length of its sentence. Labels that a decoder is given begin wide
for the same reason.
"""

from __future__ import annotations

from typing import Literal, cast

import torch
from torch import Tensor, nn

from elboroom.core.batch import Memory
from elboroom.core.vocabulary import PAD
from elboroom.nets.attention import Attention
from elboroom.nets.attention import Kind as Score
from elboroom.nets.autoregressive import Autoregressive, Net, State, spread_uniformly
from elboroom.nets.fast import lstm
from elboroom.nets.fast.crossentropy import Head
from elboroom.nets.fast.packing import Packing, lengths_of
from elboroom.nets.mlp import beside

Cell = Literal["lstm", "gru"]
Trunk = Literal["a", "b", "c"]
_REACH = {"a": (0.01, 0.1), "b": (0.1, 0.1), "c": (0.1, 0.1)}
_HEAD = 0.3  # of the encoder's head in trunk c
_LABELS = 1.0  # of what labels enter the decoder by in trunk c


def begin(net: Net, trunk: Trunk) -> Net:
    """Fresh weights as the trunk has them; in c the gates of an LSTM that keep what it remembers begin open."""
    spread_uniformly(net, *_REACH[trunk])
    for cell in (module for module in net.modules() if trunk == "c" and isinstance(module, nn.LSTM)):
        keep = cast(Tensor, cell.bias_ih_l0)[cell.hidden_size : 2 * cell.hidden_size]
        nn.init.ones_(keep)
    return net


class Layer(nn.Module):
    """One recurrent layer over packed sentences; what is beside the input of a row is the same in each of its steps."""

    def __init__(self, cell: Cell, inputs: int, hidden: int) -> None:
        super().__init__()
        self.cell = nn.LSTM(inputs, hidden) if cell == "lstm" else nn.GRU(inputs, hidden)
        self.states = 2 if cell == "lstm" else 1  # tensors that it remembers

    def forward(
        self, x: Tensor, sizes: list[int], state: State, beside: Tensor | None = None, added: Tensor | None = None
    ) -> Tensor:
        """The states after every word; see `lstm.run`."""
        if x.device.type == "cpu" and torch.is_autocast_enabled("cpu"):  # what is recurrent stays in single precision
            full = [t if t is None else t.float() for t in (beside, added)]
            with torch.autocast("cpu", enabled=False):
                return self.forward(x.float(), sizes, tuple(t.float() for t in state), *full)
        if isinstance(self.cell, nn.LSTM):
            return lstm.run(self.cell, x, sizes, state, beside, added)
        return lstm.library(self.cell, x, sizes, state, beside, added)

    def step(self, x: Tensor, state: State, beside: Tensor | None = None) -> State:
        """One step of every row: (N, inputs), (N, H) each -> (N, H) each."""
        x = x if beside is None else torch.cat([x, beside], 1)
        w, v, b, d = self.cell.all_weights[0]
        if isinstance(self.cell, nn.LSTM):
            return torch.lstm_cell(x, state, w, v, b, d)
        return (torch.gru_cell(x, state[0], w, v, b, d),)

    def zeros(self, rows: int, like: Tensor) -> State:
        """A state of zeros."""
        return tuple(like.new_zeros(rows, self.cell.hidden_size) for _ in range(self.states))


class RecurrentEncoder(nn.Module):
    """The state after reading <s> w_1 .. w_T </s>, then a linear layer; u joins the state.

    Read in both directions, the two last states stand side by side.
    """

    def __init__(
        self,
        cell: Cell,
        vocabulary: int,
        outputs: int,
        given: int = 0,
        embed: int = 256,
        hidden: int = 256,
        layers: int = 1,
        trunk: Trunk = "a",
        both: bool = False,
    ) -> None:
        super().__init__()
        self.given, self.trunk, ways = given, trunk, 2 if both else 1
        self.embedding = nn.Embedding(vocabulary, embed)
        widths = [embed] + [ways * hidden] * (layers - 1)
        self.forth = nn.ModuleList(Layer(cell, width, hidden) for width in widths)
        self.back = nn.ModuleList(Layer(cell, width, hidden) for width in widths) if both else None
        self.head = nn.Linear(ways * hidden + given, outputs, bias=trunk != "a")
        begin(self, trunk)
        if trunk == "c":
            nn.init.normal_(self.embedding.weight)
            nn.init.uniform_(self.head.weight, -_HEAD, _HEAD)

    def begin_at(self, where: slice, value: float) -> None:
        """Lets some outputs begin near a value, in trunk c; a and b stay as they were published."""
        if self.trunk == "c":
            nn.init.constant_(self.head.bias[where], value)

    def forward(self, x: Tensor, u: Tensor | None = None) -> Tensor:
        packing = Packing.of(lengths_of(x))
        return self._read(self.embedding(packing.take(x)), packing, u)  # (B, outputs)

    def embed(self, x: Tensor) -> Tensor:
        """Words as vectors: (B, L) -> (B, L, ni)."""
        embedded: Tensor = self.embedding(x)
        return embedded

    def read(self, embedded: Tensor, lengths: Tensor | None = None, u: Tensor | None = None) -> Tensor:
        """From vectors on, the first `lengths` (B,) of each row, all if left out: (B, L, ni) -> (B, outputs)."""
        if lengths is None:
            lengths = torch.full(embedded.shape[:1], embedded.shape[1], device=embedded.device)
        packing = Packing.of(lengths)
        return self._read(packing.take(embedded), packing, u)

    def states(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What comes out, and the states of the last layer after every word with where there is one.

        (B, L) -> (B, outputs), (B, L', H), (B, L'), L' the longest sentence: padding beyond it is never seen.
        """
        packing = Packing.of(lengths_of(x))
        h, ends = self._run(self.embedding(packing.take(x)), packing)
        return self.head(ends), packing.spread(h), x[:, : len(packing.sizes)] != PAD

    def _read(self, h: Tensor, packing: Packing, u: Tensor | None) -> Tensor:
        outputs: Tensor = self.head(beside(self._run(h, packing)[1], u, self.given))
        return outputs

    def _run(self, h: Tensor, packing: Packing) -> tuple[Tensor, Tensor]:
        """The states of the last layer, (n, H), and the last ones of every sentence, (B, H)."""
        ends = []
        for number, layer in enumerate(cast(list[Layer], self.forth)):
            zeros = layer.zeros(packing.sizes[0], h)
            read = layer(h, packing.sizes, zeros)  # (n, H)
            ends = [packing.last(read)]
            if self.back is not None:
                turned = self.back[number](packing.backwards(h), packing.sizes, zeros)
                ends.append(packing.last(turned))
                read = torch.cat([read, packing.backwards(turned)], 1)
            h = read
        return h, torch.cat(ends, 1)


class RecurrentDecoder(Autoregressive):
    """Words by recurrent layers. Where z (with u beside it) enters is said by `inject`, joined by "+":

    state    the first state of every layer, as the trunk has it; zero otherwise
    concat   beside every input word
    add      to every input word, through a linear layer

    With `skip` it also stands beside the input of every higher layer and beside the last state, before the softmax.
    Of no latent dimensions this is a language model: words in, zero state. With `attention` to a memory of so many
    features, the last state looks at it before the softmax.
    """

    INJECTIONS = ("state+concat", "state", "concat", "add", "state+add")

    def __init__(
        self,
        cell: Cell,
        vocabulary: int,
        latent: int,
        given: int = 0,
        embed: int = 256,
        hidden: int = 256,
        layers: int = 1,
        trunk: Trunk = "a",
        dropout: float = 0.5,
        word_dropout: float = 0.0,
        inject: str = "state+concat",
        skip: bool = False,
        attention: Score | None = None,
        memory: int = 0,
        labels: int = 0,
    ) -> None:
        super().__init__(latent, given, dropout, word_dropout)
        places = inject.split("+") if self.code else []
        self.concat, self.skip, self.trunk = "concat" in places, skip and bool(self.code), trunk
        self.embedding = nn.Embedding(vocabulary, embed)
        self.added = nn.Linear(self.code, embed) if "add" in places else None
        beside_first, beside_later = self.code * self.concat, self.code * self.skip
        first = Layer(cell, embed + beside_first, hidden)
        later = (Layer(cell, hidden + beside_later, hidden) for _ in range(layers - 1))
        self.layers = nn.ModuleList([first, *later])
        self.state = nn.Linear(self.code, layers * hidden, bias=trunk != "a") if "state" in places else None
        self.head = Head(hidden + beside_later, vocabulary, bias=trunk != "a")
        begin(self, trunk)
        if trunk == "c" and labels:
            self._widen(labels)
        self.attends = attention is not None
        self.attention = (
            Attention(attention, hidden, memory) if attention else None
        )  # so small it would not begin to learn

    def _widen(self, labels: int) -> None:
        """The weights of labels begin so wide that states tell them apart from the first step on."""
        first = cast(Tensor, self.stack[0].cell.weight_ih_l0) if self.concat else None
        linear = [layer.weight for layer in (self.state, self.added) if layer is not None]
        for weight in [*([] if first is None else [first]), *linear]:
            nn.init.uniform_(weight.data[:, -labels:], -_LABELS, _LABELS)

    def run(self, codes: Tensor, tokens: Tensor, packing: Packing, copies: int, memory: Memory | None = None) -> Tensor:
        self.require_memory(memory)
        rows = codes.flatten(0, 1)  # (B K, code)
        sizes = [size * codes.shape[1] for size in packing.sizes]
        h = self.drop(self.embedding(self.hide(tokens, packing, copies)), packing, copies)  # (n, ni)
        added = None if self.added is None else self.added(rows)
        for layer, state, code in zip(self.stack, self.first(rows), self.beside(rows), strict=True):
            h = self.drop(layer(h, sizes, state, code, added), packing, copies)  # (n K, H)
            added = None
        if self.attention is not None and memory is not None:
            h = self._look(self.attention, h, packing, memory)
        return torch.cat([h, lstm.rows(rows, sizes)], 1) if self.skip else h

    def _look(self, attention: Attention, h: Tensor, packing: Packing, memory: Memory) -> Tensor:
        """States of words, K copies of each, with what they find in the memory of their sentence, (n K, H)."""
        rows, length = packing.sizes[0], len(packing.sizes)
        where = packing.place * length + packing.step
        each = h.view(packing.count, -1)  # (n, K H)
        padded = each.new_zeros(rows * length, each.shape[1]).index_copy(0, where, each)
        found: Tensor = attention(padded.view(rows, -1, h.shape[1]), *attention.prepared(memory))  # (B, T K, H)
        return found.reshape(rows * length, -1).index_select(0, where).view(-1, h.shape[1])

    @property
    def stack(self) -> list[Layer]:
        """The layers, from words to the softmax."""
        return cast(list[Layer], list(self.layers))

    def beside(self, rows: Tensor) -> list[Tensor | None]:
        """What stands beside the input of each layer."""
        return [rows if here else None for here in [self.concat] + [self.skip] * (len(self.layers) - 1)]

    def first(self, rows: Tensor) -> list[State]:
        """The state of every layer before the first word, from codes (N, code)."""
        zeros = [layer.zeros(rows.shape[0], self.head.weight) for layer in self.stack]
        if self.state is None:
            return zeros
        states = []
        for made, zero in zip(self.state(rows).chunk(len(self.layers), 1), zeros, strict=True):
            if self.trunk == "a":
                states.append((torch.tanh(made), made)[: len(zero)])
            else:
                states.append((made, *zero[1:]))
        return states

    def start(self, z: Tensor, u: Tensor | None = None, memory: Memory | None = None) -> State:
        self.require_memory(memory)
        rows = self.codes(z, u)
        seen = () if self.attention is None or memory is None else self.attention.prepared(memory)
        return rows, *(t for state in self.first(rows) for t in state), *seen

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        return self.advance(self.embedding(tokens), state)

    def advance(self, words: Tensor, state: State) -> tuple[Tensor, State]:
        """The same from vectors of words, which may be soft: (N, ni) -> (N, H')."""
        rows, *memory = state
        h, after = words, [rows]
        if self.added is not None:
            h = h + self.added(rows)
        for layer, code in zip(self.stack, self.beside(rows), strict=True):
            before, memory = tuple(memory[: layer.states]), memory[layer.states :]
            now = layer.step(h, before, code)
            after += now
            h = now[0]
        if self.attention is not None:
            h = self.attention(h.unsqueeze(1), *memory).squeeze(1)
            after += memory
        return (torch.cat([h, rows], 1) if self.skip else h), tuple(after)
