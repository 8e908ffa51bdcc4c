"""A call that has a plan does what the first call does: the same results, the same errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import flylab
import flylab.compiler as flyc
import flylab.expr as fx
from flylab.errors import ArgumentError, FlylabError
from flylab.runtime import launch as slow
from flylab.runtime.device import current
from flylab.runtime.finding import find
from tests.samples import cell, in_threads

torch = pytest.importorskip("torch")

SCALED = """
@flyc.kernel
def k(A: fx.Tensor, B: fx.Tensor, n: fx.Int32, factor: fx.Constexpr):
    i = gpu.block_id("x") * 64 + gpu.thread_id("x")
    if i < n:
        B[i] = A[i] * factor

@flyc.jit
def launch(A: fx.Tensor, B: fx.Tensor, n: fx.Int32, factor: fx.Constexpr = 3):
    k(A, B, n, factor).launch(grid=(fx.ceildiv(n, 64),), block=64)
"""
SIZE = 100


def first(launcher: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """What a call does that has no plan."""
    device, bound = current(), slow.bound_to(launcher, args, named)
    return slow.run_bound(device, find(launcher, bound, device), bound)


def outcome(function: Callable[[], Any]) -> Any:
    """What a call gives or raises, as something to compare."""
    try:
        run = function()
    except FlylabError as error:
        return type(error), error.message, error.hint, error.where
    return run.device, run.compiled, [str(report) for report in run.reports]


@dataclass
class Counted:
    """How often calls went the way of the first one."""

    times: int = 0


@pytest.fixture
def firsts(monkeypatch: pytest.MonkeyPatch) -> Counted:
    counted, bind = Counted(), slow.bound_to

    def bound_to(*given: Any) -> Any:
        counted.times += 1
        return bind(*given)

    monkeypatch.setattr(slow, "bound_to", bound_to)
    return counted


def numbers(dtype: Any = "float32", count: int = SIZE) -> np.ndarray[Any, Any]:
    return np.arange(count).astype(dtype)


def offset(count: int = SIZE) -> torch.Tensor:
    return torch.arange(count + 1, dtype=torch.float32)[1:]


def outside() -> np.ndarray[Any, Any]:
    return np.lib.stride_tricks.as_strided(numbers(count=10)[:], (SIZE,), (4,))


def shrunk() -> torch.Tensor:
    tensor = torch.arange(float(SIZE))
    tensor.untyped_storage().resize_(16)
    return tensor


def read_only() -> np.ndarray[Any, Any]:
    array = numbers()
    array.flags.writeable = False
    return array


class Subclass(np.ndarray):  # type: ignore[type-arg]
    pass


PLANNED: dict[str, Callable[[], tuple[Any, ...]]] = {
    "numpy": lambda: (numbers(), numbers(), SIZE),
    "torch": lambda: (torch.arange(float(SIZE)), torch.zeros(SIZE), SIZE),
    "a parameter of a network": lambda: (torch.nn.Parameter(torch.ones(SIZE)), torch.zeros(SIZE), SIZE),
    "both": lambda: (numbers(), torch.zeros(SIZE), SIZE),
    "a view": lambda: (numbers(count=2 * SIZE)[::2], numbers(count=SIZE + 3)[3:], SIZE),
    "backwards": lambda: (numbers()[::-1], torch.zeros(SIZE), SIZE),
    "a view of torch's": lambda: (torch.arange(2.0 * SIZE)[::2], offset(), SIZE),
    "another format": lambda: (numbers("float16"), numbers("float16"), SIZE),
    "integers": lambda: (numbers("int32"), numbers("int64"), SIZE),
    "bfloat16": lambda: (torch.arange(SIZE).bfloat16(), torch.zeros(SIZE, dtype=torch.bfloat16), SIZE),
    "read only": lambda: (read_only(), numbers(), SIZE),
    "numpy's number": lambda: (numbers(), numbers(), np.int64(SIZE)),
    "a number of flylab": lambda: (numbers(), numbers(), fx.Int32(SIZE)),
    "an array of rank 0": lambda: (numbers(), numbers(), np.array(SIZE)),
    "True as a number": lambda: (numbers(), numbers(), True),
    "a float constant": lambda: (numbers(), numbers(), SIZE, 2.5),
    "a constant of numpy": lambda: (numbers(), numbers(), SIZE, np.int64(7)),
    "the same memory": lambda: (same := numbers(), same, SIZE),
}
REFUSED: dict[str, Callable[[], tuple[Any, ...]]] = {
    "no arguments": lambda: (),
    "too many": lambda: (numbers(), numbers(), SIZE, 3, 4),
    "a number of 33 bits": lambda: (numbers(), numbers(), 1 << 31),
    "a float for a number": lambda: (numbers(), numbers(), 2.0),
    "a text for a number": lambda: (numbers(), numbers(), "2"),
    "a list for a tensor": lambda: ([1.0], numbers(), SIZE),
    "nothing for a tensor": lambda: (None, numbers(), SIZE),
    "a list as a constant": lambda: (numbers(), numbers(), SIZE, [3]),
    "a grid of 0": lambda: (numbers(), numbers(), 0),
    "less than nothing": lambda: (numbers(), numbers(), -5),
    "beyond the array": lambda: (numbers(count=10), numbers(), SIZE),
    "outside of its storage": lambda: (outside(), numbers(), SIZE),
    "a storage made smaller": lambda: (shrunk(), torch.zeros(SIZE), SIZE),
    "no elements": lambda: (numbers(count=0), numbers(), SIZE),
    "not aligned": lambda: (numbers("int8", 401)[1:].view("float32"), numbers(), SIZE),
    "other byte order": lambda: (numbers(">f4"), numbers(), SIZE),
    "with a mask": lambda: (np.ma.masked_array(numbers()), numbers(), SIZE),
    "complex": lambda: (numbers("complex64"), numbers(), SIZE),
    "negated when read": lambda: (torch.zeros(SIZE, dtype=torch.complex64).conj().imag, torch.zeros(SIZE), SIZE),
    "without memory": lambda: (torch.zeros(SIZE, device="meta"), torch.zeros(SIZE), SIZE),
    "sparse": lambda: (torch.zeros(SIZE).to_sparse(), torch.zeros(SIZE), SIZE),
    "written where it is read only": lambda: (numbers(), read_only(), SIZE),
}


def values(array: Any) -> np.ndarray[Any, Any]:
    return array.detach().double().numpy() if isinstance(array, torch.Tensor) else np.array(array, "float64")


@pytest.mark.parametrize("name", PLANNED)
def test_results_are_those_of_a_first_call(name: str) -> None:
    launch, other = (cell(SCALED)["launch"] for _ in range(2))
    for _ in range(3):
        mine, theirs = PLANNED[name](), PLANNED[name]()
        run, wanted = launch(*mine), first(other, theirs, {})
        assert str(run.reports[0]) == str(wanted.reports[0]) and run.device == wanted.device
        for a, b in zip(mine[:2], theirs[:2], strict=True):
            assert np.array_equal(values(a), values(b))
    factor = 3 if len(mine) < 4 else float(mine[3])
    source, got = values(PLANNED[name]()[0]), values(mine[1])
    assert np.allclose(got[: int(mine[2])], (source * factor)[: int(mine[2])], rtol=2**-8)


@pytest.mark.parametrize("name", REFUSED)
def test_errors_are_those_of_a_first_call(name: str) -> None:
    launch = cell(SCALED)["launch"]
    launch(numbers(), numbers(), SIZE)
    launch(torch.zeros(SIZE), torch.zeros(SIZE), SIZE)
    wanted = outcome(lambda: first(launch, REFUSED[name](), {}))
    assert issubclass(wanted[0], FlylabError)
    for _ in range(2):
        assert outcome(lambda: launch(*REFUSED[name]())) == wanted
    assert outcome(lambda: launch(numbers(), numbers(), SIZE))[2] == outcome(
        lambda: first(launch, (numbers(), numbers(), SIZE), {}))[2]


def test_every_kind_of_call_has_a_plan_from_its_second_time_on(firsts: Counted) -> None:
    launch = cell(SCALED)["launch"]
    for name, make in PLANNED.items():
        launch(*make())
        count = firsts.times
        launch(*make())
        assert firsts.times == count, name


def test_a_name_that_is_bound_twice_or_unknown_is_told_as_at_first() -> None:
    launch = cell(SCALED)["launch"]
    for _ in range(3):
        launch(B=numbers(), A=numbers(), n=SIZE)
    for named in ({"A": 1}, {"m": 2}):
        wanted = outcome(lambda named=named: first(launch, (numbers(), numbers(), SIZE), named))
        assert wanted[0] is ArgumentError
        assert outcome(lambda named=named: launch(numbers(), numbers(), SIZE, **named)) == wanted


@pytest.mark.parametrize("head, positional, keywords", [
    ("a, /, b", (4, 5), {}),
    ("a, /, b", (4,), {"b": 5}),
    ("*, a, b", (), {"b": 5, "a": 4}),
    ("a, /, *, b=5", (4,), {}),
    ("a, /, b=6, *, c=2", (4,), {"c": 5}),
    ("_a, _p0", (4, 5), {}),
    ("self, key", (4,), {"key": 5}),
    ("run, plans", (4, 5), {}),
])
def test_parameters_bind_as_python_binds_them(head: str, positional: tuple[int, ...], keywords: dict[str, int]) -> None:
    bound = eval(f"lambda {head}: locals()")(*positional, **keywords)
    typed = [f"{part.partition('=')[0]}: fx.Int32 {part[part.index('='):] if '=' in part else ''}".strip()
             if part not in "/*" else part for part in head.split(", ")]
    launch = cell(f"""
