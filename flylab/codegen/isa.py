"""AMDGPU assembly text as data: kernels, instructions with their addresses and source lines, registers, occupancy.

What this reads is LLVM's own assembly for gfx942 and gfx950, with code object metadata (version 4 and later); a
hand-written listing works as well, as long as it has a `.amdgcn_target` and an `.amdhsa_kernel` for each kernel.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from flylab.codegen.encoding import size_of
from flylab.codegen.metadata import read_metadata
from flylab.codegen.strings import files_of
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

        Raises `CompileError` where it names no chip or no kernel, or where a kernel has no body.
        """
        found = re.search(r'\.amdgcn_target\s+"[^"]*--(gfx\w+)', text)
        if found is None:
            raise CompileError("this assembly names no chip",
                               hint='it needs a line .amdgcn_target "amdgcn-amd-amdhsa--gfx942"')
        chip = target(found[1])
        reader = _Reader(text)
        if not reader.descriptors:
            raise CompileError("this assembly holds no kernel", hint="a kernel needs an .amdhsa_kernel block")
        metadata = {k.get(".name"): k for k in read_metadata(text).get("amdhsa.kernels", ())}
        kernels = {name: _kernel(name, chip, reader, metadata.get(name, {})) for name in reader.descriptors}
        return cls(text, chip, kernels)


_LINE = re.compile(r"\s*(?:([\w.$@]+):(?!:))?\s*(.*)$")
_SPLIT = re.compile(r",(?![^\[(]*[\])])")
_MODIFIER = re.compile(r"\s+(?![^\[(]*[\])])")
_COMMENT = re.compile(r"\s*(?:;|//).*$")
_LOC = re.compile(r"\.loc\s+(\d+)\s+(\d+)(?:\s+(\d+))?")


class _Reader:
    """One pass over the lines: functions with instructions and labels, kernel descriptors, symbols, source lines."""

    def __init__(self, text: str):
        self.names = set(re.findall(r"^\s*\.amdhsa_kernel\s+(\S+)", text, re.M))
        self.names |= set(re.findall(r"^\s*\.type\s+(\S+?)\s*,\s*@function", text, re.M))
        self.bodies: dict[str, list[Instruction]] = {}
        self.labels: dict[str, dict[str, int]] = {}
        self.descriptors: dict[str, dict[str, int]] = {}
        self.symbols: dict[str, int] = {}
        self.files: dict[int, str] = {}
        self.source: tuple[str, int, int] | None = None
        self.function = self.descriptor = ""
        self.address = 0
        in_metadata = False
        for number, line in enumerate(text.split("\n"), 1):
            if "amdgpu_metadata" in line:
                in_metadata = line.strip() == ".amdgpu_metadata"
            elif not in_metadata:
                self._line(number, _COMMENT.sub("", line))

    def _line(self, number: int, line: str) -> None:
        found = _LINE.match(line)
        assert found is not None  # the pattern takes any line
        label, rest = found.groups()
        if label:
            self._label(label)
        if rest.startswith("."):
            self._directive(rest)
        elif rest and self.function:
            self._instruction(number, rest)

    def _label(self, label: str) -> None:
        if label in self.names:
            self.function, self.address, self.source = label, 0, None
            self.bodies[label], self.labels[label] = [], {}
        elif self.function:
            self.labels[self.function][label] = len(self.bodies[self.function])

    def _instruction(self, number: int, text: str) -> None:
        mnemonic, _, rest = text.partition(" ") if "\t" not in text else text.replace("\t", " ").partition(" ")
        parts = [p.strip() for p in _SPLIT.split(rest.strip())] if rest.strip() else []
        modifiers: tuple[str, ...] = ()
        if parts:
            words = _MODIFIER.split(parts[-1])
            first = 0 if len(parts) == 1 and re.match(r"\w+[(:]", words[0]) else 1
            modifiers = tuple(words[first:])
            parts[-1:] = words[:first]
        body = self.bodies[self.function]
        body.append(Instruction(len(body), self.address, " ".join(text.split()), mnemonic, tuple(parts), modifiers,
                                number, self.source))
        self.address += size_of(mnemonic, tuple(parts))

    def _directive(self, text: str) -> None:
        word, _, rest = text.partition(" ") if "\t" not in text else text.partition("\t")
        rest = rest.strip()
        if word == ".loc":
            found = _LOC.match(text.replace("\t", " "))
            if found:
                number, line, column = (int(g or 0) for g in found.groups())
                self.source = (self.files.get(number, f"file {number}"), line, column) if line else None
        elif word == ".file":
            self.files.update(files_of(text))
        elif word == ".amdhsa_kernel":
            self.function, self.descriptor = "", rest
            self.descriptors[rest] = {}
        elif word.startswith(".amdhsa_") and self.descriptor:
            self.descriptors[self.descriptor][word.removeprefix(".amdhsa_")] = _number(rest)
        elif word in (".size", ".section", ".rodata", ".data", ".end_amdhsa_kernel"):
            self.function = self.descriptor = ""
        elif word == ".set":
            name, _, value = rest.partition(",")
            if re.fullmatch(r"\s*\d+", value):
                self.symbols[name.strip()] = int(value)


def _number(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise CompileError(f"the kernel descriptor holds an expression, {text!r}, where a number is needed",
                           hint="compile the kernel and the functions it calls as one module") from None


def _kernel(name: str, chip: Target, reader: _Reader, metadata: dict[str, Any]) -> IsaKernel:
    body, descriptor, symbols = reader.bodies.get(name), reader.descriptors[name], reader.symbols
    if not body:
        raise CompileError(f"kernel '{name}' has a descriptor and no instructions")
    total = descriptor.get("next_free_vgpr", 0)
    beyond = max(total - descriptor.get("accum_offset", total), 0)
    agprs = symbols.get(f"{name}.num_agpr", metadata.get(".agpr_count", beyond))
    vgprs = symbols.get(f"{name}.num_vgpr", descriptor.get("accum_offset", total) if agprs else total)
    args = tuple(KernelArg(a.get(".name", ""), a[".offset"], a[".size"], a[".value_kind"], a.get(".address_space", ""))
                 for a in metadata.get(".args") or ())
    return IsaKernel(
        name=name, target=chip, instructions=tuple(body), labels=reader.labels[name], args=args,
        kernarg_size=metadata.get(".kernarg_segment_size", descriptor.get("kernarg_size", 0)),
        vgprs=vgprs, agprs=agprs, sgprs=metadata.get(".sgpr_count", descriptor.get("next_free_sgpr", 0)),
        lds_bytes=descriptor.get("group_segment_fixed_size", 0),
        scratch_bytes=descriptor.get("private_segment_fixed_size", 0),
        spills=metadata.get(".vgpr_spill_count", 0) + metadata.get(".sgpr_spill_count", 0),
        max_workgroup=metadata.get(".max_flat_workgroup_size", chip.max_workgroup), descriptor=descriptor)
