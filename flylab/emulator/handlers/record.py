"""What every handler is: a function of a record, the registers and the worker, that ends by calling the next one."""

from __future__ import annotations

from flylab.emulator.handlers.ir import Builder, Value
from flylab.emulator.state import RECORD_BYTES, slot_offset

HANDLER = "i32 @(ptr %r, ptr %v, ptr %s, ptr %w)"


def next_record(b: Builder) -> None:
    """The end of a handler: on to the next instruction's."""
    tail_call(b, b.at("%r", RECORD_BYTES))


def tail_call(b: Builder, record: str) -> None:
    """Gives the wave over to the handler of another record."""
    handler = b.load(record, "ptr", align=8)
    status = b.let(f"musttail call i32 {handler.name}(ptr {record}, ptr %v, ptr %s, ptr %w)", "i32")
    b.do(f"ret {status.typed}")


def slot(b: Builder, index: int, type_: str = "i32") -> Value:
    """What the record holds in an operand slot."""
    return b.load(b.at("%r", slot_offset(index)), type_)
