"""Measures of generated sentences and of the codes of sentences."""

from elboroom.evaluate.probe import probe
from elboroom.evaluate.text.bleu import bleu, self_bleu
from elboroom.evaluate.text.diversity import average_length, distinct_count, distinct_ratio, unigram_entropy, unigram_kl
from elboroom.evaluate.text.kneser_ney import KneserNey
from elboroom.evaluate.text.perplexity import forward_perplexity, reverse_perplexity
from elboroom.evaluate.text.protocol import measure

__all__ = [
    "KneserNey",
    "average_length",
    "bleu",
    "distinct_count",
    "distinct_ratio",
    "forward_perplexity",
    "measure",
    "probe",
    "reverse_perplexity",
    "self_bleu",
    "unigram_entropy",
    "unigram_kl",
]
