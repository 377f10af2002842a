"""Engines: what does the runs of a study, on this machine or on a Ray cluster."""
