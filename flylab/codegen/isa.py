"""AMDGPU assembly text as data: kernels, instructions with their addresses and source lines, registers, occupancy.

What this reads is LLVM's own assembly for gfx942 and gfx950, with code object metadata (version 4 and later); a
hand-written listing works as well, as long as it has a `.amdgcn_target` and an `.amdhsa_kernel` for each kernel.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from flylab.codegen.encoding import integer, size_of
from flylab.codegen.metadata import Entry, read_metadata
from flylab.codegen.strings import files_of, without_comment
from flylab.errors import CompileError
from flylab.targets import Target, target


@dataclass(frozen=True, slots=True)
class Instruction:
    """One machine instruction; `address` is in bytes from the kernel's start, `isa_line` counts from 1 in `Isa.text`.

    `operands` are the comma-separated ones, `modifiers` the words after them (`offset:16`, `clamp`, `vmcnt(0)`).
    `source` is (file, line, column) from the `.loc` in force, or None.
    """

    index: int
    address: int
    text: str
    mnemonic: str
    operands: tuple[str, ...]
    modifiers: tuple[str, ...]
    isa_line: int
    source: tuple[str, int, int] | None

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class KernelArg:
    """One kernel argument of the metadata: offset and size in bytes within the kernel-argument segment."""

    name: str
    offset: int
    size: int
    kind: str
    address_space: str = ""

    @property
    def hidden(self) -> bool:
        """True for those that the runtime fills by itself (block counts and the like)."""
        return self.kind.startswith("hidden_")


@dataclass(frozen=True)
class Occupancy:
    """Waves per SIMD that the registers and LDS of a kernel allow, and which of them is the limit."""

    waves_per_simd: int
    limiter: str
    limits: dict[str, int]

    def __str__(self) -> str:
        return f"{self.waves_per_simd} waves per SIMD, limited by {self.limiter}"


@dataclass(frozen=True)
class IsaKernel:
    """One kernel: its instructions, arguments and resources. `labels` maps a label to the index of an instruction."""

    name: str
    target: Target
    instructions: tuple[Instruction, ...]
    labels: dict[str, int]
    args: tuple[KernelArg, ...]
    kernarg_size: int
    vgprs: int
    agprs: int
    sgprs: int
    lds_bytes: int
    scratch_bytes: int
    spills: int
    max_workgroup: int
    descriptor: dict[str, int]

    @property
    def size(self) -> int:
        """Bytes of code."""
        last = self.instructions[-1]
        return last.address + size_of(last.mnemonic, last.operands)

    @property
    def vector_registers(self) -> int:
        """Registers a lane of the unified file: VGPRs rounded up to 4, then AccVGPRs."""
        return -(-self.vgprs // 4) * 4 + self.agprs if self.agprs else self.vgprs

    @cached_property
    def occupancy(self) -> Occupancy:
        """Waves per SIMD at the kernel's largest workgroup.

        Source: the unified register file and allocation granules of CDNA3 and CDNA4 (ISA documents, LLVM 22);
        more than 100 scalar registers allow 7 waves, 800 being shared in sixteens.
        """
        chip = self.target
        registers = max(-(-self.vector_registers // chip.vgpr_granule) * chip.vgpr_granule, chip.vgpr_granule)
        limits = {"waves": chip.waves_per_simd, "vector registers": chip.vgprs_per_lane // registers,
                  "scalar registers": 7 if self.sgprs > 100 else chip.waves_per_simd}
        if self.lds_bytes:
            workgroups = chip.lds_bytes // (-(-self.lds_bytes // chip.lds_granule) * chip.lds_granule)
            waves = workgroups * -(-self.max_workgroup // chip.wave_size)
            limits["LDS"] = -(-waves // chip.simds_per_cu)
        limiter = min(limits, key=lambda name: limits[name])
        return Occupancy(limits[limiter], limiter, limits)


@dataclass(frozen=True)
class Isa:
    """Assembly text and what it says: the chip, and each kernel by name."""

    text: str = field(repr=False)
    target: Target
    kernels: dict[str, IsaKernel]

    def __str__(self) -> str:
        return self.text

    @classmethod
    def parse(cls, text: str) -> Isa:
        """Reads assembly text.

        Raises `CompileError` where it names no chip or no kernel, where a kernel has no body, and, with the line's
        number, for what cannot be read.
        """
        found = _TARGET.search(text)
        if found is None:
            raise CompileError("this assembly names no chip",
                               hint='it needs a line .amdgcn_target "amdgcn-amd-amdhsa--gfx942"')
        chip, reader = target(found[1]), _Reader(text)
        if not reader.descriptors:
            raise CompileError("this assembly holds no kernel", hint="a kernel needs an .amdhsa_kernel block")
        metadata = {k.take(".name", str): k for k in read_metadata(reader.metadata).entries("amdhsa.kernels")}
        kernels = {name: _kernel(name, chip, reader, metadata.get(name, Entry())) for name in reader.descriptors}
        return cls(text, chip, kernels)


_LABEL = re.compile(r"([\w.$@]+):(?!:)\s*")
# Brackets with what is in them, a comma, space, or anything else.
_TOKEN = re.compile(r"[\[(][^\])]*[\])]?|,|\s+|[^\[(,\s]+")
_LOC = re.compile(r"\.loc\s+(\d{1,9})\s+(\d{1,9})(?:\s+(\d{1,9}))?")
_NAMES = re.compile(r"^[ \t]*(?:\.amdhsa_kernel[ \t]+(\S+)|\.type[ \t]+(\S+?)[ \t]*,[ \t]*@function)", re.M)
_TARGET = re.compile(r'^[ \t]*\.amdgcn_target[ \t]+"[^"\n]*--(gfx\w+)', re.M)
# Directives within a function that bring no code; every other one there is refused.
_NO_CODE = {".text", ".type", ".globl", ".weak", ".hidden", ".protected", ".ident"}
_LEAVES_CODE = {".size", ".section", ".rodata", ".data", ".bss", ".end_amdhsa_kernel"}
# Directives that decide which lines there are: nothing here can read text that has them.
_CONTROL = re.compile(r"\.(if\w*|else\w*|endif|rept|irpc?|endr|macro|endm|endmacro|include|incbin|altmacro|exitm)$")
# Far more than any kernel takes.
_KERNARG_BYTES = 1 << 20
# What the values of a descriptor may be, by how their names begin; the first that fits counts.
_LIMITS = (("next_free_vgpr", 0, 512), ("next_free_sgpr", 0, 102), ("accum_offset", 4, 256),
           ("wavefront_size32", 0, 0), ("user_sgpr_count", 0, 16), ("user_sgpr_kernarg_preload", 0, 16),
           ("user_sgpr_", 0, 1), ("system_sgpr_", 0, 1), ("system_vgpr_workitem_id", 0, 2), ("ieee_mode", 0, 1),
           ("dx10_clamp", 0, 1), ("fp16_overflow", 0, 1), ("exception_", 0, 1), ("float_", 0, 3),
           ("kernarg_size", 0, _KERNARG_BYTES), ("", 0, (1 << 32) - 1))


class _Reader:
    """One pass over the lines: functions with instructions and labels, kernel descriptors, symbols, source lines."""

    def __init__(self, text: str):
        self.names = {name for pair in _NAMES.findall(text) for name in pair if name}
        self.bodies: dict[str, list[Instruction]] = {}
        self.labels: dict[str, dict[str, int]] = {}
        self.descriptors: dict[str, dict[str, int]] = {}
        self.symbols: dict[str, int] = {}
        self.files: dict[int, str] = {}
        self.metadata: list[tuple[int, str]] = []
        self.source: tuple[str, int, int] | None = None
        self.function = self.descriptor = ""
        self.address = self.number = 0
        in_metadata = False
        for self.number, raw in enumerate(text.split("\n"), 1):
            line = without_comment(raw).strip()
            if line in (".amdgpu_metadata", ".end_amdgpu_metadata"):
                in_metadata = line == ".amdgpu_metadata"
                self.function = self.descriptor = ""
            elif in_metadata:
                self.metadata.append((self.number, raw))
            elif line:
                self._line(line)
        if in_metadata:
            raise self._error("the metadata has no .end_amdgpu_metadata")

    def _error(self, message: str, hint: str | None = None) -> CompileError:
        return CompileError(f"ISA line {self.number}: {message}", hint=hint)

    def _line(self, line: str) -> None:
        found = _LABEL.match(line)
        if found:
            self._label(found[1])
            line = line[found.end():]
        if line.startswith("."):
            self._directive(line)
        elif line:
            self._instruction(line)

    def _label(self, label: str) -> None:
        if label in self.names:
            self.function, self.address, self.source = label, 0, None
            self.bodies[label], self.labels[label] = [], {}
        elif self.function:
            self.labels[self.function][label] = len(self.bodies[self.function])

    def _instruction(self, text: str) -> None:
        if not self.function:
            raise self._error(f"'{text[:80]}' belongs to no function", hint="a kernel's code begins at its label")
        mnemonic, *rest = text.split(None, 1)
        operands, modifiers = _fields(rest[0]) if rest else ((), ())
        body = self.bodies[self.function]
        body.append(Instruction(len(body), self.address, " ".join(text.split()), mnemonic, operands, modifiers,
                                self.number, self.source))
        self.address += size_of(mnemonic, operands)

    def _directive(self, text: str) -> None:
        word, _, rest = text.replace("\t", " ").partition(" ")
        rest = rest.strip()
        if word == ".loc":
            self._location(text)
        elif word == ".file":
            self.files.update(files_of(text))
        elif word == ".amdhsa_kernel":
            self.function, self.descriptor = "", rest
            self.descriptors[rest] = {}
        elif word.startswith(".amdhsa_") and self.descriptor:
            name = word.removeprefix(".amdhsa_")
            self.descriptors[self.descriptor][name] = self._setting(name, rest)
        elif word in _LEAVES_CODE:
            self.function = self.descriptor = ""
        elif word == ".set":
            name, _, expression = rest.partition(",")
            value = integer(expression.strip())
            if value is not None and value >= 0:
                self.symbols[name.strip()] = value
        elif word == ".p2align" and self.function:
            self._align(rest)
        elif _CONTROL.match(word) or self.function and word not in _NO_CODE and not word.startswith(".cfi_"):
            raise self._error(f"the directive {word} cannot be read here",
                              hint="give the instructions themselves, as LLVM's own listing does")

    def _align(self, text: str) -> None:
        """Moves on to a multiple of a power of two. A kernel begins at one of 256; the gap does nothing when run."""
        power = integer(text)
        if power is None or not 0 <= power <= 8:
            raise self._error(f".p2align {text[:80]} cannot be read here", hint="a power from 0 to 8 can")
        self.address = -(-self.address >> power << power)

    def _location(self, text: str) -> None:
        found = _LOC.match(text)
        if found is None:
            raise self._error(f"'{text[:80]}' is no place in a file", hint="it takes a file, a line and a column")
        file, line, column = (int(g or 0) for g in found.groups())
        self.source = (self.files.get(file, f"file {file}"), line, column) if line else None

    def _setting(self, name: str, text: str) -> int:
        """A value of a kernel's descriptor."""
        value = integer(text)
        if value is None:
            raise self._error(f"the kernel descriptor holds an expression, {text[:80]!r}, where a number is needed",
                              hint="compile the kernel and the functions it calls as one module")
        low, high = next((low, high) for start, low, high in _LIMITS if name.startswith(start))
        if not low <= value <= high:
            hint = "the waves of these chips have 64 lanes" if name == "wavefront_size32" else None
            raise self._error(f".amdhsa_{name} is {value}, and {low} to {high} are possible", hint=hint)
        return value


