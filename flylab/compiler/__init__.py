"""Decorators of kernels and launchers: `import flylab.compiler as flyc`."""

from flylab.compiler.jit import compile, jit
from flylab.compiler.kernel import kernel

__all__ = ["compile", "jit", "kernel"]
