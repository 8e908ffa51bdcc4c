"""Launching on an attached AMD GPU through HIP."""
