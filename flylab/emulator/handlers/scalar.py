"""Handlers of rows on scalar registers."""

from __future__ import annotations

from flylab.emulator.decoding.table import TYPES
from flylab.emulator.handlers.forms import Source
from flylab.emulator.handlers.handler import Handler
from flylab.emulator.handlers.ir import Value
from flylab.emulator.handlers.record import HANDLER, next_record, slot
from flylab.emulator.state import EXEC, SCC, VCC


class Scalar(Handler):
    """A handler of scalar registers."""

    def text(self, name: str) -> str:
        b, row = self.b, self.form.row
        sources = iter(self.form.sources)
        old = Source("s", self.form.results[0]) if self.form.results else None
        arguments = [self.implied(t) if t[0] == "." else self.value(old if old and t[0] == "@" else next(sources),
                                                                    TYPES[t.lstrip("@")]) for t in row.sources]
        places = iter(self.form.results)
        for type_name, value in zip(row.results, self.computed(arguments), strict=True):
            if type_name == ".scc":
                b.store(value.to("i32"), b.at("%s", 4 * SCC))
            elif type_name[0] == ".":
                b.store(value, b.at("%s", 4 * {".exec": EXEC, ".vcc": VCC}[type_name]))
            else:
                b.store(value, b.at("%s", slot(b, next(places))))
        next_record(b)
        return b.function(name, HANDLER)

    def implied(self, type_name: str) -> Value:
        if type_name == ".scc":
            return self.b.load(self.b.at("%s", 4 * SCC), "i32").cmp("ne", 0)
        return self.b.load(self.b.at("%s", 4 * {".exec": EXEC, ".vcc": VCC}[type_name]), "i64")
