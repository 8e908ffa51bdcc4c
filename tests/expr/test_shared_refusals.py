"""What LDS refuses: sizes beyond the chip's, places outside of kernels, launches that give too little."""

from __future__ import annotations

import numpy as np
import pytest

import flylab
import flylab.expr as fx
from flylab.errors import FlylabError, TraceError
from flylab.expr.enums import TargetAddressSpace, is_generic_address_space, is_target_address_space
from flylab.targets import lds_needed
from tests.expr.test_shared import BLOCK, run
from tests.samples import cell


@pytest.mark.parametrize(("chip", "bytes_", "refused"), [("gfx942", 80_000, True), ("gfx950", 80_000, False),
                                                         ("gfx950", 170_000, True), ("gfx942", 65_536, False)])
def test_more_lds_than_the_chip_has_is_refused_where_it_is_allocated(chip: str, bytes_: int, refused: bool) -> None:
    """T10: with both limits."""
    body = f"""
lds = fx.SharedAllocator().allocate(fx.Array[fx.Uint8, {bytes_}]).peek()
lds[fx.thread_idx.x] = A[fx.thread_idx.x]
fx.barrier()
A[fx.thread_idx.x] = lds[0]
"""
    given = np.zeros(BLOCK, np.uint8)
    if not refused:
        assert run(body, given, chip=chip).isa.kernels["k"].lds_bytes == bytes_
        return
    with pytest.raises(flylab.errors.TraceError) as caught:
        run(body, given, chip=chip)
    text = str(caught.value)
    assert f"Array[Uint8, {bytes_}] takes {bytes_} bytes" in text and "SharedAllocator().allocate" in text
    assert "65536 on gfx942 (MI300X)" in text and "163840 on gfx950 (MI350X)" in text


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("fx.SharedAllocator().allocate(40000)\nfx.SharedAllocator().allocate(fx.Array[fx.Int32, 8000])",
         "Array[Int32, 8000] takes 32000 bytes, and kernel 'k' has 72000 in all, more than the 65536"),
        ("fx.SharedAllocator().allocate(fx.Array[fx.Int64, 4096])\nfx.SharedAllocator(static=False).allocate(32769)",
         "Array[Uint8, 32769] takes 32769 bytes, and kernel 'k' has 65537 in all"),
        ("for n in range(fx.thread_idx.x):\n    fx.SharedAllocator().allocate(66000)", "takes 66000 bytes"),
        ("for n in fx.range_constexpr(5):\n    fx.SharedAllocator().allocate(16384)", "has 81920 in all"),
        ("fx.SharedAllocator().allocate(0)", "Array[Uint8, 0] has no elements"),
        ("fx.SharedAllocator().allocate(int)", "what a SharedAllocator allocates is int, which has no place in memory"),
        ("fx.SharedAllocator().allocate(fx.Float4E2M1FN)", "less than a byte has no address"),
        ("fx.SharedAllocator().allocate('a')", "which has no place in memory"),
        ("fx.SharedAllocator().allocate(fx.Int64, 4)", "aligned to 8 bytes by itself"),
        ("fx.SharedAllocator(base_alignment=24)", "24 is no power of 2"),
        ("fx.SharedAllocator().base_ptr", "base_ptr of SharedAllocator(static=True)"),
        ("fx.SharedAllocator().allocate(fx.Array[fx.Int32, 4]).view(fx.make_layout(5, 1))", "reaches over 5 elements"),
        ("fx.SharedAllocator().allocate(fx.Array[fx.Int32, 4])[4].peek()", "element 4 of Array[Int32, 4]"),
        ("fx.get_dyn_shared(3)", "3"),
    ],
)
def test_what_a_kernel_cannot_allocate(body: str, says: str) -> None:
    with pytest.raises(TraceError) as caught:
        run(body, np.zeros(BLOCK, np.float32))
    text = str(caught.value)
    assert says in text and "hint: " in text and text.startswith("<cell ")


