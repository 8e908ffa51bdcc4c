"""Atoms: the smallest copies (and, later, matrix products) that the hardware does, as checked data."""

from flylab.atoms.copy import COPY_OPS, CopyAtom, CopyOp, copy_op

__all__ = ["COPY_OPS", "CopyAtom", "CopyOp", "copy_op"]
