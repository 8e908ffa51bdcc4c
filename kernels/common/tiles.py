"""What launchers check: sizes that are cut into tiles, shapes, names of variants."""

from __future__ import annotations

from flylab.errors import ArgumentError


def whole_tiles(size: int, tile: int, what: str) -> int:
    """How many tiles a size has, where it must have a whole number of them.

    >>> whole_tiles(4096, 1024, "A")
    4

    Raises `ArgumentError` where a part of a tile would be left over: a kernel without a guard would leave it out.
    """
    if size % tile:
        below, above = size // tile * tile, -(-size // tile) * tile
        raise ArgumentError(f"'{what}' has {size} elements, no whole number of tiles of {tile}",
                            hint=f"pad it to {above}" + (f", or pass its first {below}" if below else ""))
    return size // tile


def same_shape(**tensors) -> None:
    """Refuse tensors of different shapes: `same_shape(A=A, B=B)`. Raises `ArgumentError` naming them."""
    (first, model), *others = tensors.items()
    for name, tensor in others:
        if tensor.shape != model.shape:
            raise ArgumentError(f"'{first}' has shape {model.shape} and '{name}' {tensor.shape}",
                                hint="pass tensors of one shape")


def named(variants, name):
    """The variant of this name. Raises `ArgumentError` that lists them.

    >>> named({"wide": 4, "narrow": 1}, "wide")
    4
    """
    if name not in variants:
        raise ArgumentError(f"{name!r} is no variant: {', '.join(variants)}", hint="name one of them")
    return variants[name]


def matrix_product(A, B, C):
    """M, N and K of C = A @ B. Raises `ArgumentError` unless A is (M, K), B (K, N) and C (M, N)."""
    (M, K), N = A.shape, B.shape[1]
    if B.shape[0] != K or C.shape != (M, N):
        raise ArgumentError(f"A {A.shape} times B {B.shape} into C {C.shape}", hint="pass (M, K), (K, N) and (M, N)")
    return M, N, K
