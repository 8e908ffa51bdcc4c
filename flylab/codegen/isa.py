"""AMDGPU assembly text as data: kernels, instructions with their addresses and source lines, registers, occupancy.

What this reads is assembly for gfx942 and gfx950 as compilers print it and as people write it, with an `.amdhsa_kernel`
block for each kernel, and code object metadata (version 3 and later) for what launches it by its arguments.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from flylab.codegen.assembly.descriptor import KERNARG_BYTES
from flylab.codegen.assembly.encoding import size_of
from flylab.codegen.assembly.expressions import BadExpression
from flylab.codegen.assembly.kind_of_text import check_is_assembly
from flylab.codegen.assembly.listing import Function
from flylab.codegen.assembly.listing import Instruction as Instruction
from flylab.codegen.assembly.metadata import Entry, read_metadata
from flylab.codegen.assembly.occupancy import Needs, best
from flylab.codegen.assembly.occupancy import Occupancy as Occupancy
from flylab.codegen.assembly.predefined import register_ends
from flylab.codegen.assembly.reader import Reader
from flylab.codegen.assembly.sections import Section
from flylab.codegen.assembly.symbols import Symbols
from flylab.errors import CompileError, FlylabError
from flylab.locks import cached_property
from flylab.targets import Target, target

LDS_ALIGNMENT = 16
# LLVM's target for code that both chips run; without a word it runs on the first.
GENERIC_TARGET, GENERIC_DEFAULT = "gfx9-4-generic", "gfx942"
DYNAMIC_STACK_BYTES = 65536
"""Private memory a lane for the stack of kernels that recurse or have arrays of dynamic size, which none can know.

