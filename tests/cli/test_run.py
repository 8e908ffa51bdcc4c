"""`flylab run`: a script as Python runs it, one launcher on random inputs, what each launch did."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flylab import settings
from flylab.cli.run import random_tensors
from flylab.dtypes import DTYPES
from tests.cli.conftest import start

SCRIPT = """\
import sys
import numpy as np
import flylab.compiler as flyc
from two_launchers import launch_scale

if __name__ == "__main__":
    a = np.arange(64, dtype=np.float32)
    b = np.zeros_like(a)
    for n in range(3):
        launch_scale(a, b, n)
    compiled = flyc.compile(launch_scale, a, b, 5)
    compiled(a, b, 5)
    print("sum", float(b.sum()), sys.argv[1:], __file__.endswith("script.py"))
"""


@pytest.fixture
def script(kernels: Path) -> Path:
    """A script that launches three times, and once by what `flyc.compile` gives."""
    file = kernels.parent / "script.py"
    file.write_text(SCRIPT)
    return file


def after(script: Path, line: str) -> Path:
    """The script with a line more at its end."""
    script.write_text(SCRIPT + "    " + line + "\n")
    return script


@pytest.mark.parametrize("chip", ["gfx942", "gfx950"])
def test_a_script_runs_as_python_runs_it(flylab: Any, script: Path, chip: str) -> None:
    done = flylab("run", script, "--device", chip, "one", "--", "--two", "-3")
    assert done.code == 0
    assert done.out == f"loaded\nsum {float(np.arange(64).sum() * 5)} ['one', '--two', '-3'] True\n"
    assert done.err.startswith(f"emulated:{chip}: scale: 1 workgroup, 1 wave, ")
    assert done.err.endswith(", 4 times\n") and done.err.count("\n") == 1


def test_every_way_to_launch_is_told(flylab: Any, script: Path) -> None:
    done = flylab("run", after(script, "compiled(a, b, 5); launch_scale(a, b, 5)"), "--json")
    found = json.loads(done.out)
    assert len(found["launches"]) == 6 and found["exit_code"] == 0
    assert {(row["device"], row["launcher"], row["kernel"], row["workgroups"]) for row in found["launches"]} == {
        ("emulated:gfx942", "launch_scale", "scale", 1)}
    assert "sum " in done.err


@pytest.mark.parametrize("line, code, said", [
    ("sys.exit(7)", 7, ""), ("sys.exit()", 0, ""), ("sys.exit('enough')", 1, "enough\n"),
    ("raise SystemExit(0)", 0, ""),
])
def test_exit_codes_are_the_scripts(flylab: Any, script: Path, line: str, code: int, said: str) -> None:
    done = flylab("run", after(script, line))
    assert done.code == code and done.err.startswith(said) and "4 times" in done.err


def test_an_error_of_flylab_is_its_sentence(flylab: Any, script: Path) -> None:
    done = flylab("run", after(script, "launch_scale(a, b[:32], 1)"))
    assert done.code == 1 and "Traceback" not in done.err
    assert "two_launchers.py, line 9, in scale\n    B[fx.thread_idx.x] = A[fx.thread_idx.x] * n\n" in done.err
    assert "is out of bounds" in done.err and "hint: " in done.err and "4 times" in done.err
    assert done.err.endswith("\nemulated:gfx942: scale: stopped by an error\n")


def test_a_launch_that_was_stopped_is_told_with_its_error(flylab: Any, kernels: Path) -> None:
    given = (f"{kernels}:launch_scale", "-a", "A=f32[64]", "-a", "B=f32[32]", "-a", "n=2")
    done = flylab("run", *given)
    assert done.code == 1 and done.out == "loaded\nemulated:gfx942: scale: stopped by an error\n"
    found = json.loads(flylab("run", *given, "--json").out)
    assert [(row["kernel"], row["stopped"]) for row in found["launches"]] == [("scale", True)]
    (error,) = found["errors"]
    assert (error["kind"], error["file"], error["line"]) == ("OutOfBounds", str(kernels), 9)
    assert "'B'" in error["message"] and error["hint"] and found["exit_code"] == 1


def test_another_error_is_in_the_json_too(flylab: Any, script: Path) -> None:
    found = json.loads(flylab("run", after(script, "{}['x']"), "--json").out)
    assert found["errors"] == [{"kind": "KeyError", "message": "'x'", "hint": None, "file": str(script), "line": 14}]
    (ended,) = json.loads(flylab("run", after(script, "sys.exit('enough')"), "--json").out)["errors"]
    assert (ended["kind"], ended["message"]) == ("SystemExit", "enough")


@pytest.mark.parametrize("elements, options, environment, words, names", [
    (65_536, (), "", "checked", 5), (65_600, (), "", "not checked (65,600 threads; --check all)", 0),
    (65_600, ("--check", "all"), "none", "checked", 5), (64, ("--check", "none"), "", "not checked", 0),
    (64, (), "none", "not checked", 0), (64, ("--check", "races,bounds"), "", "checked for bounds and races", 2),
])
def test_the_line_says_whether_a_launch_was_checked(flylab: Any, kernels: Path, monkeypatch: pytest.MonkeyPatch,
                                                    elements: int, options: tuple[str, ...], environment: str,
                                                    words: str, names: int) -> None:
    monkeypatch.setenv("FLYLAB_CHECK", environment)
    given = (f"{kernels}:launch_scale", "-a", f"A,B=f32[{elements}]", "-a", "n=2", *options)
    done = flylab("run", *given)
    assert done.code == 0 and done.out.endswith(f" instructions (emulated), {words}\n")
    assert len(json.loads(flylab("run", *given, "--json").out)["launches"][0]["checked"]) == names


def test_another_error_shows_the_users_lines_alone(flylab: Any, script: Path) -> None:
    done = flylab("run", after(script, "{}['x']"))
    assert done.code == 1 and "KeyError: 'x'" in done.err
    assert [line for line in done.err.splitlines() if line.startswith("  File")] == [
        f'  File "{script}", line 14, in <module>']


RACE = """
@flyc.kernel
def race(A: fx.Tensor):
    t = fx.thread_idx.x
    lds = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 64]).peek()
    s = fx.make_view(lds.ptr, fx.make_layout(64, 1))
    s[t] = A[t]
    A[t] = s[t ^ 1]

