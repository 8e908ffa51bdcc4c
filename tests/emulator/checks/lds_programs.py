"""Random programs that use LDS, as assembly, and what of it races by brute force: all accesses are compared."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from flylab.emulator import Program

LDS = 96
READ, WRITE, ATOMIC, BARRIER, WAVE_BARRIER = "read", "write", "atomic", "barrier", "wave barrier"
# Suffix of the mnemonic, bytes, registers, places.
FORMS = {
    READ: (("_u8", 1, 1, 1), ("_i16", 2, 1, 1), ("_b32", 4, 1, 1), ("_b64", 8, 2, 1), ("_b96", 12, 4, 1),
           ("_b128", 16, 4, 1), ("2_b32", 4, 2, 2), ("2_b64", 8, 4, 2), ("_u16_d16_hi", 2, 1, 1)),
    WRITE: (("_b8", 1, 1, 1), ("_b16", 2, 1, 1), ("_b32", 4, 1, 1), ("_b64", 8, 2, 1), ("_b96", 12, 4, 1),
            ("_b128", 16, 4, 1), ("2_b32", 4, 2, 2), ("2_b64", 8, 4, 2), ("_b16_d16_hi", 2, 1, 1)),
}
KERNEL = """
.amdgcn_target "amdgcn-amd-amdhsa--{chip}"
k:
{body}
  s_endpgm
.amdhsa_kernel k
  .amdhsa_group_segment_fixed_size {lds}
  .amdhsa_next_free_vgpr 32
  .amdhsa_accum_offset 32
  .amdhsa_next_free_sgpr 16
.end_amdhsa_kernel
"""


@dataclass(frozen=True)
class Op:
    """An access by the lanes in `lanes`: thread t at ((t * stride + start) & mask), where it writes (t & value)."""

    kind: str
    form: tuple[str, int, int, int] = ("", 0, 0, 0)
    stride: int = 0
    start: int = 0
    mask: int = 0
    offsets: tuple[int, ...] = (0,)
    lanes: int = -1
    value: int = 0

    def places(self, thread: int) -> list[int]:
        """Where a thread's bytes begin."""
        return [((thread * self.stride + self.start) & self.mask) + offset for offset in self.offsets]

    def byte(self, thread: int, position: int) -> int:
        """A byte of what a thread writes; every register of data has the same word."""
        position += 2 if self.form[0].endswith("hi") else 0
        return (thread & self.value) * 0x01010101 >> 8 * (position % 4) & 0xFF

    def lines(self) -> list[str]:
        """The assembly; its last line is the access."""
        if self.kind == BARRIER:
            return ["s_waitcnt lgkmcnt(0)", "s_barrier"]
        if self.kind == WAVE_BARRIER:
            return ["; wave barrier"]
        suffix, size, registers, places = self.form
        data = f"v[8:{7 + registers}]" if registers > 1 else "v8"
        if suffix.endswith("_b96"):
            data = "v[8:10]"
        mnemonic = f"ds_{self.kind}{suffix}" if self.kind != ATOMIC else "ds_add_u32"
        offsets = f" offset:{self.offsets[0]}"
        if places == 2:
            offsets = "".join(f" offset{n}:{offset // size}" for n, offset in enumerate(self.offsets))
        second = data
        if places == 2 and self.kind == WRITE:
            half = registers // 2
            second = "v8, v9" if half == 1 else "v[8:9], v[10:11]"
        operands = f"{data}, v1" if self.kind == READ else f"v1, {second}"
        return [f"s_mov_b64 exec, -1\ns_mov_b32 s2, {self.stride}\nv_mul_lo_u32 v1, v0, s2",
                f"v_add_u32 v1, {self.start}, v1", f"v_and_b32 v1, {self.mask}, v1",
                f"v_and_b32 v2, {self.value}, v0", "s_mov_b32 s2, 0x1010101\nv_mul_lo_u32 v8, v2, s2",
                *(f"v_mov_b32 v{n}, v8" for n in (9, 10, 11)),
                *(f"s_mov_b32 exec_{half}, {self.lanes >> at & 0xFFFFFFFF:#x}" for half, at in (("lo", 0), ("hi", 32))),
                f"{mnemonic} {operands}{offsets}"]


