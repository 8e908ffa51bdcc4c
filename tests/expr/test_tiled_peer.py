"""The published wheel's tiled copies and tiled MMAs, each line of it equal to ours or on the list of deviations.

Strides of modes of one element, which say nothing, are written as 0 on both sides.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flylab.compiler as flyc
import flylab.expr as fx
from flylab.atoms import MFMA, UNIVERSAL, MmaAtom, mma_op
from flylab.dtypes import DTYPES
from flylab.errors import TraceError
from flylab.expr.tensor import Tensor
from flylab.layout import Layout, parse, size, text, tile_text
from flylab.layout.int_tuple import map_leaves

FILE = Path(__file__).resolve().parents[1] / "data" / "peer_tiled_examples.txt"
Make = Callable[[], Any]


def _sections() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for line in FILE.read_text().splitlines():
        if line.startswith("== "):
            found[line[3:]] = section = {}
        elif " -> " in line:
            label, _, result = line.partition(" -> ")
            section[label.strip()] = result.strip()
    return found


SECTIONS = _sections()
LINES = [(section, label) for section, lines in SECTIONS.items() for label in lines]


def _view(A: Any, shape: Any, stride: Any) -> Any:
    return fx.make_view(fx.get_iter(A), fx.make_layout(shape, stride))


def _coordinates(*shape: int) -> Any:
    return fx.make_view((0, 0), fx.make_identity_layout(shape))


def _tiled_copy_tv(A: Any, tid: Any) -> dict[str, Make]:
    tiled = fx.make_tiled_copy_tv(fx.make_copy_atom(fx.UniversalCopy(128), fx.Float32),
                                  fx.make_layout((8, 16), (16, 1)), fx.make_layout((1, 4), (1, 1)))
    T, first = _view(A, (16, 128), (128, 1)), tiled.get_slice(0)
    S = first.partition_S(T)
    return {
        "tile_mn": lambda: tile_text(tiled.tile_mn),
        **{name: lambda n=name: getattr(tiled, n)
           for name in ("layout_tv_tiled", "layout_src_tv_tiled", "layout_dst_tv_tiled")},
        **{f"get_slice({t}).partition_S(T (16,128):(128,1))": lambda t=t: tiled.get_slice(t).partition_S(T)
           for t in (0, 1, 17)},
        **{f"get_slice({t}).partition_S(coord (16,128))":
           lambda t=t: tiled.get_slice(tid % 128 if t == "tid" else t).partition_S(_coordinates(16, 128))
           for t in (0, 1, 17, "tid")},
        "make_fragment_like(S)": lambda: fx.make_fragment_like(S),
        "make_fragment_like(S, Float16)": lambda: fx.make_fragment_like(S, fx.Float16),
        "make_fragment_layout_like(S)": lambda: fx.make_fragment_layout_like(S),
        "partition_D(T (16,128):(128,1))": lambda: first.partition_D(T),
        "partition_S(T (16,128,3):(128,1,2048))":
            lambda: first.partition_S(_view(A, (16, 128, 3), (128, 1, 2048))),
        "retile(make_rmem ((4,1),2,2))": lambda: first.retile(fx.make_fragment_like(S)),
    }


def _tiled_copy_explicit(A: Any, tid: Any) -> dict[str, Make]:
    tiled = fx.make_tiled_copy(fx.make_copy_atom(fx.UniversalCopy(128), fx.Float16),
                               fx.make_layout(((8, 32), (1, 8)), ((256, 1), (1, 32))), fx.make_tile(32, 64))
    pointer = fx.recast_iter(fx.Float16, fx.get_iter(A))
    swizzled = fx.make_view(pointer, fx.make_composed_layout(fx.Swizzle(3, 3, 3), fx.make_layout((128, 64, 2),
                                                                                                  (64, 1, 8192))))
    return {
        "layout_tv_tiled": lambda: tiled.layout_tv_tiled,
        "partition_S(coord (128,64)) t=9": lambda: tiled.get_slice(9).partition_S(_coordinates(128, 64)),
        "partition_S(T (128,64):(64,1))": lambda: tiled.get_slice(0).partition_S(_view(A, (128, 64), (64, 1))),
        "make_view(ptr, S<3,3,3> o 0 o (128,64,2))": lambda: swizzled,
        "partition_D(swizzled view) static t=9": lambda: tiled.get_slice(9).partition_D(swizzled),
        "partition_D(swizzled view) tid": lambda: tiled.get_slice(tid).partition_D(swizzled),
    }


def _tiled_mma(family: str, shape: tuple[int, int, int], dtype: str, layout: Any, permutation: Any = None) -> Any:
    def make(A: Any, tid: Any) -> dict[str, Make]:
        atom = MmaAtom(mma_op(family, shape, DTYPES[dtype]))
        tiled = fx.make_tiled_mma(atom, layout, permutation)
        T, C, first = _view(A, (128, 64), (64, 1)), _view(A, (128, 128), (128, 1)), tiled.get_slice(0)
        bits = atom.dtype_a.bits

        def copies(operand: str) -> Any:
            kind = fx.Float32 if operand == "C" and bits == 32 else getattr(fx, dtype)
            return getattr(fx, f"make_tiled_copy_{operand}")(fx.make_copy_atom(fx.UniversalCopy(bits), kind), tiled)

        def partition(operand: str, thread: int) -> Any:
            extents = (128, 128) if operand == "C" else (128, 64)
            return getattr(tiled.get_slice(thread), f"partition_{operand}")(_coordinates(*extents))

        def pair(operand: str) -> Any:
            made = copies(operand)
            return _Pair((made.layout_tv_tiled, made.tile_mn))

        return {
            "atom.thr_layout/shape_mnk": lambda: _Pair((atom.thr_layout, atom.shape_mnk)),
            **{f"atom.layout_{o}_tv": lambda o=o: getattr(atom, f"layout_{o}_tv") for o in "ABC"},
            "type": lambda: str(tiled),
            **{name: lambda n=name: getattr(tiled, n)
               for name in ("tile_size_mnk", "thr_layout_vmnk", "permutation_mnk", "tv_layout_A_tiled",
                            "tv_layout_B_tiled", "tv_layout_C_tiled")},
            **{f"get_slice({t}).partition_{o}(coord (128,{128 if o == 'C' else 64}))": lambda t=t, o=o: partition(o, t)
               for t in (0, 17, 65) for o in "ABC"},
            "partition_A(T (128,64):(64,1)) t0": lambda: first.partition_A(T),
            "make_fragment_A(T (128,64))": lambda: first.make_fragment_A(T),
            "make_fragment_B(.., stages=2)": lambda: tiled.make_fragment_B(T, stages=2),
            "make_fragment_C(T (128,128))": lambda: first.make_fragment_C(C),
            "tiled_mma_partition_shape(A,(128,64))":
                lambda: fx.tiled_mma_partition_shape(fx.MmaOperand.A, tiled, (128, 64)),
            **{f"make_tiled_copy_{o}({bits}b).layout_tv_tiled / tile": lambda o=o: pair(o) for o in "ABC"},
            "tiled_copy_A.get_slice(0).partition_S(T)": lambda: copies("A").get_slice(0).partition_S(T),
            "tiled_copy_A.retile(frag_A)": lambda: copies("A").get_slice(0).retile(first.make_fragment_A(T)),
        }

    return make


MAKERS = dict(zip(SECTIONS, (
    _tiled_copy_tv,
    _tiled_copy_explicit,
    _tiled_mma(MFMA, (16, 16, 4), "Float32", Layout((2, 2, 1), (1, 2, 0))),
    _tiled_mma(MFMA, (16, 16, 16), "Float16", Layout((1, 4, 1), (0, 1, 0)), (None, None, Layout((4, 4, 2), (1, 8, 4)))),
    _tiled_mma(MFMA, (32, 32, 8), "Float16", Layout((2, 2, 1), (1, 2, 0))),
    _tiled_mma(MFMA, (16, 16, 32), "Float8E4M3FNUZ", Layout((1, 1, 1))),
    _tiled_mma(UNIVERSAL, (1, 1, 1), "Float32", Layout((16, 16, 1), (16, 1, 0))),
), strict=True))


def _written(value: Any) -> str:
    """Our value as the wheel writes it, without the names of MLIR types."""
    if isinstance(value, Tensor):
        value = value.spec
    elif isinstance(value, _Pair):
        return " and ".join(map(_written, value))
    elif isinstance(value, tuple):
        value = tile_text(value) if any(each is None or isinstance(each, Layout) for each in value) else text(value)
    return _plain(str(value))


class _Pair(tuple[Any, Any]):
    """Two results of one line."""


def _plain(written: str) -> str:
    """A text with the layouts in it written alike: unit modes with stride 0, of runtime numbers the divisor alone."""
    written = re.sub(r"\?\{(?:i64 )?(?:<[^ }]*)? ?(div=\d+)?\}", lambda m: f"?{{{m[1]}}}" if m[1] else "?", written)
    written = re.sub(r"(\d+)\*\w+\?", r"?{div=\1}", written)  # a named number
    written = re.sub(r"^(\([^:o]*\)) o (?=[^o]*$)", r"\1, ", written)  # a coordinate tensor
    return re.sub(r"(\d+|\([\d(),]*\)):(-?\d[\dE]*|\([\d(),E]*\))", lambda m: _units(parse(m[0])), written)


def _units(layout: Layout) -> str:
    stride = map_leaves(lambda extent, step: 0 if extent == 1 else step, layout.shape, layout.stride)
    return f"{text(layout.shape)}:{text(stride)}"


def _theirs(result: str) -> str:
    """The wheel's text without the names of MLIR types."""
    result = re.sub(r"^\((!.*>), (!.*)\)$", r"\1 and \2", result)
    result = re.sub(r"!fly\.(?:int_tuple|layout|tile|memref|coord_tensor)<((?:[^<>]|<[^<>]*>)*)>", r"\1", result)
    return _plain(re.sub(r"!fly\.(?=tiled_mma|mma_atom)|!", "", result))


