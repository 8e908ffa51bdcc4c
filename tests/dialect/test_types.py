"""Fly types: every one prints, parses and goes through MLIR unchanged; texts that are none are refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flylab.dialect.context import entered
from flylab.dialect.operations import OPERATIONS, Operation, attribute, build, irdl_text
from flylab.dialect.types import SPACES, MemRef, Ptr, of_mlir, parse, to_mlir
from flylab.dtypes import DTYPES
from flylab.errors import CompileError
from flylab.layout import Layout

TREES = st.recursive(st.integers(1, 64), lambda t: st.lists(t, min_size=1, max_size=3).map(tuple), max_leaves=5)


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    def strides(tree: object) -> object:
        return tuple(map(strides, tree)) if isinstance(tree, tuple) else draw(st.integers(-(2**40), 2**40))

    shape = draw(TREES)
    return Layout(shape, strides(shape))


@st.composite
def specs(draw: st.DrawFn) -> Ptr | MemRef:
    dtype = draw(st.sampled_from(list(DTYPES.values())))
    space, align = draw(st.sampled_from(SPACES)), draw(st.sampled_from([0, 1, 16]))
    if draw(st.booleans()):
        return Ptr(dtype, space, align)
    return MemRef(dtype, space, draw(layouts()), align)


@given(specs())
def test_round_trip(spec: Ptr | MemRef) -> None:
    text = f'!fly.{spec.NAME}<"{spec}">'
    assert parse(text) == spec
    with entered():
        made = to_mlir(spec)
        assert str(made) == text
        assert of_mlir(made) == spec
        assert to_mlir(spec) is made


@pytest.mark.parametrize(
    "text",
    [
        '!fly.ptr<"f31, global">',
        '!fly.ptr<"f32, moon">',
        '!fly.ptr<"f32, global, 4:1">',
        '!fly.memref<"f32, global">',
        '!fly.tensor<"f32, global">',
        "!fly.ptr<f32, global>",
        "f32",
        '!fly.ptr<"f32, global, align<x>">',
    ],
)
def test_bad_texts(text: str) -> None:
    with pytest.raises(CompileError, match="is no type of the Fly dialect"):
        parse(text)


def test_signedness_is_kept() -> None:
    spellings = {name: str(Ptr(DTYPES[name], "global")) for name in ("Int32", "Uint32", "Uint8", "BFloat16", "Boolean")}
    assert spellings == {
        "Int32": "i32, global",
        "Uint32": "ui32, global",
        "Uint8": "ui8, global",
        "BFloat16": "bf16, global",
        "Boolean": "i1, global",
    }


def test_types_of_other_dialects_are_none_of_ours() -> None:
    from mlir import ir

    with entered():
        assert of_mlir(ir.Type.parse("f32")) is None
        assert of_mlir(ir.Type.parse("!llvm.ptr<1>")) is None


def test_every_operation_can_be_built_and_read_back() -> None:
    """Each row through MLIR's own parser and verifier, which know it from the IRDL declaration."""
    from mlir import ir

    pointer = Ptr(DTYPES["Float32"], "global")
    for name, row in OPERATIONS.items():
        with entered():
            with ir.Location.unknown():
                module = ir.Module.create()
            with ir.InsertionPoint(module.body), ir.Location.file("k.py", 3, 1):
                source = build("fly.memref_alloca", [], [pointer])
                operands = [source] * (len(row.operands) + any(o.endswith("*") for o in row.operands))
                texts = {n: f"{n} of it" for n in row.attributes}
                result = build(name, operands, [pointer] * len(row.results), texts)
            assert module.operation.verify()
            again = ir.Module.parse(module.operation.get_asm(enable_debug_info=True))
            op = list(again.body.operations)[-1].operation
            assert (op.name, len(op.operands), len(op.results)) == (name, len(operands), len(row.results))
            assert {n: attribute(op, n) for n in row.attributes} == texts
            assert (result is None) == (not row.results)


def test_a_missing_attribute_is_refused_by_the_verifier() -> None:
    from mlir import ir

    with entered():
        module = ir.Module.parse('%0 = "fly.memref_alloca"() : () -> !fly.ptr<"f32, global">')
        with pytest.raises(ir.MLIRError, match="attribute"):
            ir.Module.parse(
                '%0 = "fly.memref_alloca"() : () -> !fly.ptr<"f32, global">\n'
                '%1 = "fly.make_buffer_ptr"(%0) : (!fly.ptr<"f32, global">) -> !fly.ptr<"f32, buffer">'
            )
        assert module.operation.verify()


def test_rows_say_what_they_mean() -> None:
    assert all(row.meaning and row.effect in ("none", "reads", "allocates", "writes") for row in OPERATIONS.values())
    with pytest.raises(ValueError, match="more than one variadic"):
        Operation("x", ("a*", "b*"))
    assert irdl_text().count("irdl.operation @") == len(OPERATIONS)
