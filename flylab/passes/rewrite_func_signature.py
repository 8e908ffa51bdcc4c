"""fly-rewrite-func-signature: tensors and pointers at function boundaries become plain pointers of LLVM.

A parameter `!fly.memref<"f32, global, L">` becomes `!llvm.ptr<1>`, seen through L again at the top of the body; a
`gpu.launch_func` passes the pointers. The layout, which is static, stays in the types. So does the type of a pointer,
`!fly.ptr<"f32, global">`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flylab.dialect.types import POINTERS, MemRef, Ptr, of_mlir
from flylab.passes.rewriter import Builder, Pass, functions, operations, parse_type

POINTER = POINTERS["global"]


@dataclass(frozen=True)
class RewriteFuncSignature(Pass):
    """See the module's text."""

    name: str = "fly-rewrite-func-signature"

    def run(self, module: Any) -> None:
        """Rewrite every function, then every launch."""
        for function in functions(module):
            _rewrite(function)
        for op in operations(module.operation):
            if op.name == "gpu.launch_func":
                _pass_pointers(op)


def _rewrite(function: Any) -> None:
    from mlir import ir

    block = function.regions[0].blocks[0]
    builder = Builder(block.operations[0].operation)
    for argument in block.arguments:
        spec = of_mlir(argument.type)
        if not isinstance(spec, (MemRef, Ptr)):
            continue
        argument.set_type(parse_type(POINTER))
        iterator = builder.fly("from_llvm_ptr", [argument], [spec if isinstance(spec, Ptr) else spec.pointer])
        same = iterator if isinstance(spec, Ptr) else builder.fly("make_view", [iterator], [spec])
        argument.replace_all_uses_except(same, [iterator.owner.operation])
    types = ir.FunctionType.get([a.type for a in block.arguments], [])
    function.attributes["function_type"] = ir.TypeAttr.get(types)


def _pass_pointers(launch: Any) -> None:
    builder = Builder(launch)
    for index, operand in enumerate(launch.operands):
        spec = of_mlir(operand.type)
        if isinstance(spec, (MemRef, Ptr)):
            iterator = operand if isinstance(spec, Ptr) else builder.fly("get_iter", [operand], [spec.pointer])
            launch.operands[index] = builder.fly("to_llvm_ptr", [iterator], [parse_type(POINTER)])
