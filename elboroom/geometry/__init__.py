"""Geometry: the Poincare ball, paths through a latent space, and the spaces that codes live in."""
