"""`CompilationContext`: the module that is traced, for launchers that put something of their own into it."""

from __future__ import annotations

from typing import Any

from flylab.compiler.running import current_trace
from flylab.errors import TraceError


class CompilationContext:
    """The compilation that is running: `CompilationContext.get_current().gpu_module_body`."""

    def __init__(self, trace: Any):
        self._trace = trace

    @classmethod
    def get_current(cls) -> CompilationContext:
        """That of the launcher that is traced. Raises `TraceError` outside of one."""
        trace = current_trace()
        if trace is None:
            raise TraceError("CompilationContext.get_current() outside of an @flyc.jit function",
                             hint="call it in the launcher, which is traced")
        return cls(trace)

    @property
    def gpu_module_body(self) -> Any:
        """The MLIR block of the kernels' module: `with ir.InsertionPoint(body): allocator.finalize()`."""
        return self._trace.kernel_block
