"""Style transfer, measured by what no method trains with: a classifier, word vectors, a language model, a grammar."""
