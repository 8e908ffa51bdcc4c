"""Conversions between floats and small ones: 8-bit ones in the chip's encoding, and stochastic ones to 8 and 16 bits.

8-bit floats are FNUZ on gfx942 and OCP on gfx950. Source: CDNA3 and CDNA4 ISA, VOP1 and VOP3 conversions; `codec` has
the numbers, and what of them those documents leave open.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from flylab.codegen.assembly.encoding import base_name
from flylab.codegen.isa import Instruction
from flylab.dtypes import DTYPES, Encoding
from flylab.emulator.decoding.decode import Coded, Decoder
from flylab.emulator.decoding.op_sel import RESULT_BYTE, RESULT_HALF, selecting
from flylab.emulator.decoding.table import VECTOR_FAMILY, Row, rows
from flylab.emulator.handlers.ir import Value
from flylab.emulator.numbers.codec import STOCHASTIC, decode, encode
from flylab.targets import TARGETS, Target


def encoding(name: str) -> Encoding:
    """How the bits of a float format of `flylab.dtypes` are divided."""
    form = DTYPES[name].encoding
    assert form is not None
    return form


def pair(low: Value, high: Value) -> Value:
    """Two floats as 64 bits."""
    return low.bits("i32").to("i64") | high.bits("i32").to("i64").shl(32)


def bytes_of(form: Encoding, x: Value, y: Value) -> Value:
    """Two floats as 8-bit ones, in 16 bits; they saturate where the mode says so."""
    low, high = (encode(v, form, saturate=x.b.saturate) for v in (x, y))
    return (low | high.shl(8)).to("i16")


def _rows(chip: Target) -> dict[str, Row]:
    entries: list[tuple[str, str, Callable[..., Value]]] = []
    for name, dtype in chip.float8.items():
        form = encoding(dtype)
        of = partial(decode, form=form)
        entries += [
            (f"v_cvt_pk_{name}_f32", "b16+ = f32 f32", partial(bytes_of, form)),
            (f"v_cvt_sr_{name}_f32", "b32 = f32 b32", lambda x, r, form=form: encode(
                x, form, STOCHASTIC, r, x.b.saturate)),
            (f"v_cvt_f32_{name}", "f32 = b32", of),
            (f"v_cvt_pk_f32_{name}", "b64 = b32", lambda x, of=of: pair(of(x), of(x.shr(8)))),
        ]
    # A handler is kept under its row's name, so that of the other chip must not have the same.
    return {name: Row(f"{name}:{chip}", row.family, row.results, row.sources, row.compute)
            for name, row in rows(VECTOR_FAMILY, entries).items()}


_TABLES = {arch: _rows(chip) for arch, chip in TARGETS.items()}


def _converting(decoder: Decoder, instruction: Instruction) -> Coded:
    """A conversion in the encoding of the kernel's chip."""
    name = base_name(instruction.mnemonic)
    style = RESULT_BYTE if name.startswith("v_cvt_sr") else RESULT_HALF
    return selecting(decoder, _TABLES[decoder.kernel.target.arch][name], instruction, style)


ROWS = rows(VECTOR_FAMILY, [
    ("v_cvt_sr_f16_f32", "b16+ = f32 b32", lambda x, r: encode(
        x, encoding("Float16"), STOCHASTIC, r, x.b.saturate).to("i16")),
    ("v_cvt_sr_bf16_f32", "b16+ = f32 b32", lambda x, r: encode(x, encoding("BFloat16"), STOCHASTIC, r).to("i16")),
])
DECODERS = {name: _converting for table in _TABLES.values() for name in table}