@lru_cache(maxsize=4096)
def _fields(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The operands, which commas part, and the modifiers, the words after the last operand."""
    parts: list[list[str]] = [[""]]
    for token in _TOKEN.findall(text):
        if token == ",":
            parts.append([""])
        elif not token.isspace():
            parts[-1][-1] += token
        elif parts[-1][-1]:
            parts[-1].append("")
    words = [" ".join(part).strip() for part in parts[:-1]]
    last = [word for word in parts[-1] if word]
    first = 0 if not words and last and re.match(r"\w+[(:]", last[0]) else 1
    # An operand that is missing after a comma stays an empty one, which nothing takes.
    operands = words + (last[:first] or [""] * bool(words))
    return tuple(operands), tuple(last[first:])


def _kernel(name: str, chip: Target, reader: _Reader, metadata: Entry) -> IsaKernel:
    body, descriptor, symbols = reader.bodies.get(name), reader.descriptors[name], reader.symbols
    if not body:
        raise CompileError(f"kernel '{name}' has a descriptor and no instructions")
    total = descriptor.get("next_free_vgpr", 0)
    beyond = max(total - descriptor.get("accum_offset", total), 0)
    agprs = symbols.get(f"{name}.num_agpr", metadata.take(".agpr_count", int, beyond))
    vgprs = symbols.get(f"{name}.num_vgpr", descriptor.get("accum_offset", total) if agprs else total)
    args = tuple(KernelArg(a.take(".name", str, ""), a.take(".offset", int), a.take(".size", int),
                           a.take(".value_kind", str), a.take(".address_space", str, ""))
                 for a in metadata.entries(".args"))
    size = metadata.take(".kernarg_segment_size", int, descriptor.get("kernarg_size", 0))
    if max((a.offset + a.size for a in args), default=0) > size or size > _KERNARG_BYTES:
        raise CompileError(f"the arguments of kernel '{name}' do not fit its .kernarg_segment_size of {size} bytes, or "
                           f"it is more than {_KERNARG_BYTES}")
    return IsaKernel(
        name=name, target=chip, instructions=tuple(body), labels=reader.labels[name], args=args, kernarg_size=size,
        vgprs=vgprs, agprs=agprs, sgprs=metadata.take(".sgpr_count", int, descriptor.get("next_free_sgpr", 0)),
        lds_bytes=descriptor.get("group_segment_fixed_size", 0),
        scratch_bytes=descriptor.get("private_segment_fixed_size", 0),
        spills=metadata.take(".vgpr_spill_count", int, 0) + metadata.take(".sgpr_spill_count", int, 0),
        max_workgroup=metadata.take(".max_flat_workgroup_size", int, chip.max_workgroup), descriptor=descriptor)
