"""A compilation read from disk is as the one that was made: in what it launches, shows, and says when it goes wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flylab
import flylab.compiler as flyc
from flylab.errors import CacheWarning, FlylabError
from flylab.runtime import finding
from flylab.runtime.cache import entry, relocate
from flylab.runtime.cache.keeping import KEPT, READ
from flylab.runtime.compiled import Compiled
from tests.runtime.cache import on_disk
from tests.samples import cell

TEXT = '''
@flyc.kernel
def rows(A: fx.Tensor, B: fx.Tensor, n: fx.Int32, scale: fx.Constexpr):
    t = fx.thread_idx.x
    shared = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 64]).peek()
    assert n != 13, "n is unlucky"
    shared[t] = A[fx.block_idx.x * 64 + t]
    gpu.barrier()
    if t < n:
        B[fx.block_idx.x * 64 + t] = shared[63 - t] * scale
        if t == 5:
            fx.printf("block {} has {:.2f} and {}", fx.block_idx.x, shared[t], scale)

@flyc.kernel(known_block_size=64)
def clear(B: fx.Tensor):
    B[fx.block_idx.x * 64 + fx.thread_idx.x] = 0.0

@flyc.jit
def launch(A: fx.Tensor, B: fx.Tensor, n: fx.Int32, blocks: fx.Int32, scale: fx.Constexpr):
    assert n >= 0, "n counts rows"
    fx.printf("{} rows of {}", n, blocks)
    clear(B).launch(grid=(blocks,), block=64)
    if n > 0:
        rows(A, B, n, scale).launch(grid=(blocks + (n - n) // (n - 7),), block=64)
'''


def defined(file: str, text: str = TEXT) -> Any:
    """The launcher of a text that stands in a cell of this name."""
    return on_disk.defined(file, text)


def arrays() -> tuple[Any, Any]:
    return np.arange(256, dtype="f4"), np.ones(256, "f4")


def two(disk_cache: Path, first: str, second: str, arch: str = "gfx942") -> tuple[Compiled, Compiled]:
    """The compilation of a launcher as it was made, and as another process, with another name of the cell, reads it."""
    with flylab.use(arch):
        made = flyc.compile(defined(first), *arrays(), 20, 4, 2.0)
        assert made.kept == KEPT and disk_cache.is_dir()
        read = flyc.compile(defined(second), *arrays(), 20, 4, 2.0)
    assert read.kept == READ and read is not made
    return made, read


FILES = [("<notebook 1>", "<notebook 1>"), ("/lab/ipykernel_12/345.py", "/lab/ipykernel_6789/345.py"),
         ("<ipython-input-1-abc>", "<ipython-input-12-abc>"), ("k.py", "/lab/k.py"), ("/a b/k;.py", "k.py")]


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize(("first", "second"), FILES)
def test_all_that_can_be_shown(disk_cache: Path, first: str, second: str, arch: str) -> None:
    """Against a compilation under the second name that never was on disk."""
    made, read = two(disk_cache, first, second, arch)
    with pytest.MonkeyPatch.context() as patch, flylab.use(arch):
        patch.setenv("FLYLAB_RUNTIME_ENABLE_CACHE", "0")
        fresh = flyc.compile(defined(second), *arrays(), 20, 4, 2.0)
    assert fresh.kept == "not kept on disk: FLYLAB_RUNTIME_ENABLE_CACHE=0"
    for name in ("host", "operand_types", "blocks", "checks", "lines", "launch_lines", "target", "opt_level", "llvm",
                 "traced_text"):
        mine, theirs = getattr(read, name), getattr(fresh, name)
        if name == "host":
            mine, theirs = (mine.text, mine.places), (theirs.text, theirs.places)
        assert mine == theirs, name
    assert [(a.name, a.kind, str(a.spec)) for a in read.arguments] == [
        (a.name, a.kind, str(a.spec)) for a in fresh.arguments]
    assert list(read.functions) == list(fresh.functions) == ["clear", "rows"]
    assert read.code.assembly == fresh.code.assembly
    for kernel in ("clear", "rows"):
        assert list(read.stages(read.functions[kernel])) == list(fresh.stages(fresh.functions[kernel]))
    assert read.isa.kernels["rows"].instructions == fresh.isa.kernels["rows"].instructions
    assert read.object_code == fresh.object_code
    assert read.origins == fresh.origins
    assert {origin.line.file for each in read.origins.values() for origin in each if origin.line} == {second}
    assert repr(read) == repr(fresh)


def said(compiled: Compiled, n: int, blocks: int) -> str:
    """The error of a call, as the user sees it."""
    with pytest.raises(FlylabError) as error:
        compiled(*arrays(), n, blocks, 2.0)
    return f"{type(error.value).__name__}: {error.value}"


@pytest.mark.parametrize(("first", "second"), FILES[:2])
def test_what_it_does_and_what_it_says(disk_cache: Path, capsys: pytest.CaptureFixture[str], first: str,
                                       second: str) -> None:
    """The same results, lines, counters and errors, with the places of the cell as it is called now."""
    made, read = two(disk_cache, first, second)
    results = []
    for compiled, file in ((made, first), (read, second)):
        a, b = arrays()
        with flylab.watch(counters=True, log=True):
            run = compiled(a, b, 20, 4, 2.0)
        want = np.zeros((4, 64), "f4")
        want[:, :20] = a.reshape(4, 64)[:, :43:-1] * 2
        assert np.array_equal(b.reshape(4, 64), want)
        printed = capsys.readouterr().out
        assert printed.splitlines()[:2] == ["20 rows of 4", "block 0 has 5.00 and 2.0"]
        errors = [said(compiled, n, blocks)
                  for n, blocks in ((-1, 4), (13, 4), (7, 4), (20, 8), (20, 0))]
        assert "n counts rows" in errors[0] and f"{file}, line 20" in errors[0]
        assert "n is unlucky" in errors[1] and f"{file}, line 6" in errors[1]
        assert "divides by zero" in errors[2] and f"{file}, line 24" in errors[2]
        assert "'B'" in errors[3] and f"{file}, line 16" in errors[3]
        assert "extent x must be 1 to" in errors[4] and f"{file}, line 22" in errors[4]
        results.append((printed, [e.replace(file, "FILE") for e in errors], str(run.show()),
                        [str(r.counters) for r in run.reports], str(capsys.readouterr().out)))
    assert results[0] == results[1]


def test_the_debugger(disk_cache: Path) -> None:
    launcher = defined("<notebook 1>")
    flyc.compile(launcher, *arrays(), 20, 4, 2.0)
    launcher = defined("<notebook 2>")
    debugger = flylab.debug(launcher, *arrays(), 20, 4, 2.0, kernel="rows")
    debugger.run_to(line=10)
    assert launcher.last.kept == READ and "line 10" in repr(debugger) and "shared[63 - t]" in repr(debugger)


def test_its_kernels_are_those_of_now(disk_cache: Path) -> None:
    """`k.show()` and `launch.last` are of what was read, and two kernels of one text are not mixed up."""
    text = """
