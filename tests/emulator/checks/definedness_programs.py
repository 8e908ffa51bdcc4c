"""Random straight-line programs for the registers check: each instruction with what it does to the oracle's wave."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.emulator.checks.definedness_oracle import (
    LANES,
    LOGIC,
    WORD,
    Wave,
    bits_of,
    from_lowest_undefined,
    known,
    lanewise,
    parts,
    xor_,
)

# Of the registers that programs use: vector ones, and scalar ones beyond the pointers' that the kernel loads.
VECTORS = [f"v{n}" for n in range(8)]
SCALARS = [f"s{n}" for n in range(8, 16)]
PAIRS = [f"s[{n}:{n + 1}]" for n in range(8, 16, 2)] + ["vcc"]
ADDRESS = "v20"
"""Where lane n has 8 n."""
Step = tuple[str, Callable[[Wave], None]]


class Programs:
    """Makes instructions, each as its text and what it does."""

    def __init__(self, random: Random):
        self.random = random

    def step(self) -> Step:
        """One instruction."""
        makers = [self.sum, self.sum, self.part, self.chosen, self.compared, self.carried, self.wide, self.moved_lane,
                  self.logic, self.logic, self.scalar_sum, self.travelling, self.selected, self.counted, self.masked,
                  self.written, self.read, self.copied, self.saved]
        return self.random.choice(makers)()

    def v(self) -> str:
        return self.random.choice(VECTORS)

    def s(self) -> str:
        return self.random.choice(SCALARS)

    def source(self) -> str:
        """A vector source: mostly a register."""
        return self.random.choice([self.v(), self.v(), self.v(), self.s(), str(self.random.randint(1, 64))])

    def copied(self) -> Step:
        d, x = self.v(), self.source()
        return f"v_mov_b32_e32 {d}, {x}", lambda w: w.set_v(d, w.v(x))

    def sum(self) -> Step:
        name, compute = self.random.choice([
            ("v_add_u32_e32", lambda x, y: x + y), ("v_sub_u32_e32", lambda x, y: x - y),
            ("v_xor_b32_e32", lambda x, y: x ^ y), ("v_mul_lo_u32", lambda x, y: x * y),
            ("v_max_u32_e32", max), ("v_lshlrev_b32_e32", lambda n, x: x << (n & 31))])
        d, x, y = self.v(), self.v() if name == "v_mul_lo_u32" else self.source(), self.v()
        return f"{name} {d}, {x}, {y}", lambda w: w.set_v(d, lanewise(compute, w.v(x), w.v(y)))

    def part(self) -> Step:
        """What builds a register of parts."""
        d, x, y = (self.v() for _ in range(3))
        kind = self.random.randrange(4)
        if kind == 0:
            return f"v_or_b32_e32 {d}, {x}, {y}", lambda w: w.set_v(d, parts(lambda a, b: a | b, w.v(x), w.v(y)))
        if kind == 1:
            return f"v_and_b32_e32 {d}, {x}, {y}", lambda w: w.set_v(d, parts(lambda a, b: a & b, w.v(x), w.v(y)))
        if kind == 2:
            return f"v_and_b32_e32 {d}, 0xff0, {y}", lambda w: w.set_v(d, lanewise(lambda b: b & 0xFF0, w.v(y)))

        return (f"v_lshl_or_b32 {d}, {x}, 16, {y}",
                lambda w: w.set_v(d, parts(lambda a, b: (a << 16) % WORD | b, w.v(x), w.v(y))))

    def chosen(self) -> Step:
        d, x, y, m = self.v(), self.v(), self.v(), self.random.choice(PAIRS)

        def run(w: Wave) -> None:
            no, yes, mask = w.v(x), w.v(y), w.s(m, 64)
            w.set_v(d, [None if mask[n] is None else (yes if mask[n] else no)[n] for n in range(LANES)])

        return f"v_cndmask_b32_e64 {d}, {x}, {y}, {m}", run

    def compared(self) -> Step:
        m, x, y = self.random.choice(PAIRS), self.source(), self.v()
        name, compute = self.random.choice([("lt", lambda a, b: a < b), ("eq", lambda a, b: a == b)])
        return (f"v_cmp_{name}_u32_e64 {m}, {x}, {y}",
                lambda w: w.set_mask(m, lanewise(lambda a, b: int(compute(a, b)), w.v(x), w.v(y))))

    def carried(self) -> Step:
        d, x, y, m, out = self.v(), self.v(), self.v(), self.random.choice(PAIRS), self.random.choice(PAIRS)

        def run(w: Wave) -> None:
            sums = [None if None in lane else sum(lane) for lane in zip(w.v(x), w.v(y), w.s(m, 64), strict=True)]
            w.set_v(d, [None if n is None else n % WORD for n in sums])
            w.set_mask(out, [None if n is None else n >> 32 for n in sums])

        return f"v_addc_co_u32_e64 {d}, {out}, {x}, {y}, {m}", run

    def wide(self) -> Step:
        """64 bits: a shift up needs no high half for the low one, a shift down has parts of both in the low one."""
        d, x = (2 * self.random.randrange(4) for _ in range(2))
        amount = self.random.randint(1, 31)
        up = self.random.random() < 0.5

        def run(w: Wave) -> None:
            low, high = w.v(f"v{x}"), w.v(f"v{x + 1}")
            if up:
                lows = lanewise(lambda a: a << amount, low)
                highs = lanewise(lambda a, b: (b << 32 | a) << amount >> 32, low, high)
            else:
                lows = parts(lambda a, b: (b << 32 | a) >> amount, low, high)
                highs = lanewise(lambda b: b >> amount, high)
            w.set_v(f"v{d}", lows)
            w.set_v(f"v{d + 1}", highs)

        return f"v_{'lshlrev' if up else 'lshrrev'}_b64 v[{d}:{d + 1}], {amount}, v[{x}:{x + 1}]", run

    def moved_lane(self) -> Step:
        d, v, s, lane = self.s(), self.v(), self.s(), self.random.randrange(LANES)
        kind = self.random.randrange(3)

        def whole(w: Wave, value: int | None) -> None:
            w.set_s(d, [None] * 32 if value is None else bits_of(value))

        if kind == 0:
            return f"v_readlane_b32 {d}, {v}, {lane}", lambda w: whole(w, w.v(v)[lane])
        if kind == 1:
            first = lambda w: (w.exec & -w.exec).bit_length() - 1 if w.exec else 0  # noqa: E731
            return f"v_readfirstlane_b32 {d}, {v}", lambda w: whole(w, w.v(v)[first(w)])

        def put(w: Wave) -> None:
            lanes, bits = list(w.v(v)), w.s(s)
            undefined = all(bit is None for bit in bits)
            lanes[lane] = None if undefined else sum((bit or 0) << n for n, bit in enumerate(bits))
            w.vectors[int(v[1:])] = lanes

        return f"v_writelane_b32 {v}, {s}, {lane}", put

    def logic(self) -> Step:
        name = self.random.choice([*LOGIC])
        size = self.random.choice((32, 64))
        names = SCALARS if size == 32 else PAIRS
        d, x = self.random.choice(names), self.random.choice(names)
        y = self.random.choice([*names, "0xff00ff" if size == 32 else "exec"])

        def run(w: Wave) -> None:
            bits = [LOGIC[name](a, b) for a, b in zip(w.s(x, size), w.s(y, size), strict=True)]
            w.set_s(d, bits)
            w.set_condition(bits)

        return f"s_{name}_b{size} {d}, {x}, {y}", run

    def scalar_sum(self) -> Step:
        name, compute = self.random.choice([("s_add_u32", lambda a, b: a + b), ("s_sub_u32", lambda a, b: a - b),
                                            ("s_mul_i32", lambda a, b: a * b)])
        d, x, y = self.s(), self.s(), self.random.choice([self.s(), "5"])

        def run(w: Wave) -> None:
            bits = [w.s(x), w.s(y)]
            numbers = [sum((bit or 0) << n for n, bit in enumerate(b)) for b in bits]
            total = compute(*numbers)
            undefined = [xor_(a, b) for a, b in zip(*bits, strict=True)]
            w.set_s(d, from_lowest_undefined(undefined, total % WORD))
            if name != "s_mul_i32":
                w.scc = None if None in undefined else int(not 0 <= total < WORD)

        return f"{name} {d}, {x}, {y}", run

    def travelling(self) -> Step:
        """Bits that go elsewhere: shifts, fields, halves, signs."""
        d, x, y, n = self.s(), self.s(), self.s(), self.random.randint(0, 31)
        kind = self.random.randrange(5)

        def result(w: Wave, bits: list[int | None], condition: bool = True) -> None:
            w.set_s(d, bits)
            if condition:
                w.set_condition(bits)

        if kind == 0:
            return f"s_lshl_b32 {d}, {x}, {n}", lambda w: result(w, ([0] * n + w.s(x))[:32])
        if kind == 1:
            return f"s_lshr_b32 {d}, {x}, {n}", lambda w: result(w, w.s(x)[n:] + [0] * n)
        if kind == 2:
            return f"s_pack_ll_b32_b16 {d}, {x}, {y}", lambda w: result(w, w.s(x)[:16] + w.s(y)[:16], False)
        if kind == 3:
            return f"s_sext_i32_i16 {d}, {x}", lambda w: result(w, w.s(x)[:16] + w.s(x)[15:16] * 16, False)

        def by_register(w: Wave) -> None:
            amount = known(w.s(y)[:32])
            result(w, [None] * 32 if amount is None else ([0] * (amount & 31) + w.s(x))[:32])

        return f"s_lshl_b32 {d}, {x}, {y}", by_register

    def selected(self) -> Step:
        size = self.random.choice((32, 64))
        names = SCALARS if size == 32 else PAIRS
        d, x, y = (self.random.choice(names) for _ in range(3))

        def run(w: Wave) -> None:
            w.set_s(d, [None] * size if w.scc is None else w.s(x if w.scc else y, size))

        return f"s_cselect_b{size} {d}, {x}, {y}", run

    def counted(self) -> Step:
        d, x = self.s(), self.random.choice(PAIRS)

        def run(w: Wave) -> None:
            number = known(w.s(x, 64))
            w.set_s(d, [None] * 32 if number is None else bits_of(number.bit_count()))
            w.scc = None if number is None else int(number != 0)

        return f"s_bcnt1_i32_b64 {d}, {x}", run

    def masked(self) -> Step:
        """Other lanes go on."""
        mask = self.random.choice([(1 << LANES) - 1, self.random.getrandbits(LANES), 0xFF, 0])

        def run(w: Wave) -> None:
            w.exec = mask

        return f"s_mov_b32 exec_lo, {mask % WORD:#x}\n  s_mov_b32 exec_hi, {mask >> 32:#x}", run

    def saved(self) -> Step:
        """EXEC to a pair of registers."""
        d = self.random.choice(PAIRS)
        return f"s_mov_b64 {d}, exec", lambda w: w.set_s(d, bits_of(w.exec, 64))

    def written(self) -> Step:
        x, offset, size = self.v(), self.random.randrange(0, 16), self.random.choice((1, 4))

        def run(w: Wave) -> None:
            for lane, value in enumerate(w.v(x)):
                for n in range(size) if w.exec >> lane & 1 else ():
                    w.lds[8 * lane + offset + n] = None if value is None else value >> 8 * n & 255

        return f"ds_write_b{8 * size} {ADDRESS}, {x} offset:{offset}", run

    def read(self) -> Step:
        offset, size = self.random.randrange(0, 16), self.random.choice((1, 4, 8))
        d = 2 * self.random.randrange(4)

        def run(w: Wave) -> None:
            for register in range(max(size // 4, 1)):
                lanes = []
                for lane in range(LANES):
                    first = 8 * lane + offset + 4 * register
                    found = [w.lds.get(first + n) for n in range(min(size, 4))]
                    lanes.append(None if set(found) == {None} else sum((x or 0) << 8 * n for n, x in enumerate(found)))
                w.set_v(f"v{d + register}", lanes)

        name = {1: f"u8 v{d}", 4: f"b32 v{d}", 8: f"b64 v[{d}:{d + 1}]"}[size]
        return f"ds_read_{name}, {ADDRESS} offset:{offset}\n  s_waitcnt lgkmcnt(0)", run
