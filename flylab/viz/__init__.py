"""Pictures of layouts, partitions and compilations, for the notebook and for pages.

    >>> from flylab import viz
    >>> from flylab.layout import make_layout
    >>> print(viz.layout(make_layout((2, 4), (4, 1)), title="row major"))
    row major
    mode 0 = 2:4 down, mode 1 = 4:1 right
        0  1  2  3
     0  0  1  2  3
     1  4  5  6  7
"""

from flylab.viz.layout_view import layout
from flylab.viz.passes_view import pipeline
from flylab.viz.scene import Scene
from flylab.viz.tv_view import tv
from flylab.viz.view import View

__all__ = ["Scene", "View", "layout", "pipeline", "tv"]


def __dir__() -> list[str]:
    return __all__
