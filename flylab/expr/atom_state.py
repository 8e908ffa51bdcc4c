"""The state of atoms: what an instruction takes beside its data, and a kernel sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from flylab.atoms import STATE, CopyAtom, MmaAtom
from flylab.errors import TraceError
from flylab.expr.location import name_of
from flylab.expr.numeric import CLASSES, Numeric
from flylab.expr.promotion import plain
from flylab.expr.words import word

Atom = TypeVar("Atom", MmaAtom, CopyAtom)


def atom_set_value(atom: Atom, field: str, value: Any) -> Atom:
    """The atom with a part of its state set. A value is an integer of 32 bits.

    A scaled MMA atom has `scale_a` and `scale_b` (in each thread four scales, E8M0, of which the operation's opsel
    picks one), a sparse one `index`. A copy of a buffer has `soffset`: elements that every thread's place is moved by,
    the same in all threads of a wave; it costs no instruction. It goes forward, by less than 4 GiB.

    Raises `TraceError` for a field that the atom does not have, for a value that is no integer of 32 bits, and for a
    known `soffset` that the instruction does not hold.
    """
    if not isinstance(atom, (MmaAtom, CopyAtom)):
        raise TraceError(f"atom_set_value({name_of(atom, repr(atom))}, ...): not an atom with a state",
                         hint="make one: fx.make_mma_atom(fx.rocdl.cdna4.MFMA_Scale(16, 16, 128, format))")
    fields = fields_of(atom)
    if field not in fields:
        raise TraceError(f"atom_set_value: {atom.op} has no {field!r}",
                         hint=f"it has {' and '.join(fields)}" if fields else "it has no state")
    if isinstance(atom, CopyAtom):
        _check_soffset(atom, value)
    return replace(atom, state={**atom.state, field: word("atom_set_value", field, value)})


def _check_soffset(atom: CopyAtom, value: Any) -> None:
    """Refuse a known offset of the wave that is no unsigned number of 32 bits, in bytes."""
    number = plain(value)
    if isinstance(number, Numeric) and number.is_static:
        number = number.value
    if type(number) is int and not 0 <= number * atom.val_bits < 8 << 32:
        raise TraceError(
            f"atom_set_value: a soffset of {number} elements, {number * atom.val_bits // 8} bytes, and an instruction "
            "holds 0 to 4294967295",
            hint="slice the tensor there, which moves its pointer; soffset= is for what is added to that",
        )


ONE = 0x7F7F7F7F
"""Four scales of 1: E8M0 has a bias of 127."""

_UNSET = {"scale_a": ONE, "scale_b": ONE, "soffset": 0}
"""What a field that is not set counts as; an index has to be set."""


def whole_state(atom: CopyAtom | MmaAtom) -> dict[str, Any]:
    """The state of an atom with a value for each field; None for an index that is not set."""
    unset = {f: CLASSES["Int32"](_UNSET[f]) if f in _UNSET else None for f in fields_of(atom)}
    return {**unset, **atom.state}


def with_whole_state(atom: CopyAtom | MmaAtom, state: Mapping[str, Any]) -> CopyAtom | MmaAtom:
    """The atom with a state that has a value for each field. One of which nothing is set stays such."""
    is_set = [v is not None and not (v.is_static and int(v) == _UNSET.get(f)) for f, v in state.items()]
    return replace(atom, state={f: v for f, v in state.items() if v is not None} if any(is_set) else {})


def fields_of(atom: CopyAtom | MmaAtom) -> tuple[str, ...]:
    """The fields of an atom's state."""
    return atom.op.state if isinstance(atom, CopyAtom) else STATE[atom.op.family]
