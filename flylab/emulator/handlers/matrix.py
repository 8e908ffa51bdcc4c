"""Handlers of matrix instructions: D = C + A x B on the registers of a wave.

A and B are unpacked first, to numbers of the result's type with K outermost, in scratch memory on the stack; so the
result may lie over them. Then some rows of D at a time stay in host registers, 16 columns each, while K rises.

The numbers, in this one place:

* Products of f16, bf16 and smaller floats are exact in f32. Every sum is a chain of fused multiply-adds in rising K,
  each rounded to nearest even in the result's type (f32; f64 for f64), from C onwards. So with S = |C| + sum |A B| the
  error of an element is at most K u S / (1 - K u) for u = 2^-24 (2^-53), as long as no product is denormal. How the
  chip adds within one instruction is not published.
* f8f6f4: each 32 elements of K are such a chain of their own from 0, whose result is multiplied with both scales and
  added to what there is so far, rounded once. Source: CDNA4 ISA, "the scales are applied after the normal dot product
  prior to accumulation". A scale 0xFF is NaN.
* xf32 inputs lose all but `XF32_FRACTION` bits of their fraction (cut, not rounded). The ISA documents do not say;
  measured on MI300X by the authors of hipBLASLt (ROCm/rocm-libraries, pull request 9176).
* i8: sums are exact, and wrap in 32 bits.
* Denormals stay, of sources and results, but those of 32-bit sources where MODE says that they become zero. Source:
  CDNA4 ISA, "Floating-point handling details and formats". MODE's rounding and EXEC do not matter.
* NaN and infinity go their way, by the encoding of the chip for 8-bit floats. Of a sparse A, the elements of B that the
  index does not pick are not looked at.

No hazards: every instruction is complete before the next begins, so the wait states that the chip needs between them
have no effect.
"""

from __future__ import annotations

from dataclasses import dataclass

from flylab.dtypes import DTYPES
from flylab.emulator.decoding.table import TYPES
from flylab.emulator.handlers.ir import Builder, Repeat, Value, width
from flylab.emulator.handlers.record import HANDLER, next_record, slot
from flylab.emulator.numbers import codec
from flylab.emulator.numbers.float_mode import Mode, flushed
from flylab.emulator.state import ROW_BYTES, WAVE_SIZE
from flylab.mfma import SCALE_BLOCK, Mfma, Operand, dtype_name
from flylab.targets import target

XF32_FRACTION = 10
# Columns of D in one host vector.
LANES = 16
CHUNKS = WAVE_SIZE // LANES
# Slots of a record. That of C holds a constant's bits where C is one; a sparse instruction's index takes its place.
RESULT, A, B, C, SCALES = 0, 1, 2, 3, 5
INDEX = C
_NUMBERS = {"f64": "double", "f32": "float", "i32": "i32"}


@dataclass(frozen=True)
class Form:
    """What makes one handler: the instruction with its formats, the chip, and what the text's modifiers say.

    `constant` says that C is one; `scales` are the bytes of the scale registers that count.
    """

    row: Mfma
    arch: str
    mode: Mode
    constant: bool
    cbsz: int = 0
    abid: int = 0
    blgp: int = 0
    negative: tuple[bool, ...] = (False, False, False)
    scales: tuple[int, int] | None = None

    @property
    def key(self) -> str:
        """The handler's name: two forms with the same key have the same code."""
        row = self.row
        chip = self.arch if "8" in row.a_type + row.b_type else ""
        mode = self.mode.denormals_32 if row.a_type in ("f32", "xf32") else ""
        types, lanes = f"{row.a_type} {row.b_type}", f"{self.cbsz} {self.abid} {self.blgp}"
        return f"{row.name} {types} {chip} {mode} {self.constant} {lanes} {self.negative} {self.scales}"


def write(form: Form, name: str) -> str:
    """The IR of a matrix instruction."""
    return _Handler(form).text(name)