@flyc.kernel
def k(A: fx.Tensor, x: fx.Int32):
    A[0] = x

@flyc.jit
def launch({", ".join(["array: fx.Tensor", *typed])}):
    k(array, {" + 10 * ".join(bound)}).launch(grid=1, block=1)
""")["launch"]
    for _ in range(3):
        array = np.zeros(1, "int32")
        launch(array, *positional, **keywords)
        assert array[0] == eval(" + 10 * ".join(bound), dict(bound))


def test_formats_shapes_and_constants_have_plans_of_their_own() -> None:
    launch = cell(SCALED)["launch"]
    for _ in range(2):
        for factor in (1, True, 1.0, 2, -2, 0.5):
            for dtype in ("float32", "int32"):
                a, b = numbers(dtype), numbers(dtype)
                if dtype == "int32" and type(factor) is float:
                    continue
                launch(a, b, SIZE, factor)
                assert np.array_equal(b, (a * factor).astype(dtype))


def test_zeros_of_both_signs_are_two_constants() -> None:
    launch = cell(SCALED)["launch"]
    for _ in range(3):
        for zero in (0.0, -0.0):
            out = numbers()
            launch(numbers(), out, SIZE, zero)
            assert np.array_equal(np.signbit(out[1:]), np.full(SIZE - 1, zero.hex()[0] == "-"))


def test_a_constant_object_that_changes_compiles_anew() -> None:
    names = cell("""
