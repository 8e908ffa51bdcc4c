"""Deliberately empty: its presence ends the bindings' search for `mlir.dialects.fly`.

Without it each first touch of an operation from Python retries a failing import, which costs 19 us an operation.
"""
