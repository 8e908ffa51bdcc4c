"""Notebooks that need torch are left out where it is not installed (Python 3.12 and 3.13 on the test machines)."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("torch") else ["00_tour.ipynb"]
