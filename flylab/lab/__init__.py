"""The notebook layer: the tour without a notebook (and, later, magics and exercises)."""
