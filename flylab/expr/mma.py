"""Matrix products: MMA atoms, their state, and `fx.gemm` on fragments in registers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from flylab.atoms import SCALED, STATE, UNIVERSAL, GemmTraversalOrder, MmaAtom, MmaOp, mma_op
from flylab.atoms.mma import covers
from flylab.atoms.mma_table import called
from flylab.atoms.traversal import steps
from flylab.errors import TraceError
from flylab.expr.atom_state import ONE, atom_set_value
from flylab.expr.emit import fly
from flylab.expr.fragments import Fragment, multiplied
from flylab.expr.location import name_of
from flylab.expr.numeric import CLASSES, numeric_class
from flylab.expr.state import require_kernel
from flylab.expr.tensor import Tensor
from flylab.expr.whole_waves import require_whole_waves
from flylab.layout import Layout
from flylab.layout.int_tuple import has_runtime
from flylab.targets import Target


def UniversalFMA(elem_ty: Any) -> MmaOp:
    """A fused multiply-add of one thread as a product of 1 x 1 x 1: D = A x B + C, rounded once, as `fx.math.fma`.

    >>> import flylab.expr as fx
    >>> print(UniversalFMA(fx.Float32))
    fly.universal_fma<1x1x1, (f32, f32) -> f32>

    Raises `LayoutError` for a format that is no float of at least 16 bits.
    """
    return mma_op(UNIVERSAL, (1, 1, 1), numeric_class(elem_ty).dtype)


def make_mma_atom(mma_op_type: MmaOp) -> MmaAtom:
    """The atom of an operation: `make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16))`.

    Raises `TraceError` for what is no MMA operation.
    """
    if not isinstance(mma_op_type, MmaOp):
        raise TraceError(f"make_mma_atom({mma_op_type!r}): not an MMA operation",
                         hint="give fx.rocdl.MFMA(m, n, k, format) or fx.UniversalFMA(format)")
    return MmaAtom(mma_op_type)


def mma_atom_call(mma_atom: MmaAtom, d: Tensor, a: Tensor, b: Tensor, c: Tensor, **state: Any) -> None:
    """One call of an atom: D = A x B + C, on fragments that each hold one atom's values of a thread.

    Raises `TraceError` as `gemm` does, and for fragments of several atoms.
    """
    what = "fx.mma_atom_call"
    atom = _checked(what, mma_atom, state)
    fragments = [Fragment.of(what, name, tensor, atom) for name, tensor in zip("DABC", (d, a, b, c), strict=True)]
    _emit(what, atom, [each.tensor for each in multiplied(what, atom, fragments, single=True)], ORDER)


def gemm(mma_atom: Any, d: Tensor, a: Tensor, b: Tensor, c: Tensor, *, traversal_order: Any = None,
         traversal_layout: Any = None, atom_callback: Any = None, **state: Any) -> None:
    """D = A x B + C on fragments in registers, atom by atom.

    `mma_atom` is an atom or a tiled MMA. The first mode of a fragment is what one atom takes of a thread: D and C are
    (V, M, N), A is (V, M, K), B is (V, N, K); A and B may lack K, all may be V alone, and where an atom takes one value
    all may lack V. The first call for an element of D adds to C, the others to D.

    `traversal_order` is a GemmTraversalOrder (else NMK: N innermost), `traversal_layout` instead a layout from the
    number of the call to the index in (M, N, K) of its atom. `atom_callback(atom, (m, n, k))` gives the atom of each
    call: the same operation, with a state or opsel of its own. `state` sets a part of the atom's state (see
    `atom_set_value`). Raises `TraceError` naming formats, layouts and counts where a fragment does not fit, is not in
    registers, or where the chip lacks the atom.
    """
    what = "fx.gemm"
    atom = _checked(what, mma_atom, state)
    given = [Fragment.of(what, name, tensor, atom) for name, tensor in zip("DABC", (d, a, b, c), strict=True)]
    fragments = multiplied(what, atom, given, single=False)
    extents = fragments[0].extent(1), fragments[0].extent(2), fragments[1].extent(2)
    order = _order(what, traversal_order, traversal_layout, extents)
    if atom_callback is None:
        _emit(what, atom, [each.tensor for each in fragments], order)
        return
    begun = set()
    target, left, right, addend = fragments
    for m, n, k in steps(order, *extents):
        own = _same_operation(what, atom, atom_callback(atom, (m, n, k)))
        before = target if (m, n) in begun else addend
        begun.add((m, n))
        places = (target, m, n), (left, m, k), (right, n, k), (before, m, n)
        _emit(what, own, [fragment.atom_at(i, j) for fragment, i, j in places], ORDER)


ORDER = GemmTraversalOrder.NMK.name
"""The order where none is given."""


def _checked(what: str, given: Any, state: dict[str, Any]) -> MmaAtom:
    """The atom, with its state set, if the chip and the block can do it."""
    kernel = require_kernel(what)
    atom = getattr(given, "mma_atom", given)
    if not isinstance(atom, MmaAtom):
        raise TraceError(f"{what}({name_of(given, repr(given))}, ...): not an MMA atom",
                         hint="make one: fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16))")
    _check_chip(what, atom, kernel.target)
    if atom.num_threads > 1:
        require_whole_waves(what, str(atom.op))
    for field, value in state.items():
        atom = atom_set_value(atom, field, value)
    return atom


def _order(what: str, order: Any, layout: Any, extents: tuple[int, int, int]) -> str:
    """The order of the calls as the text that the operation holds."""
    if layout is None:
        if order is not None and not isinstance(order, GemmTraversalOrder):
            raise TraceError(f"{what}(..., traversal_order={order!r})", hint="give an fx.GemmTraversalOrder")
        return ORDER if order is None else order.name
    if order is not None:
        raise TraceError(f"{what} with both a traversal_order and a traversal_layout", hint="give one of them")
    calls = extents[0] * extents[1] * extents[2]
    if not isinstance(layout, Layout) or has_runtime((layout.shape, layout.stride)) or not covers(layout, calls):
        raise TraceError(f"{what}: the traversal_layout {layout} does not reach each of the {calls} atoms of (M, N, K) "
                         f"= {extents} once", hint=f"give a layout such as fx.make_layout({extents})")
    return str(layout)


def _same_operation(what: str, atom: MmaAtom, found: Any) -> MmaAtom:
    if not isinstance(found, MmaAtom):
        raise TraceError(f"{what}: the atom_callback gave {found!r}",
                         hint="let it return the atom that it is given, or fx.atom_set_value(atom, field, value)")
    if replace(found.op, options=atom.op.options) != atom.op:
        raise TraceError(f"{what}: the atom_callback gave {found.op}, and the fragments are those of {atom.op}",
                         hint="only the state and opsel may differ")
    return found


def _emit(what: str, atom: MmaAtom, views: list[Tensor], order: str) -> None:
    fly("gemm", [*(view.value for view in views), *_state_of(what, atom)], atom=atom, order=order)


def _check_chip(what: str, atom: MmaAtom, target: Target) -> None:
    if target.arch in atom.op.chips:
        return
    kinds = ", ".join(target.float8.values())
    written = called(atom.op.family, atom.shape_mnk, atom.dtype_a, atom.dtype_b)
    small = any(dtype.bits == 8 and dtype.is_float for dtype in (atom.dtype_a, atom.dtype_b))
    raise TraceError(
        f"{what}: {written} is an instruction of {' and '.join(atom.op.chips)}, and the kernel is compiled for "
        f"{target.arch}",
        hint=f"the 8-bit floats of {target.arch} are {kinds}" if small and atom.op.family != SCALED else
        f"give an atom of {target.arch}, or compile for {atom.op.chips[0]}: flylab.use(\"{atom.op.chips[0]}\")",
    )


def _state_of(what: str, atom: MmaAtom) -> list[Any]:
    """The state's values in the operation's order; none for a scaled atom without scales."""
    fields, given = STATE[atom.op.family], atom.state
    if atom.op.family == SCALED:
        if not given:
            return []
        scales = [given.get(field, CLASSES["Int32"](ONE)) for field in fields]
        if all(scale.is_static and int(scale) == 0 for scale in scales):
            raise TraceError(f"{what}: the scales of {atom.op} are all 0, which is 2**-127",
                             hint=f"a scale of 1 is {ONE:#x}; leave both out for none")
        return [scale.ir_value() for scale in scales]
    for field in fields:
        if field not in given:
            raise TraceError(f"{what}: the {field} of {atom.op} is not set",
                             hint=f"atom = fx.atom_set_value(atom, {field!r}, fx.Int32(x))")
    return [given[field].ir_value() for field in fields]
