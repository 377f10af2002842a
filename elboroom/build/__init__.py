"""What recipes stand on: the registry, options, parts sized for the data, posteriors and priors by name, plugins."""
