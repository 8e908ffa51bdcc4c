"""Which launchers of a file a command is about, and with what arguments: `--arg`, else the file's own examples.

A file may say what its launchers are called with, by a function `flylab_arguments()` that gives for each launcher (its
name, or the launcher itself) the arguments by name, or by several names: values, or texts, which are read as those of
`--arg` are. So "4" is the number 4, and "fast" a text where the launcher's annotation is `fx.Constexpr[str]`, else what
the file calls so.

    def flylab_arguments():
        return {"vector_add": {"A,B,C": "f32[1024]", "how": "fast"}}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from flylab.cli.arguments import Make, Text, arguments_for, tensor
from flylab.cli.files import launchers, launchers_of, load, split, there_is
from flylab.cli.usage import UsageError, listed, nearest
from flylab.places import of_traceback
from flylab.targets import Target

if TYPE_CHECKING:
    from flylab.compiler.jit import Launcher

EXAMPLES = "flylab_arguments"


@dataclass(frozen=True)
class Chosen:
    """A launcher of a file, what it is called with, and the one kernel of it that is asked for, if one is."""

    name: str
    launcher: Launcher
    given: Mapping[str, Any]
    names: Mapping[str, Any]
    kernel: Any = None

    def arguments(self, chip: Target, make: Make = tensor) -> dict[str, Any]:
        """The arguments by name, for a chip; `make` makes the tensors.

        Raises `UsageError` for what does not fit the launcher.
        """
        return arguments_for(self.launcher, self.given, self.names, chip, make)


def choose(target: str, given: Mapping[str, str]) -> list[Chosen]:
    """The launchers that `FILE` or `FILE:NAME` is about, of which each has its arguments: of `--arg`, else its example.

    Without a name these are the launchers with an example, else the one launcher of the file.
    Raises `UsageError` where there is none, or several without examples.
    """
    path, name = split(target)
    module = load(path)
    examples = _examples(module, path)
    kernel = None
    if name is not None:
        wanted = launchers_of(module, path, name)
        kernel = None if name in wanted else vars(module)[name]
    elif examples and not given:
        wanted = {launcher.name: launcher for launcher in examples}
    else:
        wanted = launchers(module)
        if len(wanted) != 1:
            raise UsageError(f"{path.name} has {len(wanted)} launchers: {there_is(list(wanted))}" if wanted else
                             f"{path.name} has no launcher",
                             hint=f"name one: {path}:{next(iter(wanted))}" if wanted else
                             "decorate a function with @flyc.jit")
    texts = {key: Text(key, text) for key, text in given.items()}
    return [Chosen(key, launcher, {**examples.get(launcher, {}), **texts}, vars(module), kernel)
            for key, launcher in wanted.items()]


def _examples(module: ModuleType, path: Path) -> dict[Launcher, Mapping[str, Any]]:
    """What the file calls its launchers with."""
    from flylab.compiler.jit import Launcher
    from flylab.compiler.kernel import Kernel

    function = vars(module).get(EXAMPLES)
    if function is None:
        return {}
    try:
        found = function()
    except Exception as error:
        raise UsageError(f"{EXAMPLES}() of {path.name} raises {type(error).__name__}: {error}",
                         where=of_traceback(error.__traceback__)) from error
    result: dict[Launcher, Mapping[str, Any]] = {}
    for key, arguments in found.items() if isinstance(found, Mapping) else [(found, None)]:
        launcher = vars(module).get(key) if isinstance(key, str) else key
        known = list(launchers(module))
        if isinstance(arguments, Mapping) and not isinstance(launcher, Launcher):
            instead, hint = "and there is no launcher of this name", nearest(str(key), known)
            if isinstance(launcher, Kernel):
                users = launchers_of(module, path, launcher.function.__name__)
                instead, hint = "a kernel, and not what launches it", f"name its launcher: {next(iter(users))!r}"
            elif launcher is not None:
                instead = "which is no launcher"
            raise UsageError(f"{EXAMPLES}() of {path.name} names {key!r}, {instead}",
                             hint=hint or (f"the file's launchers: {listed(known)}" if known else
                                           "decorate a function with @flyc.jit"))
        if not isinstance(launcher, Launcher) or not isinstance(arguments, Mapping):
            raise UsageError(f"{EXAMPLES}() of {path.name} gives {key!r}: {arguments!r}",
                             hint=f"it gives a launcher's arguments by name: "
                                  f"{{{(known or ['launch'])[0]!r}: {{'A': 'f32[1024]'}}}}")
        result[launcher] = _by_name(arguments)
    return result


def _by_name(arguments: Mapping[Any, Any]) -> dict[str, Any]:
    """The arguments of an example, each by its own name; texts are those of the example."""
    return {name.strip(): Text(name.strip(), value, f"{EXAMPLES}()") if isinstance(value, str) else value
            for names, value in arguments.items() for name in str(names).split(",")}
