"""Python files on the command line: `FILE` and `FILE:NAME`, run as Python runs them, and the launchers in them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from flylab.cli.usage import UsageError, listed, nearest
from flylab.errors import FlylabError
from flylab.places import SourceLine, of_traceback

if TYPE_CHECKING:
    from flylab.compiler.jit import Launcher


def split(text: str) -> tuple[Path, str | None]:
    """The file and the name of `FILE` or `FILE:NAME`. Raises `UsageError` where there is no such Python file."""
    path, name = Path(text), None
    before, colon, after = text.rpartition(":")
    if colon and after.isidentifier() and not path.exists():
        path, name = Path(before), after
    if path.is_dir():
        raise UsageError(f"{path} is a folder", hint="name a Python file in it")
    if not path.is_file():
        beside = [file.name for file in path.parent.glob("*.py")] if path.parent.is_dir() else []
        raise UsageError(f"there is no file {path}", hint=nearest(path.name, beside) or "give FILE, or FILE:NAME")
    if path.suffix in (".ipynb", ".s", ".hsaco", ".mlir", ".ll"):
        hint = f"flylab lab {path} opens it" if path.suffix == ".ipynb" else "name a Python file with @flyc.jit in it"
        raise UsageError(f"{path} is no Python file", hint=hint)
    return path, name


def execute(path: Path, name: str) -> ModuleType:
    """Run a file as the module `name`, with its folder first on the path, as `python FILE` does; the module.

    Raises what the file raises. Nothing is written beside the file.
    """
    whole = os.path.abspath(path)  # the file may go elsewhere (os.chdir), and its text is still looked for
    loader, module = SourceFileLoader(name, whole), ModuleType(name)
    module.__file__, module.__loader__ = whole, loader
    sys.modules[name] = module
    sys.path.insert(0, os.path.dirname(whole))
    exec(loader.source_to_code(loader.get_data(whole), whole), module.__dict__)
    return module


def load(path: Path) -> ModuleType:
    """Run a file for what it defines; what stands under `if __name__ == "__main__"` is left out.

    Raises `FlylabError`, with the line, where the file does not run to its end.
    """
    try:
        return execute(path, "_flylab_" + path.stem)
    except FlylabError as error:
        raise error.at(of_traceback(error.__traceback__)) from error.__cause__
    except SyntaxError as error:
        where = SourceLine(str(error.filename or path), error.lineno or 1, (error.text or "").rstrip("\n"))
        raise FlylabError(f"{path.name} is no Python: {error.msg}", where=where) from error
    except SystemExit as error:
        raise FlylabError(f"{path.name} ends Python while it is loaded: sys.exit({error.code!r})",
                          where=of_traceback(error.__traceback__),
                          hint='put what only a script does under if __name__ == "__main__":') from error
    except Exception as error:
        hint = None
        if isinstance(error, ModuleNotFoundError):
            hint = f"pip install the package that has {error.name}, or run flylab where it is found"
        raise FlylabError(f"{path.name} raises {type(error).__name__}: {error}",
                          where=of_traceback(error.__traceback__), hint=hint) from error


def launchers(module: ModuleType) -> dict[str, Launcher]:
    """The launchers that a file defines, by the names they have there."""
    from flylab.compiler.jit import Launcher

    return {name: value for name, value in vars(module).items()
            if isinstance(value, Launcher) and value.function.__module__ == module.__name__}


def launchers_of(module: ModuleType, path: Path, name: str) -> dict[str, Launcher]:
    """The launcher of a name, or those that launch the kernel of that name.

    Raises `UsageError` where neither is there, and for a kernel that no launcher of the file names.
    """
    from flylab.compiler.jit import Launcher
    from flylab.compiler.kernel import Kernel

    found, known = vars(module).get(name), launchers(module)
    if isinstance(found, Launcher):
        return {name: found}
    kernels = [key for key, value in vars(module).items() if isinstance(value, Kernel)]
    if not isinstance(found, Kernel):
        raise UsageError(f"{path.name} has no kernel or launcher '{name}'",
                         hint=nearest(name, [*known, *kernels]) or f"it has {there_is([*known, *kernels])}")
    users = {key: value for key, value in known.items() if name in _names(value)}
    if not users:
        raise UsageError(f"no launcher of {path.name} names the kernel '{name}'", where=found.signature.where(),
                         hint=f"write an @flyc.jit function that launches it: {name}(...).launch(grid=..., block=...)")
    return users


def _names(launcher: Launcher) -> Iterable[str]:
    """The names that a launcher's code, and the functions inside it, read."""
    todo: list[Any] = [launcher.function.__code__]
    while todo:
        code = todo.pop()
        yield from code.co_names
        todo += [constant for constant in code.co_consts if hasattr(constant, "co_names")]


def there_is(names: list[str]) -> str:
    """What a file has, for a sentence."""
    return listed(names) if names else "neither; decorate a function with @flyc.jit"
