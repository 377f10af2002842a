"""Paths of codes: from which examples of a base a map learns, to where, and against which critic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import nn

from elboroom.build.base import Base
from elboroom.build.parts import Parts
from elboroom.build.registry import refuse_idle
from elboroom.core.freeze import thaw
from elboroom.core.method import Group, Method, Player, adam
from elboroom.core.model import LatentModel
from elboroom.core.objective import Objective, Term, logged
from elboroom.core.problem import Problem
from elboroom.data.sequences import CONTEXT, TARGET
from elboroom.families.gaussian import NoLatent, StandardNormal
from elboroom.families.mapped import ContextCode, FromContext, Mapped
from elboroom.families.reading import OfContext
from elboroom.nets import critic
from elboroom.nets.mapping import Mapping, mapping
from elboroom.terms.maps import Codes, Rows, among, every, map_critic, mapped, natural, of_context, unmapped

WIDTH, DEPTH = 300, 2  # of the critic (Mai et al. 2020)


@dataclass(frozen=True)
class Path:
    """A map in its model: the codes that it makes, those that they should be like, and which examples are which."""

    model: LatentModel
    mapping: nn.Module
    latent: int
    codes: Codes
    real: Codes
    moved: Rows = every
    exemplars: Rows = every

    def learnt(self, loss: Objective, judged: Term, adversary: float, critic_lr: float) -> Method:
        """First the critic learns to tell the codes from real ones; then the map to descend the loss, and to deceive it."""
        judge = critic(self.latent, 1, WIDTH, DEPTH)
        guess = map_critic(judge, self.codes, self.real, self.moved, self.exemplars)
        against = Group(judge, adam(critic_lr))
        if not list(self.mapping.parameters()):
            if not adversary:
                raise Problem(
                    "--mapping identity learns nothing without a critic, so --adversary 0 leaves nothing to train"
                )
            alone = Player(guess + logged(judged), "critic")
            return Method(self.model, [alone], critic=against).judged(judged)
        if not adversary:
            return Method(self.model, [Player(loss, "map")], map=Group(self.mapping)).judged(judged)
        whole = loss + adversary * among(self.moved, natural(judge, self.codes))
        players = [Player(guess, "critic", rival=True), Player(whole, "map")]
        return Method(self.model, players, critic=against, map=Group(self.mapping)).judged(judged)


def restyling(base: Base, mapping: nn.Module, moved: Rows, exemplars: Rows) -> Path:
    """From examples that have not the value that is wanted to codes like those that have it."""
    model = base.model.with_posterior(Mapped(base.codes, mapping))
    return Path(model, mapping, base.latent, mapped, unmapped, moved, exemplars)


def pairing(parts: Parts, base: Base, mapping: nn.Module) -> Path:
    """From x to its paired target, or from a context to its x."""
    if TARGET in parts.about.sequences:
        parts.require_targets()
        model = base.model.with_posterior(Mapped(base.codes, mapping)).with_heads(targets=base.targets)
        return Path(model, mapping, base.latent, mapped, lambda draw: base.targets(draw.batch).mean)
    if CONTEXT in parts.about.sequences:
        model = answering(parts, base.contexts, mapping, base.model.likelihood).with_heads(targets=base.codes)
        return Path(model, mapping, base.latent, of_context, lambda draw: base.codes(draw.batch).mean)
    raise Problem(
        f"{parts.about.name} has no pairs; say the value that examples are to have with --to, or which column holds the "
        "targets with --target-column"
    )


def answering(parts: Parts, encoder: nn.Module, mapping: nn.Module, likelihood: nn.Module) -> LatentModel:
    """A model without z that encodes a context, maps its code and decodes that."""
    about = parts.about.sequences[CONTEXT]
    if not about.shared:
        raise Problem("the contexts have tokens of their own, which the base does not read; remove --own-vocabulary")
    if about.turns > 1:
        raise Problem("the base reads one sentence, and the contexts of this data have several turns")
    if parts.choices.given_names:
        raise Problem("the base is given labels, which a context has not; use a base without --given")
    parts.used.add(CONTEXT)
    conditioner = ContextCode(encoder, mapping)
    return LatentModel(NoLatent(), StandardNormal(0), FromContext(likelihood), conditioner=conditioner)


Start = Literal["auto", "scratch", "pretrained", "mapped", "frozen"]


def end_to_end(parts: Parts, start: Start, kind: Mapping) -> LatentModel:
    """An autoencoder as a model of answers, to be trained end to end (S2S-Scratch, -Pretrain, -MLP, -Freeze of Mai et al.)."""
    base = parts.require_base()
    if start not in ("mapped", "frozen"):
        refuse_idle("without a map: use --start mapped or frozen, or remove it", mapping=(kind, "mlp"))
    if start == "frozen" and kind == "identity":
        raise Problem("--mapping identity on a frozen base leaves nothing to train; use offset, resnet or mlp")
    between = mapping(kind if start in ("mapped", "frozen") else "identity", base.latent)
    if start == "frozen":
        return answering(parts, base.contexts, between, base.model.likelihood)
    if start == "scratch":
        fresh = parts.vae("point", prior="none")
        return answering(parts, OfContext(fresh.posterior), between, fresh.likelihood)
    return answering(parts, OfContext(thaw(base.model.posterior)), between, thaw(base.model.likelihood))