def make(value):
    @flyc.kernel
    def k(A: fx.Tensor):
        A[fx.thread_idx.x] = value
    return k
first, second = make(1.0), make(2.0)

@flyc.jit
def launch(A: fx.Tensor):
    second(A).launch(grid=1, block=64)
    first(A).launch(grid=1, block=32)
"""
    one, other = defined("<notebook 1>", text), defined("<notebook 2>", text)
    made, read = flyc.compile(one, np.zeros(64, "f4")), flyc.compile(other, np.zeros(64, "f4"))
    assert (made.kept, read.kept) == (KEPT, READ)
    space = other.function.__globals__
    assert read.functions == {"k": space["second"], "k_1": space["first"]}
    assert space["first"].last is space["second"].last is other.last is read
    array = np.zeros(64, "f4")
    read(array)
    assert array.tolist() == [1.0] * 32 + [2.0] * 32


def test_what_is_on_disk_is_found_when_memory_has_nothing(disk_cache: Path) -> None:
    """Two launchers of one text have one file, and each launcher what it read of it."""
    first, again = defined("<notebook 1>"), defined("<notebook 1>")
    a, b = arrays()
    assert first(a, b, 20, 4, 2.0).compiled.kept == KEPT
    assert again(a, b, 20, 4, 2.0).compiled is again(a, b, 20, 4, 2.0).compiled
    assert again.last.kept == READ
    assert first(a, b, 20, 4, 3.0).compiled.kept == KEPT, "another constant"
    assert flyc.compile(first, a[:128], b, 20, 4, 2.0).kept == KEPT, "another shape"


@pytest.mark.parametrize(("text", "why"), [
    ("""