from dataclasses import dataclass

@dataclass
class Config:
    factor: int

@flyc.kernel
def k(A: fx.Tensor, config: fx.Constexpr):
    A[gpu.thread_id("x")] = config.factor

@flyc.jit
def launch(A: fx.Tensor, config: fx.Constexpr):
    k(A, config).launch(grid=1, block=64)
""")
    launch, config, array = names["launch"], names["Config"](1), np.zeros(64, "int32")
    for factor in (1, 1, 2, 2, 1):
        config.factor = factor
        launch(array, config)
        assert (array == factor).all()
    for factor in (4, 5):
        launch(array, names["Config"](factor))
        assert (array == factor).all()


def test_a_global_that_changes_compiles_anew() -> None:
    names = cell(SCALED.replace("* factor", "* GLOBAL"))
    for value in (2, 2, 3, 3, 2):
        names["GLOBAL"] = value
        out = numbers()
        names["launch"](numbers(), out, SIZE)
        assert np.array_equal(out, numbers() * value)


@pytest.mark.parametrize("name", ["FLYLAB_DEVICE", "FLYDSL_DEVICE", "ARCH"])
def test_the_device_of_the_environment_is_looked_at_each_time(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    launch = cell(SCALED)["launch"]
    for _ in range(2):
        for chip in ("gfx942", "gfx950", "gfx942"):
            monkeypatch.setenv(name, chip)
            assert str(launch(numbers(), numbers(), SIZE).device) == f"emulated:{chip}"
        with flylab.use("gfx950"):
            assert str(launch(numbers(), numbers(), SIZE).device) == "emulated:gfx950"
        assert str(launch(numbers(), numbers(), SIZE).device) == "emulated:gfx942"
    monkeypatch.setenv(name, "gfx1")
    with pytest.raises(FlylabError, match=name):
        launch(numbers(), numbers(), SIZE)


def test_the_optimisation_level_is_looked_at_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    launch = cell(SCALED)["launch"]
    for level in ("1", "2", "1", "2"):
        monkeypatch.setenv("FLYLAB_COMPILE_OPT_LEVEL", level)
        assert launch(numbers(), numbers(), SIZE).compiled.opt_level == int(level)


def test_another_environ_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    launch = cell(SCALED)["launch"]
    for _ in range(2):
        launch(numbers(), numbers(), SIZE)
    monkeypatch.setattr("os.environ", {"ARCH": "gfx950"})
    for _ in range(2):
        assert str(launch(numbers(), numbers(), SIZE).device) == "emulated:gfx950"


def test_what_is_watched_holds_for_planned_calls() -> None:
    launch = cell(SCALED)["launch"]
    for _ in range(2):
        assert launch(numbers(), numbers(), SIZE).reports[0].counters is None
        with flylab.watch(counters=True):
            assert launch(numbers(), numbers(), SIZE).counters is not None


def test_nothing_is_read_parsed_or_traced_again(monkeypatch: pytest.MonkeyPatch) -> None:
    launch = cell(SCALED)["launch"]
    compiled = flyc.compile(launch, numbers(), numbers(), SIZE)
    for call in (launch, compiled):
        call(numbers(), numbers(), SIZE)

    def again(*given: Any, **named: Any) -> Any:
        raise AssertionError("done again")

    for what in ("flylab.compiler.source.read", "flylab.compiler.rewrite.rewrite", "flylab.compiler.trace.trace",
                 "flylab.runtime.compiled.build", "flylab.runtime.finding.build", "flylab.codegen.amdgpu.optimise",
                 "flylab.passes.pipeline.run", "flylab.passes.host.read_host", "flylab.runtime.launch.bound_to",
                 "flylab.runtime.fast.calling.find", "linecache.getlines", "linecache.checkcache",
                 "inspect.getsource", "inspect.getblock", "tokenize.generate_tokens", "ast.parse", "hashlib.sha256",
                 "hashlib.blake2b", "builtins.compile", "builtins.exec"):
        monkeypatch.setattr(what, again)
    for call in (launch, compiled):
        for n in (SIZE, 7, 64):
            out = numbers()
            call(numbers(), out, n)
            assert np.array_equal(out[:n], 3 * numbers()[:n]) and np.array_equal(out[n:], numbers()[n:])
    monkeypatch.undo()


def test_what_a_type_is_registered_for_comes_first() -> None:
    launch = cell(SCALED)["launch"]
    for _ in range(2):
        launch(numbers(), numbers(), SIZE)
    flyc.JitArgumentRegistry.register(np.ndarray)(lambda array: torch.as_tensor(array)[10:])
    try:
        out = numbers()
        launch(numbers(), out, 5)
        assert np.array_equal(out, np.r_[0:10, 30:45:3, 15:SIZE])
    finally:
        flyc.JitArgumentRegistry.unregister(np.ndarray)
    out = numbers()
    launch(numbers(), out, 5)
    assert np.array_equal(out, np.r_[0:15:3, 5:SIZE])


def test_why_recompiled_knows_of_planned_calls() -> None:
    names = cell(SCALED)
    for call in range(3):
        names["launch"](numbers(), numbers(), SIZE)
        for function in (names["launch"], names["k"]):
            assert ("compiled nothing: it was found in memory" in str(function.why_recompiled())) == (call > 0)


def test_why_recompiled_tells_of_the_last_call_among_several_shapes() -> None:
    launch, found = cell(SCALED)["launch"], list[bool]()
    compiled = flyc.compile(launch, numbers(count=64), numbers(count=64), 4)
    for count in (64, 32, 64, 32, 16, 64):
        launch(numbers(count=count), numbers(count=count), 4)
        compiled(numbers(count=64), numbers(count=64), 4)
        said = str(launch.why_recompiled())
        found.append("compiled nothing: it was found in memory\nits last compilation: 'launch' was compiled " in said)
        assert found[-1] or said.startswith("'launch' was compiled again, since\n  argument 'A': shape ")
    assert found == [True, False, True, True, False, True]


def test_threads_do_not_share_what_a_call_needs() -> None:
    launch = cell(SCALED)["launch"]
    launch(numbers(), numbers(), SIZE)

    def work(seed: int) -> None:
        for n in range(1, 60):
            a, out = numbers() + seed, np.zeros(SIZE, "float32")
            launch(a, out, n)
            assert np.array_equal(out, np.where(np.arange(SIZE) < n, 3 * a, 0))

    in_threads(work, 6)


def test_an_error_of_the_users_own_code_shows_no_frame_of_flylab() -> None:
    launch = cell(SCALED.replace("    k(A", "    1 / factor\n    k(A"))["launch"]
    with pytest.raises(ZeroDivisionError) as caught:
        launch(numbers(), numbers(), SIZE, 0)
    assert [entry.name for entry in caught.traceback][1:] == ["launch"]  # after the test's own


def test_an_error_that_flylab_foresaw_shows_the_users_frames_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong variable, a wrong argument, wrong text in a kernel: by both ways to call, the first time and after."""
    launch = cell(SCALED)["launch"]
    compiled = flyc.compile(launch, numbers(), numbers(), SIZE)
    for call in (launch, compiled):
        for _ in range(2):
            with pytest.raises(ArgumentError) as caught:
                call(numbers(), 4, SIZE)
            assert len(caught.traceback) == 1
            call(numbers(), numbers(), SIZE)
    monkeypatch.setenv("FLYLAB_CHECK", "everything")
    for call in (launch, compiled):
        with pytest.raises(FlylabError, match="FLYLAB_CHECK") as found:
            call(numbers(), numbers(), SIZE)
        assert len(found.traceback) == 1
    wrong = cell(SCALED.replace("    k(A", "    fx.make_layout(-1)\n    k(A"))["launch"]
    with pytest.raises(FlylabError) as found:
        wrong(numbers(), numbers(), SIZE)
    assert [entry.name for entry in found.traceback][1:] == ["launch"]


