"""`flylab compile`: the table, JSON, texts and objects, and the sentences for what cannot be."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flylab as lab
from flylab.cli.arguments import format_of
from flylab.codegen.isa import Isa
from flylab.targets import target
from tests.cli.conftest import FILE
from tests.house.rules import ROOT

CHIPS = ("gfx942", "gfx950")
SCALE = ("-a", "A,B=f32[4*BLOCK]", "-a", "n=3")


def rows_of(text: str) -> list[dict[str, str]]:
    """A table as rows by heading: columns are parted by two spaces or more."""
    heading, *rows = [re.split(r" {2,}", line.strip()) for line in text.splitlines()]
    return [dict(zip(heading, row, strict=True)) for row in rows]


def test_the_table_has_each_kernel_for_both_chips(flylab: Any, kernels: Path) -> None:
    done = flylab("compile", f"{kernels}:launch_scale", *SCALE)
    assert (done.code, done.err) == (0, "loaded\n")
    rows = rows_of(done.out)
    assert [(row["kernel"], row["launcher"], row["chip"]) for row in rows] == [
        ("scale", "launch_scale", chip) for chip in CHIPS]
    assert all(row["LDS"] == row["spills"] == row["scratch"] == "0" for row in rows)


@pytest.mark.parametrize("chip", CHIPS)
def test_json_says_what_the_assembly_says(flylab: Any, kernels: Path, chip: str) -> None:
    done = flylab("compile", f"{kernels}:launch_scale", *SCALE, "--arch", chip, "--json")
    assert done.code == 0
    (row,) = json.loads(done.out)["kernels"]
    text = flylab("compile", f"{kernels}:launch_scale", *SCALE, "--arch", chip, "--emit", "isa").out
    assert f'.amdgcn_target "amdgcn-amd-amdhsa--{chip}"' in text
    said = {key: int(value) for key, value in re.findall(r"^ +\.(\w+):\s+(\d+)$", text, re.M)}
    assert row["kernarg_bytes"] == said["kernarg_segment_size"] == 20
    assert (row["vgprs"], row["sgprs"], row["agprs"]) == (said["vgpr_count"], said["sgpr_count"], 0)
    assert (row["lds_bytes"], row["scratch_bytes"]) == (said["group_segment_fixed_size"],
                                                        said["private_segment_fixed_size"])
    assert row["spills"] == said["vgpr_spill_count"] + said["sgpr_spill_count"]
    assert row["occupancy"]["waves_per_simd"] == min(8, 512 // (-(-said["vgpr_count"] // 8) * 8))


def test_a_kernel_is_compiled_through_its_launcher(flylab: Any, kernels: Path) -> None:
    given = ("-a", "A=bf16[64]", "-a", "dtype=fx.BFloat16", "-a", "how=ones")
    done = flylab("compile", f"{kernels}:fill", *given, "--json")
    assert {row["kernel"] for row in json.loads(done.out)["kernels"]} == {"fill"}


def test_a_file_with_examples_needs_no_options(flylab: Any, with_examples: Path) -> None:
    done = flylab("compile", with_examples, "--json")
    found = [(row["launcher"], row["chip"]) for row in json.loads(done.out)["kernels"]]
    assert found == [(name, chip) for name in ("launch_scale", "launch_fill") for chip in CHIPS]
    changed = flylab("compile", f"{with_examples}:launch_scale", "-a", "n=x", "--json")
    assert changed.code == 2 and "NameError" in changed.err


def test_all_forms_are_files_that_other_tools_read(flylab: Any, with_examples: Path, tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "out"
    done = flylab("compile", f"{with_examples}:launch_scale", "--emit", "all", "-o", folder)
    assert done.code == 0
    ends = (".mlir", ".passes.mlir", ".ll", ".s", ".o", ".hsaco")
    assert sorted(os.listdir(folder)) == sorted(f"launch_scale.{chip}{end}" for chip in CHIPS for end in ends)
    for chip in CHIPS:
        assembly = (folder / f"launch_scale.{chip}.s").read_text()
        assert Isa.parse(assembly).target.arch == chip
        for kind, end in ((1, ".o"), (3, ".hsaco")):  # ET_REL, ET_DYN; 224 is EM_AMDGPU
            head = (folder / f"launch_scale.{chip}{end}").read_bytes()[:20]
            assert head[:4] == b"\x7fELF" and (head[16], head[18]) == (kind, 224)
        assert "fly." in (folder / f"launch_scale.{chip}.mlir").read_text()
        assert "define amdgpu_kernel void @scale" in (folder / f"launch_scale.{chip}.ll").read_text()


def test_the_isa_on_the_output_is_what_a_launch_runs(flylab: Any, with_examples: Path, tmp_path: Path) -> None:
    text = flylab("compile", f"{with_examples}:launch_scale", "--emit", "isa", "--arch", "gfx942").out
    program = lab.emulator.Program.from_assembly(text)
    a, b = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    program.launch(grid=1, block=64, args=[a, b, np.int32(3)])
    assert np.array_equal(b, a * 3)


def test_several_texts_on_the_output_are_told_apart(flylab: Any, with_examples: Path) -> None:
    done = flylab("compile", with_examples, "--emit", "llvm", "--arch", "all")
    assert re.findall(r"^; ===== (.*) =====$", done.out, re.M) == [
        f"{name} for {chip}" for name in ("launch_scale", "launch_fill") for chip in CHIPS]


def test_tensors_need_no_memory(flylab: Any, kernels: Path) -> None:
    given = ("-a", "A,B=f32[64,1<<22]:(1,64)", "-a", "n=1")  # a GiB each
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    done = flylab("compile", f"{kernels}:launch_scale", *given, "--arch", "gfx950")
    assert done.code == 0, done.err
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 19  # KiB


@pytest.mark.parametrize("chip", CHIPS)
def test_strides_and_the_chips_own_formats_count(flylab: Any, kernels: Path, tmp_path: Path, chip: str) -> None:
    file = tmp_path / "copy.py"
    file.write_text("import flylab.compiler as flyc, flylab.expr as fx\n"
                    "@flyc.kernel\ndef k(A: fx.Tensor, B: fx.Tensor):\n    B[1, 2] = A[1, 2]\n"
                    "@flyc.jit\ndef launch(A: fx.Tensor, B: fx.Tensor):\n    k(A, B).launch(grid=1, block=64)\n")
    given = ("-a", "A=f32[4,64]:(1,4)", "-a", "B=f32[4,64]", "--arch", chip, "--emit", "ir")
    text = flylab("compile", file, *given).out
    assert "(4,64):(1,4)" in text and "(4,64):(64,1)" in text
    given = ("-a", "A=fp8[64]", "-a", "dtype=fx.Int8", "-a", "how=no", "--arch", chip, "--emit", "ir")
    text = flylab("compile", f"{kernels}:launch_fill", *given).out
    assert ("f8E4M3FNUZ" in text) == (chip == "gfx942") and "f8E4M3FN" in text


BROKEN = """
@flyc.jit
def broken(A: fx.Tensor):
    fill(A, fx.Float32, "ones").launch(grid=1, block=4096)

