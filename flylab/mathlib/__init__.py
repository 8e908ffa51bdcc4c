"""The functions of `fx.math` as recipes of exact arithmetic: written once, computed while tracing and on the device.

A recipe is a function of a machine and of values. `known.Known` computes with numpy; the pass `fly-expand-math` has
one that makes operations. Every step of a recipe is rounded as IEEE 754 says (sums, products, fma, quotients, roots,
conversions), so the two give the same bits on any device. Only the forms for fast-math `afn` ask the hardware's own
instructions, whose bits AMD does not publish.

Functions of Float32 mostly compute in Float64 and round once: the vector units of CDNA3 and CDNA4 do both formats at
one rate (AMD CDNA3 white paper: 256 operations a cycle and compute unit, for vectors of either).
"""
