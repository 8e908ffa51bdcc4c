"""In which order a product of fragments calls its atoms."""

from __future__ import annotations

import enum
from collections.abc import Iterator

from flylab.layout import Layout, size


class GemmTraversalOrder(enum.Enum):
    """The order of `fx.gemm`'s loops over its atoms, the innermost first; a serpentine one turns at each end.

    >>> list(GemmTraversalOrder.MNK_Serpentine.steps(2, 2, 1))
    [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)]
    """

    KMN = 0
    KNM = 1
    MKN = 2
    MNK = 3
    NKM = 4
    NMK = 5
    KMN_Serpentine = 6
    KNM_Serpentine = 7
    MKN_Serpentine = 8
    MNK_Serpentine = 9
    NKM_Serpentine = 10
    NMK_Serpentine = 11

    def steps(self, m: int, n: int, k: int) -> Iterator[tuple[int, int, int]]:
        """The (m, n, k) of each call, of the numbers of atoms along M, N and K."""
        loops, _, turns = self.name.partition("_")
        extents = dict(zip("MNK", (m, n, k), strict=True))
        for place in _walk([extents[loop] for loop in reversed(loops)], bool(turns)):
            at = dict(zip(reversed(loops), place, strict=True))
            yield at["M"], at["N"], at["K"]


def steps(order: str, m: int, n: int, k: int) -> Iterator[tuple[int, int, int]]:
    """The (m, n, k) of each call, by the name of an order, or by the text of a layout: number of the call -> index of
    its atom in (M, N, K), M fastest.

    >>> list(steps("(3,2):(2,1)", 1, 2, 3))
    [(0, 0, 0), (0, 0, 1), (0, 0, 2), (0, 1, 0), (0, 1, 1), (0, 1, 2)]
    """
    if order in GemmTraversalOrder.__members__:
        yield from GemmTraversalOrder[order].steps(m, n, k)
        return
    layout = Layout.parse(order)
    for call in range(size(layout)):
        index = layout(call)
        yield index % m, index // m % n, index // (m * n)


def _walk(extents: list[int], turns: bool) -> Iterator[tuple[int, ...]]:
    """The coordinates in these extents, the last fastest; where it `turns`, each step changes one of them by one."""
    if not extents:
        yield ()
        return
    *outer, inner = extents
    for number, place in enumerate(_walk(outer, turns)):
        back = turns and number % 2
        yield from ((*place, i) for i in (reversed(range(inner)) if back else range(inner)))
