"""What every model is measured by: the ELBO and its parts, IW-K, active units, mutual information."""

from elboroom.evaluate.likelihood.measure import (
    active_units,
    aggregate_rate,
    bound,
    evaluate,
    evidence,
    log_likelihood,
    mutual_information,
    perplexity,
)

__all__ = [
    "active_units",
    "aggregate_rate",
    "bound",
    "evaluate",
    "evidence",
    "log_likelihood",
    "mutual_information",
    "perplexity",
]
