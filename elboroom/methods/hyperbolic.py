"""VAEs whose z lives on the Poincare ball, read by a decoder through gyroplanes."""

from __future__ import annotations

from elboroom.build.parts import Parts
from elboroom.build.pseudo import pseudo_inputs
from elboroom.build.registry import NonNegative, Positive, Start, Warmup, by_data, method
from elboroom.core.method import Method, adam, descend
from elboroom.core.problem import Problem
from elboroom.families.pseudo import VampPrior
from elboroom.methods.implicit import CriticLoss, CriticTurns, Generator, Nu, against, chosen, sampler, with_critic
from elboroom.terms.dual import dual_rate
from elboroom.terms.evidence import kl, nll
from elboroom.terms.penalties import place
from elboroom.weights.schedules import Linear

PURPOSE = "codes on a curved space: trees and hierarchies"
SHOWN_ON = "sentences"  # the data of its examples

POSTERIOR = {"linear": "wrapped-linear", "mlp": "wrapped-implicit"}
PSEUDO = 500  # pseudo-inputs, unless said; a step reads no more of them than a batch has rows


@method(
    "p-vae", "nll + w(t) kl, q(z|x) and p(z) wrapped normals, kl sampled", paper="Mathieu et al. 2019, Poincare VAEs"
)
def p_vae(parts: Parts, warmup: Warmup = 0.25, start: Start = 0.1) -> Method:
    """A VAE on the Poincare ball: wrapped normals for posterior and prior, gyroplanes before the decoder (--curvature).

    The prior is exp_0(v), v from N(0, I). The cited code divides v by lambda_0 = 2 first, so that its curvature c is c / 4
    here: a --curvature of 0.25 is its 1, on a ball that is twice as large.

    Codes, reconstructions and interpolations start at the centre of q(z|x). In high dimension samples of a wide q lie far
    from its centre, so the decoder is never trained there and may decode the centre, though no draw, to an empty sentence.
    """
    return descend(parts.vae("wrapped"), nll() + Linear(start, 1, parts.span(warmup)) * kl())


@method("apo-vae", "nll + w(t) (E_q nu(x, z) - E_p e^nu(x, z) + 1) on the ball, not a bound", paper="Dai et al. 2021")
def apo_vae(
    parts: Parts,
    generator: Generator = by_data("mlp", tokens="linear"),
    warmup: Warmup = 0.25,
    start: Start = 0.1,
    critic_loss: CriticLoss = "auto",
    critic_lr: Positive = 1e-4,
    critic_turns: CriticTurns = 5,
) -> Method:
    """The implicit VAE on the Poincare ball: a generator's draws wrapped around a centre that the encoder names.

    z is v = G(x, noise) at the origin, carried along the ball to the centre F(x). nu is a critic, a net that reads log_0(z)
    beside features of x and is taught as that of implicit-vae is; its dual value is at most the KL.

    Codes, reconstructions and interpolations start at the centre of q(z|x). In high dimension samples of a wide q lie far
    from its centre, so the decoder is never trained there and may decode the centre, though no draw, to an empty sentence.

    Where the generator is linear q(z|x) is explicit, and its rate and likelihood are measured beside the dual one.

    generator: of v: linear, or mlp, which leaves q(z|x) without a density
    critic_lr: learning rate of nu
    """
    model = sampler(parts, POSTERIOR, generator)
    loss = nll() + Linear(start, 1, parts.span(warmup)) * dual_rate(model.critic)
    return against(parts, model, loss, Nu(critic_loss, critic_lr, critic_turns))


@method(
    "apo-vae-vamp",
    "nll + w(t) (E_q nu - E_p e^nu + 1) + anchor (|log_0(mu)|^2 + |E v|^2) on the ball, p = 1/K sum_k q(z|s_k)",
    paper="Dai et al. 2021",
)
def apo_vae_vamp(
    parts: Parts,
    generator: Generator = "linear",
    warmup: Warmup = 0.25,
    start: Start = 0.1,
    critic_loss: CriticLoss = "auto",
    critic_lr: Positive = 1e-4,
    pseudo_lr: Positive = 1e-5,
    critic_turns: CriticTurns = 5,
    anchor: NonNegative = 0.01,
) -> Method:
    """APo-VAE whose prior is the posterior of K pseudo-inputs, which are trained together with nu, on its loss; not a bound.

    There are 500 of them unless --pseudo-inputs says otherwise, and they start as training examples; a step reads as many of
    them as a batch has rows. Two things are not as published. The encoder learns through the prior too, which is made of it.
    And an anchor holds q(z|x) in place, since q and a prior made of q may move together at no cost: without it both are at
    the edge of the ball after fifty steps on captions, where distances lose numerical precision.

    A generator that is linear keeps the density of q(z|x), and so that of the prior: with the other one there is no
    likelihood to be measured.

    generator: of v: linear, or mlp
    critic_lr: learning rate of nu
    pseudo_lr: learning rate of the pseudo-inputs; keep it small: they are pushed away from q(z) without limit
    critic_turns: steps of nu and of the pseudo-inputs for one of the model
    anchor: weight of |log_0(mu)|^2 + |E v|^2, mu the centre of q(z|x) and v the draws around it (published: none)
    """
    own = chosen(parts, POSTERIOR, generator)
    if (prior := parts.option("prior")) != "auto":
        raise Problem(f"the prior of this method is its pseudo-inputs; remove --prior {prior}")
    vae = parts.vae(own, fixed_prior=True)
    pseudo = pseudo_inputs(parts, vae.posterior.net, parts.option("pseudo_inputs") or PSEUDO)  # type: ignore[arg-type]
    model = with_critic(parts, vae.with_prior(VampPrior(vae.posterior, pseudo, parts.latent)), own)
    loss = nll() + Linear(start, 1, parts.span(warmup)) * dual_rate(model.critic, prior=True) + anchor * place()
    return against(parts, model, loss, Nu(critic_loss, critic_lr, critic_turns), adam(pseudo_lr))
