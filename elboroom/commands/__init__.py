"""The commands of `elbo`, a file for each kind."""
