"""Atomics of memory: what many threads do at once against numpy, and each instruction by hand."""

from __future__ import annotations

import numpy as np
import pytest

from flylab.emulator import Program
from flylab.errors import DeviceError, OutOfBounds, UnknownInstruction
from tests.emulator.toolchain import CHIPS, assembly, element, kernel, program

CELLS, THREADS = 7, 40 * 256
# What the threads leave behind does not depend on their order for these.
ORDERLESS = {"add": np.add, "sub": np.subtract, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
             "max": np.maximum, "min": np.minimum, "umax": np.maximum, "umin": np.minimum}


@pytest.fixture(autouse=True)
def several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workgroups run at the same time, whatever the machine has."""
    monkeypatch.setenv("FLYLAB_EMULATOR_THREADS", "4")


def atomic_kernel(operation: str, type_: str, space: int) -> str:
    """before[i] = atomic operation of value[i] on cell[i % CELLS], through a global or a flat pointer."""
    pointer = f"ptr addrspace({space})" if space else "ptr"
    cast = "" if space else "  %flat = addrspacecast ptr addrspace(1) %pa to ptr\n"
    body = (f"  %cell = urem i64 %i, {CELLS}\n" + element("%pa", type_, "%cells", "%cell") + cast +
            element("%pv", type_, "%values") + f"  %v = load {type_}, ptr addrspace(1) %pv\n"
            f"  %old = atomicrmw {operation} {pointer} %{'pa' if space else 'flat'}, {type_} %v monotonic\n" +
            element("%po", type_, "%before") + f"  store {type_} %old, ptr addrspace(1) %po")
    return kernel("ptr %cells, ptr %values, ptr %before", body)


def launch(device: Program, dtype: str, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    values = np.random.default_rng(1).integers(np.iinfo(dtype).min, np.iinfo(dtype).max, THREADS, dtype, endpoint=True)
    before = np.zeros(THREADS, dtype)
    device.launch(grid=THREADS // 256, block=256, args=[cells, values, before])
    return cells, values, before


@pytest.mark.parametrize("chip, space", [("gfx942", 1), ("gfx950", 1), ("gfx942", 0)])
@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("operation", ORDERLESS)
def test_many_threads_leave_what_one_would(operation: str, bits: int, chip: str, space: int) -> None:
    dtype = f"{'u' if operation[0] == 'u' else 'i'}{bits // 8}"
    start = np.random.default_rng(0).integers(0, 1 << 30, CELLS).astype(dtype)
    device = program(chip, atomic_kernel(operation, f"i{bits}", space))
    cells, values, before = launch(device, dtype, start.copy())
    expected = start.copy()
    with np.errstate(over="ignore"):
        ORDERLESS[operation].at(expected, np.arange(THREADS) % CELLS, values)
    assert np.array_equal(cells, expected)
    for cell in range(CELLS):
        mine, old = values[cell::CELLS], before[cell::CELLS]
        with np.errstate(over="ignore"):
            after = ORDERLESS[operation](old, mine)
        # Every thread saw the start or what another left, and what each left was seen by one more or is the end.
        assert np.array_equal(np.sort(np.append(after, start[cell])), np.sort(np.append(old, cells[cell])))


@pytest.mark.parametrize("bits", [32, 64])
def test_exchanges_lose_nothing(bits: int) -> None:
    start = np.arange(CELLS).astype(f"i{bits // 8}")
    device = program("gfx942", atomic_kernel("xchg", f"i{bits}", 1))
    cells, values, before = launch(device, f"i{bits // 8}", start.copy())
    assert np.array_equal(np.sort(np.append(before, cells)), np.sort(np.append(values, start)))


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("operation", ["uinc_wrap", "udec_wrap"])
def test_counters_that_wrap(operation: str, bits: int) -> None:
    """LLVM defines them as: up to the operand, then 0; down to 0, then the operand, and from above it too."""
    limit, dtype = 12, f"u{bits // 8}"
    values, cells = np.full(THREADS, limit, dtype), np.full(CELLS, 100, dtype)
    program("gfx942", atomic_kernel(operation, f"i{bits}", 1)).launch(
        grid=THREADS // 256, block=256, args=[cells, values, np.zeros(THREADS, dtype)])
    expected = []
    for cell in range(CELLS):
        value = 100
        for _ in range(len(values[cell::CELLS])):
            if operation == "uinc_wrap":
                value = 0 if value >= limit else value + 1
            else:
                value = limit if value == 0 or value > limit else value - 1
        expected.append(value)
    assert cells.tolist() == expected


SWAP_LOOP = "  br label %try\ntry:\n" + """
  %seen = phi TYPE [0, %entry], [%now, %try]
  %next = add TYPE %seen, 1
  %pair = cmpxchg ptr addrspace(1) %cells, TYPE %seen, TYPE %next monotonic monotonic
  %now = extractvalue {TYPE, i1} %pair, 0
  %done = extractvalue {TYPE, i1} %pair, 1
  br i1 %done, label %out, label %try