@cache
def _ours() -> dict[tuple[str, str], str]:
    """Our results, all of one trace."""
    found = {}

    @flyc.kernel
    def k(A: fx.Tensor):
        for section, make in MAKERS.items():
            for label, value in make(A, fx.Int32(fx.thread_idx.x)).items():
                try:
                    found[section, label] = _written(value())
                except TraceError as error:
                    found[section, label] = f"refused: {error.message}"

    @flyc.jit
    def launch(A: fx.Tensor):
        k(A).launch(grid=1, block=256)

    flyc.compile(launch, np.zeros(128 * 128, np.float32))
    return found


@dataclass(frozen=True)
class Deviation:
    """A line of which the wheel's is wrong: our coordinate of the thread's first element, and the matrix."""

    ours: str
    operand: str
    thread: int

    def by_tv_layout(self, lines: dict[str, str]) -> str:
        """The same coordinate by the thread-value layout that the wheel itself prints for this tiled MMA."""
        m, n, k = parse(_theirs(lines["tile_size_mnk"]))
        rows, columns = {"A": (m, k), "B": (n, k), "C": (m, n)}[self.operand]
        element = parse(_theirs(lines[f"tv_layout_{self.operand}_tiled"]))(self.thread, 0)
        assert element < rows * columns
        return f"({element % rows},{element // rows})"


