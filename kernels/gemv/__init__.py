"""Products of a matrix with a vector."""