@flyc.jit
def raising(A: fx.Tensor):
    {}["missing"]

def flylab_arguments():
    good = {launch_fill: {"A": "f32[64]", "dtype": fx.Int8}}
    return {name: {"A": "f32[64]"} for name in ("broken", "raising")} | good
"""


def test_what_does_not_compile_is_said_and_the_rest_goes_on(flylab: Any, tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text(FILE + BROKEN)
    done = flylab("compile", file, "--arch", "gfx942")
    assert done.code == 1
    assert [row["kernel"] for row in rows_of(done.out)] == ["fill"]
    assert "broken for gfx942: " in done.err and "4096" in done.err and "hint: " in done.err
    assert "raising for gfx942: launcher 'raising' raises KeyError: 'missing'" in done.err
    assert "Traceback" not in done.err
    errors = json.loads(flylab("compile", file, "--arch", "gfx950", "--json").out)["errors"]
    lines = {text: number for number, text in enumerate(file.read_text().splitlines(), 1)}
    assert [(error["launcher"], error["chip"], error["line"]) for error in errors] == [
        ("broken", "gfx950", lines['    fill(A, fx.Float32, "ones").launch(grid=1, block=4096)']),
        ("raising", "gfx950", lines['    {}["missing"]'])]


def test_no_linker_leaves_the_rest(flylab: Any, with_examples: Path, tmp_path: Path, monkeypatch: Any) -> None:
    import importlib.util

    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    options = ("--emit", "all", "-o", tmp_path / "out", "--arch", "gfx942")
    done = flylab("compile", f"{with_examples}:launch_fill", *options)
    if done.code == 0:
        pytest.skip("ROCm is on this machine")
    assert "no linker" in done.err and "[aot]'" in done.err
    assert {".s", ".o"} <= {file.suffix for file in (tmp_path / "out").iterdir()}


@pytest.mark.parametrize("word, name", [
    ("i8", "int8"), ("i32", "int32"), ("i64", "int64"), ("u8", "uint8"), ("ui16", "uint16"), ("Int16", "int16"),
    ("uint32", "uint32"), ("f32", "float32"), ("bf16", "bfloat16"), ("F64", "float64")])
def test_formats_are_those_of_numpy(word: str, name: str) -> None:
    found = format_of(word, target("gfx950"))
    assert found is not None and found.to_numpy() == np.dtype(name)


def test_the_same_error_on_both_chips_is_said_once(flylab: Any, tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text(FILE + BROKEN)
    done = flylab("compile", file)
    assert done.err.count("broken for gfx942: ") == done.err.count("broken for gfx950: ") == 1  # it names the chip
    assert done.err.count("error: ") == 3
    assert "raising for gfx942 and gfx950: launcher 'raising' raises KeyError" in done.err
    assert len(json.loads(flylab("compile", file, "--json").out)["errors"]) == 4


def test_an_error_is_that_of_the_function_that_raised(flylab: Any, tmp_path: Path) -> None:
    (tmp_path / "raising.py").write_text("""
