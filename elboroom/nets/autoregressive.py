"""Decoders of sentences: every word from the code z and the words before it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TypeVar

import torch
from torch import Tensor, nn

from elboroom.core import distributed
from elboroom.core.batch import Memory
from elboroom.core.problem import Problem
from elboroom.core.vocabulary import START, UNK
from elboroom.nets.dropout import kept, longest
from elboroom.nets.fast.crossentropy import Head
from elboroom.nets.fast.packing import Packing, lengths_of
from elboroom.nets.mlp import beside

State = tuple[Tensor, ...]  # what decoding remembers, one row a sentence, so that beams can be gathered
Net = TypeVar("Net", bound=nn.Module)


class Autoregressive(nn.Module, ABC):
    """p(x|z,u) = prod_t softmax(head(h_t))_{x_t}, h_t a function of z, u and x_<t, and of a memory if it `attends`."""

    head: Head
    attends = False  # whether it looks at the memory of a context

    def __init__(self, latent: int, given: int, dropout: float, word_dropout: float) -> None:
        super().__init__()
        self.latent, self.given = latent, given
        self.dropout, self.word_dropout = dropout, word_dropout

    @property
    def code(self) -> int:
        """The width of z and u side by side."""
        return self.latent + self.given

    @property
    def noisy(self) -> bool:
        """Whether two runs on the same input differ."""
        return self.training and (self.dropout > 0 or self.word_dropout > 0)

    @abstractmethod
    def run(self, codes: Tensor, tokens: Tensor, packing: Packing, copies: int, memory: Memory | None = None) -> Tensor:
        """h_t of K copies of every sentence, each with a code of its own, word by word.

        codes (B, K, code) and memory in the order of the packing, tokens (n,) -> (n K, H'). Noise is drawn for a batch of
        which the B sentences are `copies` repetitions.
        """

    @abstractmethod
    def start(self, z: Tensor, u: Tensor | None = None, memory: Memory | None = None) -> State:
        """Before the first word: (N, latent) -> tensors of N rows, what the memory says among them."""

    @abstractmethod
    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """One more word each: (N,) -> h of what comes next, (N, H')."""

    def codes(self, z: Tensor, u: Tensor | None) -> Tensor:
        """z with u beside it, (N, code)."""
        if z.shape[-1] != self.latent:
            raise Problem(f"this decoder takes codes of {self.latent} dimensions, not {z.shape[-1]}")
        return beside(z, u, self.given)

    def require_memory(self, memory: Memory | None) -> None:
        """Refuses to be without a memory where it attends to one."""
        if self.attends and memory is None:
            raise Problem("this decoder attends to a context, and there is none")

    def hidden(self, z: Tensor, x_in: Tensor, u: Tensor | None = None, memory: Memory | None = None) -> Tensor:
        """h_t after every word of x_in, teacher forcing: (N, latent), (N, T) -> (N, T, H'); zeros after the end."""
        packing = Packing.of(lengths_of(x_in), x_in.shape[1])
        codes = self.codes(z, u)[packing.order].unsqueeze(1)
        memory = None if memory is None else memory.of(packing.order)
        h = packing.spread(self.run(codes, packing.take(x_in), packing, 1, memory))
        return nn.functional.pad(h, (0, 0, 0, x_in.shape[1] - h.shape[1]))

    def log_prob(self, z: Tensor, x: Tensor, u: Tensor | None = None, memory: Memory | None = None) -> Tensor:
        """log p(x|z,u), summed over the words and </s>: (K, B, latent), (B, L) -> (K, B)."""
        copies, rows = z.shape[:2]
        u = None if u is None else u.expand(copies, *u.shape).flatten(0, 1)
        codes = self.codes(z.flatten(0, 1), u)  # (K B, code)
        if self.noisy:  # every copy has noise of its own: to the net they are sentences like any other
            x, repeats, each = x.repeat(copies, 1), copies, codes.unsqueeze(1)
            memory = None if memory is None else memory.repeated(copies)
        else:
            repeats, each = 1, codes.view(copies, rows, self.code).transpose(0, 1)
        packing = Packing.of(lengths_of(x) - 1, x.shape[1] - 1)
        memory = None if memory is None else memory.of(packing.order)
        h = self.run(each[packing.order], packing.take(x[:, :-1]), packing, repeats, memory)
        targets = packing.take(x[:, 1:])  # (n,)
        if len(h) > len(targets):
            targets = targets.repeat_interleave(copies)
        found = self.head.log_prob(h, targets).view(packing.count, -1)
        return packing.total(found).view(copies, rows) if self.noisy else packing.total(found).T

    def laid_out(self, tokens: Tensor, packing: Packing, copies: int) -> Tensor:
        """The input words as a padded batch, pads behind them, some hidden: (n,) -> (B, T), in the order of the packing."""
        length = packing.width if self.noisy else len(packing.sizes)  # noise has one shape in all parts of a batch
        ids = tokens.new_zeros(packing.sizes[0], length)
        ids[packing.place, packing.step] = self.hide(tokens, packing, copies)
        return ids

    @staticmethod
    def taken(h: Tensor, packing: Packing, each: int) -> Tensor:
        """The words of a padded batch of `each` copies of every sentence: (B K, T, H) -> (n K, H)."""
        return h.view(-1, each, *h.shape[1:])[packing.place, :, packing.step].flatten(0, 1)

    def hide(self, tokens: Tensor, packing: Packing, copies: int) -> Tensor:
        """Word dropout: inputs are <unk> with this probability, the first never: (n,) -> (n,)."""
        if not (self.training and self.word_dropout):
            return tokens
        rows, like = packing.sizes[0] // copies, self.head.weight
        noise = distributed.uniform((copies, rows, longest(packing.width, like)), like, 1).flatten(0, 1)
        hidden = (packing.take(noise) < self.word_dropout) & (tokens != START)
        return torch.where(hidden, UNK, tokens)

    def drop(self, h: Tensor, packing: Packing, copies: int) -> Tensor:
        """Dropout of features word by word: (n, F) -> (n, F)."""
        if not (self.training and self.dropout):
            return h
        rows = packing.sizes[0] // copies
        return h * kept(rows, packing.width, h.shape[1], self.dropout, h, copies, packing.take)


def spread_uniformly(net: Net, width: float, embeddings: float) -> Net:
    """The net with all its weights and biases uniform on +-width, those of word embeddings on +-embeddings."""
    for layer in net.modules():
        reach = embeddings if isinstance(layer, nn.Embedding) else width
        for weight in layer.parameters(recurse=False):
            nn.init.uniform_(weight, -reach, reach)
    return net
