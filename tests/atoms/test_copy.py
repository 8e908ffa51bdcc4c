"""Copy atoms: each row is a bijection of values, prints and reads back, and fits its format or is refused."""

from __future__ import annotations

import dataclasses
import json
import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import flylab.expr as fx
from flylab.atoms import CopyAtom, CopyOp, copy_op
from flylab.atoms.atomics import OPERATIONS, SPACES, Atomic
from flylab.atoms.copy import BUFFER, BUFFER_LDS, FAMILIES, LDS_TRANS, UNIVERSAL_COPY
from flylab.dtypes import DTYPES
from flylab.errors import FlylabError, LayoutError
from flylab.layout import Layout, size

DATA = Path(__file__).resolve().parents[1] / "data"
OPS = [copy_op(family, bits, trans) for family, row in FAMILIES.items() for trans, bits in row.widths or ()]
OPS += [copy_op(UNIVERSAL_COPY, bits) for bits in (8, 16, 24, 32, 64, 96, 128, 256, 1024)]
OPS += [copy_op(BUFFER, 128, cache=cache) for cache in (1, 2, 16, 19)]


def test_every_row_with_every_format() -> None:
    made = 0
    for row, dtype in product(OPS, DTYPES.values()):
        if row.bits % dtype.bits or row.trans not in (0, dtype.bits) and not (row.trans < 8 == dtype.bits):
            with pytest.raises(LayoutError, match="does not hold whole|transposes elements of") as caught:
                CopyAtom(row, dtype)
            assert caught.value.hint
            continue
        atom = CopyAtom(row, dtype)
        made += 1
        assert atom.num_values * dtype.bits == row.bits
        for tv in (atom.layout_src_tv, *(() if atom.is_packed else (atom.layout_dst_tv, atom.layout_ref_tv))):
            places = [tv(t, v) for t in range(atom.num_threads) for v in range(atom.num_values)]
            assert sorted(places) == list(range(atom.num_threads * atom.num_values))
        assert CopyAtom.parse(str(atom)) == atom
    assert made > 300


def published() -> list[tuple[str, dict[str, Any]]]:
    """The name of each atom that the published wheel printed, and what it printed, or nothing."""
    lines = (DATA / "peer_copy_atoms.txt").read_text().splitlines()[3:]
    found = []
    for name, text in zip(lines[::2], lines[1::2], strict=True):
        found.append((name.strip(), {} if "ABORT" in text else json.loads(text.strip().removeprefix("L: "))))
    return found


FORMATS = {"i8": "Int8", "i32": "Int32", "f32": "Float32", "f16": "Float16", "bf16": "BFloat16"}


def ours(name: str, bits: int) -> CopyAtom:
    """The atom that a name of the list means, of elements of so many bits."""
    op, *rest = name.replace("cdna4_", "cdna4.").split("_")
    module = fx if op.startswith("Universal") else fx.rocdl
    if op.startswith("cdna4."):
        module, op = fx.rocdl.cdna4, op.removeprefix("cdna4.")
    trans = re.fullmatch(r"LDSReadTrans(\d+)", op)
    if trans:
        bits = int(trans[1])
        kind = {4: fx.Float4E2M1FN, 6: fx.Float6E2M3FN, 8: fx.Int8, 16: fx.Float16}[bits]
        return fx.make_copy_atom(module.LDSReadTrans(bits, int(rest[0].removesuffix("b"))), kind)
    if "Atomic" in op:
        return fx.make_copy_atom(getattr(module, op)(getattr(fx, FORMATS[rest[0]])), getattr(fx, FORMATS[rest[0]]))
    return fx.make_copy_atom(getattr(module, op)(), getattr(fx, {8: "Int8", 16: "Float16"}.get(bits, "Float32")))


DEVIATIONS = {
    "cdna4_LDSReadTrans4_64b_s2r": "printed for bytes, and then 8 threads receive 16 values each, where 16 threads read"
                                   " 8: ours is of elements of 4 bits",
    "cdna4_LDSReadTrans6_96b_s2r": "it aborts",
    "BufferAtomicMax_f32_r2b": "printed, and compiling it aborts: no chip has the instruction",
    "BufferAtomicMin_f32_r2b": "as Max",
}  # fmt: skip


