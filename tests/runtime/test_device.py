"""Which device a launch takes, what the environment says, and what is dumped."""

from __future__ import annotations

import contextvars
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flylab
import flylab.compiler as flyc
from flylab import settings
from flylab.errors import FlylabError
from flylab.runtime.device import (
    SMEM_CAPACITY_MAP,
    check_smem_capacity,
    current,
    get_rocm_arch,
    get_warp_size,
    parse,
)
from tests.kernels import reference_kernels
from tests.samples import cell

A = np.zeros(1024, np.float32)
VARIABLES = ("FLYLAB_DEVICE", "FLYDSL_DEVICE", "ARCH", "FLYLAB_COMPILE_OPT_LEVEL", "FLYDSL_COMPILE_OPT_LEVEL")


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def test_order_of_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    assert str(current()) == "emulated:gfx942"
    monkeypatch.setenv("ARCH", "gfx950")
    assert str(current()) == "emulated:gfx950"
    monkeypatch.setenv("FLYDSL_DEVICE", "emulated:gfx942")
    assert str(current()) == "emulated:gfx942"
    monkeypatch.setenv("FLYLAB_DEVICE", "emulated:gfx950")
    assert str(current()) == "emulated:gfx950"
    with flylab.use("gfx942") as device:
        assert str(device) == str(current()) == "emulated:gfx942"
        with flylab.use("emulated:gfx950"):
            assert str(current()) == "emulated:gfx950"
        assert str(current()) == "emulated:gfx942"
        with flylab.use(None):
            assert str(current()) == "emulated:gfx950"
    assert str(current()) == "emulated:gfx950"


def test_emulated_alone_is_the_chip_of_arch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLAB_DEVICE", "emulated")
    assert str(current()) == "emulated:gfx942"
    monkeypatch.setenv("ARCH", "gfx950")
    assert str(current()) == str(parse("emulated")) == "emulated:gfx950"
    with flylab.use("emulated"):
        monkeypatch.delenv("ARCH")
        assert str(current()) == "emulated:gfx950"  # what it was where it was chosen
    assert str(current()) == "emulated:gfx942"