@flyc.jit
def launch_race(A: fx.Tensor):
    race(A).launch(grid=1, block=64)
"""


@pytest.mark.parametrize("check, code", [("all", 1), ("none", 0)])
def test_checks_are_chosen(flylab: Any, kernels: Path, check: str, code: int) -> None:
    kernels.write_text(kernels.read_text() + RACE)
    done = flylab("run", f"{kernels}:launch_race", "-a", "A=f32[64]", "--check", check)
    assert done.code == code and ("a race in LDS" in done.err) == (code == 1)


def test_a_launcher_runs_once_on_random_inputs(flylab: Any, kernels: Path) -> None:
    given = (f"{kernels}:launch_scale", "-a", "A,B=f32[128]", "-a", "n=2")
    done = flylab("run", *given, "--counters")
    assert (done.code, done.err) == (0, "") and done.out.startswith("loaded\nemulated:gfx942: scale: 2 workgroups")
    assert "memory: 512 bytes read, 512 written" in done.out and "two_launchers.py" in done.out
    (launch,) = json.loads(flylab("run", *given, "--counters", "--json").out)["launches"]
    assert launch["counters"]["executions"] == launch["instructions"] and launch["counters"]["clamped"] == 0


DATA = """
import numpy
DATA = numpy.zeros((3, 64), numpy.float32)
DATA[2] = range(64)

def flylab_arguments():
    return {"launch_scale": {"A": DATA[0] + 4, "n": 3}}
