"""fly-align-pointer-arguments: in kernels that make buffer descriptors, each pointer argument lies at 16 bytes.

Pointers side by side are loaded several at once, and then copied, one by one, to the registers in which descriptors
want them. Pointers apart are loaded to where they are used: a preshuffled GEMM has 16 instructions and 5 scalar
registers less. A parameter of the kind `byref` is LLVM's way to say where an argument lies; the metadata of the code
object tells it to who launches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flylab.dialect.types import DESCRIPTOR, KERNARG, POINTERS
from flylab.passes.rewriter import Builder, Pass, operations, parse_type

ALIGNMENT = 16


@dataclass(frozen=True)
class AlignPointerArguments(Pass):
    """See the module's text."""

    name: str = "fly-align-pointer-arguments"

    def run(self, module: Any) -> None:
        """Rewrite the kernels with descriptors; there are only functions of LLVM's dialect here."""
        makes: dict[Any, bool] = {}
        descriptor = parse_type(DESCRIPTOR)
        for op in operations(module.operation):
            if op.name == "llvm.func":
                function = op
                makes[function] = False
            elif op.name == "llvm.inttoptr" and op.results[0].type == descriptor:
                makes[function] = True
        for function, has_descriptors in makes.items():
            if has_descriptors:
                _rewrite(function)


def _rewrite(function: Any) -> None:
    from mlir import ir

    block = function.regions[0].blocks[0]
    builder = Builder(block.operations[0].operation)
    pointer = parse_type(POINTERS["global"])
    alignment = ir.IntegerAttr.get(parse_type("i64"), ALIGNMENT)
    plain = ir.DictAttr.get({})
    apart = ir.DictAttr.get({"llvm.byref": ir.TypeAttr.get(pointer), "llvm.align": alignment})
    attributes = [apart if argument.type == pointer else plain for argument in block.arguments]
    for argument in block.arguments:
        if argument.type == pointer:
            argument.set_type(parse_type(KERNARG))
            loaded = builder.op("llvm.load", [argument], pointer, alignment=alignment, invariant=ir.UnitAttr.get())
            loaded.owner.operation.location = function.location
            argument.replace_all_uses_except(loaded, [loaded.owner.operation])
    kinds = ", ".join(str(argument.type).removeprefix("!llvm.") for argument in block.arguments)
    function.attributes["function_type"] = ir.TypeAttr.get(parse_type(f"!llvm.func<void ({kinds})>"))
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes)
