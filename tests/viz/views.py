"""The views whose pictures are golden files and that the browser looks at."""

from __future__ import annotations

from collections.abc import Callable

from flylab import viz
from flylab.layout import (
    Layout,
    Swizzle,
    make_composed_layout,
    make_identity_layout,
    make_layout_tv,
    make_view,
    slice,
    zipped_divide,
)
from flylab.viz import View
from tests.viz.sample import vector_add


def partition() -> View:
    """The partition that the reference's tiled copy makes: 128 threads with four values each."""
    tile, layout = make_layout_tv(Layout((8, 16), (16, 1)), Layout((1, 4), (1, 1)))
    return viz.tv(layout, tile)


def wave() -> View:
    """64 threads with four values each in a row: the widest tile of one wave."""
    return viz.tv(*make_layout_tv(Layout((8, 8), (8, 1)), Layout((1, 4), (4, 1))))


VIEWS: dict[str, Callable[[], View]] = {
    "columns": lambda: viz.layout(Layout((8, 16), (1, 8))),
    "nested": lambda: viz.layout(Layout(((2, (2, 2)), (4, 2)), ((1, (2, 4)), (8, 32))), color="tile"),
    "swizzled": lambda: viz.layout(make_composed_layout(Swizzle(3, 3, 3), Layout((64, 64), (64, 1)))),
    "identity": lambda: viz.layout(make_identity_layout((4, 8))),
    "coordinates": lambda: viz.layout(slice(zipped_divide(make_view((0, 0), make_identity_layout((64, 96))), (16, 8)),
                                            (None, (1, 2)))),
    "wrapped": lambda: viz.layout(Layout(((4, 10),), ((-10, 1),))),
    "panels": lambda: viz.layout(Layout((3, 4, 2, 2), (-1, 0, 12, 100)), color="mode", labels="coord"),
    "partition": partition,
    "shared": lambda: viz.tv(Layout(((4, 2), 3), ((1, 0), 8)), (4, 7)),
    "ranks": lambda: viz.layout(Layout((2,) * 6, (32, 16, 8, 4, 2, 1))),
    "wave": wave,
    "pipeline": lambda: viz.pipeline(vector_add(), title="vector_add"),
}