def test_a_launcher_forgets_plans_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flylab.runtime.fast.plans.MOST_KEYS", 2)
    launch = cell(SCALED)["launch"]
    for n in (5, 6, 7, 5, 6, 7):
        out = numbers(count=n)
        launch(numbers(count=n), out, n)
        assert np.array_equal(out, 3 * numbers(count=n))


def test_a_compilation_refuses_another_layout_each_time() -> None:
    launch = cell(SCALED)["launch"]
    compiled = flyc.compile(launch, numbers(), numbers(), SIZE)
    for _ in range(3):
        out = numbers()
        compiled(numbers(), out, 5)
        assert np.array_equal(out[:5], 3 * numbers()[:5])
        compiled(torch.as_tensor(numbers()), torch.zeros(SIZE), 5, 3)
        for wrong in ((numbers("int32"), numbers()), (numbers(count=SIZE + 1), numbers()),
                      (numbers(count=2 * SIZE)[::2], numbers())):
            with pytest.raises(FlylabError, match=r"'A' was compiled for .*, and gets "):
                compiled(*wrong, 5)
        with pytest.raises(FlylabError, match="'factor' was compiled for 3, and gets 4"):
            compiled(numbers(), numbers(), 5, 4)
        with pytest.raises(ArgumentError, match="missing a required argument"):
            compiled(numbers(), numbers())


