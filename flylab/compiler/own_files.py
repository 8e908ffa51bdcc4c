"""A digest of the compiler as this process runs it: names what it makes on disk."""

from __future__ import annotations

from flylab.own_source import digest_of

PACKAGES = ("atoms", "codegen", "compiler", "dialect", "expr", "layout", "mathlib", "passes", "runtime", "utils")

# Read while the compiler is imported: the files may change before the first launch.
SOURCE = digest_of(*PACKAGES)
