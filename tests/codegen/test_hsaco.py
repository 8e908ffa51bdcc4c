"""Linked code objects: what they hold, and the sentence where no linker is."""

from __future__ import annotations

import importlib.util
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flylab
import flylab.compiler as flyc
from flylab.codegen import hsaco, tools
from flylab.errors import ToolchainError
from tests.kernels import reference_kernels

A = np.zeros(1024, np.float32)
EM_AMDGPU, ET_REL, ET_DYN = 224, 1, 3
MACHINES = {"gfx942": 0x4C, "gfx950": 0x4F}
"""The chip in the low byte of an AMDGPU file's flags. Source: LLVM's AMDGPU usage guide, table of EF_AMDGPU_MACH."""


def has_linker() -> bool:
    try:
        return bool(hsaco.find_linker())
    except ToolchainError:
        return False


needs_linker = pytest.mark.skipif(not has_linker(), reason="no lld on this machine")


def header(elf: bytes) -> dict[str, int]:
    """Fields of a 64-bit ELF header."""
    assert elf[:4] == b"\x7fELF" and elf[4] == 2
    kind, machine = struct.unpack_from("<HH", elf, 16)
    return {"type": kind, "machine": machine, "flags": struct.unpack_from("<I", elf, 48)[0]}


def dynamic_symbols(elf: bytes) -> dict[str, int]:
    """Names and sizes of the symbols of an ELF file's dynamic symbol table."""
    (offset,) = struct.unpack_from("<Q", elf, 40)
    entry, count = struct.unpack_from("<HH", elf, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", elf, offset + n * entry) for n in range(count)]
    table = next(s for s in sections if s[1] == 11)  # SHT_DYNSYM
    names = sections[table[6]][4]
    found = {}
    for at in range(table[4], table[4] + table[5], 24):
        name, _, _, _, _, size = struct.unpack_from("<IBBHQQ", elf, at)
        found[elf[names + name : elf.index(b"\0", names + name)].decode()] = size
    return found


@pytest.mark.parametrize("chip", MACHINES)
def test_object(chip: str) -> None:
    with flylab.use(chip):
        compiled = flyc.compile(reference_kernels.layout_copy, A, A, 1024)
    found = header(compiled.object_code)
    assert (found["type"], found["machine"], found["flags"] & 0xFF) == (ET_REL, EM_AMDGPU, MACHINES[chip])


@needs_linker
@pytest.mark.parametrize("chip", MACHINES)
def test_linked_object(chip: str, tmp_path: Path) -> None:
    with flylab.use(chip):
        compiled = flyc.compile(reference_kernels.layout_copy, A, A, 1024)
    path = compiled.save_hsaco(tmp_path / "k.hsaco")
    elf = path.read_bytes()
    found = header(elf)
    assert (found["type"], found["machine"], found["flags"] & 0xFF) == (ET_DYN, EM_AMDGPU, MACHINES[chip])
    symbols = dynamic_symbols(elf)
    assert symbols["my_kernel.kd"] == 64, "a kernel descriptor has 64 bytes"
    assert symbols["my_kernel"] == compiled.isa.kernels["my_kernel"].size
    assert b"amdhsa.kernels" in elf and b".kernarg_segment_size" in elf


def without_linkers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools.shutil, "which", lambda name: None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for name in ("ROCM_PATH", "HIP_PATH"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.skipif(os.path.exists("/opt/rocm/llvm/bin/ld.lld"), reason="ROCm is on this machine")
def test_a_sentence_where_there_is_no_linker(monkeypatch: pytest.MonkeyPatch) -> None:
    without_linkers(monkeypatch)
    compiled = flyc.compile(reference_kernels.layout_copy, A, A, 1024)
    compiled._linked.clear()
    with pytest.raises(ToolchainError, match="no linker for AMD code objects was found") as caught:
        _ = compiled.hsaco
    assert "[aot]'" in (caught.value.hint or "")
    assert compiled.isa.kernels, "everything but the linked object is there"


def test_linkers_in_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    without_linkers(monkeypatch)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name == "ziglang" or None)
    assert hsaco.find_linker()[-3:] == ["-m", "ziglang", "ld.lld"]
    rocm = tmp_path / "llvm/bin/ld.lld"
    rocm.parent.mkdir(parents=True)
    rocm.touch()
    monkeypatch.setenv("HIP_PATH", str(tmp_path))
    assert hsaco.find_linker() == [str(rocm)]
    monkeypatch.setattr(tools.shutil, "which", lambda name: f"/bin/{name}")
    assert hsaco.find_linker() == ["/bin/ld.lld"]


@pytest.mark.parametrize(
    "text, words", [("#!/bin/sh\necho unknown emulation >&2; exit 1\n", "unknown emulation"), ("", "cannot be run")]
)
def test_a_linker_that_fails(text: str, words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    linker: Any = tmp_path / "ld.lld"
    linker.write_text(text)
    linker.chmod(0o755 if text else 0o644)
    monkeypatch.setattr(tools.shutil, "which", lambda name: str(linker))
    with pytest.raises(ToolchainError) as caught:
        hsaco.link(b"")
    assert words in caught.value.message and caught.value.hint
