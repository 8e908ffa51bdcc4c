"""The debugger of the software device: forward and back through one workgroup of a launch, on the native handlers.

A workgroup's instructions have one order, that of the device's scheduler, so `time`, their count so far, names a state.
To go back is to take the nearest snapshot before (`snapshots.py`) and to run on from it (`session.py`, `stepping.py`).
"""
