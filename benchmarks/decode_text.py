"""Sentences written word by word: what a decoder keeps between two words against the state of a recurrent one."""

from __future__ import annotations

from collections.abc import Callable

import torch

from benchmarks.measure import Result, in_turns, measurement, timed
from benchmarks.text import EMBED, HIDDEN, LATENT, VOCABULARY
from elboroom.core.vocabulary import END
from elboroom.families.decoding import Greedy
from elboroom.families.tokens import Tokens
from elboroom.nets import sentences

SENTENCES, LONGEST = 100, 30


def written(net: str) -> Callable[[], None]:
    """Sentences from a z each, greedy and all of one length, by a decoder of this net."""
    torch.manual_seed(0)
    decoder = sentences.decoder(net, VOCABULARY, LATENT, embed=EMBED, hidden=HIDDEN).eval()
    z = torch.randn(SENTENCES, LATENT)
    decoder.head.bias = torch.nn.Parameter(torch.zeros(VOCABULARY).index_fill(0, torch.tensor(END), -1e9))

    def write() -> None:
        with torch.inference_mode():
            ids = Tokens(decoder, z.unsqueeze(0)).decode(Greedy(), LONGEST)
        assert ids.shape[-1] > LONGEST, "all sentences have this length"

    return write


@measurement("decode-dilated")
def decode_dilated() -> Result:
    """100 sentences of 30 words by dilated convolutions that keep their past, greedy, 256/256/32; against an LSTM."""
    seconds = in_turns({net: timed(written(net)) for net in ("dilated", "lstm")}, repetitions=7)
    value, reference = (SENTENCES * LONGEST / seconds[net] for net in ("dilated", "lstm"))
    return Result(value, "words/s", reference, value / reference, target=1.0)
