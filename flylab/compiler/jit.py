"""`@flyc.jit`: a launcher, called from Python with tensors and numbers; and `flyc.compile`, which only compiles it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from flylab.compiler import own_files as own_files  # it reads flylab's files while they are what is imported
from flylab.compiler.kernel import Method, TracedFunction
from flylab.compiler.running import current_trace
from flylab.errors import ArgumentError, of_user
from flylab.locks import IMPORTING
from flylab.shown import short


class Launcher(TracedFunction):
    """A launcher. Calling it compiles what its arguments need (once) and launches on the current device.

    Inside another launcher or kernel a call runs its body there, as a plain Python function would.
    """

    decorator = "jit"

    def __init__(self, function: Callable[..., Any], name: str | None = None):
        super().__init__(function, name)
        self.specialisations: dict[Any, list[tuple[Any, Any]]] = {}
        self._call: Callable[..., Any] | None = None
        self._turns: dict[int, threading.RLock] = {}
        with IMPORTING, suppress(ImportError):  # a call says what is missing
            from flylab.runtime.ahead import load

            load()

    def turn(self) -> threading.RLock:
        """What a thread enters to compile it. A child of a fork has its own, which no thread of the parent's holds."""
        return self._turns.setdefault(os.getpid(), threading.RLock())

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        if current_trace() is not None:
            return self.run(self.signature.bind(args, named))
        if self._call is None:
            with IMPORTING:
                from flylab.runtime.fast.calling import of_launcher

            self._call = of_launcher(self)
        try:
            return self._call(*args, **named)
        except Exception as error:
            of_user(error)
            raise


def jit(function: Callable[..., Any] | None = None) -> Any:
    """Make a function a launcher: `@flyc.jit`. It calls kernels and launches them; it runs when it is called."""
    if function is None:
        return Launcher
    return Launcher(function)


def compile(launcher: Any, /, *args: Any, **named: Any) -> Any:
    """Compile a launcher for the current device without running it; a callable that takes the same arguments.

    Its `.show(what)`, `.isa` and `.save_hsaco(path)` give what the compiler made. Raises `ArgumentError` for anything
    but an @flyc.jit function.
    """
    if isinstance(launcher, Method):
        launcher, args = launcher.traced, (launcher.instance, *args)
    if not isinstance(launcher, Launcher):
        raise ArgumentError(f"flyc.compile of {short(launcher)}", hint="give an @flyc.jit function and its arguments")
    with IMPORTING:
        from flylab.runtime.launch import compile_only

    try:
        return compile_only(launcher, args, named)
    except Exception as error:
        of_user(error)
        raise
