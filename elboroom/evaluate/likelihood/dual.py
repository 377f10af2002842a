"""What the critic of a model says of its KL. It is less than the KL, so nothing here is a bound, and the unit says so."""

from __future__ import annotations

import torch

from elboroom.core.draw import Draw
from elboroom.evaluate.result import Result, mean
from elboroom.evaluate.split import Split
from elboroom.nets.dual import Contested
from elboroom.terms.dual import dual

UNIT = "nats, not a bound"


@torch.no_grad()
def dual_values(split: Split, particles: int = 128) -> dict[str, Result]:
    """E_q nu - E_p e^nu + 1, and the ELBO with it in place of the rate; nothing for a model without such a critic.

    A critic of z alone speaks of KL(q(z) || p), and has no ELBO.
    """
    model = split.model
    if not isinstance(model, Contested):
        return {}
    rate, nll = [], []
    for batch in split.batches(64):
        draw, joint = Draw(model, batch), model.critic.joint
        h = draw.q.features if joint else None
        z = draw.q.rsample((particles,))
        other = draw.p.sample(tuple(z.shape[:1] if draw.p.batch_shape else z.shape[:2]))
        rate.append(dual(model.critic(z, h), model.critic(other, h)).mean(0).double().cpu())
        nll.append(draw.nll.mean(0).double().cpu())
    settings = split.settings | {"particles": particles}
    if not model.critic.joint:
        return {"aggregate_rate_dual": mean(torch.cat(rate), "dual", UNIT, settings)}
    return {
        "rate_dual": mean(torch.cat(rate), "dual", UNIT, settings),
        "elbo_dual": mean(-torch.cat(rate) - torch.cat(nll), "dual", UNIT, settings),
    }
