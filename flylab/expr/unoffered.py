"""Published names that flylab does not offer: why, and what says the same here."""

from __future__ import annotations

from flylab.errors import NotSupportedError

_TYPE = "is a type of the wheel's MLIR dialect, and here such a value is a plain Python object"
_BUILD = "is part of how the wheel builds its MLIR, which no kernel needs"
UNOFFERED = {
    "IntTuple": ("is a class of the wheel, and an int tuple is a Python tuple here", "write (8, (4, 2))"),
    "Tile": ("is a class of the wheel, and a tile is a Python tuple of layouts here", "write fx.make_tile(...)"),
    "BasisType": (_TYPE, "fx.E(0, 1) makes one"),
    "CoordSwizzleType": (_TYPE, "fx.Swizzle(bits, base, shift) swizzles an index"),
    "CoordTensorType": (_TYPE, "fx.make_view((0, 0), fx.make_identity_layout(shape)) makes one"),
    "CopyAtomType": (_TYPE, "fx.make_copy_atom(...) makes one"),
    "CopyOpUniversalAtomicType": (_TYPE, "fx.UniversalAtomic(...) makes one"),
    "CopyOpUniversalCopyType": (_TYPE, "fx.UniversalCopy(bits) makes one"),
    "MemRefType": (_TYPE, "t.type is that of a tensor"),
    "MmaAtomType": (_TYPE, "fx.make_mma_atom(...) makes one"),
    "MmaOpUniversalFMAType": (_TYPE, "fx.UniversalFMA(...) makes one"),
    "TiledCopyType": (_TYPE, "fx.make_tiled_copy(...) makes one"),
    "TiledMmaType": (_TYPE, "fx.make_tiled_mma(...) makes one"),
    "NumericMeta": ("is the class of the wheel's formats", "fx.Numeric is the base of the formats"),
    "capture_user_location": (_BUILD, "every operation has the user's line by itself"),
    "dsl_wrap_result": (_BUILD, "fx.as_dsl_value(x) types a raw value"),
    "tracing_context": (_BUILD, "leave it out"),
    "tracing_option": (_BUILD, "leave it out"),
    "lazy_classattr": (_BUILD, "leave it out"),
    "print_typst": ("draws for a program that flylab does not use", "flylab.viz draws layouts, atoms and copies"),
    "ExternFunction": ("calls bitcode of ROCm's device libraries, which flylab does not link", "fx.math has functions"),
    "ffi": ("calls bitcode of ROCm's device libraries, which flylab does not link", "fx.math has functions"),
    "BaseBackend": ("is the class of compilers for other hardware, and flylab has one compiler", "flyc.get_backend()"),
    "register_backend": ("adds a compiler for other hardware, and flylab has one compiler", "flyc.get_backend()"),
    "is_specializable_struct_type": ("asks for structs of which fields are constants of a compilation, and fields are "
                                     "stored in memory here", "pass constants beside it: fx.Constexpr parameters"),
    "experimental": ("holds what the wheel tries out", "leave it out"),
}


def unoffered(module: str, name: str) -> NotSupportedError | None:
    """The error for a published name that flylab does not offer, or None for any other.

    >>> print(unoffered("fx", "Tile").hint)
    write fx.make_tile(...)
    """
    found = UNOFFERED.get(name)
    return NotSupportedError(f"{module}.{name} {found[0]}", hint=found[1]) if found else None