import flylab.compiler as flyc
import flylab.expr as fx

def helper():
    return {}["x"]

@flyc.kernel
def in_kernel(A: fx.Tensor):
    A[0] = missing

@flyc.kernel
def in_helper(A: fx.Tensor):
    A[0] = helper()

@flyc.jit
def first(A: fx.Tensor):
    in_kernel(A).launch(grid=1, block=64)

@flyc.jit
def second(A: fx.Tensor):
    in_helper(A).launch(grid=1, block=64)

def flylab_arguments():
    return {name: {"A": "f32[8]"} for name in ("first", "second")}
""")
    done = flylab("compile", "raising.py")
    assert "first for gfx942 and gfx950: kernel 'in_kernel' raises NameError: " in done.err
    assert "second for gfx942 and gfx950: 'helper' raises KeyError: 'x'" in done.err


def test_the_lines_of_python_are_in_what_the_help_says(flylab: Any, with_examples: Path, tmp_path: Path,
                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    options = (f"{with_examples}:launch_scale", "--arch", "gfx942", "--emit", "all")
    for value in ("0", "1"):
        monkeypatch.setenv("FLYLAB_DEBUG_ENABLE_DEBUG_INFO", value)
        if flylab("compile", *options, "-o", tmp_path / value).code:
            pytest.skip("no linker here")
    has = {file: b".debug_line" in (tmp_path / file).read_bytes()
           for file in (f"{value}/launch_scale.gfx942.{end}" for value in "01" for end in ("o", "hsaco"))}
    assert list(has.values()) == [True, False, True, True]


@pytest.mark.parametrize("written, words", [
    ('{"lunch_scale": {}}',
     "names 'lunch_scale', and there is no launcher of this name\nhint: did you mean 'launch_scale'?"),
    ('{"scale": {}}', "names 'scale', a kernel, and not what launches it\nhint: name its launcher: 'launch_scale'"),
    ('{"BLOCK": {}}', "names 'BLOCK', which is no launcher\nhint: the file's launchers: launch_scale and launch_fill"),
    ('{"launch_scale": {"A,B": "f33[4]", "n": 1}}',
     "error: flylab_arguments(): 'A': 'f33[4]': no number format is called 'f33'"),
    ('{"launch_scale": {"A,B": "f32[4]", "n": "x"}}', "a text is quoted: 'n': '\"x\"'"),
    ('{"launch_scale": {"A,B": "f32(4)", "n": 1}}', "hint: 'A': 'f32[4]'"),
])
def test_examples_that_are_wrong(flylab: Any, kernels: Path, written: str, words: str) -> None:
    kernels.write_text(FILE + f"\ndef flylab_arguments():\n    return {written}\n")
    done = flylab("compile", kernels)
    assert done.code == 2 and words in done.err and "--arg" not in done.err


def test_texts_of_examples_are_read_as_those_of_the_command_line(flylab: Any, kernels: Path) -> None:
    kernels.write_text(FILE + """
