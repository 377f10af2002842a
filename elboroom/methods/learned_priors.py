"""Methods whose prior is not N(0, I): the sphere, a mixture, the encoder's own posteriors, a flow."""

from __future__ import annotations

from elboroom.core.method import Method, descend
from elboroom.core.objective import Objective, Term, logged
from elboroom.methods.parts import Parts
from elboroom.methods.registry import Count, NonNegative, method
from elboroom.terms import floors
from elboroom.terms.evidence import iw_bound, kl, nll


def _with_rate(objective: Term | Objective, free_bits: float) -> Objective:
    """The objective and the rate, or what of its mean exceeds a floor, with the rate itself logged beside it."""
    if not free_bits:
        return objective + kl()
    return objective + floors.free_bits(kl(), free_bits, unit="total", reduce="batch") + logged(kl())


@method("vmf-vae", "nll + kl, q(z|x) von Mises-Fisher around f(x) / |f(x)|, p(z) uniform", paper="Xu & Durrett 2018")
def vmf_vae(parts: Parts, free_bits: NonNegative = 0.0) -> Method:
    """A VAE on the sphere, whose rate is a constant that --kappa sets and that cannot fall to zero.

    It can still carry nothing: one direction for all x has the same rate. Look at the mutual information.

    --posterior power-spherical has the same shape without Bessel functions or rejections, and at the same kappa about two
    thirds of the rate. (kappa, d) of 35, 10 is 6.9 nats, or 4.8; 35, 32 is 8.6, or 5.3; 13, 32 is 2.2, or 1.5. With
    --kappa-learned kappa depends on x, and then the rate can fall. The published
    1e-4 (|f(x)| - 1)^2 is left out: no likelihood depends on |f(x)|.

    free_bits: rate that costs nothing, in nats, held against the mean of the batch; with --kappa-learned alone
    """
    return descend(parts.vae("vmf", prior="sphere"), _with_rate(nll(), free_bits))


@method("mog-vae", "nll + kl, p(z) = sum_k w_k N(m_k, s_k^2) learned", paper="after Tomczak & Welling 2018, Sec. 3")
def mog_vae(parts: Parts, free_bits: NonNegative = 0.0) -> Method:
    """A VAE whose prior is a mixture of Gaussians (--components), learned with the rest; its rate is sampled.

    free_bits: rate that costs nothing, in nats, held against the mean of the batch; while it is below, nothing moves the prior
    """
    return descend(parts.vae(prior="mog"), _with_rate(nll(), free_bits))


@method("vamp-vae", "nll + kl, p(z) = 1/K sum_k q(z|s_k)", paper="Tomczak & Welling 2018, Eq. 9")
def vamp_vae(parts: Parts, free_bits: NonNegative = 0.0) -> Method:
    """A VAE whose prior is the mean of the posteriors of pseudo-inputs (--pseudo-inputs), read by its own encoder.

    Pseudo-inputs are learned and start as training examples: images in pixels, held off 0 and 1 by 0.01, sentences, the
    first 40 words of each, as the word vectors of the day and what is learned beside these. Every step reads all of them,
    and the encoder learns from that too.

    free_bits: rate that costs nothing, in nats, held against the mean of the batch; while it is below, nothing moves the prior
    """
    return descend(parts.vae(prior="vamp"), _with_rate(nll(), free_bits))


@method(
    "flow-prior",
    "-log 1/n sum_k p(x, z_k) / q(z_k|x) + nll + kl, p(z) a real-NVP",
    paper="Ding & Gimpel 2021, Sec. 3",
)
def flow_prior(parts: Parts, samples: Count = 5, free_bits: NonNegative = 0.0) -> Method:
    """A VAE whose prior is N(0, I) through affine couplings (--flow-layers), by two bounds at once on the same samples.

    The couplings start as the identity. The loss is near twice the negative ELBO.

    samples: draws of z for each example, n, in both bounds
    free_bits: rate of the second bound that costs nothing, in nats, held against the mean of the batch; the first has none
    """
    return descend(parts.vae(prior="flow"), _with_rate(iw_bound(samples) + nll(), free_bits))
