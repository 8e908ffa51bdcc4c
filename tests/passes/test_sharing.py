"""Equal operations of the Fly dialect become one, and what differs in an attribute alone stays two.

An error here once hung on where Python put an object: the key of an operation held the address of its attributes.
"""

from __future__ import annotations

from mlir import ir

from flylab.dialect.context import entered
from flylab.passes.canonicalize import Canonicalize
from flylab.passes.int_swizzle_simplify import IntSwizzleSimplify
from flylab.passes.rewriter import attributes_of, operations

LEAVES, ROUNDS = 3, 40
TUPLE = "!fly.int_tuple<\"(a?,b?,c?)\">"


def test_leaves_of_a_tuple_are_shared_by_their_index() -> None:
    """Each leaf is asked for many times, by turns."""
    lines = [f'%l{n}_{r} = "fly.get_leaf"(%t) {{index = {n} : i32}} : ({TUPLE}) -> i32\n'
             f'"test.use"(%l{n}_{r}) {{wanted = {n} : i32}} : (i32) -> ()'
             for r in range(ROUNDS) for n in range(LEAVES)]
    text = "func.func @f(%a: i32, %b: i32, %c: i32) {\n" + (
        f'%t = "fly.make_int_tuple"(%a, %b, %c) : (i32, i32, i32) -> {TUPLE}\n' + "\n".join(lines) + "\nreturn\n}")
    with entered() as context:
        context.allow_unregistered_dialects = True
        try:
            module = ir.Module.parse(text)
            Canonicalize().run(module)
            uses = [op for op in operations(module.operation) if op.name == "test.use"]
            asked = [op.operands[0].owner.operation.attributes["index"].value for op in uses]
            assert asked == [op.attributes["wanted"].value for op in uses] == list(range(LEAVES)) * ROUNDS
            assert sum(op.name == "fly.get_leaf" for op in operations(module.operation)) == LEAVES
        finally:
            context.allow_unregistered_dialects = False


def test_ids_of_threads_are_shared_by_their_dimension() -> None:
    body = "\n".join(f"%x{r} = gpu.thread_id x\n%y{r} = gpu.thread_id y\n"
                     f"%i{r} = arith.index_cast %x{r} : index to i32\n%j{r} = arith.index_cast %y{r} : index to i32\n"
                     f"%s{r} = arith.muli %i{r}, %j{r} : i32\n"
                     f'%w{r} = "fly.int_swizzle"(%s{r}) {{swizzle = "S<3,3,3>"}} : (i32) -> i32\n'
                     f"func.call @use(%w{r}, %j{r}) : (i32, i32) -> ()" for r in range(ROUNDS))
    with entered():
        module = ir.Module.parse(f"func.func private @use(i32, i32)\nfunc.func @f() {{\n{body}\nreturn\n}}")
        IntSwizzleSimplify().run(module)
        for op in operations(module.operation):
            if op.name == "func.call":
                cast = op.operands[1].owner.operation
                assert str(cast.operands[0].owner.operation.attributes["dimension"]) == "#gpu<dim y>"


def test_attributes_as_a_key() -> None:
    with entered():
        text = "\n".join(f"%c{n} = arith.cmpi {p}, %a, %a : i32" for n, p in enumerate(("eq", "ne") * 50))
        module = ir.Module.parse(f"func.func @f(%a: i32) {{\n{text}\nreturn\n}}")
        keys = [attributes_of(op) for op in operations(module.operation) if op.name == "arith.cmpi"]
    assert len(set(keys[::2])) == len(set(keys[1::2])) == 1 and keys[0] != keys[1]
