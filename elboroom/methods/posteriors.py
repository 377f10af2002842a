"""Methods with posteriors beyond the diagonal Gaussian: a flow, and a sampler without a density."""

from __future__ import annotations

from elboroom.build.parts import Parts
from elboroom.build.registry import Count, CriticLR, method
from elboroom.core.method import Group, Method, Player, adam, descend, times
from elboroom.terms.adversarial import joint_critic, joint_ratio
from elboroom.terms.evidence import kl, nll


@method("vae-iaf", "nll + kl, q(z|x) an inverse autoregressive flow, kl sampled", paper="Kingma et al. 2016, Alg. 1")
def vae_iaf(parts: Parts) -> Method:
    """A VAE whose posterior is a Gaussian pushed through gated autoregressive steps (--flow-steps)."""
    return descend(parts.vae("iaf"), nll() + kl())


@method("avb", "nll + E_q T(x, z), T by a critic of (x, z)", paper="Mescheder et al. 2017, Alg. 1 and Sec. 3.3")
def avb(parts: Parts, adaptive: bool = True, critic_lr: CriticLR = 1e-4, critic_turns: Count = 1) -> Method:
    """A VAE whose posterior is any sampler z = G(x, noise), its KL read off a critic.

    The critic's value is no bound of the KL, so a run has no ELBO. With adaptive contrast the critic tells q(z|x) from the
    Gaussian of its own moments instead of from the prior, and the rest of the KL is added at the same draw.

    adaptive: contrast with the moments of q(z|x), not with the prior
    critic_turns: steps of the critic for one of the model
    """
    model, critic = parts.vae("implicit", u="seen" if adaptive else "unseen"), parts.joint_critic()
    return Method(
        model,
        players=[
            Player(nll() + joint_ratio(critic, adaptive), moves="vae"),
            Player(joint_critic(critic, adaptive), moves="critic", turns=times(critic_turns), rival=True),
        ],
        vae=Group(model),
        critic=Group(critic, adam(critic_lr, betas=(0.5, 0.9))),
    )