@pytest.mark.parametrize("kind", ["dataclass", "dataclass(unsafe_hash=True)", "plain"])
def test_a_compilation_refuses_a_constant_that_was_changed(kind: str) -> None:
    names = cell(f"""
from dataclasses import dataclass

def plain(kind):
    def __init__(self, factor): self.factor = factor
    kind.__init__ = __init__
    return kind

@{kind}
class Config:
    factor: int

@flyc.kernel
def k(A: fx.Tensor, config: fx.Constexpr):
    A[gpu.thread_id("x")] = config.factor

@flyc.jit
def launch(A: fx.Tensor, config: fx.Constexpr):
    k(A, config).launch(grid=1, block=64)
""")
    config, array = names["Config"](3), np.zeros(64, "int32")
    compiled = flyc.compile(names["launch"], array, config)
    for factor in (3, 3, 4, 4, 3, 3):
        config.factor = factor
        array[:] = 0
        if factor == 3:
            compiled(array, config)
        else:
            with pytest.raises(FlylabError, match="'config.factor' was 3 when it was compiled, and is 4"):
                compiled(array, config)
        assert (array == (3 if factor == 3 else 0)).all()


def test_a_function_in_a_trace_is_called_there() -> None:
    names = cell(SCALED + """
@flyc.jit
def outer(A: fx.Tensor, B: fx.Tensor, n: fx.Int32):
    launch(A, B, n, 5)
""")
    for _ in range(3):
        names["launch"](numbers(), numbers(), SIZE)
        out = numbers()
        names["outer"](numbers(), out, SIZE)
        assert np.array_equal(out, 5 * numbers())

