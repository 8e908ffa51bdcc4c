"""The register files of a kernel: where operands lie in memory, and what may be named."""

from __future__ import annotations

from flylab.codegen.isa import IsaKernel
from flylab.emulator.decoding.operands import (
    CONSTANT,
    OFF,
    SCALAR,
    VECTOR,
    Operand,
    OperandError,
    constant_bits,
)
from flylab.emulator.state import ROW_BYTES, WAVE_SIZE

_WORDS = {SCALAR: "a scalar register", VECTOR: "a vector register", CONSTANT: "a constant", OFF: "'off'"}
# What an encoding can name of each file.
_VECTOR_NUMBERS = 256
# The largest alignment an access of private memory can want of the host.
PRIVATE_ALIGNMENT = 16


class Registers:
    """The register files of a kernel: how many rows of vector registers it has, and where operands lie in memory.

    `private_bytes` is what each lane has of private memory, `private_stride` how far it is from lane to lane.
    """

    def __init__(self, kernel: IsaKernel):
        descriptor = kernel.descriptor
        total = descriptor.get("next_free_vgpr", kernel.vector_registers)
        granule = kernel.target.vgpr_granule
        self.rows = max(-(-total // granule) * granule, granule)
        self.accumulators = descriptor.get("accum_offset", self.rows)
        self.private_bytes = kernel.scratch_bytes
        self.private_stride = -(-self.private_bytes // PRIVATE_ALIGNMENT) * PRIVATE_ALIGNMENT

    @property
    def end_of_vectors(self) -> int:
        """The byte offset after the last of the registers v0, v1 ..."""
        return ROW_BYTES * min(self.accumulators, self.rows)

    @property
    def wave_bytes(self) -> int:
        """The memory of a wave: the rows of its vector registers, then the private memory of its lanes."""
        return self.rows * ROW_BYTES + WAVE_SIZE * self.private_stride

    @property
    def shadow_at(self) -> int:
        """Where behind a wave's first register its shadow lies; a multiple of 64."""
        return self.wave_bytes

    def offset(self, operand: Operand, registers: int, *files: str, aligned: bool = True) -> int:
        """The byte offset in its file of a register without source modifiers.

        `registers` is how many the instruction takes there, `files` whose they may be (SCALAR, VECTOR). Several
        vector registers begin at an even one, or with `aligned` false at any. Source: LLVM 22's assembler.
        """
        if operand.negative or operand.absolute or operand.sign_extend:
            raise OperandError("it takes no source modifier there")
        return self.source(operand, registers, *files, aligned=aligned)

    def address(self, operand: Operand, registers: int) -> int:
        """As `offset`, for the vector registers of an address, which accumulators cannot be."""
        if operand.accumulator:
            raise OperandError(f"an address is in v0, v1 ... and not in a{operand.index}")
        return self.offset(operand, registers, VECTOR)

    def source(self, operand: Operand, registers: int, *files: str, aligned: bool = True) -> int:
        """As `offset`, where the register may have source modifiers."""
        if operand.kind not in files:
            raise OperandError(f"{_WORDS[operand.kind]} stands where it takes "
                               f"{' or '.join(_WORDS[name] for name in files)}")
        if operand.count != registers:
            raise OperandError(f"it names {operand.count} registers where the instruction takes {registers}")
        if operand.kind == SCALAR:
            step = min(1 << (registers - 1).bit_length(), 4)
            if operand.index % step:
                raise OperandError(f"{registers} scalar registers begin at a multiple of {step}, and not at "
                                   f"s{operand.index}")
            return 4 * operand.index
        first, end = (self.accumulators, self.rows) if operand.accumulator else (0, min(self.accumulators, self.rows))
        count, letter = min(end - first, _VECTOR_NUMBERS), "a" if operand.accumulator else "v"
        if operand.index + registers > count:
            raise OperandError(f"register {letter}{operand.index + registers - 1} is beyond the {max(count, 0)} of the "
                               "kernel's descriptor")
        if registers > 1 and operand.index % 2 and aligned:
            raise OperandError("vector registers side by side begin at an even one, and not at "
                               f"{letter}{operand.index}")
        return ROW_BYTES * (first + operand.index)

    def scalar(self, operand: Operand) -> int:
        """What a slot holds of a scalar register or constant of 32 bits: the register's offset, or the bits."""
        if operand.kind == CONSTANT:
            return constant_bits(operand, "i32")
        return self.offset(operand, 1, SCALAR, CONSTANT)