def flylab_arguments():
    return {"launch_scale": {"A, B": "f32[BLOCK]", "n": "2 + 1"},
            "launch_fill": {"A": "i8[64]", "dtype": "fx.Int8", "how": "ones"}}
""")
    done = flylab("run", f"{kernels}:launch_fill")
    assert done.code == 0 and "fill: 1 workgroup" in done.out
    assert flylab("compile", kernels).code == 0
    assert "f32, global, 64:1" in flylab("compile", f"{kernels}:launch_scale", "--emit", "ir").out


WRONG: list[tuple[list[str], str]] = [
    ([], "has 2 launchers: launch_scale and launch_fill"),
    ([":launch_scal"], "did you mean 'launch_scale'?"),
    ([":BLOCK"], "has no kernel or launcher 'BLOCK'"),
    ([":orphan"], "no launcher of two_launchers.py names the kernel 'orphan'"),
    ([":launch_scale"], "hint: for example, with your own shapes: -a A,B=f32[1024] -a n=1024"),
    ([":launch_scale", "-a", "A"], "give a name and a value"),
    ([":launch_scale", "-a", "A=f32[1]", "-a", "A=f32[2]"], "--arg gives 'A' twice"),
    ([":launch_scale", "-a", "C=f32[1]"], "launcher 'launch_scale' has no parameter 'C'"),
    ([":launch_scale", "-a", "A=f31[64]"], "no number format is called 'f31'"),
    ([":launch_scale", "-a", "A=3"], "this is no tensor, but of type int"),
    ([":launch_scale", "-a", "A=BLOCK[2]"], "TypeError: 'int' object is not subscriptable"),
    ([":launch_scale", "-a", "A=f32[0]"], "extents are 1 or more"),
    ([":launch_scale", "-a", "A=f32[2,3]:(1)"], "each has a stride"),
    ([":launch_scale", "-a", "A=f32[x]"], "NameError: name 'x' is not defined"),
    ([":launch_scale", "-a", "A=f32[1.5]"], "are no integers"),
    ([":launch_scale", "-a", "A=i4[8]"], "tensors of Int4 are not there yet"),
    ([":launch_scale", "-a", "n=constexpr:4"], "leave constexpr: out"),
    ([":launch_scale", "-a", "n=1 +"], "SyntaxError"),
    ([":launch_scale", "-a", "A=f32"], "a tensor's shape stands in brackets\nhint: --arg A=f32[1024]"),
    ([":launch_scale", "-a", "A=f32(64)"], "a tensor's shape stands in brackets\nhint: --arg A=f32[64]"),
    ([":launch_scale", "-a", "A,B=f32[64]", "-a", "n=i8:300"], "Int8 has the integers from -128 to 127"),
    ([":launch_scale", "-a", "A,B=f32[64]", "-a", "n=u8:-1"], "Uint8 has the integers from 0 to 255"),
    ([":launch_scale", "-a", "A,B=f32[64]", "-a", "n=i8:np.int64(300)"], "Int8 has the integers from -128 to 127"),
    ([":launch_scale", "-a", "A,B=f32[64]", "-a", "n=i8:np.nan"], "Int8 has the integers from -128 to 127"),
    ([":launch_scale", "-a", "A,B=f32[64]", "-a", "n=i32:1.5"], "Int32 has the integers from -2,147,483,648 to"),
    (["--arch", "gfx90a"], "unknown chip 'gfx90a'\nhint: flylab knows gfx942 (MI300X), gfx950 (MI350X)"),
    (["--arch", "MI350X"], "hint: MI350X is gfx950"),
    (["--arch", "GFX950"], "hint: GFX950 is gfx950"),
    (["--arch", "mi300"], "hint: mi300 is gfx942"),
    (["--emit", "isa", "--emit", "llvm"], "--emit is given twice: isa and llvm\nhint: give it once"),
    (["--emit", "isa", "-o", "two_launchers.py"], "-o two_launchers.py: this is a file\nhint: name a folder"),
    ([":launch_fill", "-a", "A=f32[8]", "-a", "dtype=text"], "a text is quoted"),
    (["-o", "x"], "say what: --emit all"),
    (["--emit", "hsaco"], "give -o FOLDER"),
    (["--emit", "all", "-o", "-"], "give -o FOLDER"),
    (["--emit", "isa", "--json"], "both want the standard output"),
    (["--emit", "isaa"], "did you mean 'isa'?"),
    (["--arhc", "gfx942"], "did you mean '--arch'?"),
    (["--", "more"], "takes nothing after --: more"),
]


@pytest.mark.parametrize("options, words", WRONG, ids=[" ".join(options) for options, _ in WRONG])
def test_a_wrong_command_is_a_sentence_with_a_hint(flylab: Any, kernels: Path, options: list[str], words: str) -> None:
    target = f"{kernels}{options[0]}" if options and options[0].startswith(":") else str(kernels)
    done = flylab("compile", target, *options[options[:1] == [target.removeprefix(str(kernels))] and bool(options):])
    assert done.code == 2 and (done.out == "") == ("--json" not in options)
    assert words in done.err and "hint: " in done.err and "Traceback" not in done.err


@pytest.mark.parametrize("text, code, words", [
    ("import flylab\n1 / 0\n", 1, "line 2, in <module>\n    1 / 0\n    ^^^^^\nfile.py raises ZeroDivisionError: divis"),
    ("def f(:\n", 1, "line 1\n    def f(:\nfile.py is no Python: "),
    ("import sys\nsys.exit(3)\n", 1, "ends Python while it is loaded: sys.exit(3)"),
    ("import nothing_of_this_name\n", 1, "pip install the package that has nothing_of_this_name"),
    ("x = 1\n", 2, "file.py has no launcher"),
    ("def flylab_arguments(): return {'x': 1}\n", 2, "gives 'x': 1"),
    ("def flylab_arguments(): return [][0]\n", 2, "flylab_arguments() of file.py raises IndexError"),
])
def test_files_that_cannot_be_used(flylab: Any, tmp_path: Path, text: str, code: int, words: str) -> None:
    (tmp_path / "file.py").write_text(text)
    done = flylab("compile", "file.py")
    assert done.code == code and words in done.err and "Traceback" not in done.err


@pytest.mark.parametrize("name, words", [
    ("two_launcher.py", "did you mean 'two_launchers.py'?"), ("nowhere/x.py", "there is no file nowhere/x.py"),
    (".", "is a folder"), ("two_launchers.py:", "there is no file two_launchers.py:"),
    ("book.ipynb", "flylab lab book.ipynb opens it"), ("k.s", "is no Python file"),
])
def test_files_that_are_none(flylab: Any, kernels: Path, name: str, words: str) -> None:
    for other in ("book.ipynb", "k.s"):
        (kernels.parent / other).write_text("{}")
    done = flylab("compile", name)
    assert done.code == 2 and words in done.err


def test_r14_without_rocm_a_kernel_goes_to_isa_and_object(kernels: Path, tmp_path: Path) -> None:
    """A process that cannot import torch, AMD's bindings or ziglang, with an empty PATH."""
    block = "import sys\nfor name in ('torch', 'rocm', 'ziglang'): sys.modules[name] = None\n"
    script = (f"{block}from flylab.cli.main import main\n"
              f"sys.exit(main(['compile', {str(kernels)!r} + ':launch_scale', '-a', 'A,B=f32[64]', '-a', 'n=1', "
              f"'--emit', sys.argv[1], '-o', {str(tmp_path / 'out')!r}]))")
    for form in ("isa", "object"):
        done = subprocess.run([sys.executable, "-c", script, form], text=True, capture_output=True,
                              env={"PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(tmp_path)})
        assert done.returncode == 0, done.stderr
    assert {file.suffix for file in (tmp_path / "out").iterdir()} == {".s", ".o"}