"""


@pytest.mark.parametrize("more, expected", [((), np.full(64, 12)), (("-a", "A=DATA[2]"), np.arange(64) * 3)])
def test_arrays_of_the_file_are_taken_as_they_are(flylab: Any, kernels: Path, more: tuple[str, ...],
                                                  expected: Any) -> None:
    kernels.write_text(kernels.read_text() + DATA)
    assert flylab("run", f"{kernels}:launch_scale", "-a", "B=DATA[1]", *more).code == 0
    data = sys.modules["_flylab_two_launchers"].DATA
    assert (data[0] == 0).all() and (data[1] == expected).all() and (data[2] == np.arange(64)).all()


def test_the_inputs_are_those_of_the_seed() -> None:
    def filled(seed: int) -> list[Any]:
        make = random_tensors(seed)
        return [make("A", DTYPES["Float32"], (40, 50)), make("B", DTYPES["Int8"], (1000,), (-1,)),
                make("C", DTYPES["Float16"], (10,))]

    first, again, other = filled(1), filled(1), filled(2)
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not any(np.array_equal(a, b) for a, b in zip(first, other, strict=True))
    assert abs(first[0].mean()) < 0.1 and abs(first[0].std() - 1) < 0.1
    assert set(first[1].tolist()) == set(range(16))


@pytest.mark.parametrize("options, words", [
    ([":scale", "-a", "A,B=f32[64]", "-a", "n=1"], "names a kernel\nhint: name what launches it: launch_scale"),
    (["-a", "A=f32[64]"], "--arg goes to a launcher"),
    ([":launch_scale", "word"], "is a launcher, and takes no word"),
    (["--counts"], "did you mean '--counters'? If not: a script's own options go after --"),
    (["word", "--bar"], "did you mean '--arg'? If not: a script's own options go after --"),
    (["--seed", "1", "--seed", "2"], "--seed is given twice: 1 and 2"),
    (["--verbose"], "a script's own options go after --"),
    (["--check", "some"], "--check some: no check is called 'some'\nhint: give auto, all, none, or names: bounds, "),
    (["--check", "bounds,race"], "no check is called 'race'\nhint: did you mean 'races'?"),
])
def test_a_wrong_command_is_a_sentence(flylab: Any, kernels: Path, options: list[str], words: str) -> None:
    named = bool(options) and options[0].startswith(":")
    done = flylab("run", f"{kernels}{options[0] if named else ''}", *options[named:])
    assert done.code == 2 and words in done.err


def test_a_device_that_is_none(flylab: Any, script: Path) -> None:
    done = flylab("run", script, "--device", "gfx90a")
    assert done.code == 2 and "no device is called 'gfx90a'" in done.err and done.out == ""
    assert f"hint: use {settings.DEVICES}; chips are gfx942 (MI300X), gfx950 (MI350X)" in done.err
    assert f"{settings.DEVICES} (default" in " ".join(flylab("run", "--help").out.split())
    assert "hint: mi325x is gfx942" in flylab("run", script, "--device", "mi325x").err


def test_a_gpu_that_is_not_there_hints_the_option(flylab: Any, script: Path) -> None:
    done = flylab("run", script, "--device", "hip:77")
    assert done.code == 1 and done.out == "" and "flylab.use" not in done.err


def test_a_script_may_go_elsewhere_and_leave_work_for_the_end(script: Path) -> None:
    after(script, "import atexit, os; os.chdir('/'); atexit.register(lambda: launch_scale(a, b, fx.Int32(9)))")
    script.write_text("import flylab.expr as fx\n" + script.read_text())
    process = start("run", script.name, cwd=script.parent)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0 and out.startswith("loaded\nsum ") and "Error" not in err


def test_the_output_may_be_read_in_part(script: Path) -> None:
    after(script, "[print('line', i) for i in range(100_000)]")
    process = start("run", script)
    assert process.stdout is not None and process.stdout.readline() == "loaded\n"
    process.stdout.close()
    assert process.wait(60) == 141
    assert process.stderr is not None and "Error" not in process.stderr.read()


def test_ctrl_c(script: Path) -> None:
    import signal
    import time

    after(script, "print('ready', flush=True); import time; time.sleep(60)")
    process = start("run", script)
    assert process.stdout is not None and process.stderr is not None
    while process.stdout.readline() != "ready\n":
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert "interrupted" in process.stderr.read()


def test_the_modules_name_is_the_scripts_as_long_as_it_runs(flylab: Any, script: Path) -> None:
    flylab("run", script)
    assert sys.modules["__main__"].__file__ == str(script)


def test_kernels_before_the_one_that_was_stopped_are_told(flylab: Any, kernels: Path) -> None:
    """By the first call, which takes another way than those after it, and by what `flyc.compile` gives."""
    kernels.write_text(kernels.read_text() + """
@flyc.kernel
def shifted(A: fx.Tensor, at: fx.Int32):
    A[fx.thread_idx.x + at] = 1.0

@flyc.jit
def launch_two(A: fx.Tensor, at: fx.Int32):
    fill(A, fx.Float32, "ones").launch(grid=1, block=64)
    shifted(A, at).launch(grid=1, block=64)

if __name__ == "__main__":
    import numpy as np
    from flylab.errors import OutOfBounds
    a = np.zeros(64, np.float32)
    for call in (launch_two, launch_two, flyc.compile(launch_two, a, 0)):
        for at in (1, 0, 1):
            try:
                call(a, at)
            except OutOfBounds:
                assert at == 1
""")
    found = json.loads(flylab("run", kernels, "--json").out)
    told = [(row["kernel"], row["stopped"]) for row in found["launches"]]
    stopped, done = [("fill", False), ("shifted", True)], [("fill", False), ("shifted", False)]
    assert told == (stopped + done + stopped) * 3 and found["errors"] == []