@pytest.mark.parametrize("name, printed", published())
def test_published_atoms(name: str, printed: dict[str, Any]) -> None:
    if name in ("BufferAtomicMax_f32_r2b", "BufferAtomicMin_f32_r2b"):
        with pytest.raises(LayoutError, match="no chip has an atomic m.. of f32"):
            ours(name, 32)
        return
    atom = ours(name, printed.get("val_bits", 0))
    same = bool(printed) and (
        [atom.thr_layout, atom.layout_src_tv, atom.layout_dst_tv, atom.layout_ref_tv]
        == [Layout.parse(printed[side].split("<")[1][:-1]) for side in ("thr", "src", "dst", "ref")]
        and atom.val_bits == printed["val_bits"]
        and "fly." + re.sub(r", \w+>$", f", {atom.val_bits}>", str(atom)) == printed["type"].replace("!", "")
    )
    assert same == (name not in DEVIATIONS), (str(atom), atom.layout_src_tv, atom.layout_dst_tv)


def test_the_list_has_every_atom() -> None:
    names = [name for name, _ in published()]
    assert len(names) == len(set(names)) > 45 and set(DEVIATIONS) <= set(names)


@pytest.mark.parametrize("bits, width, dtype", [(4, 64, "Float4E2M1FN"), (6, 96, "Float6E2M3FN"), (8, 64, "Int8"),
                                                (16, 64, "BFloat16")])  # fmt: skip
def test_transposing_reads_follow_the_table(bits: int, width: int, dtype: str) -> None:
    """`maps[b][t][j]` is (lane, element): what lane t receives as element j is what that lane of its group reads."""
    atom = CopyAtom(copy_op(LDS_TRANS, width, bits), DTYPES[dtype])
    table = json.loads((DATA / "ds_read_tr_gfx950.json").read_text())["maps"][f"b{bits}"]
    source = {atom.layout_src_tv(t, v): (t, v) for t in range(16) for v in range(atom.num_values)}
    got = [[source[atom.layout_dst_tv(t, v)] for v in range(atom.num_values)] for t in range(16)]
    assert got == [[tuple(place) for place in lane] for lane in table[:16]]


def test_a_transposing_read_of_packed_bytes_has_no_layout_of_bytes() -> None:
    atom = fx.make_copy_atom(fx.rocdl.cdna4.LDSReadTrans(4, 64), fx.Uint8)
    assert (atom.num_values, atom.layout_src_tv) == (8, Layout((16, 8), (8, 1)))
    with pytest.raises(LayoutError, match="no layout tells where its bytes go") as caught:
        _ = atom.layout_ref_tv
    assert "a format of 4 bits" in (caught.value.hint or "")


def test_what_the_hardware_has() -> None:
    """Widths of buffer, LDS and direct loads: CDNA3 and CDNA4 ISA documents."""
    assert {bits for _, bits in FAMILIES[BUFFER].widths or ()} == {8, 16, 32, 64, 96, 128}
    assert copy_op(BUFFER_LDS, 32).chips("shared") == ("gfx942", "gfx950")
    assert copy_op(BUFFER_LDS, 96).chips("shared") == copy_op(BUFFER_LDS, 128).chips("shared") == ("gfx950",)
    assert copy_op(LDS_TRANS, 64, 16).chips("shared") == ("gfx950",)


