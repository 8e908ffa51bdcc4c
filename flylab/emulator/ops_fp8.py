"""Conversions between 32-bit floats and 8-bit ones, whose encoding is the chip's: FNUZ on gfx942, OCP on gfx950.

Source: CDNA3 and CDNA4 ISA, VOP1 and VOP3 conversions; `codec` has the numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from flylab.codegen.isa import Instruction
from flylab.dtypes import DTYPES
from flylab.emulator.codec import decode, encode
from flylab.emulator.decode import Coded, Decoder, base_name
from flylab.emulator.ir import Value
from flylab.emulator.operands import OperandError
from flylab.emulator.table import VECTOR_FAMILY, Row, rows
from flylab.targets import TARGETS, Target


def _rows(chip: Target) -> dict[str, Row]:
    entries: list[tuple[str, str, Callable[..., Value]]] = []
    for name, dtype in chip.float8.items():
        form = DTYPES[dtype].encoding
        assert form is not None
        to, of = partial(encode, form=form), partial(decode, form=form)
        entries += [
            (f"v_cvt_pk_{name}_f32", "b16+ = f32 f32", lambda x, y, to=to: (to(x) | to(y).shl(8)).to("i16")),
            (f"v_cvt_f32_{name}", "f32 = b32", of),
            (f"v_cvt_pk_f32_{name}", "b64 = b32", lambda x, of=of: _pair(of(x), of(x.shr(8)))),
        ]
    # A handler is kept under its row's name, so that of the other chip must not have the same.
    return {name: Row(f"{name}:{chip}", row.family, row.results, row.sources, row.compute)
            for name, row in rows(VECTOR_FAMILY, entries).items()}


def _pair(low: Value, high: Value) -> Value:
    return low.bits("i32").to("i64") | high.bits("i32").to("i64").shl(32)


_TABLES = {arch: _rows(chip) for arch, chip in TARGETS.items()}


def _converting(decoder: Decoder, instruction: Instruction) -> Coded:
    """A conversion in the encoding of the kernel's chip."""
    if decoder.kernel.descriptor.get("fp16_overflow", 0):
        raise OperandError("the kernel's descriptor sets fp16_overflow, and conversions that saturate are not there")
    return decoder.computing(_TABLES[decoder.kernel.target.arch][base_name(instruction.mnemonic)], instruction)


DECODERS = {name: _converting for table in _TABLES.values() for name in table}