@flyc.kernel
def k(A: fx.Tensor):
    print("traced")
    A[fx.thread_idx.x] = 1.0
@flyc.jit
def launch(A: fx.Tensor):
    k(A).launch(grid=1, block=64)
""", "'k' names 'print', which does something while it is traced"),
    ("""
@flyc.jit
def launch(A: fx.Tensor):
    @flyc.kernel
    def k(A: fx.Tensor):
        A[fx.thread_idx.x] = 1.0
    k(A).launch(grid=1, block=64)
""", "a kernel of it"),
    ("""
seen = []
@flyc.kernel
def k(A: fx.Tensor):
    seen.append(1)
    A[fx.thread_idx.x] = float(len(seen))
@flyc.jit
def launch(A: fx.Tensor):
    k(A).launch(grid=1, block=64)
""", "what it reads was changed while it was traced"),
])
def test_what_is_not_kept_says_why(disk_cache: Path, text: str, why: str) -> None:
    for file in ("<notebook 1>", "<notebook 2>"):
        made = flyc.compile(defined(file, text), np.zeros(64, "f4"))
        assert made.kept.startswith("not kept on disk: ") and why in made.kept
    assert not list(disk_cache.rglob("kept/*/*"))


def kept_files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("kept/*/*") if path.is_file()]


def test_bytes_that_are_whole_and_make_no_sense(disk_cache: Path) -> None:
    """One warning, then compiled and written again, for each way in which they do not fit."""
    made = flyc.compile(defined("<notebook 1>"), *arrays(), 20, 4, 2.0)
    (file,) = kept_files(disk_cache)
    name, kept = file.name, made.code.store  # type: ignore[attr-defined]
    data = kept.read(name)
    first, _, rest = data.partition(b"\n")
    for wrong in (b"", b"{}", b"12\n{}", data[:-1], data + b"x", data.replace(b'"tensor"', b'"number"'),
                  first + b"\n" + rest.replace(b"yield", b"yiel?"), data.replace(b'"Int32"', b'"Int33"')):
        kept.write(name, wrong)
        flylab.cache_warnings._said.clear()
        with pytest.warns(CacheWarning, match="is damaged .* compiled anew, and written again") as found:
            again = flyc.compile(defined("<notebook 1>"), *arrays(), 20, 4, 2.0)
        assert len(found) == 1 and again.kept == KEPT and kept.read(name) == data


def test_cut_on_disk_means_compiled_again(disk_cache: Path) -> None:
    """Case R12 from end to end: a truncated file of each form."""
    a, b = arrays()
    defined("<notebook 1>")(a, b, 20, 4, 2.0)
    files = kept_files(disk_cache)
    assert sorted(file.suffix for file in files) == ["", ".assembly"]
    before = {file: file.read_bytes() for file in files}
    for file in files:
        file.write_bytes(before[file][:100])
    flylab.cache_warnings._said.clear()
    with pytest.warns(CacheWarning) as found:
        assert defined("<notebook 1>")(a, b, 20, 4, 2.0).compiled.kept == KEPT
    assert len(found) == 1
    assert {file: file.read_bytes() for file in kept_files(disk_cache)} == before


def test_without_what_can_be_made_again(disk_cache: Path) -> None:
    """The assembly may have been swept away, and the object, and the text is there to make them of."""
    made, read = two(disk_cache, "<notebook 1>", "<notebook 2>")
    for path in kept_files(disk_cache):
        path.unlink()
    assert read.code.assembly == made.code.assembly.replace("<notebook 1>", "<notebook 2>")
    assert read.show("ir") and read.object_code


def test_the_layout_of_arguments_is_checked_at_launch(disk_cache: Path) -> None:
    """Case R13: assembly of another kernel of the same name, however it came there, is not launched."""
    one = "@flyc.kernel\ndef k(A: fx.Tensor):\n    A[fx.thread_idx.x] = 1.0\n" \
          "@flyc.jit\ndef launch(A: fx.Tensor, n: fx.Int32):\n    k(A).launch(grid=1, block=64)\n"
    two = one.replace("k(A)", "k(A, n)").replace("def k(A: fx.Tensor", "def k(A: fx.Tensor, n: fx.Int32")
    array = np.zeros(64, "f4")
    defined("<notebook 1>", one)(array, 1)
    (other,) = [path for path in kept_files(disk_cache) if path.suffix]
    mixed = defined("<notebook 1>", two)(array, 1).compiled
    assert mixed.kept == KEPT, "a key of its own"
    mine = disk_cache / "kept" / mixed.code.name[:2] / f"{mixed.code.name}.assembly"
    mine.write_bytes(other.read_bytes())
    with pytest.raises(FlylabError, match="kernel 'k' takes 1 arguments, the launcher passes 2"):
        defined("<notebook 1>", two)(array, 1)


def test_cache_off_and_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Case R06: called twice, with a collection in between."""
    import gc

    launcher = cell(TEXT)["launch"]
    a, b = arrays()
    run = launcher(a, b, 20, 4, 2.0)
    gc.collect()
    assert launcher(a, b, 20, 4, 2.0).compiled is run.compiled
    assert run.compiled.kept == "not kept on disk: FLYLAB_RUNTIME_ENABLE_CACHE=0"