def random_op(rng: random.Random, kinds: tuple[int, ...]) -> Op:
    kind = rng.choices((READ, WRITE, ATOMIC, BARRIER, WAVE_BARRIER), kinds)[0]
    if kind in (BARRIER, WAVE_BARRIER):
        return Op(kind)
    form = ("", 4, 1, 1) if kind == ATOMIC else rng.choice(FORMS[kind])
    step = rng.choice((1, 2, 4)) if kind != ATOMIC else 4
    stride = rng.choice((0, 1, 2, 3, 4, 4)) * step
    mask = rng.choice((0, 15, 31, 63)) & -step
    offsets = tuple(form[1] * rng.randrange(3) for _ in range(form[3])) if form[3] == 2 else (rng.randrange(3) * step,)
    lanes = rng.choice((-1, -1, 1, 0xFF, 1 << rng.randrange(64), rng.getrandbits(64), 3 << rng.randrange(63)))
    start = rng.randrange(16) * step
    return Op(kind, form, stride, start, mask, offsets, lanes & (1 << 64) - 1, rng.choice((0, 1, 63)))


def random_ops(seed: int) -> tuple[int, list[Op]]:
    """Waves of a workgroup, and what each of them does.

    Where there are several waves, there are either atomics or barriers of a wave: the check does not keep all of both.
    """
    rng = random.Random(seed)
    waves = rng.choice((1, 2, 3))
    kinds = (6, 4, 2, 4, 1) if waves == 1 else rng.choice(((6, 4, 2, 4, 0), (6, 4, 0, 4, 2)))
    return waves, [random_op(rng, kinds) for _ in range(rng.randrange(2, 10))]


def program(ops: list[Op], chip: str) -> tuple[Program, dict[int, int]]:
    """The program, and which op each of its instructions that access LDS belongs to."""
    lines = ["v_mov_b32 v8, 0"]
    for op in ops:
        lines += op.lines()
    text = KERNEL.format(chip=chip, lds=LDS, body="\n".join(f"  {line}" for part in lines for line in part.split("\n")))
    made = Program.from_assembly(text)
    accesses = [i.index for i in made.isa.kernels["k"].instructions if i.mnemonic.startswith("ds_")]
    own = [n for n, op in enumerate(ops) if op.kind not in (BARRIER, WAVE_BARRIER)]
    return made, dict(zip(accesses, own, strict=True))


@dataclass(frozen=True)
class Access:
    op: int
    thread: int
    byte: int
    kind: str
    epoch: int
    part: int
    """Between which barriers of the wave."""
    value: int

    def races(self, other: Access) -> bool:
        """Whether two accesses of one byte in one epoch race."""
        if self.thread == other.thread or self.kind == other.kind == READ or self.kind == other.kind == ATOMIC:
            return False
        if self.thread // 64 == other.thread // 64 and self.part != other.part:
            return False
        return not self.is_alike(other)

    def is_alike(self, other: Access) -> bool:
        """Whether two threads write one value to a byte by one instruction."""
        return (self.kind == other.kind == WRITE and self.op == other.op and self.thread != other.thread
                and self.value == other.value)


@dataclass
class Oracle:
    """All accesses, by epoch and byte, in the order in which the device does them."""

    accesses: dict[tuple[int, int], list[Access]] = field(default_factory=lambda: defaultdict(list))

    @classmethod
    def of(cls, waves: int, ops: list[Op]) -> Oracle:
        found = cls()
        starts = [0, *(n + 1 for n, op in enumerate(ops) if op.kind == BARRIER), len(ops)]
        for epoch, (start, end) in enumerate(zip(starts, starts[1:], strict=False)):
            for wave in range(waves):
                part = 0
                for number in range(start, end):
                    part += ops[number].kind == WAVE_BARRIER and number != start
                    for access in _of_wave(ops[number], number, wave, epoch, part):
                        found.accesses[epoch, access.byte].append(access)
        return found

    def first_races(self) -> Iterator[tuple[Access, list[Access]]]:
        """Of each byte in each epoch the first access that races, and with which ones before it.

        A lane may hide behind one of the same instruction that writes the same value; such bytes are left out.
        """
        for accesses in self.accesses.values():
            for n, access in enumerate(accesses):
                if before := [other for other in accesses[:n] if access.races(other)]:
                    if not any(access.is_alike(other) for other in accesses[:n]):
                        yield access, before
                    break

    def pairs(self, byte: int) -> Iterator[tuple[Access, Access]]:
        """All races at a byte."""
        for (_, at), accesses in self.accesses.items():
            if at == byte:
                yield from ((a, b) for n, a in enumerate(accesses) for b in accesses[:n] if a.races(b))


def _of_wave(op: Op, number: int, wave: int, epoch: int, part: int) -> Iterator[Access]:
    if op.kind in (BARRIER, WAVE_BARRIER):
        return
    for place in range(len(op.offsets)):
        for lane in (n for n in range(64) if op.lanes >> n & 1):
            thread = 64 * wave + lane
            start = op.places(thread)[place]
            for position in range(op.form[1]):
                yield Access(number, thread, start + position, op.kind, epoch, part, op.byte(thread, position))
