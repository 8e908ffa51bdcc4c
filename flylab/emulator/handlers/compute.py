"""The IR of the rows that compute: scalar, vector and packed instructions."""

from __future__ import annotations

from flylab.emulator.decoding.table import PACKED_FAMILY, SCALAR_FAMILY
from flylab.emulator.handlers.forms import Form
from flylab.emulator.handlers.scalar import Scalar
from flylab.emulator.handlers.vector import CHUNK, Packed, Vector
from flylab.emulator.state import WAVE_SIZE

# A handler of more lines than this runs in steps of CHUNK lanes.
LONG = 60


def write(form: Form, name: str) -> str:
    """The IR of a handler."""
    if form.row.family == SCALAR_FAMILY:
        return Scalar(form).text(name)
    handler = Packed if form.row.family == PACKED_FAMILY else Vector
    wide = handler(form, WAVE_SIZE)
    text = wide.text(name)
    return text if len(wide.b.lines) <= LONG else handler(form, CHUNK).text(name)
