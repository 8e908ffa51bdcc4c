"""A plan on an attached GPU: one generated function from the values that the binder passes to HIP's launch.

    def run(_a0, _a1, _a2, _a3):
        try:
            if not _module.is_loaded or _asked() is not _unwatched: return _missed
            if not _a1 <= _a0 <= _a2 - 4096: return _missed
            _handle = _current(0)
            ...                                        (`flylab.runtime.fast.specialising`)
        except Exception:
            return _missed
        try:
            _f0.enter(_b0, v2, 1, 1, 256, 1, 1, 0, _stream)
        except BaseException as _error:
            raise _failed(_error, _where0, _handle) from _error.__cause__
        return _run(_Launched('k', (v2, 1, 1), (256, 1, 1), 0, 'hip:0'))

Up to the first `except` nothing has happened yet, so whatever is wrong there goes the way of the first call, which
explains it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from flylab.compiler.signature import NUMBER, STREAM
from flylab.dtypes import BOOL
from flylab.errors import FlylabError
from flylab.expr.promotion import integer_range
from flylab.passes.host import NAMES
from flylab.places import SourceLine
from flylab.runtime.arguments import Bound
from flylab.runtime.compiled import Compiled
from flylab.runtime.device import Device
from flylab.runtime.fast.arithmetic import Range
from flylab.runtime.fast.binding import MISSED
from flylab.runtime.fast.plans import Slot, slots
from flylab.runtime.fast.specialising import Steps, Unplanned
from flylab.runtime.hip import devices
from flylab.runtime.hip.backend import Launched
from flylab.runtime.hip.launching import stream_pointer, synchronize_stream
from flylab.runtime.hip.modules import module_of
from flylab.runtime.hip.streams import current, handle_of
from flylab.runtime.run import Run, seen
from flylab.runtime.tensors import CPU
from flylab.runtime.watching import asked

FILE = "<flylab plan>"


def plan(device: Device, compiled: Compiled, bound: Sequence[Bound]) -> Callable[..., Any] | None:
    """What runs a compilation on the values that the binder passes; None where what it does fits into no plan.

    That is a launcher that prints or checks, or launches in loops and branches, and a tensor that is copied to the
    device and back.
    """
    gpu, given = devices.find(device.ordinal), slots(compiled.launcher.signature, bound)
    memories = [slot.bound.memory for slot in given if slot.bound.memory is not None]
    on_host = any(memory.device == CPU for memory in memories)
    if on_host and not gpu.pageable:
        return None
    try:
        steps = Steps(compiled, [operand for slot in given for operand in _operands(slot)])
    except Unplanned:
        return None
    module, ordinal = module_of(compiled, device.ordinal), device.ordinal

    def run(*launched: Launched) -> Run:
        return seen(Run(device, compiled, launched))

    def failed(error: BaseException, where: SourceLine | None, handle: int) -> BaseException:
        if on_host:  # what was launched before may still write to it
            with suppress(FlylabError), devices.on(ordinal):
                synchronize_stream(ordinal, handle)
        return error.at(error.where or where) if isinstance(error, FlylabError) else error

    names = {"_module": module, "_asked": asked, "_unwatched": asked(), "_missed": MISSED, "_current": current,
             "_handle_of": handle_of, "_pointer": stream_pointer, "_wait": synchronize_stream, "_on": devices.on,
             "_failed": failed, "_run": run, "_Launched": Launched}
    for n, kernel in enumerate(steps.kernels):
        names |= {f"_f{n}": module.functions[kernel], f"_where{n}": compiled.launch_lines[kernel]}
    space: dict[str, Any] = {**NAMES, **names, **steps.names}
    exec(compile(_text(ordinal, given, steps, on_host), FILE, "exec"), space)
    found: Callable[..., Any] = space["run"]
    return found


def _operands(slot: Slot) -> list[tuple[str, Range | None]]:
    """The launcher's runtime arguments for an argument, as text, and what the binder has checked of them.

    Those of a tensor are its address and the numbers of a runtime layout, which the plan's key holds; nothing is known
    of floats.
    """
    name, host = f"_a{slot.at}", slot.bound.host
    if slot.bound.memory is not None:
        return [(name, (0, (1 << 64) - 1)), *((str(leaf), (leaf, leaf)) for leaf in slot.bound.leaves)]
    if host.kind != NUMBER:
        return []
    dtype = host.spec.dtype
    return [(name, None if dtype.is_float or dtype.kind == BOOL else integer_range(dtype))]


def _text(ordinal: int, given: Sequence[Slot], steps: Steps, on_host: bool) -> str:
    parameters = ", ".join(f"_a{n}" for slot in given for n in range(slot.at, slot.end))
    stream = next((f"_handle_of(_a{slot.at}, {ordinal})" for slot in given if slot.bound.host.kind == STREAM),
                  f"_current({ordinal})")
    before = ["if not _module.is_loaded or _asked() is not _unwatched: return _missed",
              *(_inside(slot) for slot in given if slot.bound.memory is not None),
              f"_handle = {stream}", "_stream = _pointer(_handle)", steps.before]
    after = [f"try:\n  _f{n}.enter({entered}, _stream)\nexcept BaseException as _error:\n"
             f"  raise _failed(_error, _where{n}, _handle) from _error.__cause__"
             for n, entered in enumerate(steps.launches)]
    after += [f"_wait({ordinal}, _handle)"] * on_host
    reports = ", ".join(f"_Launched({report}, 'hip:{ordinal}')" for report in steps.reports)
    alone = len(devices.attached()) == 1
    return "\n".join([
        f"def run({parameters}):",
        " try:",
        textwrap.indent("\n".join(before), "  "),
        " except Exception:",
        "  return _missed",
        " if True:" if alone else f" with _on({ordinal}):",
        textwrap.indent("\n".join(after), "  "),
        f" return _run({reports})",
    ])


def _inside(slot: Slot) -> str:
    """The test that a tensor's bytes are inside of what its owner has."""
    memory = slot.bound.memory
    assert memory is not None
    low = memory.address - memory.start
    start = f"_a{slot.at} - {low}" if low else f"_a{slot.at}"
    return f"if not _a{slot.at + 1} <= {start} <= _a{slot.at + 2} - {memory.nbytes}: return _missed"
