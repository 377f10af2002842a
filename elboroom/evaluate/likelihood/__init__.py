"""What every model is measured by: the ELBO and its parts, IW-K, active units, mutual information."""

from elboroom.evaluate.likelihood.measure import evaluate, evidence, log_likelihood

__all__ = ["evaluate", "evidence", "log_likelihood"]
