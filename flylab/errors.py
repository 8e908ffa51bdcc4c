"""The one error family of flylab.

Every error that a user can meet is a `FlylabError`. It carries the message in the user's words, the place in the
user's source (when there is one) and one way to mend it, and prints as

    my_kernel.py, line 18, in vector_add
        fx.copy(atom, tA, rA)
        ^^^^^^^^^^^^^^^^^^^^^
    the copy moves 4 elements, but 'rA' holds 8
    hint: give the atom 256 bits, or slice 'rA' to (4,)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flylab.places import SourceLine, of_traceback, user_part


class FlylabError(Exception):
    """Base of all errors of flylab: a message, where it happened in the user's source, and a hint."""

    def __init__(self, message: str, *, where: SourceLine | None = None, hint: str | None = None):
        self.message = message
        self.where = where
        self.hint = hint
        super().__init__(message)

    def __str__(self) -> str:
        parts = [str(self.where)] if self.where else []
        parts.append(self.message)
        if self.hint:
            parts.append(f"hint: {self.hint}")
        return "\n".join(parts)

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: the error in the user's words, without the frames inside flylab."""
        self.at(of_traceback(self.__traceback__))
        return [f"\x1b[31m{type(self).__name__}\x1b[39m: {self}"]

    def at(self, where: SourceLine | None) -> FlylabError:
        """The same error, placed at `where` unless it already has a place."""
        if self.where is None:
            self.where = where
        return self


class LayoutError(FlylabError, ValueError):
    """A layout that cannot exist, or an operation that no layout can represent."""


class Undecided(LayoutError):
    """What an operation on layouts has to decide hangs on a number that is known only while the kernel runs."""


class TraceError(FlylabError):
    """A kernel that cannot be traced: its Python does something that has no meaning on the device."""


class NotKnown(TraceError):
    """Python asks now for a number that only the device knows."""


class NotSupportedError(TraceError):
    """A part of the language that flylab knows of and does not do; the message names it."""


class ArgumentError(FlylabError, TypeError):
    """A launch argument that does not fit the parameter it is given for."""


class CompileError(FlylabError):
    """A pass or the code generator refused the program."""


class ToolchainError(FlylabError):
    """A tool or package that is needed is missing; the hint names the command that brings it."""


class DeviceError(FlylabError):
    """A kernel went wrong while it ran, or no device can run it."""

    workgroup: int | None = None
    """The number of the workgroup that went wrong; those of lower numbers ran to their end, or waited for it."""
    findings: tuple[Any, ...] = ()
    """What checks had found before (`flylab.emulator.probes.findings.Finding`)."""


class UnknownInstruction(DeviceError):
    """An instruction, or a form of one, that the software device does not execute."""


class OutOfBounds(DeviceError):
    """A kernel touched memory that none of its arguments holds."""


class CacheWarning(UserWarning):
    """What is wrong with the compilations on disk; flylab goes on without them."""


class DebugError(FlylabError):
    """What was asked of the debugger, and it cannot do: a register, line, wave or time that is not there."""


class CheckError(DeviceError):
    """What the software device's checks found in a launch that ran to its end; `findings` has all of it."""

    def __init__(self, message: str, *, where: SourceLine | None = None, hint: str | None = None,
                 findings: tuple[Any, ...] = ()):
        super().__init__(message, where=where, hint=hint)
        self.findings = findings


class CheckFailed(DeviceError, AssertionError):
    """A condition that a kernel or launcher checks does not hold."""


@dataclass(frozen=True)
class Check:
    """What a check says where its condition does not hold, and the user's line that makes it, where there is one."""

    message: str
    where: SourceLine | None = None
    hint: str | None = None

    def failed(self, place: str = "", where: SourceLine | None = None) -> CheckFailed:
        """The error; `place` tells which thread met it, `where` the line of a check that has none."""
        return CheckFailed(self.message + place, where=self.where or where, hint=self.hint)


def of_user(error: Exception) -> None:
    """Leaves an error that reaches the user the user's frames alone, where flylab foresaw it or the user's code raised
    it."""
    error.__traceback__ = user_part(error.__traceback__, isinstance(error, FlylabError))
