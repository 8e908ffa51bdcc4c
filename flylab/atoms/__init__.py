"""Atoms: the smallest copies (and, later, matrix products) that the hardware does, as checked data."""

from flylab.atoms.copy import CopyAtom, CopyOp, atomic_op, copy_op

__all__ = ["CopyAtom", "CopyOp", "atomic_op", "copy_op"]
