"""Networks by name: encoders, decoders and the critic."""

from elboroom.nets.catalogue import LINEAR, NETS, critic, decoder, encoder

__all__ = ["LINEAR", "NETS", "critic", "decoder", "encoder"]
