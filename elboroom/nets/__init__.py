"""Networks by name: encoders, decoders and the critic."""

from elboroom.nets.catalogue import NETS, critic, decoder, encoder

__all__ = ["NETS", "critic", "decoder", "encoder"]
