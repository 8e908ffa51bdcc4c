"""Atoms: the smallest copies and matrix products that the hardware does, as checked data."""

from flylab.atoms.copy import CopyAtom, CopyOp, atomic_op, copy_op
from flylab.atoms.mma import MFMA, SCALED, SPARSE, STATE, UNIVERSAL, MmaAtom, MmaOp
from flylab.atoms.mma_table import mma_atom, mma_op
from flylab.atoms.tiled_copy import TiledCopy
from flylab.atoms.tiled_mma import MmaOperand, TiledMma
from flylab.atoms.traversal import GemmTraversalOrder

__all__ = ["MFMA", "SCALED", "SPARSE", "STATE", "UNIVERSAL", "CopyAtom", "CopyOp", "GemmTraversalOrder", "MmaAtom",
           "MmaOp", "MmaOperand", "TiledCopy", "TiledMma", "atomic_op", "copy_op", "mma_atom", "mma_op"]
