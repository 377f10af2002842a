"""Ratios against named references, both sides measured in one run on a machine that does nothing else."""