LLVM 22 takes 64 times the bytes of such an array.
"""


@dataclass(frozen=True)
class KernelArg:
    """One kernel argument of the metadata: offset and size in bytes within the kernel-argument segment.

    `alignment` is that of what a pointer to LDS points to.
    """

    name: str
    offset: int
    size: int
    kind: str
    address_space: str = ""
    alignment: int = LDS_ALIGNMENT

    @property
    def hidden(self) -> bool:
        """True for those that the runtime fills by itself (block counts and the like)."""
        return self.kind.startswith("hidden_")


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
    required_workgroup: tuple[int, ...] = ()
    """The one size of workgroup that it is compiled for, x, y, z; empty where any is good."""

    @property
    def size(self) -> int:
        """Bytes of code."""
        last = self.instructions[-1]
        return last.address + size_of(last.mnemonic, last.operands, last.modifiers)

    @property
    def vector_registers(self) -> int:
        """Registers a lane of the unified file: VGPRs rounded up to 4, then AccVGPRs."""
        return -(-self.vgprs // 4) * 4 + self.agprs if self.agprs else self.vgprs

    def needs(self, threads: int, lds_bytes: int | None = None) -> Needs:
        """What a workgroup of so many threads takes; `lds_bytes` in all, where a launch adds to its own."""
        return Needs(self.target, self.vector_registers, self.sgprs,
                     self.lds_bytes if lds_bytes is None else lds_bytes, threads)

    @cached_property
    def occupancy(self) -> Occupancy:
        """Waves per SIMD at the best workgroup size that it is compiled for."""
        return best(self.needs(self.max_workgroup))


@dataclass(frozen=True)
class Isa:
    """Assembly text and what it says: the chip, each kernel by name, and what they call and read.

    `functions` are the kernels' code and that of what they call, `sections` the data, `symbols` all names;
    `lds_symbol_bytes` of each kernel's LDS, its last ones, are those of `.amdgpu_lds` symbols.
    """

    text: str = field(repr=False)
    target: Target
    kernels: dict[str, IsaKernel]
    functions: dict[str, Function] = field(default_factory=dict, repr=False)
    sections: dict[str, Section] = field(default_factory=dict, repr=False)
    symbols: Symbols = field(default_factory=Symbols, repr=False)
    lds_symbol_bytes: int = 0

    def __str__(self) -> str:
        return self.text

    @classmethod
    def parse(cls, text: str, chip: str | None = None) -> Isa:
        """Reads assembly text; `chip` is the chip of text that names none, or the generic target of both.

        Raises `CompileError` where it names no chip or another one, no kernel, where a kernel has no body, and, with
        the line's number, for what cannot be read.
        """
        check_is_assembly(text)
        text = text.removeprefix("\ufeff")
        named = _TARGET.findall(text)
        # Another chip's text is named for that, before what else it has.
        reader = Reader(text, _chip(named, chip) if named or chip is not None else None)
        notes = read_metadata(reader.metadata)
        target_ = _chip([*named, *_TARGET_NAME.findall(notes.take("amdhsa.target", str, ""))], chip)
        descriptors, functions = reader.descriptors(), reader.functions()
        if not descriptors:
            raise CompileError("this assembly holds no kernel", hint="a kernel needs an .amdhsa_kernel block")
        metadata = {k.take(".name", str): k for k in notes.entries("amdhsa.kernels")}
        kernels = {name_: _kernel(target_, functions.get(name_), name_, descriptor, reader,
                                  metadata.get(name_, Entry())) for name_, descriptor in descriptors.items()}
        return cls(text, target_, kernels, functions, reader.sections, reader.symbols, reader.lds_bytes)


_TARGET = re.compile(r'^[ \t]*\.amdgcn_target[ \t]+"[^"\n]*?-(gfx[\w-]+)', re.M)
_TARGET_NAME = re.compile(r"-(gfx[\w-]+)")


def _chip(named: list[str], asked: str | None) -> Target:
    """The chip of a text that names one, or the generic target, or none, where one may be asked for."""
    if asked is not None:
        named = [*named, target(asked).arch]
    names = dict.fromkeys(name for name in named if name != GENERIC_TARGET)
    if len(names) > 1:
        raise CompileError(f"this assembly is for one chip, and {' and '.join(names)} are named",
                           hint="leave chip= out, or compile it for the chip that is to run it")
    if not names and not named:
        raise CompileError("this assembly names no chip",
                           hint='it needs a line .amdgcn_target "amdgcn-amd-amdhsa--gfx942"')
    try:
        return target(next(iter(names), GENERIC_DEFAULT))
    except FlylabError as error:
        raise CompileError(f"this assembly is for another chip: {error.message}", hint=error.hint) from None


def _kernel(chip: Target, function: Function | None, name: str, descriptor: dict[str, int], reader: Reader,
            metadata: Entry) -> IsaKernel:
    if function is None or not function.instructions:
        raise CompileError(f"kernel '{name}' has a descriptor and no instructions")
    if "next_free_vgpr" not in descriptor:
        descriptor = _counted(function) | descriptor
    total = descriptor["next_free_vgpr"]
    beyond = max(total - descriptor.get("accum_offset", total), 0)
    agprs = _symbol(reader, f"{name}.num_agpr", metadata.take(".agpr_count", int, beyond))
    vgprs = _symbol(reader, f"{name}.num_vgpr", descriptor.get("accum_offset", total) if agprs else total)
    args = tuple(KernelArg(a.take(".name", str, ""), a.take(".offset", int), a.take(".size", int),
                           a.take(".value_kind", str), a.take(".address_space", str, ""),
                           max(a.take(".pointee_align", int, LDS_ALIGNMENT), 1))
                 for a in metadata.entries(".args"))
    size = metadata.take(".kernarg_segment_size", int, descriptor.get("kernarg_size", 0))
    if max((a.offset + a.size for a in args), default=0) > size or size > KERNARG_BYTES:
        raise CompileError(f"the arguments of kernel '{name}' do not fit its .kernarg_segment_size of {size} bytes, or "
                           f"it is more than {KERNARG_BYTES}")
    lds = descriptor.get("group_segment_fixed_size", 0)
    if reader.lds_bytes:
        lds = -(-lds // LDS_ALIGNMENT) * LDS_ALIGNMENT + reader.lds_bytes
    scratch = descriptor.get("private_segment_fixed_size", 0)
    if descriptor.get("uses_dynamic_stack", 0):
        scratch += DYNAMIC_STACK_BYTES
    return IsaKernel(
        name=name, target=chip, instructions=function.instructions, labels=function.labels, args=args,
        kernarg_size=size, vgprs=vgprs, agprs=agprs,
        sgprs=metadata.take(".sgpr_count", int, descriptor.get("next_free_sgpr", 0)),
        lds_bytes=lds, scratch_bytes=scratch,
        spills=metadata.take(".vgpr_spill_count", int, 0) + metadata.take(".sgpr_spill_count", int, 0),
        max_workgroup=metadata.take(".max_flat_workgroup_size", int, chip.max_workgroup), descriptor=descriptor,
        required_workgroup=metadata.numbers(".reqd_workgroup_size"))


def _symbol(reader: Reader, name: str, default: int) -> int:
    """A number that LLVM writes as a symbol, where it is there and has a value."""
    try:
        return max(reader.symbols.number(name), 0)
    except BadExpression:
        return default


def _counted(function: Function) -> dict[str, int]:
    """The registers that a descriptor without counts must have, from those that the code names."""
    most = {"v": 0, "a": 0, "s": 0}
    for instruction in function.instructions:
        for file, end in register_ends(instruction.operands):
            most[file] = max(most[file], end)
    first = max(-(-most["v"] // 4) * 4, 4)
    return {"next_free_vgpr": first + most["a"] if most["a"] else most["v"], "accum_offset": first,
            "next_free_sgpr": most["s"]}
