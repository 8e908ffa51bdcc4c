"""R07: kernels in the cells of a real notebook kernel: edited, under magics, from files, modules reloaded, structs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.notebooks import SETUP, Notebook, notebook

KERNEL = """@flyc.kernel
def k(A: fx.Tensor):
    A[fx.thread_idx.x] = VALUE

@flyc.jit
def launch(A: fx.Tensor):
    k(A).launch(grid=1, block=64)
"""
LAUNCH = "A = np.zeros(64, np.float32); launch(A); print('RESULT', A[0], (A == A[0]).all())\n"


def body(value: str) -> str:
    return KERNEL.replace("VALUE", value)


def results(text: str) -> list[str]:
    return re.findall(r"RESULT (\S+) True", text)


@pytest.fixture(scope="module")
def live() -> Iterator[Notebook]:
    with notebook() as opened:
        yield opened


def test_a_cell_edited_and_run_again(live: Notebook) -> None:
    assert results(live.printed(body("1.0"), LAUNCH)) == ["1.0"]
    assert results(live.printed(body("2.0") + LAUNCH)) == ["2.0"]
    assert results(live.printed(LAUNCH)) == ["2.0"]
    # The launcher's own cell is not run again, and finds the new kernel.
    assert results(live.printed(body("3.0").partition("@flyc.jit")[0], LAUNCH)) == ["3.0"]


@pytest.mark.parametrize("magics, value", [
    ("%%time", "4.0"),
    ("%%timeit -n1 -r1", "5.0"),
    ("%%prun -q", "6.0"),
    ("%%capture --no-stdout\n%%time", "7.0"),
    ("%%time\n%%capture --no-stdout", "8.0"),
])
def test_under_cell_magics(live: Notebook, magics: str, value: str) -> None:
    assert results(live.printed(f"{magics}\n{body(value)}{LAUNCH}")) == [value]


@pytest.mark.parametrize("magic", ["%%time", "%%prun -q"])
def test_a_kernel_of_a_cell_under_a_magic_stays_with_its_text(live: Notebook, magic: str) -> None:
    """The name that IPython gives such a cell is also that of the next one, which has as many lines."""
    first = f"{magic}\n" + body("9.0").replace("launch(A", "first(A")
    second = f"{magic}\n" + body("scale").replace("launch(A", "second(A").replace("def k", "def other").replace(
        "k(A)", "other(A)")
    text = live.printed("scale, A = 10.0, np.zeros(64, np.float32)", first, second, "first(A); print('RESULT', A[0], "
                        "True)\nsecond(A); print('RESULT', A[0], True)")
    assert results(text) == ["9.0", "10.0"]


@pytest.mark.parametrize("magic", ["%%time", "%%timeit -n1 -r1", "%%prun -q"])
def test_an_error_under_a_magic_names_its_cell_and_line(live: Notebook, magic: str) -> None:
    shown = live.run(f"{magic}\n{body('fx.Flot32(1.0)')}{LAUNCH}")
    name = re.escape(magic.split()[0])
    assert re.search(rf"UnknownName: cell In\[\d+\] after {name}, line 3, in k\n    A\[fx.thread_idx.x\] = fx.Flot32",
                     shown.error)
    assert "did you mean fx.Float32" in shown.error


def test_captured_and_timed_lines(live: Notebook) -> None:
    assert results(live.printed("%%capture out\n" + body("11.0") + LAUNCH, "print(out.stdout)")) == ["11.0"]
    assert "loop" in live.printed("%timeit -n1 -r1 launch(A)")
    assert "Wall time" in live.printed("%time launch(A);")


@pytest.mark.parametrize("options", ["", "-i", "-t", "-p", "-n"])
def test_a_file_that_is_run(live: Notebook, tmp_path: Path, options: str) -> None:
    file = tmp_path / "program.py"
    file.write_text(SETUP + body("12.0") + LAUNCH)
    run = f"%run {options} {file}"
    assert results(live.printed(run)) == ["12.0"]
    file.write_text("# edited\n" + SETUP + body("13.0") + LAUNCH)
    assert results(live.printed(run)) == ["13.0"] and results(live.printed(LAUNCH)) == ["13.0"]


def test_an_edited_helper_module_under_autoreload(live: Notebook, tmp_path: Path) -> None:
    helper = tmp_path / "edited_helper.py"

    def write(text: str) -> str:
        """Writes the module; the cell that tells autoreload, which knows a change by whole seconds, that it is new."""
        helper.write_text(text)
        return "import os; seconds = globals().get('seconds', 10**9) + 10; os.utime(helper, (seconds, seconds))"

    head = f"import sys\nhelper = {str(helper)!r}\nsys.path.insert(0, {str(tmp_path)!r})\n"
    cell = "import edited_helper\n" + body("edited_helper.value(1.0)")
    live.printed(head, write("def value(x):\n    return x * 14.0\n"), "%load_ext autoreload\n%autoreload 2", cell)
    assert results(live.printed(LAUNCH)) == ["14.0"]
    live.printed(write("def value(x):\n    return x * 15.0\n"))
    assert results(live.printed(LAUNCH)) == ["15.0"]
    live.printed(write("\n\nFACTOR = 8.0\n\ndef value(x):\n    return inner(x) * FACTOR\n\ndef inner(x):\n"
                       "    return x * 2.0\n"))
    assert results(live.printed(LAUNCH)) == ["16.0"]
    assert results(live.printed("edited_helper.FACTOR = 8.5", LAUNCH)) == ["17.0"]
    live.printed("%autoreload 0")


def test_exec_with_linecache(live: Notebook) -> None:
    cell = f"""
import linecache
text = {body("18.0")!r}
linecache.cache["<mine>"] = len(text), None, text.splitlines(True), "<mine>"
exec(compile(text, "<mine>", "exec"))
"""
    assert results(live.printed(cell, LAUNCH)) == ["18.0"]


def test_exec_without_text_is_refused_in_a_sentence(live: Notebook) -> None:
    shown = live.run(f"exec({body('19.0')!r}.replace('(A)', '(A)  '))", LAUNCH)
    assert "the source text of 'launch' cannot be found (it was defined in '<string>')" in shown.error
    assert "hint: define it in a file or a notebook cell" in shown.error and "flylab/compiler" not in shown.error
    assert results(live.printed(body("20.0"), LAUNCH)) == ["20.0"]


def test_a_struct_in_a_cell_is_defined_anew(live: Notebook) -> None:
    struct = "@fx.struct\nclass Pair:\n    a: fx.Float32\n    b: fx.Int32\n"
    kernel = body("p.a + p.b.to(fx.Float32)").replace("A: fx.Tensor", "A: fx.Tensor, p: Pair").replace("k(A)",
                                                                                                      "k(A, p)")
    launch = LAUNCH.replace("launch(A)", "launch(A, Pair(a=2.5, b=3))")
    assert results(live.printed(struct, kernel, launch)) == ["5.5"]
    swapped = "@fx.struct\nclass Pair:\n    b: fx.Int32\n    a: fx.Float32\n"
    shown = live.run(swapped, launch)
    assert "ArgumentError" in shown.error and "another struct of this name" in shown.error
    assert "define the function again, after the struct" in shown.error
    assert results(live.printed(kernel, launch)) == ["5.5"]
    assert results(live.printed(struct + kernel + launch)) == ["5.5"]
