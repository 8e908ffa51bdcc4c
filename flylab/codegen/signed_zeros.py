"""0.0 - x, which LLVM's instruction selection for AMD takes for -x: kept, so that 0.0 - 0.0 is 0.0 and not -0.0.

LLVM 22 (`SelectVOP3ModsImpl` of its AMDGPUISelDAGToDAG.cpp) writes a subtraction from a known zero into the negate
modifier of the instruction that uses it, whatever the zero's sign. An arithmetic fence behind the subtraction hides it
from there and costs no instruction. It is put in after the optimiser, which finds zeros that the program does not show,
and makes subtractions of sums with -x; where it does not run, the code generator does.
"""

from __future__ import annotations

import re

_KIND = r"half|bfloat|float|double|<\d+ x (?:half|bfloat|float|double)>"
# A sum or difference: its result, operation, flags, type, operands and what follows them.
_SUM = re.compile(
    rf"^  (%\S+) = (fadd|fsub) ((?:[a-z]+ )*?)({_KIND}) ([^%@\n]+|%[^,\s]+), ([^%@\n]+?|%[^,\s]+)(, !.*)?$",
    re.MULTILINE,
)
_ZERO = re.compile(r"(?<![-\w.])0\.0+e\+00\b|\b0x[HR]0000\b|\bzeroinitializer\b")
_NAMES = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64"}


def keep_zero_minus(llvm_ir: str) -> str:
    """Optimised LLVM IR in which a subtraction from 0.0 is one for the code generator too.

    >>> print(keep_zero_minus("  %2 = fsub float 0.000000e+00, %1"))
      %"of 2" = fsub float 0.000000e+00, %1
      %2 = call float @llvm.arithmetic.fence.f32(float %"of 2")
    """
    def kept(found: re.Match[str]) -> str:
        operation, flags, left, right = found[2], found[3], found[5], found[6]
        other = right if _ZERO.search(left) else left if operation == "fadd" and _ZERO.search(right) else ""
        negated = operation == "fsub" or f"  {other} = fneg " in llvm_ir
        return _fenced(found) if other and negated and not {"nsz", "fast"} & set(flags.split()) else found[0]

    return _SUM.sub(kept, llvm_ir)


def _fenced(found: re.Match[str]) -> str:
    result, operation, flags, kind, left, right, place = found.groups(default="")
    name = result[1:].strip('"')
    wide = kind.replace("bfloat", "float")
    function = f"@llvm.arithmetic.fence.{_mangled(wide)}"
    if wide == kind:
        return (f'  %"of {name}" = {operation} {flags}{kind} {left}, {right}{place}\n'
                f'  {result} = call {kind} {function}({kind} %"of {name}"){place}')
    # No chip adds a BFloat16: it adds Float32s, exactly, and rounds, which is what uses the difference.
    return (f'  %"left of {name}" = fpext {kind} {left} to {wide}{place}\n'
            f'  %"right of {name}" = fpext {kind} {right} to {wide}{place}\n'
            f'  %"of {name}" = {operation} {flags}{wide} %"left of {name}", %"right of {name}"{place}\n'
            f'  %"kept {name}" = call {wide} {function}({wide} %"of {name}"){place}\n'
            f'  {result} = fptrunc {wide} %"kept {name}" to {kind}{place}')


def _mangled(kind: str) -> str:
    """A type in the name of an intrinsic: `f32`, `v2f32`."""
    lanes, _, element = kind.strip("<>").rpartition(" x ")
    return (f"v{lanes}" if lanes else "") + _NAMES[element]
