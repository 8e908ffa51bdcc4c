"""Fragments: registers for a thread's part of a tensor."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from flylab import atoms
from flylab import layout as rules
from flylab.atoms.threads import of_thread
from flylab.atoms.tiled_mma import as_operand
from flylab.errors import TraceError
from flylab.expr.copy import make_rmem_tensor
from flylab.expr.layout_value import LayoutValue
from flylab.expr.location import name_of
from flylab.expr.numeric import CLASSES
from flylab.expr.parts import letter_of, part_of
from flylab.expr.tensor import Tensor
from flylab.layout import ComposedLayout, Layout, append, cosize
from flylab.layout.int_tuple import has_runtime
from flylab.layout.runtime_leaves import map_runtime, runtime_leaves
from flylab.shown import a_kind


def _registers_like(tensor: Any) -> Layout:
    """`make_fragment_layout_like` of a tensor, layout or coordinate tensor, which must have known extents."""
    layout = tensor.spec.layout if isinstance(tensor, Tensor) else tensor
    if isinstance(layout, LayoutValue):
        layout = layout.form.value()
    if isinstance(layout, ComposedLayout):
        layout = layout.inner
    if isinstance(layout, Layout):
        if has_runtime(layout.shape):
            raise TraceError(f"a fragment like {name_of(tensor, 'a tensor')} {layout}: registers need extents that are "
                             "known while tracing", hint="divide it into tiles of known extents, and slice one")
        if has_runtime(layout.stride):
            layout = _in_runtime_order(layout)
        if rules.coprofile(layout) != 0:
            layout = Layout(layout.shape)  # coordinates have no order
    result: Layout = rules.make_fragment_layout_like(layout)
    return result


def _in_runtime_order(layout: Layout) -> Layout:
    """The layout with any known strides in place of its runtime ones, which count as the largest, first to last."""
    far = {id(leaf): 1 << 40 + i for i, leaf in enumerate(runtime_leaves(layout))}
    known: Layout = map_runtime(lambda leaf: far[id(leaf)], layout)
    return known


def make_fragment_like(tensor: Any, dtype: Any = None) -> Tensor:
    """Registers shaped like a tensor, or like a layout or coordinate tensor, which need a format. Not initialised.

    The first mode runs fastest, the others in the order of the tensor's strides (`fx.make_fragment_layout_like`).
    Raises `TraceError` where an extent is known only on the device.
    """
    if dtype is None:
        if not isinstance(tensor, Tensor):
            raise TraceError(f"make_fragment_like({name_of(tensor, repr(tensor))}): a layout has no number format",
                             hint="give one: fx.make_fragment_like(layout, fx.Float32)")
        dtype = tensor.dtype
    fragment = make_rmem_tensor(_registers_like(tensor), dtype)
    part = getattr(tensor, "part_of", None)
    fragment.part_of = part and replace(part, beyond=())
    return fragment


def mma_make_fragment(operand_id: Any, tiled_mma: atoms.TiledMma, input: Any, *, stages: int | None = None) -> Tensor:
    """Registers for a thread's part of a matrix of a tiled MMA, given the whole matrix (or its layout).

    They have the format of the MMA's operand, and with `stages=` a last mode for buffering. Raises `TraceError` for
    what is no matrix.
    """
    if not isinstance(tiled_mma, atoms.TiledMma):
        raise TraceError(f"mma_make_fragment with {name_of(tiled_mma, repr(tiled_mma))}",
                         hint="give a tiled MMA: fx.make_tiled_mma(...)")
    if stages is not None and (type(stages) is not int or stages < 1):
        raise TraceError(f"mma_make_fragment(stages={stages!r})", hint="give an int of 1 or more, or leave it out")
    operand = as_operand(operand_id)
    layout = input.spec.layout if isinstance(input, Tensor) else input
    if isinstance(layout, LayoutValue):
        layout = layout.form.value()
    if not isinstance(layout, (Layout, ComposedLayout)):
        raise TraceError(f"mma_make_fragment of {name_of(input, repr(input))}, {a_kind(input)}",
                         hint="give the whole matrix, a tensor or a layout")
    whole = layout.inner if isinstance(layout, ComposedLayout) else layout
    threads = tiled_mma.threads_of(operand, whole)
    part, _ = of_thread(threads, tiled_mma.thread_of(operand, (0, 0, 0, 0)))
    fragment = _registers_like(part)
    if stages is not None:
        fragment = append(fragment, Layout(stages, cosize(fragment)))
    atom = tiled_mma.mma_atom
    dtype = (atom.dtype_a, atom.dtype_b, atom.dtype_acc, atom.dtype_acc)[operand]
    made = make_rmem_tensor(fragment, CLASSES[dtype.name])
    made.part_of = part_of(tiled_mma, letter_of(operand), whole, stages or 1)
    return made
