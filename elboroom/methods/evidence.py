"""Methods that weigh distortion against rate: the autoencoder, the VAE, and every schedule of beta."""

from __future__ import annotations

from typing import Literal

from elboroom.build.parts import Parts
from elboroom.build.registry import Count, NonNegative, Positive, Span, Warmup, by_data, method
from elboroom.core.method import Method, descend
from elboroom.terms.evidence import iw_bound, kl, nll
from elboroom.weights.controllers import PI, Hold, MinimumRate
from elboroom.weights.schedules import Cyclical, Geometric, Linear, Sigmoid, Staircase

PURPOSE = "the bound itself: how much reconstruction for how simple a code"


@method("ae", "nll", paper="Hinton & Salakhutdinov 2006", autoencoder=True)
def ae(parts: Parts) -> Method:
    """A deterministic autoencoder: no rate, no prior, no density."""
    return descend(parts.vae("point", prior="none"), nll())


@method("vae", "nll + kl", paper="Kingma & Welling 2014, Eq. 3")
def vae(parts: Parts) -> Method:
    """The negative evidence lower bound."""
    return descend(parts.vae(), nll() + kl())


@method("beta-vae", "nll + beta kl", paper="Higgins et al. 2017, Eq. 4")
def beta_vae(parts: Parts, beta: NonNegative = by_data(4.0, tokens=0.4)) -> Method:
    """A VAE whose rate costs beta times as much.

    beta: price of a nat of rate; 1 is the VAE
    """
    return descend(parts.vae(fixed_prior=beta == 0), nll() + beta * kl())


@method("beta-vae-capacity", "nll + gamma |mean kl - C(t)|", paper="Burgess et al. 2018, Eq. 8")
def beta_vae_capacity(
    parts: Parts, gamma: NonNegative = 1000.0, capacity: NonNegative = 25.0, ramp: Span = 1 / 3
) -> Method:
    """Holds the rate at a capacity C that rises from 0 over the first part of the run.

    The distance is that of the batch mean, not the mean of distances, and C counts optimiser steps.

    gamma: price of a nat of distance from the capacity
    capacity: C at the end of the ramp, in nats
    ramp: how long C rises: up to 1 a fraction of the run, above it steps (published: 100,000)
    """
    return descend(parts.vae(), nll() + Hold(Linear(0, capacity, parts.span(ramp)), gamma) * kl())


@method("beta-vae-decreasing", "nll + beta(t) kl, beta falling", paper="Yu 2023")
def beta_vae_decreasing(
    parts: Parts,
    start: Positive = 100.0,
    end: Positive = 1.0,
    ramp: Span = 2 / 3,
    shape: Literal["geometric", "linear"] = "geometric",
) -> Method:
    """Lowers beta slowly, so that the strongest factor passes first.

    start: beta at first
    end: beta at the end of the ramp
    ramp: how long it falls: up to 1 a fraction of the run, above it steps
    shape: by a constant factor or by a constant amount a step
    """
    fall = {"geometric": Geometric, "linear": Linear}[shape]
    return descend(parts.vae(), nll() + fall(start, end, parts.span(ramp)) * kl())


@method("vae-annealed", "nll + w(t) kl, w rising from 0 to 1", paper="Bowman et al. 2016")
def vae_annealed(
    parts: Parts,
    warmup: Warmup = by_data(0.25, tokens=0.9),
    start: NonNegative = by_data(0.0, tokens=0.1),
    shape: Literal["linear", "sigmoid"] = "linear",
) -> Method:
    """A VAE whose rate is cheap at first and costs its full price after a warm-up.

    start: weight at first, if linear
    shape: of the rise; the sigmoid starts at 0.0067
    """
    steps = parts.span(warmup)
    return descend(parts.vae(), nll() + (Linear(start, 1, steps) if shape == "linear" else Sigmoid(steps)) * kl())


@method("vae-cyclical", "nll + w(t) kl, w rising from 0 to 1 in each cycle", paper="Fu et al. 2019, Eq. 6")
def vae_cyclical(parts: Parts, cycles: Count = 4, ramp: Positive = 0.5) -> Method:
    """A VAE whose rate is annealed several times.

    cycles: how many in the run
    ramp: share of a cycle in which the weight rises
    """
    return descend(parts.vae(), nll() + Cyclical(parts.steps / cycles, ramp) * kl())


@method("control-vae", "nll + beta(t) kl, beta by PI control of kl", paper="Shao et al. 2020, Alg. 1")
def control_vae(
    parts: Parts,
    target: Positive = 18.0,
    kp: NonNegative = 0.01,
    ki: NonNegative = by_data(1e-3, tokens=1e-4),
    low: NonNegative = by_data(1.0, tokens=0.0),
    high: Positive = by_data(100.0, tokens=1.0),
    ramp: Span = by_data(0.4, tokens=0.0),
) -> Method:
    """A beta-VAE whose beta a PI controller moves until kl is at its target.

    The integral stops only while beta is out of range and the error would push it further out, so it always comes back.

    target: rate to reach, in nats
    kp: gain of the proportional part
    ki: gain of the integral
    low: least beta; a target above the rate at this beta cannot be reached
    high: largest beta
    ramp: how long the target rises from 0.5 in steps of 0.15: up to 1 a fraction of the run, above it steps; 0 fixes it
    """
    stairs = max(1, round(parts.span(ramp) * 0.15 / max(target - 0.5, 0.15)))
    goal = Staircase(0.5, target, 0.15, stairs) if ramp and target > 0.5 else target
    return descend(parts.vae(), nll() + PI(goal, kp, ki, low, high) * kl())


@method("mdr-vae", "nll + kl + u (rate - kl), u >= 0", paper="Pelsmaeker & Aziz 2020")
def mdr_vae(
    parts: Parts, rate: Positive = by_data(18.0, tokens=5.0), step: Positive = 1e-3, high: Positive = 1.0
) -> Method:
    """A VAE whose rate a Lagrange multiplier u keeps at or above a minimum.

    rate: minimum desired rate, in nats
    step: how far u moves for a nat of difference, once an update
    high: largest u; above 1 it would reward rate
    """
    return descend(parts.vae(), nll() + MinimumRate(rate, step, high) * kl())


@method("iwae", "-log 1/K sum_k p(x, z_k) / q(z_k|x)", paper="Burda et al. 2016, Eq. 8")
def iwae(parts: Parts, samples: Count = 5) -> Method:
    """The importance-weighted bound, which tightens with the number of samples.

    samples: draws of z for each example, K
    """
    return descend(parts.vae(), iw_bound(samples))
