"""Methods whose prior is not N(0, I): the sphere, a mixture, the encoder's own posteriors, a flow."""

from __future__ import annotations

from elboroom.build.parts import Parts
from elboroom.build.registry import Count, FreeBits, method
from elboroom.core.method import Method, descend
from elboroom.core.objective import Objective, Term, logged
from elboroom.terms import floors
from elboroom.terms.evidence import iw_bound, kl, nll

PURPOSE = "a prior that fits the codes, or another space"


def _with_rate(objective: Term | Objective, free_bits: float) -> Objective:
    """The objective and the rate, or what of its mean exceeds a floor, with the rate itself logged beside it."""
    if not free_bits:
        return objective + kl()
    return objective + floors.free_bits(kl(), free_bits, unit="total", reduce="batch") + logged(kl())


@method("vmf-vae", "nll + kl, q(z|x) von Mises-Fisher around f(x) / |f(x)|, p(z) uniform", paper="Xu & Durrett 2018")
def vmf_vae(parts: Parts, free_bits: FreeBits = 0.0) -> Method:
    """A VAE on the sphere, whose rate is a constant that --kappa sets and that cannot fall to zero.

    It can still carry nothing: one direction for all x has the same rate. Look at the mutual information.

    --posterior power-spherical has the same shape without Bessel functions or rejections, and at the same kappa about two
    thirds of the rate. Rates in nats, of vmf and of power-spherical:

    - kappa 35 in 10 dimensions: 6.9 and 4.8
    - kappa 35 in 32 dimensions: 8.6 and 5.3
    - kappa 13 in 32 dimensions: 2.2 and 1.5

    With --kappa-learned kappa depends on x, and then the rate can fall. The published 1e-4 (|f(x)| - 1)^2 is left out: no
    likelihood depends on |f(x)|.

    free_bits: KL floor in nats, applied to the batch mean; only with --kappa-learned
    """
    return descend(parts.vae("vmf", prior="sphere"), _with_rate(nll(), free_bits))


@method("mog-vae", "nll + kl, p(z) = sum_k w_k N(m_k, s_k^2) learned", paper="after Tomczak & Welling 2018, Sec. 3")
def mog_vae(parts: Parts, free_bits: FreeBits = 0.0) -> Method:
    """A VAE whose prior is a mixture of Gaussians (--components), learned with the rest; its rate is sampled."""
    return descend(parts.vae(prior="mog"), _with_rate(nll(), free_bits))


@method("vamp-vae", "nll + kl, p(z) = 1/K sum_k q(z|s_k)", paper="Tomczak & Welling 2018, Eq. 9")
def vamp_vae(parts: Parts, free_bits: FreeBits = 0.0) -> Method:
    """A VAE whose prior is the mean of the posteriors of pseudo-inputs (--pseudo-inputs), read by its own encoder.

    Pseudo-inputs are learned and start as training examples: images in pixels, clamped to [0.01, 0.99]; sentences are the
    encoder's current embeddings plus a learned offset, of their first 40 tokens, `<s>` and `</s>` included. Every step
    reads all of them, and the encoder learns from that too.
    """
    return descend(parts.vae(prior="vamp"), _with_rate(nll(), free_bits))


@method(
    "flow-prior",
    "-log 1/K sum_k p(x, z_k) / q(z_k|x) + nll + kl, p(z) a real-NVP",
    paper="Ding & Gimpel 2021, Sec. 3",
)
def flow_prior(parts: Parts, samples: Count = 5, free_bits: FreeBits = 0.0) -> Method:
    """A VAE whose prior is N(0, I) through affine couplings (--flow-layers), by two bounds at once on the same samples.

    The couplings start as the identity. The loss is near twice the negative ELBO.

    samples: draws of z for each example, K, in both bounds
    free_bits: KL floor of the second bound in nats, applied to the batch mean; the first bound has none
    """
    return descend(parts.vae(prior="flow"), _with_rate(iw_bound(samples) + nll(), free_bits))
