"""Methods with posteriors beyond the diagonal Gaussian: a flow, and a sampler without a density."""

from __future__ import annotations

from elboroom.build.game import Critic, game
from elboroom.build.parts import Parts
from elboroom.build.registry import Count, CriticLR, method
from elboroom.core.method import Method, descend
from elboroom.terms.adversarial import joint_critic, joint_ratio
from elboroom.terms.evidence import kl, nll

PURPOSE = "a q(z|x) that is no Gaussian"


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
    model, critic = parts.vae("implicit", fixed_prior=not adaptive), parts.joint_critic()
    rival = Critic(critic, joint_critic(critic, adaptive), critic_lr, turns=critic_turns)
    return game(model, nll() + joint_ratio(critic, adaptive), rival)
