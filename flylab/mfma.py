"""The matrix instructions of both chips, one row each, and where each element lies in the registers of a wave.

An instruction computes D = C + A x B for each of its blocks, where A is m x k, B is k x n, C and D are m x n. A lane
holds some *items* of each matrix: one after another in its registers, the low bits first.

Source: AMD's CDNA3 and CDNA4 ISA documents, "General input and output layout" and "Sparse Matrices"; that the lanes of
the result of v_mfma_f64_4x4x4_4b_f64 go over blocks before rows, from AMD's matrix instruction calculator, which
differs from the document there. Which of them each chip has: LLVM 22.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from flylab.locks import cached_property
from flylab.targets import TARGETS, WAVE_SIZE, Target

# Bits of an element by what mnemonics call its type.
BITS = {"f64": 64, "f32": 32, "xf32": 32, "f16": 16, "bf16": 16, "i8": 8, "fp8": 8, "bf8": 8, "fp6": 6, "bf6": 6,
        "fp4": 4}
# The formats of the f8f6f4 instructions by their numbers in cbsz (of A) and blgp (of B).
FORMATS = ("fp8", "bf8", "fp6", "bf6", "fp4")
# Elements of K that share a scale.
SCALE_BLOCK = 32
_DTYPES = {"f64": "Float64", "f32": "Float32", "xf32": "Float32", "f16": "Float16", "bf16": "BFloat16", "i8": "Int8",
           "fp6": "Float6E2M3FN", "bf6": "Float6E3M2FN", "fp4": "Float4E2M1FN"}
_MIXES = ("fp8_fp8", "fp8_bf8", "bf8_fp8", "bf8_bf8")


def dtype_name(kind: str, chip: Target) -> str:
    """The name in `flylab.dtypes` of what mnemonics call a type, on a chip: 8-bit floats differ between the chips.

    >>> from flylab.targets import target
    >>> dtype_name("fp8", target("gfx942")), dtype_name("fp8", target("gfx950"))
    ('Float8E4M3FNUZ', 'Float8E4M3FN')
    """
    return chip.float8.get(kind) or _DTYPES[kind]


@dataclass(frozen=True)
class Operand:
    """How A or B lies in a wave's registers: `size` rows (of A) or columns (of B), `depth` elements along K.

    The lanes of a group hold the same elements of K, those of the next group the next. A lane's items are `run`
    consecutive elements of K, then as many after those of all groups.

    >>> fp8 = Operand(size=16, blocks=1, depth=128, bits=8)
    >>> fp8.items, fp8.groups, fp8.run, [fp8.element(17, item) for item in (0, 15, 16)]
    (32, 4, 16, [(0, 1, 16), (0, 1, 31), (0, 1, 80)])
    """

    size: int
    blocks: int
    depth: int
    bits: int
    packed: bool = False
    """True of a sparse A, which holds two of each four elements of K."""

    @property
    def lanes(self) -> int:
        """The lanes of a group."""
        return self.size * self.blocks

    @property
    def groups(self) -> int:
        return WAVE_SIZE // self.lanes

    @property
    def items(self) -> int:
        """Elements that a lane holds."""
        return self.depth // self.groups

    @property
    def registers(self) -> int:
        return self.items * self.bits // 32

    @property
    def run(self) -> int:
        """Consecutive elements of K in a lane: what 16 bytes hold, and of 6-bit floats all 32."""
        most = 32 if self.bits == 6 else 128 // self.bits
        return min(self.items, most // 2 if self.packed else most)

    def place_in_k(self, item: int, group: int) -> int:
        """Which element along K an item of a group's lanes is; of a sparse A, counted in stored elements."""
        return item // self.run * self.run * self.groups + self.run * group + item % self.run

    def element(self, lane: int, item: int) -> tuple[int, int, int]:
        """The block, the row (of A) or column (of B), and the place along K of a lane's item."""
        return (lane // self.size % self.blocks, lane % self.size, self.place_in_k(item, lane // self.lanes))


@dataclass(frozen=True)
class Mfma:
    """One matrix instruction; its shape, its types as mnemonics call them, and the chips that have it.

    Where `mixed`, the types of A and B are those of `with_formats`; where `scaled`, a scale of 8 bits (a power of two,
    E8M0) goes with each 32 elements of K.
    """

    name: str
    m: int
    n: int
    k: int
    blocks: int
    a_type: str
    b_type: str
    result: str
    chips: tuple[str, ...]
    sparse: bool = False
    mixed: bool = False
    scaled: bool = False

    def __post_init__(self) -> None:
        if WAVE_SIZE % (self.m * self.blocks) or self.n != self.m or self.result not in ("f64", "f32", "i32"):
            raise ValueError(f"bad row for {self.name}")

    def with_formats(self, a: int, b: int) -> Mfma:
        """The instruction for two of `FORMATS`, by their numbers."""
        return replace(self, a_type=FORMATS[a], b_type=FORMATS[b])

    @cached_property
    def a(self) -> Operand:
        """Where A lies."""
        return Operand(self.m, self.blocks, self.k // 2 if self.sparse else self.k, BITS[self.a_type], self.sparse)

    @cached_property
    def b(self) -> Operand:
        """Where B lies."""
        return Operand(self.n, self.blocks, self.k, BITS[self.b_type])

    @property
    def broadcasts(self) -> bool:
        """True where cbsz and abid let one block of A stand for others."""
        return self.blocks > 1 and self.result != "f64"

    @property
    def permutes(self) -> bool:
        """True where blgp permutes the lanes of B."""
        return self.broadcasts or self.a_type == "f32"

    @property
    def result_bits(self) -> int:
        return int(self.result[1:])

    @property
    def result_items(self) -> int:
        """Elements of C and D that a lane holds."""
        return self.m * self.n * self.blocks // WAVE_SIZE

    @property
    def result_registers(self) -> int:
        return self.result_items * self.result_bits // 32

    @cached_property
    def result_groups(self) -> tuple[int, int, int]:
        """Consecutive rows in a lane; blocks in an item over all lanes; groups of rows in an item."""
        height = 1 if self.result == "f64" else 4
        blocks = -(-WAVE_SIZE * height // (self.n * self.m))
        return height, blocks, WAVE_SIZE // blocks // self.n

    def result_place(self, block: int, row: int, column: int) -> tuple[int, int]:
        """The item and lane of an element of C and D.

        >>> mfma("v_mfma_f32_32x32x8_f16").result_place(0, 14, 3)
        (6, 35)
        """
        height, blocks, groups = self.result_groups
        item = row % height + height * (row // (height * groups) + self.m // (height * groups) * (block // blocks))
        return item, column + self.n * (block % blocks + blocks * (row // height % groups))

    def scale_element(self, lane: int) -> tuple[int, int]:
        """The row (of A) or column (of B) and the block of K of a lane's scale."""
        return lane % self.m, lane // self.m


def _entries() -> Iterator[tuple[str, str, str, str]]:
    """Family, shapes, types, chips of all instructions."""
    both, old, new = "gfx942 gfx950", "gfx942", "gfx950"
    yield "v_mfma_f64", "16x16x4 4x4x4_4b", "f64", both
    yield "v_mfma_f32", "32x32x1_2b 16x16x1_4b 4x4x1_16b 32x32x2 16x16x4", "f32", both
    yield "v_mfma_f32", "16x16x8 32x32x4", "xf32", old
    yield "v_mfma_f32", "32x32x4_2b 16x16x4_4b 4x4x4_16b 32x32x8 16x16x16", "f16 bf16", both
    yield "v_mfma_f32", "16x16x32 32x32x16", "f16 bf16", new
    yield "v_mfma_i32", "32x32x4_2b 16x16x4_4b 4x4x4_16b 32x32x16 16x16x32", "i8", both
    yield "v_mfma_i32", "16x16x64 32x32x32", "i8", new
    yield "v_mfma_f32", "16x16x32 32x32x16", " ".join(_MIXES), both
    yield "v_mfma_f32", "16x16x128 32x32x64", "f8f6f4", new
    yield "v_mfma_scale_f32", "16x16x128 32x32x64", "f8f6f4", new
    yield "v_smfmac_f32", "16x16x32 32x32x16", "f16 bf16", both
    yield "v_smfmac_f32", "16x16x64 32x32x32", "f16 bf16", new
    yield "v_smfmac_i32", "16x16x64 32x32x32", "i8", both
    yield "v_smfmac_i32", "16x16x128 32x32x64", "i8", new
    yield "v_smfmac_f32", "16x16x64 32x32x32", " ".join(_MIXES), both
    yield "v_smfmac_f32", "16x16x128 32x32x64", " ".join(_MIXES), new


def _rows() -> Iterator[Mfma]:
    for family, shapes, types, chips in _entries():
        for shape in shapes.split():
            size, _, blocks = shape.partition("_")
            m, n, k = (int(x) for x in size.split("x"))
            for type_ in types.split():
                mixed = type_ == "f8f6f4"
                first, _, second = ("fp8_fp8" if mixed else type_).partition("_")
                yield Mfma(f"{family}_{shape}_{type_}", m, n, k, int(blocks.rstrip("b") or 1), first, second or first,
                           family.rpartition("_")[2], tuple(chips.split()), family.startswith("v_smfmac"), mixed,
                           "scale" in family)


INSTRUCTIONS = {row.name: row for row in _rows()}


def _older_names(row: Mfma) -> list[str]:
    """What else LLVM calls an instruction: the type follows the shape, without the number of blocks."""
    head, _, type_ = row.name.rpartition(f"x{row.k}")
    plain = f"{head}x{row.k}{type_.removeprefix(f'_{row.blocks}b').replace('_', '')}"
    if row.mixed or row.a_type in ("fp8", "bf8") and not row.sparse:
        return []
    before_cdna4 = row.a_type == "bf16" and not row.sparse and set(row.chips) == set(TARGETS)
    return [plain, f"{plain}_1k"] if before_cdna4 else [plain]


OLDER_NAMES = {name: row.name for row in INSTRUCTIONS.values() for name in _older_names(row)}


def mfma(name: str) -> Mfma:
    """The row of an instruction by its mnemonic, of which LLVM knows an older spelling too.

    >>> mfma("v_mfma_f32_32x32x8f16").name, mfma("v_mfma_f32_16x16x4bf16_1k").name
    ('v_mfma_f32_32x32x8_f16', 'v_mfma_f32_16x16x4_4b_bf16')

    Raises `KeyError` for a mnemonic that is no matrix instruction of either chip.
    """
    return INSTRUCTIONS[OLDER_NAMES.get(name, name)]