out:
"""


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("chip", CHIPS)
def test_compare_and_swap_in_a_loop(chip: str, bits: int) -> None:
    """Each thread adds 1 by trying until nobody came between; and each saw another number."""
    body = SWAP_LOOP.replace("TYPE", f"i{bits}") + element("%po", f"i{bits}", "%before") + (
        f"  store i{bits} %seen, ptr addrspace(1) %po")
    cells, before = np.zeros(1, f"u{bits // 8}"), np.zeros(1024, f"u{bits // 8}")
    program(chip, kernel("ptr %cells, ptr %before", body)).launch(grid=4, block=256, args=[cells, before])
    assert cells[0] == 1024 and np.array_equal(np.sort(before), np.arange(1024))


def by_hand(*lines: str) -> Program:
    """Lanes add into the first argument; v0 is the lane, v[2:3] the address of its dword, v[4:5] its data."""
    body = ["  s_load_dwordx2 s[4:5], s[0:1], 0x0", "  s_waitcnt lgkmcnt(0)", "  v_lshlrev_b32 v1, 2, v0",
            "  v_mov_b32 v2, s4", "  v_mov_b32 v3, s5", "  v_add_co_u32 v2, vcc, v2, v1",
            "  v_addc_co_u32 v3, vcc, 0, v3, vcc", "  v_add_u32 v4, 100, v0", "  v_mov_b32 v5, 0",
            *(f"  {line}" for line in lines), "  s_endpgm"]
    return Program.from_assembly(assembly("\n".join(body)))


@pytest.mark.parametrize("text", ["global_atomic_add v[2:3], v4, off", "flat_atomic_add v[2:3], v4",
                                  "global_atomic_add v1, v4, s[4:5]"])
def test_forms_without_a_result(text: str) -> None:
    data = np.arange(64, dtype="i4") * 10
    by_hand(text).launch(grid=1, block=64, args=[data])
    assert np.array_equal(data, np.arange(64) * 11 + 100)


def test_a_result_over_its_own_address() -> None:
    """The value before may go to the registers that held address or data; lanes that are off keep theirs."""
    data = np.arange(64, dtype="i4") * 10
    by_hand("s_mov_b64 exec, 0xff", "global_atomic_smax v4, v[2:3], v4, off sc0", "s_mov_b64 exec, -1",
            "global_store_dword v[2:3], v4, off").launch(grid=1, block=64, args=[data])
    lane = np.arange(64)
    assert np.array_equal(data, np.where(lane < 8, lane * 10, lane + 100))


def test_lanes_come_in_their_order() -> None:
    data = np.zeros(64, "i4")
    by_hand("v_mov_b32 v6, 0", "global_atomic_add v7, v6, v4, s[4:5] sc0", "v_cmp_lt_u32 vcc, 0, v0",
            "s_and_b64 exec, exec, vcc", "global_store_dword v[2:3], v7, off").launch(grid=1, block=64, args=[data])
    steps = np.cumsum(np.arange(64) + 100)
    assert data[0] == steps[-1] and np.array_equal(data[1:], steps[:-1])


@pytest.mark.parametrize("text, error, message", [
    ("global_atomic_add v[2:3], v4, off offset:2", DeviceError,
     r"an atomic of 4 bytes at address 0x\w+2, which is no multiple of 4\n.*thread \(0, 0, 0\)"),
    ("global_atomic_add_x2 v[2:3], v[4:5], off", DeviceError, r"an atomic of 8 bytes .*no multiple of 8\n.*thread "),
    ("global_atomic_add v[2:3], v4, off offset:256", OutOfBounds, "a write of 4 bytes .* right after the end of 'a0'"),
    ("global_atomic_add_f64 v[2:3], v4, off", UnknownInstruction, "names 1 registers where the instruction takes 2"),
    ("buffer_atomic_pk_add_bf16 v4, off, s[4:7], 0", UnknownInstruction, "gfx942 has no such instruction, gfx950 has"),
    ("global_atomic_add v[2:3], v4, off sc2", UnknownInstruction, "the modifier 'sc2'"),
    ("global_atomic_add v8, v[2:3], v4, off", UnknownInstruction, "4 operands, and takes 3"),
])
def test_refusals(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        by_hand(text).launch(grid=1, block=64, args=[_aligned(64)])
    if error is not UnknownInstruction:
        assert getattr(caught.value, "hint", None)


def test_a_read_only_array() -> None:
    data = _aligned(64)
    data.setflags(write=False)
    with pytest.raises(OutOfBounds, match="'a0', which is read-only"):
        by_hand("global_atomic_or v[2:3], v4, off").launch(grid=1, block=64, args=[data])
    assert not data.any()


def _aligned(count: int) -> np.ndarray:
    memory = np.zeros(count + 2, "i4")
    start = memory.ctypes.data % 8 // 4
    return memory[start:start + count]
