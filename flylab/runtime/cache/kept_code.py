"""Machine code of a compilation that is kept on disk: each form of it is written when it is first made."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from flylab.locks import cached_property
from flylab.runtime.cache.entry import packed, unpacked
from flylab.runtime.cache.store import Store

if TYPE_CHECKING:
    from flylab.codegen.amdgpu import Code

ASSEMBLY, OBJECT, HSACO, WRITTEN_DOWN = "assembly", "object", ("hsaco", "hsaco-lines"), "written-down"


@dataclass(frozen=True)
class KeptCode:
    """As `amdgpu.Optimised`, with the assembly, object and code object of the store where they are there.

    `name` is that of the compilation in the store, `files` the user's. What is not there is made of `optimise()`.
    """

    store: Store
    name: str
    files: tuple[str, ...]
    optimise: Callable[[], Code] = field(repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled without the store, which another process need not have."""
        return _itself, (self.optimised,)

    @cached_property
    def optimised(self) -> Code:
        """LLVM's own form of it."""
        return self.optimise()

    @cached_property
    def assembly(self) -> str:
        """The assembly text."""
        data = self.store.read(f"{self.name}.{ASSEMBLY}")
        if data is not None:
            return unpacked(data, self.files)
        text = self.optimised.assembly
        with contextlib.suppress(ValueError):  # it cannot be kept, and is made anew in each process
            self.store.write(f"{self.name}.{ASSEMBLY}", packed(text, self.files))
        return text

    @cached_property
    def object_code(self) -> bytes:
        """The relocatable ELF object."""
        return self._bytes(OBJECT, lambda: self.optimised.object_code)

    @cached_property
    def written_down(self) -> KeptCode:
        """The same with checks that write down what failed, which is kept beside it: see `codegen.failures`."""
        name = f"{self.name}.{WRITTEN_DOWN}"
        return KeptCode(self.store, name, self.files, lambda: self.optimised.written_down)

    def linked(self, debug_info: bool) -> bytes:
        """The loadable code object, with the lines of the source or without: see `hsaco.link`."""
        from flylab.codegen.hsaco import link

        return self._bytes(HSACO[debug_info], lambda: link(self.object_code, debug_info))

    def _bytes(self, form: str, make: Callable[[], bytes]) -> bytes:
        # Their line tables have the files' names in them, so those of other files are others.
        name = f"{self.name}.{form}-{_digest(self.files)}"
        data = self.store.read(name)
        if data is None:
            data = make()
            self.store.write(name, data)
        return data


def _itself(code: Code) -> Code:
    return code


def _digest(files: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(files).encode()).hexdigest()[:16]
