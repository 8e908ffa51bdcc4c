"""Decorators of kernels and launchers: `import flylab.compiler as flyc`."""

import importlib
from typing import Any

from flylab.compiler.jit import compile, jit
from flylab.compiler.kernel import kernel
from flylab.compiler.kernel_function import CompilationContext

# What launches take and make lies above the compiler: name -> the module that has it, and its name there.
ABOVE = {
    "CompiledFunction": "flylab.runtime.compiled.Compiled",
    "GPUTarget": "flylab.runtime.backend_names.GPUTarget",
    "JitArgumentRegistry": "flylab.runtime.registry.JitArgumentRegistry",
    "compile_backend_name": "flylab.runtime.backend_names.compile_backend_name",
    "from_c_void_p": "flylab.runtime.adaptors.from_c_void_p",
    "from_dlpack": "flylab.runtime.adaptors.from_dlpack",
    "from_torch_tensor": "flylab.runtime.adaptors.from_torch_tensor",
    "get_backend": "flylab.runtime.backend_names.get_backend",
}
__all__ = ["CompilationContext", "compile", "jit", "kernel", *ABOVE]


def __getattr__(name: str) -> Any:
    if name in ABOVE:
        module, _, there = ABOVE[name].rpartition(".")
        return getattr(importlib.import_module(module), there)
    from flylab.expr.planned import missing

    raise missing("flyc", name, globals())


def __dir__() -> list[str]:
    return sorted({*globals(), *ABOVE})
