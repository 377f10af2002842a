"""Recurrent encoders and decoders of sentences.

Two published pairs of nets differ in a few places, here as trunk a and trunk b:

                 a (Lag-VAE, AE + FB, BN-VAE)              b (SA-VAE, Skip-VAE, implicit VAE)
beginnings       U(+-0.01), embeddings U(+-0.1)            U(+-0.1) everywhere
z to the state   c_0 = W z, h_0 = tanh c_0                 h_0 = W z + b, c_0 = 0
biases           none in the encoder's head and softmax    in both
"""

from __future__ import annotations

from typing import Literal, cast

import torch
from torch import Tensor, nn

from elboroom.nets.autoregressive import Autoregressive, State, spread_uniformly
from elboroom.nets.fast import lstm
from elboroom.nets.fast.crossentropy import Head
from elboroom.nets.fast.packing import Packing, lengths_of
from elboroom.nets.mlp import beside

Cell = Literal["lstm", "gru"]
Trunk = Literal["a", "b"]
_REACH = {"a": (0.01, 0.1), "b": (0.1, 0.1)}


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
        self.given, ways = given, 2 if both else 1
        self.embedding = nn.Embedding(vocabulary, embed)
        widths = [embed] + [ways * hidden] * (layers - 1)
        self.forth = nn.ModuleList(Layer(cell, width, hidden) for width in widths)
        self.back = nn.ModuleList(Layer(cell, width, hidden) for width in widths) if both else None
        self.head = nn.Linear(ways * hidden + given, outputs, bias=trunk == "b")
        spread_uniformly(self, *_REACH[trunk])

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

    def _read(self, h: Tensor, packing: Packing, u: Tensor | None) -> Tensor:
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
        outputs: Tensor = self.head(beside(torch.cat(ends, 1), u, self.given))
        return outputs


class RecurrentDecoder(Autoregressive):
    """Words by recurrent layers. Where z (with u beside it) enters is said by `inject`, joined by "+":

    state    the first state of every layer, as the trunk has it; zero otherwise
    concat   beside every input word
    add      to every input word, through a linear layer

    With `skip` it also stands beside the input of every higher layer and beside the last state, before the softmax.
    Of no latent dimensions this is a language model: words in, zero state.
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
        self.state = nn.Linear(self.code, layers * hidden, bias=trunk == "b") if "state" in places else None
        self.head = Head(hidden + beside_later, vocabulary, bias=trunk == "b")
        spread_uniformly(self, *_REACH[trunk])

    def run(self, codes: Tensor, tokens: Tensor, packing: Packing, copies: int) -> Tensor:
        rows = codes.flatten(0, 1)  # (B K, code)
        sizes = [size * codes.shape[1] for size in packing.sizes]
        h = self.drop(self.embedding(self.hide(tokens, packing, copies)), packing, copies)  # (n, ni)
        added = None if self.added is None else self.added(rows)
        for layer, state, code in zip(self.stack, self.first(rows), self.beside(rows), strict=True):
            h = self.drop(layer(h, sizes, state, code, added), packing, copies)  # (n K, H)
            added = None
        return torch.cat([h, lstm.rows(rows, sizes)], 1) if self.skip else h

    @property
    def stack(self) -> list[Layer]:
        """The layers, from words to the softmax."""
        return cast(list[Layer], list(self.layers))

    def beside(self, rows: Tensor) -> list[Tensor | None]:
        """What stands beside the input of each layer."""
        return [rows if here else None for here in [self.concat] + [self.skip] * (len(self.layers) - 1)]

    def first(self, rows: Tensor) -> list[State]:
        """The state of every layer before the first word, from codes (N, code)."""
        zeros = [layer.zeros(len(rows), self.head.weight) for layer in self.stack]
        if self.state is None:
            return zeros
        states = []
        for made, zero in zip(self.state(rows).chunk(len(self.layers), 1), zeros, strict=True):
            if self.trunk == "a":
                states.append((torch.tanh(made), made)[: len(zero)])
            else:
                states.append((made, *zero[1:]))
        return states

    def start(self, z: Tensor, u: Tensor | None = None) -> State:
        rows = self.codes(z, u)
        return rows, *(t for state in self.first(rows) for t in state)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        rows, *memory = state
        h, after = self.embedding(tokens), [rows]
        if self.added is not None:
            h = h + self.added(rows)
        for layer, code in zip(self.stack, self.beside(rows), strict=True):
            before, memory = tuple(memory[: layer.states]), memory[layer.states :]
            now = layer.step(h, before, code)
            after += now
            h = now[0]
        return (torch.cat([h, rows], 1) if self.skip else h), tuple(after)