class _Handler:
    """The parts of a handler: sources to scratch memory, the products, the result."""

    def __init__(self, form: Form):
        self.form, self.row, self.b = form, form.row, Builder()
        self.type = _NUMBERS[form.row.result]
        self.bytes = width(self.type) // 8
        self.places = _Places(form.row)
        sizes = [operand.depth * operand.lanes * self.bytes for operand in (self.row.a, self.row.b)]
        sizes += [sizes[0] if self.row.sparse else 0, *([8 * WAVE_SIZE] * 2 if form.scales else [])]
        self.starts = [sum(sizes[:n]) for n in range(len(sizes) + 1)]

    def text(self, name: str) -> str:
        """The handler's IR."""
        b, form, row = self.b, self.form, self.row
        b.do(f"%scratch = alloca [{self.starts[-1]} x i8], align 64")
        self.unpack(A, row.a, row.a_type, form.negative[0], _block_lanes(0 if row.sparse else form.cbsz, form.abid))
        self.unpack(B, row.b, row.b_type, form.negative[1], _permuted_lanes(form.blgp))
        if row.sparse:
            self.unpack_index()
        if form.scales:
            for n, byte in enumerate(form.scales):
                self.unpack_scale(n, byte)
        if row.mixed:
            self.start_result()
            with b.repeat(row.k // SCALE_BLOCK) as part, b.repeat(self.places.tiles) as tile:
                self.add_block(part.index, tile.index)
        else:
            with b.repeat(self.places.tiles) as tile:
                first = [self.start(tile.index, *place) for place in self.places.each]
                for place, value in zip(self.places.each, self.chain(tile.index, first), strict=True):
                    self.put(value, tile.index, *place)
        next_record(b)
        return b.function(name, HANDLER)

    # sources

    def registers(self, record_slot: int) -> str:
        return self.b.at("%v", slot(self.b, record_slot))

    def unpack(self, record_slot: int, operand: Operand, type_: str, negative: bool, lanes: _Lanes) -> None:
        """A source as numbers in scratch memory: for each place along K those of a group's lanes, side by side."""
        b = self.b
        step = operand.lanes * self.bytes
        start, source = b.at("%scratch", self.starts[record_slot - A]), self.registers(record_slot)
        dtype = DTYPES[dtype_name(type_, target(self.form.arch))]
        count = 3 if dtype.bits == 6 else max(dtype.bits // 32, 1)
        items = 32 * count // dtype.bits
        with b.repeat(CHUNKS) as chunk:
            here = b.at(source, ((chunk.index & lanes.mask) + lanes.first & CHUNKS - 1) * (4 * LANES))
            there = b.at(start, self.chunk_place(operand, chunk.index))
            with b.repeat(operand.registers // count) as part:
                row = b.at(here, part.index * (count * ROW_BYTES))
                words = [lanes.pick(b.load(b.at(row, ROW_BYTES * n), "i32", LANES, 64)) for n in range(count)]
                item = part.index * items
                k = item.divide(operand.run) * (operand.run * operand.groups) + item.modulo(operand.run)
                place = b.at(there, k * step)
                for n in range(items):
                    number = self.number(type_, words, n)
                    b.store(-number if negative else number, b.at(place, n * step), 64)

    def chunk_place(self, operand: Operand, chunk: Value) -> Value:
        """Where the first item of 16 lanes goes: its group's place along K, its lanes' place within a group."""
        per_group = operand.lanes // LANES
        group_bytes = operand.run * operand.lanes * self.bytes
        return chunk.divide(per_group) * group_bytes + chunk.modulo(per_group) * (LANES * self.bytes)

    def number(self, type_: str, words: list[Value], n: int) -> Value:
        """Item `n` of registers side by side, as a number of the result's type."""
        dtype = DTYPES[dtype_name(type_, target(self.form.arch))]
        word, shift = divmod(n * dtype.bits, 32)
        code = words[word].shr(shift) if shift else words[word]
        if shift + dtype.bits > 32 and dtype.bits < 32:
            code = code | words[word + 1].shl(32 - shift)
        if type_ == "f64":
            return _doubles(*words)
        if type_ == "i8":
            return words[0].shl(24 - shift).sar(24)
        if type_ == "f16":
            return code.to("i16").bits("half").to("float")
        if dtype.bits < 32:
            assert dtype.encoding is not None
            return codec.decode(code, dtype.encoding)
        code = flushed(self.form.mode, code, TYPES["f32"], 1)
        if type_ == "xf32":
            nan = (code & 0x7FFFFFFF).cmp("ugt", 0x7F800000)
            code = nan.select(code | 1 << 22, code & -(1 << 23 - XF32_FRACTION))
        return code.bits("float")

    def unpack_index(self) -> None:
        """Of each element of a sparse A, where in scratch memory the row of B is that it is multiplied with."""
        b, a, b_side = self.b, self.row.a, self.row.b
        step = b_side.lanes * self.bytes
        start, source = b.at("%scratch", self.starts[2]), self.registers(INDEX)
        with b.repeat(CHUNKS) as chunk:
            bits = b.load(b.at(source, chunk.index * (4 * LANES)), "i32", LANES, 64)
            bits = bits.shr(self.form.abid * 2 * a.items % 32)
            there = b.at(start, self.chunk_place(a, chunk.index))
            base = chunk.index.divide(b_side.lanes // LANES) * b_side.run * step
            for n in range(a.items):
                row = (bits.shr(2 * n) & 3) * step + b_side.place_in_k(n // 2 * 4, 0) * step
                b.store(row + base.to("i32").splat(LANES), b.at(there, a.place_in_k(n, 0) * a.lanes * self.bytes), 64)

    def unpack_scale(self, number: int, byte: int) -> None:
        """The scales of A or B as doubles, those of a block of K side by side."""
        b = self.b
        start, source = b.at("%scratch", self.starts[3 + number]), self.registers(SCALES + number)
        with b.repeat(CHUNKS) as chunk:
            code = b.load(b.at(source, chunk.index * (4 * LANES)), "i32", LANES, 64).shr(8 * byte) & 0xFF
            power = (code + (1023 - 127)).to("i64").shl(52)
            scale = code.cmp("eq", 0xFF).select(0x7FF8 << 48, power).bits("double")
            b.store(scale, b.at(start, chunk.index * (8 * LANES)), 64)

    # the result

    def result_at(self, record_slot: int, tile: Value, row: int, column: int) -> str:
        """The pointer to 16 columns of a row of C or D, in a tile."""
        first = self.b.at(self.registers(record_slot), tile * self.places.step)
        return self.b.at(first, self.places.offset(row, column))

    def put(self, value: Value, tile: Value, row: int, column: int) -> None:
        """Stores 16 columns of a row of D."""
        b, at = self.b, self.result_at(RESULT, tile, row, column)
        if self.bytes == 4:
            b.store(value, at, 64)
            return
        bits = value.recast("i32", 2 * LANES)
        for n in range(2):
            b.store(bits.shuffle(bits, range(n, 2 * LANES, 2)), b.at(at, ROW_BYTES * n), 64)

    def get(self, record_slot: int, tile: Value, row: int, column: int) -> Value:
        """Loads 16 columns of a row of C or D."""
        b, at = self.b, self.result_at(record_slot, tile, row, column)
        if self.bytes == 4:
            return b.load(at, self.type, LANES, 64)
        return _doubles(*(b.load(b.at(at, ROW_BYTES * n), "i32", LANES, 64) for n in range(2)))

    def start(self, tile: Value, row: int, column: int) -> Value:
        """What the products are added to."""
        if self.row.sparse:
            return self.get(RESULT, tile, row, column)
        value = self.constant() if self.form.constant else self.get(C, tile, row, column)
        return -value if self.form.negative[2] else value

    def constant(self) -> Value:
        return slot(self.b, C, f"i{8 * self.bytes}").bits(self.type).splat(LANES)

    def start_result(self) -> None:
        """C in the place of D, for products that are added in parts."""
        with self.b.repeat(self.places.tiles) as tile:
            addends = [self.start(tile.index, *place) for place in self.places.each]  # which D may overlap
            for place, value in zip(self.places.each, addends, strict=True):
                self.put(value, tile.index, *place)

    def chain(self, tile: Value, first: list[Value], part: Value | None = None) -> list[Value]:
        """The products of a tile along K, or along a `part` of K alone, added to `first`."""
        b, row, places = self.b, self.row, self.places
        a_step, b_step = (operand.lanes * self.bytes for operand in (row.a, row.b))
        a_start = b.at("%scratch", tile * (places.a_step * self.bytes))
        b_place = tile.divide(places.tiles_of_b) * (places.b_step * self.bytes)
        b_start = b.at(b.at("%scratch", self.starts[1]), b_place)
        depth = row.a.depth
        if part is not None:
            depth = SCALE_BLOCK
            a_start, b_start = b.at(a_start, part * (depth * a_step)), b.at(b_start, part * (depth * b_step))
        with b.repeat(depth, *first) as k:
            self.round(k, b.at(a_start, k.index * a_step), b_start if row.sparse else b.at(b_start, k.index * b_step))
        return k.values

    def round(self, k: Repeat, a_at: str, b_at: str) -> None:
        """One element of K: its column of A times its row of B; of a sparse A, each row's own row of B."""
        of_a: dict[int, Value] = {}
        of_b: dict[tuple[int, int], Value] = {}
        values = []
        for (row, column), sum_ in zip(self.places.each, k.values, strict=True):
            if row not in of_a:
                of_a[row] = self.row_of_a(a_at, row)
            place = (row if self.row.sparse else 0, column)
            if place not in of_b:
                of_b[place] = self.row_of_b(a_at, b_at, row, column)
            values.append(self.fused(of_a[row], of_b[place], sum_))
        k.values = values

    def row_of_a(self, a_at: str, row: int) -> Value:
        """An element of A in all lanes; of blocks of 4 rows, each block's in its lanes."""
        b = self.b
        if self.row.m >= LANES:
            return b.load(b.at(a_at, row * self.bytes), self.type).splat(LANES)
        several = b.load(a_at, self.type, LANES, 64)
        return several.shuffle(several, [lane // 4 * 4 + row for lane in range(LANES)])

    def row_of_b(self, a_at: str, b_at: str, row: int, column: int) -> Value:
        """16 elements of a row of B; of a sparse A, of the row that goes with its element in this row."""
        b = self.b
        if self.row.sparse:
            b_at = b.at(b_at, b.load(b.at(a_at, self.starts[2] + row * self.bytes), "i32"))
        return b.load(b.at(b_at, column * self.bytes), self.type, LANES, 64)

    def fused(self, x: Value, y: Value, sum_: Value) -> Value:
        return x * y + sum_ if self.type == "i32" else x.call("fma", y, sum_)

    def add_block(self, part: Value, tile: Value) -> None:
        """The products of 32 elements of K, scaled, added to D."""
        b, places = self.b, self.places
        sums = self.chain(tile, [b.const(0.0, self.type, LANES)] * len(places.each), part)
        columns = {column: self.scales_of_b(part, column) for _, column in places.each} if self.form.scales else {}
        for (row, column), sum_ in zip(places.each, sums, strict=True):
            before = self.get(RESULT, tile, row, column)
            if columns:
                scaled = sum_.to("double") * (self.scale_of_a(part, tile, row) * columns[column])
                self.put((before.to("double") + scaled).to("float"), tile, row, column)
            else:
                self.put(before + sum_, tile, row, column)

    def scale_of_a(self, part: Value, tile: Value, row: int) -> Value:
        at = self.b.at("%scratch", part * (8 * self.row.m) + tile * (8 * self.places.a_step))
        return self.b.load(self.b.at(at, self.starts[3] + 8 * row), "double", align=8).splat(LANES)

    def scales_of_b(self, part: Value, column: int) -> Value:
        at = self.b.at("%scratch", part * (8 * self.row.n))
        return self.b.load(self.b.at(at, self.starts[4] + 8 * column), "double", LANES, 64)


@dataclass(frozen=True)
class _Lanes:
    """Which lanes are read in the place of 16 others: chunk c reads chunk (c & mask) + first, its lanes in `order`."""

    mask: int = CHUNKS - 1
    first: int = 0
    order: tuple[int, ...] = ()

    def pick(self, value: Value) -> Value:
        return value.shuffle(value, self.order) if self.order else value


def _block_lanes(cbsz: int, abid: int) -> _Lanes:
    """Lanes of A: those of block `abid` of 64 >> cbsz lanes stand for all others."""
    size = WAVE_SIZE >> cbsz
    first = size * abid
    if size >= LANES:
        return _Lanes(size // LANES - 1, first // LANES)
    return _Lanes(0, first // LANES, tuple(first % LANES + lane % size for lane in range(LANES)))


def _permuted_lanes(blgp: int) -> _Lanes:
    """Lanes of B: half of them for all, turned by a quarter, or a quarter for all."""
    return (_Lanes(), _Lanes(1), _Lanes(1, 2), _Lanes(3, 1), *(_Lanes(0, n) for n in range(4)))[blgp]


def _doubles(low: Value, high: Value) -> Value:
    """The doubles whose halves lie in two registers."""
    order = [n + LANES * half for n in range(LANES) for half in range(2)]
    return low.shuffle(high, order).recast("double", LANES)


class _Places:
    """How the result is cut into tiles, so that a tile's rows fit the host's registers.

    `each` are the rows and first columns of a tile's vectors, `step` bytes lie from a tile to the next; the elements of
    A move on by `a_step` with a tile, those of B by `b_step` with `tiles_of_b`.
    """

    def __init__(self, row: Mfma):
        self.row = row
        if row.m < LANES:
            rows, self.tiles_of_b, self.a_step, self.b_step = row.m, 1, LANES, LANES
            self.tiles = row.blocks * row.m // LANES
        else:
            rows = 16 if row.m == 16 and row.result != "f64" else 8
            self.tiles_of_b = row.m // rows
            self.tiles, self.a_step, self.b_step = row.blocks * self.tiles_of_b, rows, row.n
        self.each = [(r, c) for r in range(rows) for c in range(0, max(row.n, LANES), LANES)]
        self.step = self.tile_start(1) - self.tile_start(0) if self.tiles > 1 else 0

    def tile_start(self, tile: int) -> int:
        """The offset of a tile's first element in the registers of D."""
        if self.row.m < LANES:
            return self.bytes_to(LANES // self.row.m * tile, 0, 0)
        block, part = divmod(tile, self.tiles_of_b)
        return self.bytes_to(block, part * self.a_step, 0)

    def offset(self, row: int, column: int) -> int:
        """The offset of an element of the first tile."""
        return self.bytes_to(0, row, column)

    def bytes_to(self, block: int, row: int, column: int) -> int:
        item, lane = self.row.result_place(block, row, column)
        return ROW_BYTES * item * (self.row.result_bits // 32) + 4 * lane
