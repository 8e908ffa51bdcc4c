"""Looking at what the compiler made of a kernel: `k.show("isa")`, `k.stages()`, and the same on what a launch gives."""

from __future__ import annotations

from typing import Any

from flylab.errors import FlylabError
from flylab.passes.recording import Stage
from flylab.shown import Text

WORDS = ("source", "rewritten", "ir", "passes", "llvm", "isa")
"""The words of the compiler's way, in order; `show` takes each."""


class Inspectable:
    """A kernel or launcher whose last compilation can be shown."""

    name: str
    last: Any
    source: Any
    rewritten: Any
    history: Any

    def compiled(self) -> Any:
        """The last compilation that this function was part of. Raises `FlylabError` where there is none yet."""
        if self.last is None:
            raise FlylabError(
                f"'{self.name}' has not been compiled yet, so there is nothing to show",
                hint="launch it once, or flyc.compile(launcher, *arguments)",
            )
        return self.last

    def why_recompiled(self) -> Text:
        """What changed between the last two compilations that this function was part of, in sentences.

        It names arguments, globals, helpers, settings; it says so where there was one compilation, or none, and where
        the last call found its compilation in memory or on disk. Calls of what `flyc.compile` gave look for none, and
        are not told of.
        """
        from flylab.compiler.why import why

        return Text(why(self.name, self.history.last, self.history.before, self.history.found))

    def stages(self) -> list[Stage]:
        """Every stage of the last compilation: source, rewritten, ir, each pass, llvm, isa."""
        return list(self.compiled().stages(self))

    def show(self, what: str = "passes") -> Text:
        """The text of one stage: "source", "rewritten", "ir", "passes", "llvm", "isa", or a pass's name.

        Raises `FlylabError` for another word.
        """
        if what == "source":
            return Text(self.source.text)
        if what == "rewritten":
            return Text(self.rewritten.text)
        return show(self.stages(), what)


def show(stages: list[Stage], what: str) -> Text:
    """The text of the stage called `what`; "passes" gives each pass that changed something, under its name."""
    middle = [s for s in stages if s.language == "mlir" and s.name != "ir"]
    if what == "passes":
        quiet = [s.name for s in middle if not s.changed]
        parts = [f"// ----- {s.name} -----\n{s.text}" for s in middle if s.changed]
        parts.append(f"// passes that changed nothing: {', '.join(quiet) or 'none'}")
        return Text("\n\n".join(parts))
    for stage in stages:
        if stage.name == what:
            return Text(stage.text)
    if what in ("run", "pictures"):
        raise FlylabError(
            f"{what!r} is no text of the compiler",
            hint="a launch returns the run: run = launch(...); run.show(); flylab.viz draws the pictures",
        )
    raise FlylabError(
        f"nothing called {what!r} to show", hint="one of " + ", ".join([*WORDS, *(s.name for s in middle)])
    )
