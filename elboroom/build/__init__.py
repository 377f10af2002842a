"""Build: from a name and options to a method, on parts sized for a data set."""
