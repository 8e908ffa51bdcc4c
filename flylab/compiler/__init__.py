"""Decorators of kernels and launchers: `import flylab.compiler as flyc`."""

from typing import Any

from flylab.compiler.jit import compile, jit
from flylab.compiler.kernel import kernel
from flylab.compiler.kernel_function import CompilationContext

__all__ = ["CompilationContext", "compile", "jit", "kernel"]


def __getattr__(name: str) -> Any:
    from flylab.expr.planned import missing

    raise missing("flyc", name, globals())