SECOND_WAVE = "get_slice(65).partition_{}(coord (128,{}))"
DEVIATIONS = {
    ("MFMA(16,16,4,f32)", SECOND_WAVE.format("B", 64)): Deviation("(1,0)", "B", 65),
    ("MFMA(32,32,8,f16)", SECOND_WAVE.format("B", 64)): Deviation("(1,0)", "B", 65),
    ("UniversalFMA(f32)", SECOND_WAVE.format("A", 64)): Deviation("(4,0)", "A", 65),
    ("UniversalFMA(f32)", SECOND_WAVE.format("C", 128)): Deviation("(4,1)", "C", 65),
}
"""The wheel takes a thread's place along M for that along N, and the other way round; its layouts do not."""


TOO_LARGE = ("UniversalFMA(f32)", "make_fragment_B(.., stages=2)")
"""The wheel makes a fragment of 1024 registers; a thread has 512 (CDNA3 ISA, section 3.6.4)."""


def _is(section: str, label: str, atom: str, line: str) -> bool:
    return f" {atom}, atoms" in section and line == label


def _deviation(section: str, label: str) -> Deviation | None:
    return next((d for which, d in DEVIATIONS.items() if _is(section, label, *which)), None)


@pytest.mark.parametrize(("section", "label"), LINES, ids=[f"{s} {label}" for s, label in LINES])
def test_equal_to_the_wheel_or_a_listed_deviation(section: str, label: str) -> None:
    ours, theirs = _ours()[section, label], _theirs(SECTIONS[section][label])
    deviation = _deviation(section, label)
    if _is(section, label, *TOO_LARGE):
        assert "has 1024 elements" in ours and "refused" in ours and size(parse(theirs.split(", ", 2)[2])) > 512
        return
    if deviation is None:
        assert ours == theirs
        return
    assert ours.startswith(deviation.ours) and not theirs.startswith(deviation.ours)
    assert ours.partition(", ")[2] == theirs.partition(", ")[2]
    assert deviation.by_tv_layout(SECTIONS[section]) == deviation.ours


def test_each_line_is_there_and_each_deviation_is_of_one() -> None:
    assert set(_ours()) == set(LINES) and len(LINES) > 160
    assert sum(_deviation(*line) is not None for line in LINES) == len(DEVIATIONS)