@pytest.mark.parametrize("text", ["emulated:gfx950", "hip", "emulated", "sm_90"])
def test_arch_takes_chips_alone(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCH", text)
    for look in (current, lambda: parse("emulated")):
        with pytest.raises(FlylabError) as caught:
            look()
        assert caught.value.message == f"ARCH={text!r} in the environment: unknown chip {text!r}"
        assert caught.value.hint == "flylab knows gfx942 (MI300X), gfx950 (MI350X)"
    assert str(parse("emulated:gfx950")) == "emulated:gfx950"


def test_a_launch_follows_arch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two launches of one launcher, as the plan of the first is kept."""
    monkeypatch.setenv("FLYLAB_DEVICE", "emulated")
    names = cell("""
        @flyc.kernel
        def k(A: fx.Tensor):
            A[fx.thread_idx.x] = 1.0

        @flyc.jit
        def launch(A: fx.Tensor):
            k(A).launch(grid=1, block=64)
    """)
    found = []
    for chip in ("gfx942", "gfx950", "gfx942"):
        monkeypatch.setenv("ARCH", chip)
        found += [str(names["launch"](A).device) for _ in range(3)]
    assert found == [f"emulated:{chip}" for chip in ("gfx942", "gfx950", "gfx942") for _ in range(3)]


def test_use_holds_until_the_next() -> None:
    try:
        assert repr(flylab.use("gfx950")) == repr(flylab.device()) == "<device emulated:gfx950>"
        assert str(flyc.compile(reference_kernels.layout_copy, A, A, 1024).target) == "gfx950"
    finally:
        flylab.use(None)
    assert str(flyc.compile(reference_kernels.layout_copy, A, A, 1024).target) == "gfx942"


def test_use_in_threads_holds_for_each_thread_alone() -> None:
    """Blocks that overlap and end in the order in which they began; each thread runs on what it asked for."""
    meet = threading.Barrier(2, timeout=60)
    seen: dict[str, list[str]] = {"gfx942": [], "gfx950": []}

    def work(chip: str, number: int) -> None:
        with flylab.use(chip):
            meet.wait()
            seen[chip].append(str(flyc.compile(reference_kernels.layout_copy, A, A, 1024).target))
            meet.wait()
            if number:
                meet.wait()
        seen[chip].append(current().target.arch)
        if not number:
            meet.wait()

    threads = [threading.Thread(target=work, args=pair) for pair in (("gfx942", 0), ("gfx950", 1))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {"gfx942": ["gfx942", "gfx942"], "gfx950": ["gfx950", "gfx942"]}
    assert str(current()) == "emulated:gfx942"


def test_a_thread_sees_what_the_process_chose_and_chooses_for_itself() -> None:
    seen: list[str] = []

    def work() -> None:
        seen.append(str(current()))
        flylab.use("gfx942")
        seen.append(str(current()))

    try:
        flylab.use("gfx950")
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert seen == ["emulated:gfx950", "emulated:gfx942"]
        assert str(current()) == "emulated:gfx950"
        # A cell of a notebook may run in a copy of the context.
        contextvars.copy_context().run(flylab.use, "gfx942")
        assert str(current()) == "emulated:gfx942"
    finally:
        flylab.use(None)


def test_use_in_a_block_holds_to_the_end_of_the_block() -> None:
    with flylab.use("gfx950") as outer:
        flylab.use("gfx942")
        assert str(current()) == "emulated:gfx942"
        again = flylab.use(outer)
        with again, again:
            assert str(current()) == "emulated:gfx950"
    assert str(current()) == "emulated:gfx942"


@pytest.mark.parametrize(
    "given, message, hint",
    [
        ((), "takes the name of one device and gets 0 (launches run on emulated:gfx942 now)", "flylab.device()"),
        (("gfx942", "gfx950"), "gets 2", "flylab.use("),
        ((3,), "flylab.use(3): a device is named by a text", "None"),
    ],
)
def test_what_names_no_device(given: Any, message: str, hint: str) -> None:
    with pytest.raises(FlylabError) as caught:
        flylab.use(*given)
    assert message in caught.value.message and hint in str(caught.value.hint)
    assert str(current()) == "emulated:gfx942"


def test_use_is_left_by_an_error() -> None:
    with pytest.raises(ZeroDivisionError), flylab.use("gfx950"):
        raise ZeroDivisionError
    assert str(current()) == "emulated:gfx942"


@pytest.mark.parametrize(
    "spec, kind, words",
    [
        ("gfx90a", FlylabError, "gfx942"),
        ("MI300X", FlylabError, "MI300X is gfx942"),
        ("emulated:mi355", FlylabError, "mi355 is gfx950"),
        ("cuda", FlylabError, "emulated:gfx950"),
        ("", FlylabError, "emulated"),
        ("emulated:gfx1100", FlylabError, "gfx942"),
        ("gfx942:1", FlylabError, "emulated"),
        ("hip:one", FlylabError, "hip:1"),
        ("hip:", FlylabError, "hip:1"),
    ],
)
def test_unknown_devices(spec: str, kind: type[FlylabError], words: str) -> None:
    with pytest.raises(kind) as caught:
        parse(spec)
    assert words in str(caught.value) and caught.value.hint


@pytest.mark.parametrize("name", ["FLYLAB_COMPILE_OPT_LEVEL", "FLYDSL_COMPILE_OPT_LEVEL"])
def test_optimisation_level(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def length() -> int:
        return len(flyc.compile(reference_kernels.square, A, A, 1024).isa.kernels["elementwise_kernel"].instructions)

    assert settings.OPT_LEVEL.value() == 2
    optimised = length()
    monkeypatch.setenv(name, "0")
    assert settings.OPT_LEVEL.value() == 0
    assert length() > optimised
    monkeypatch.setenv(name, "fast")
    with pytest.raises(FlylabError, match=f"{name}='fast'") as caught:
        flyc.compile(reference_kernels.square, A, A, 1024)
    assert "a level from 0 to 3" in (caught.value.hint or "")


def test_every_level_gives_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    a = np.arange(1024, dtype=np.float32)
    for level in "0123":
        monkeypatch.setenv("FLYLAB_COMPILE_OPT_LEVEL", level)
        b = np.zeros_like(a)
        reference_kernels.square(a, b, 1024)
        assert np.array_equal(b, a * a)


def test_an_empty_variable_is_one_that_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLAB_COMPILE_OPT_LEVEL", "")
    assert settings.OPT_LEVEL.value() == 2
    monkeypatch.setenv("FLYDSL_COMPILE_OPT_LEVEL", "1")
    assert settings.OPT_LEVEL.value() == 1
    monkeypatch.setenv("FLYLAB_DUMP_DIR", "")
    assert settings.DUMP_DIR.text() == "flylab_dumps"


def test_own_names_win_over_aliases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_COMPILE_OPT_LEVEL", "0")
    monkeypatch.setenv("FLYLAB_COMPILE_OPT_LEVEL", "3")
    assert settings.OPT_LEVEL.value() == 3


@pytest.mark.parametrize(
    "text, value", [("1", True), ("ON", True), ("true", True), ("0", False), ("no", False), ("", False)]
)
def test_flags(text: str, value: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLAB_DUMP_IR", text)
    assert settings.DUMP_IR.value() is value
    monkeypatch.setenv("FLYLAB_DUMP_IR", "maybe")
    with pytest.raises(FlylabError, match="neither yes nor no"):
        settings.DUMP_IR.value()


SCRIPT = """
import numpy as np
from tests.kernels.reference_kernels import layout_copy, square
a = np.arange(1024, dtype=np.float32)
b = np.zeros_like(a)
layout_copy(a, b, 1024)
layout_copy(a, b, 1024)
square(a, b, 1024)
print(b[3])
"""


def run(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    root = Path(__file__).resolve().parents[2]
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("FLYLAB_", "FLYDSL_", "ARCH"))}
    return subprocess.run(
        [sys.executable, "-c", script], env={**kept, **environment}, cwd=root, text=True, capture_output=True
    )


def test_dumps(tmp_path: Path) -> None:
    done = run(SCRIPT, FLYDSL_DUMP_IR="1", FLYLAB_DUMP_DIR=str(tmp_path / "d"))
    assert (done.returncode, done.stdout) == (0, "9.0\n"), done.stderr
    assert sorted(p.name for p in (tmp_path / "d").iterdir()) == ["layout_copy", "square"]
    files = sorted(p.name for p in (tmp_path / "d/square").iterdir())
    numbered = [f for f in files if f.endswith(".mlir")]
    assert [int(f[:2]) for f in numbered] == list(range(len(numbered))) and len(numbered) > 10
    assert numbered[0] == "00_ir.mlir"
    assert sorted(set(files) - set(numbered)) == ["final_isa.s", "final_llvm.ll"]
    assert "fly.logical_divide" in (tmp_path / "d/square/00_ir.mlir").read_text()
    assert "elementwise_kernel:" in (tmp_path / "d/square/final_isa.s").read_text()
    assert "define amdgpu_kernel void @elementwise_kernel" in (tmp_path / "d/square/final_llvm.ll").read_text()


def test_nothing_is_dumped_without_being_asked(tmp_path: Path) -> None:
    done = run(SCRIPT, FLYLAB_DUMP_DIR=str(tmp_path / "d"))
    assert (done.returncode, done.stdout) == (0, "9.0\n"), done.stderr
    assert not (tmp_path / "d").exists()


def test_compiling_from_threads() -> None:
    """Compilations wait for one another; each gives its own."""
    from concurrent.futures import ThreadPoolExecutor

    def one(size: int) -> bool:
        a, b = np.arange(size, dtype=np.float32), np.zeros(size, np.float32)
        reference_kernels.square(a, b, size)
        return bool((a * a == b).all())

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(one, [1024 * n for n in range(1, 9)]))


def test_run_says_what_ran() -> None:
    run = reference_kernels.layout_copy(np.zeros(1024, np.float32), np.zeros(1024, np.float32), 1024)
    assert str(run.device) == "emulated:gfx942"
    assert len(run.reports) == 1
    assert "my_kernel" in repr(run) and "emulated" in repr(run)


def test_what_the_published_package_tells_of_a_chip() -> None:
    """LDS and wave sizes: AMD's CDNA3 and CDNA4 ISA documents, as the published wheel prints them."""
    assert SMEM_CAPACITY_MAP == {"gfx942": 65536, "gfx950": 163840}
    for chip, too_many in (("gfx942", 65_537), ("gfx950", 163_841)):
        with flylab.use(chip):
            assert (get_rocm_arch(), get_warp_size()) == (chip, 64)
            check_smem_capacity(too_many - 1)
            with pytest.raises(FlylabError, match=f"{too_many} bytes, more than the {too_many - 1} of LDS"):
                check_smem_capacity(too_many)
    check_smem_capacity(80_000, "gfx950")
    with pytest.raises(FlylabError, match="65536 on gfx942"):
        check_smem_capacity(80_000, "gfx942")
    with pytest.raises(FlylabError, match="unknown chip"):
        get_warp_size("gfx000")