def test_dumps_are_of_what_is_read_too(disk_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLAB_DUMP_IR", "1")
    for folder in ("made", "read"):
        monkeypatch.setenv("FLYLAB_DUMP_DIR", str(tmp_path / folder))
        flyc.compile(defined("<notebook 1>"), *arrays(), 20, 4, 2.0)

    def dumped(folder: str) -> dict[str, str]:
        return {path.name: path.read_text() for path in (tmp_path / folder).rglob("*.*")}

    assert len(dumped("made")) > 10 and dumped("made") == dumped("read")


def test_paths_that_the_texts_cannot_take(disk_cache: Path) -> None:
    """A path that MLIR and LLVM spell otherwise: it is part of the name, and nothing is put in anew."""
    file = '/lab/gr\u00fcn "x/k.py'
    assert not relocate.is_movable(file) and relocate.numbered([file, "k.py"]) == [file, "/flylab-file/1"]
    made, read = two(disk_cache, file, file)
    assert read.traced_text == made.traced_text and read.llvm == made.llvm and read.code.assembly == made.code.assembly
    assert flyc.compile(defined(file + "b"), *arrays(), 20, 4, 2.0).kept == KEPT


def test_a_text_that_names_a_number_as_its_own_file() -> None:
    """It could not be told from one of the others."""
    text = 'loc("/flylab-file/0":1:2) loc("k.py":3:4)'
    with pytest.raises(ValueError, match="cannot be changed"):
        entry.packed(text, ["k.py"])


def test_the_pipeline_is_not_entered(disk_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two(disk_cache, "<notebook 1>", "<notebook 2>")

    def build(*_: Any) -> Any:
        raise AssertionError("compiled")

    monkeypatch.setattr(finding, "build", build)
    assert flyc.compile(defined("<notebook 3>"), *arrays(), 20, 4, 2.0).kept == READ
    with pytest.raises(AssertionError, match="compiled"):
        flyc.compile(defined("<notebook 3>"), *arrays(), 20, 4, 3.0)