@pytest.mark.parametrize(
    ("body", "launch", "says"),
    [
        ("fx.SharedAllocator(static=False).allocate(256)", ", smem=255", "smem=255, and it allocates 256 bytes"),
        ("A[0] = fx.get_dyn_shared(fx.Float32)[0]", "", "without smem=, and it reads fx.get_dyn_shared()"),
        ("fx.SharedAllocator().allocate(60000)", ", smem=6000", "smem=6000, and kernel 'k' has 66000 in all"),
        ("fx.SharedAllocator().allocate(100)\nfx.get_dyn_shared()", ", smem=65000",
         "smem=65000, and kernel 'k' has 66024 in all"),
        ("pass", ", smem=-1", "smem=-1"),
        ("pass", ", smem=True", "smem=True"),
    ],
)
def test_what_a_launch_cannot_give(body: str, launch: str, says: str) -> None:
    with pytest.raises(TraceError) as caught:
        run(body, np.zeros(BLOCK, np.float32), launch=launch)
    text = str(caught.value)
    assert says in text and "hint: " in text and "k(A).launch" in text


def test_a_launcher_has_no_lds() -> None:
    launch = cell("""
        @flyc.kernel
        def k(A: fx.Tensor):
            A[0] = fx.Float32(0)

        @flyc.jit
        def launch(A: fx.Tensor):
            fx.SharedAllocator().allocate(fx.Float32)
            k(A).launch(grid=1, block=64)
        """)["launch"]
    with pytest.raises(TraceError, match="line 7(.|\\n)*only has a meaning inside an @flyc.kernel"):
        launch(np.zeros(64, np.float32))
    with pytest.raises(TraceError, match="only has a meaning inside an @flyc.kernel"):
        fx.SharedAllocator().allocate(fx.Float32)


def test_reading_beyond_what_is_allocated_stops_the_software_device() -> None:
    body = "A[fx.thread_idx.x] = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 64]).view()[fx.thread_idx.x]"
    with pytest.raises(FlylabError) as caught:
        run(body, np.zeros(BLOCK, np.float32))
    assert "LDS" in str(caught.value) and "256" in str(caught.value)


def test_the_memory_spaces_of_tensors_and_pointers() -> None:
    seen = []

    def look(tensor: fx.Tensor) -> None:
        place = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 4]).peek()
        buffer = fx.rocdl.make_buffer_tensor(tensor)
        registers = fx.make_rmem_tensor(4, fx.Float32)
        seen.extend(each.address_space for each in (tensor, place.ptr, place.view(), registers, buffer))

    run("look(A)", np.zeros(BLOCK, np.float32), look=look)
    kinds = fx.AddressSpace
    assert seen == [kinds.Global, kinds.Shared, kinds.Shared, kinds.Register, TargetAddressSpace.BufferDesc]
    assert [is_generic_address_space(space, kinds.Shared) for space in seen] == [False, True, True, False, False]
    assert is_target_address_space(seen[-1], TargetAddressSpace.BufferDesc)
    assert is_generic_address_space("global", kinds.Global) and not is_generic_address_space("global", kinds.Shared)
    with pytest.raises(TraceError, match="ask fx.is_generic_address_space"):
        is_target_address_space(seen[0], kinds.Global)


@pytest.mark.parametrize("seed", range(3))
def test_llvm_never_needs_more_than_is_counted(seed: int) -> None:
    """Odd sizes and alignments up to the limit: LLVM would end the process where there is more."""
    random = np.random.default_rng(seed)
    sizes = [(int(size), 1 << int(align)) for size, align in zip(random.integers(1, 900, 60), random.integers(0, 9, 60),
                                                                strict=True)]
    body = f"""
        lines = [fx.SharedAllocator(base_alignment=align).allocate(size) for size, align in {sizes}]
        for line in lines:
            line[fx.thread_idx.x % len(line)].poke(A[fx.thread_idx.x])
        fx.barrier()
        for line in lines:
            A[fx.thread_idx.x] = A[fx.thread_idx.x] + line[0].peek()
        """
    compiled = run(body, np.ones(BLOCK, np.uint8), chip="gfx950")
    found = compiled.isa.kernels["k"].lds_bytes
    assert sum(size for size, _ in sizes) <= found <= lds_needed(sizes)


def test_exactly_the_limit_fits_in_odd_parts() -> None:
    odd = "fx.SharedAllocator().allocate(fx.Array[fx.Uint8, {}])"
    body = (f"x, y = {odd.format(65536 - 16 - 3)}, {odd.format(3)}\n"
            "x[fx.thread_idx.x].poke(A[fx.thread_idx.x])\ny[fx.thread_idx.x % 3].poke(1)\nfx.barrier()\n"
            "A[fx.thread_idx.x] = x[0].peek() + y[0].peek()")
    assert run(body, np.ones(BLOCK, np.uint8)).isa.kernels["k"].lds_bytes <= 65536