@pytest.mark.parametrize(
    "family, bits, trans, hint",
    [
        (UNIVERSAL_COPY, 0, 0, "whole bytes"),
        (UNIVERSAL_COPY, 12, 0, "whole bytes"),
        (UNIVERSAL_COPY, 1 << 20, 0, "whole bytes"),
        (UNIVERSAL_COPY, "32", 0, "whole bytes"),
        (UNIVERSAL_COPY, [32], 0, "whole bytes"),
        (UNIVERSAL_COPY, 64, 16, "whole bytes"),
        (BUFFER, 256, 0, "8, 16, 32, 64, 96, 128 bits"),
        (BUFFER_LDS, 64, 0, "32, 96 (gfx950), 128 (gfx950) bits"),
        (LDS_TRANS, 96, 16, "(16, 64) (gfx950)"),
    ],
)
def test_unknown_widths(family: str, bits: Any, trans: int, hint: str) -> None:
    with pytest.raises(LayoutError, match=f"no {FAMILIES[family].call} of") as caught:
        copy_op(family, bits, trans)
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize("cache", [4, 8, -1, True, "sc0"])
def test_unknown_cache_modifiers(cache: Any) -> None:
    with pytest.raises(LayoutError, match="cache modifier") as caught:
        fx.rocdl.BufferCopy128b(cache)
    assert "1 (sc0), 2 (nt), 16 (sc1)" in (caught.value.hint or "")


def test_atomics_that_no_chip_has() -> None:
    cases: list[tuple[Any, str, str]] = [
        (lambda: fx.UniversalAtomicAdd(fx.Float16), "atomic add of f16", "in pairs"),
        (lambda: fx.UniversalAtomicSub(fx.Float32), "atomic sub of f32", "add the negated value"),
        (lambda: fx.UniversalAtomicXor(fx.Float32), "atomic xor of f32", "there is one of"),
        (lambda: fx.rocdl.BufferAtomicMax(fx.Float32), "atomic max of f32", "in shared memory"),
        (lambda: fx.rocdl.BufferAtomicPkAdd(fx.Float32), "vector<2xf32>", "there is one of"),
        (lambda: fx.UniversalAtomicAdd(fx.Int8), "atomic add of i8", "i32, i64"),
        (lambda: fx.UniversalAtomicAdd(fx.Int32, "gpu"), "'gpu' is no SyncScope", "fx.SyncScope.Agent"),
        (lambda: fx.UniversalAtomic("add", fx.Int32), "'add' is no AtomicOp", "fx.AtomicOp.Add"),
        (lambda: fx.make_copy_atom(fx.UniversalAtomicAdd(fx.Int32), fx.Float32), "of Int32 on elements of Float32",
         "fx.Int32"),
    ]  # fmt: skip
    for make, message, hint in cases:
        with pytest.raises(FlylabError, match=message) as caught:
            make()
        assert hint in (caught.value.hint or ""), caught.value.hint


def test_atomics_print_and_read_back() -> None:
    made = 0
    for op, dtype, lanes, scope in product(OPERATIONS, DTYPES.values(), (1, 2), ("", "agent")):
        kind = fx.VectorAlias(dtype, 2) if lanes == 2 else dtype
        if Atomic(op, dtype, lanes).chips("global"):
            atom = fx.make_copy_atom(fx.UniversalAtomic(fx.AtomicOp[op.capitalize()], kind, scope), dtype)
            assert CopyAtom.parse(str(atom)) == atom and atom.num_values == lanes
            made += 1
    assert made == 2 * (9 * 4 + 2 + 2 + 2)
    assert all(Atomic("add", DTYPES["Float32"]).chips(space) for space in SPACES)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "copy_atom<fly.universal_copy<32>>",
        "copy_atom<fly.universal_copy<32>, f31>",
        "copy_atom<fly.universal_copy, f32>",
        "copy_atom<fly.other<32>, f32>",
        "copy_atom<fly.universal_atomic<add>, f32>",
        "universal_copy<32>, Float32",
    ],
)
def test_bad_texts(text: str) -> None:
    with pytest.raises(LayoutError, match="is no copy atom"):
        CopyAtom.parse(text)


def test_a_row_that_is_no_bijection_cannot_be_built() -> None:
    class Doubled(CopyAtom):
        @property
        def layout_src_tv(self) -> Layout:
            return Layout((1, self.num_values), (0, 2))

    with pytest.raises(LayoutError, match="does not cover the 4 values once each"):
        Doubled(copy_op(UNIVERSAL_COPY, 128), DTYPES["Float32"])


def test_rows_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        CopyOp(UNIVERSAL_COPY, 32).bits = 64  # type: ignore[misc]
    assert size(CopyAtom(copy_op(UNIVERSAL_COPY, 24), DTYPES["Int8"]).layout_src_tv) == 3
