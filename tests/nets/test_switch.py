"""One decoder a label."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from elboroom.core.problem import Problem
from elboroom.families.decoding import Beam, Greedy
from elboroom.nets import sentences
from elboroom.nets.switch import SwitchedNet, SwitchedWriter

HOT = torch.eye(2)[[0, 1, 1, 0]]
X = torch.tensor([[1, 5, 6, 2, 0], [1, 7, 2, 0, 0], [1, 5, 5, 5, 2], [1, 9, 2, 0, 0]])


class Times(nn.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, z: torch.Tensor, u: torch.Tensor | None = None) -> torch.Tensor:
        assert u is None
        return self.factor * z


def writers() -> list[nn.Module]:
    return [sentences.decoder("lstm", 12, 3, embed=4, hidden=5).eval() for _ in range(2)]


def test_each_row_is_decoded_by_the_net_of_its_label() -> None:
    made = SwitchedNet([Times(2.0), Times(3.0)])(torch.ones(4, 1), HOT)
    assert made.flatten().tolist() == [2, 3, 3, 2]
    with pytest.raises(Problem, match="a decoder for each of 2 labels"):
        SwitchedNet([Times(2.0), Times(3.0)])(torch.ones(4, 1))


def test_each_sentence_has_the_probability_that_its_writer_gives_it() -> None:
    nets, z = writers(), torch.randn(2, 4, 3)
    both = [net.log_prob(z, X, None) for net in nets]
    found = SwitchedWriter(nets).log_prob(z, X, HOT)
    assert found.shape == (2, 4)
    torch.testing.assert_close(found, torch.where(HOT[:, 0] == 1, both[0], both[1]))


@pytest.mark.parametrize("strategy", [Greedy(), Beam(3)])
def test_each_sentence_is_written_by_its_writer(strategy: Greedy | Beam) -> None:
    nets, z = writers(), torch.randn(4, 3)
    found = strategy.write(SwitchedWriter(nets), z, HOT, 6)
    for row, net in enumerate([nets[0], nets[1], nets[1], nets[0]]):
        alone = strategy.write(net, z[row : row + 1], None, 6)[0]  # type: ignore[arg-type]
        assert found[row, : len(alone)].tolist() == alone.tolist()
