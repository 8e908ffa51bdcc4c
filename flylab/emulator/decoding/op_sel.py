"""The bits of op_sel where an instruction reads them in a way of its own: as a byte of a source or of the result.

LLVM prints a list of three or four bits; those that an instruction has no use for must be 0.
"""

from __future__ import annotations

from flylab.codegen.isa import Instruction
from flylab.emulator.decoding.decode import Coded, Decoder
from flylab.emulator.decoding.modifiers import Modifiers
from flylab.emulator.decoding.operands import OperandError, parse_operand
from flylab.emulator.decoding.table import TYPES, Row

# What the bits name: a half or a byte of the first source or of the result.
RESULT_HALF, RESULT_BYTE = "half of the result", "byte of the result"
SOURCE_HALF, SOURCE_BYTE = "half of a source", "byte of a source"


def selecting(decoder: Decoder, row: Row, instruction: Instruction, style: str) -> Coded:
    """An instruction of a row, with its op_sel read in a style.

    Raises `OperandError` for bits that the style has no meaning for, and for source modifiers of what is no float.
    """
    sources = instruction.operands[len(row.named_results):]
    for text, type_name in zip(sources, row.named_sources, strict=False):
        operand = parse_operand(text)
        if not TYPES[type_name].is_float and (operand.negative or operand.absolute):
            raise OperandError(f"its operand '{text}' takes no source modifier: it is no float of 32 bits")
    bits = [int(bit) for bit in Modifiers.of(instruction.modifiers).lists.get("op_sel", [])]
    if style == RESULT_HALF and not any(bits[:len(row.named_sources)]):
        return decoder.computing(row, instruction)
    words = [word for word in instruction.modifiers if not word.startswith("op_sel:")]
    return decoder.computing(row, instruction, [*words, *_meaning(bits + [0] * (4 - len(bits)), style, row)])


def _meaning(bits: list[int], style: str, row: Row) -> list[str]:
    """The modifiers that say the same."""
    if style == RESULT_BYTE and not bits[0] | bits[1]:
        return [f"dst_sel:BYTE_{bits[2] + 2 * bits[3]}", "dst_unused:UNUSED_PRESERVE"]
    if style == SOURCE_HALF and not any(bits[1:]):
        return [f"src0_sel:WORD_{bits[0]}"]
    if style == SOURCE_BYTE and not bits[3] and (not bits[2] or row.results == ("b16+",)):
        upper = ["dst_sel:WORD_1", "dst_unused:UNUSED_PRESERVE"] if bits[2] else []
        return [f"src0_sel:BYTE_{bits[0] + 2 * bits[1]}", *upper]
    raise OperandError(f"op_sel {bits} names more than the {style} that it can choose")
