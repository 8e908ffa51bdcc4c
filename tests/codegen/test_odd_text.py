"""Assembly that is not in order is refused with its line, and what people write beside compilers' text is read."""

from __future__ import annotations

import re
from typing import Any

import pytest

from flylab.codegen.assembly.metadata import read_metadata
from flylab.codegen.isa import Isa
from flylab.errors import CompileError, FlylabError

TEXT = """.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
.text
k:
  {body}
  s_endpgm
.amdhsa_kernel k
  .amdhsa_next_free_vgpr 8
  .amdhsa_next_free_sgpr 16
  {setting}
.end_amdhsa_kernel
{after}
"""


def text(body: str = "", setting: str = "", after: str = "") -> str:
    return TEXT.format(body=body, setting=setting, after=after)


@pytest.mark.parametrize("body, why", [
    ("k: s_nop 0", "ISA line 4: the symbol 'k' is defined twice"),
    (".Lx:\n.Lx:", "ISA line 5: the symbol '.Lx' is defined twice"),
    (".equiv x, 5\n.equiv x, 6", "ISA line 5: the symbol 'x' is defined twice"),
    (".set k, 5", "the symbol 'k' is defined twice"), (".set 5, 5", "'.set 5, 5' names no symbol"),
    (".macro m\n.endm\n.macro m\n.endm", "the macro m is defined twice"), (".purgem m", "there is no macro m"),
    (f".set x, {'+'.join('1' * 5000)}", "has more than 300 operators"),
])
def test_names_and_expressions(body: str, why: str) -> None:
    with pytest.raises(CompileError, match=re.escape(why)):
        Isa.parse(text(body))


def test_a_long_sum_is_no_operand() -> None:
    isa = Isa.parse(text(f"s_mov_b32 s2, {'+'.join('1' * 5000)}"))
    assert isa.kernels["k"].instructions[0].operands[1].startswith("1+1+")
    assert Isa.parse(text(f"s_mov_b32 s2, {'+'.join('1' * 300)}")).kernels["k"].instructions[0].operands[1] == "300"


@pytest.mark.parametrize("setting, why", [
    (".amdhsa_foo 1", "ISA line 9: .amdhsa_foo is no setting of a descriptor for these chips"),
    (".amdhsa_next_free_vgpr 9", "ISA line 9: kernel 'k' has .amdhsa_next_free_vgpr a second time"),
    ("s_nop 0", "ISA line 9: 's_nop 0' stands in the descriptor of kernel 'k'"), ("x:", "stands in the descriptor"),
    (".long 1", "stands in the descriptor"), (".amdhsa_tg_split 2", ".amdhsa_tg_split is 2, and 0 to 1 are possible"),
    (".amdhsa_uses_dynamic_stack 2", "0 to 1 are possible"), (".end_amdhsa_kernel", "ISA line 10: .end_amdhsa_kernel"),
    (".amdhsa_kernel z", "ISA line 9: .amdhsa_kernel names no kernel"),
])
def test_descriptors(setting: str, why: str) -> None:
    if setting == ".amdhsa_kernel z":
        setting, why = ".end_amdhsa_kernel\n.amdhsa_kernel k", "ISA line 10: kernel 'k' has a second descriptor"
    with pytest.raises(CompileError, match=re.escape(why)):
        Isa.parse(text(setting=setting))


def test_a_descriptor_without_an_end() -> None:
    with pytest.raises(CompileError, match="the descriptor of kernel 'k' has no .end_amdhsa_kernel"):
        Isa.parse(text().partition(".end_amdhsa_kernel")[0])


@pytest.mark.parametrize("data, value, size", [
    (".byte 256", 256, 1), (".byte -129", -129, 1), (".short 70000", 70000, 2), (".long 0x1ffffffff", 0x1FFFFFFFF, 4),
    (".byte 255+1", 256, 1)])
def test_data_that_does_not_fit(data: str, value: int, size: int) -> None:
    with pytest.raises(CompileError, match=f"ISA line 12: {value} does not fit {size} bytes"):
        Isa.parse(text(after=f".data\n{data}"))
    assert bytes(Isa.parse(text(after=".data\n.byte 255, -128")).sections[".data"].data) == b"\xff\x80"


@pytest.mark.parametrize("chip", ["gfx950", 5, [], "gfx90a", "GFX942"])
def test_another_chip_than_the_texts(chip: Any) -> None:
    with pytest.raises(FlylabError, match="gfx942 and gfx950 are named|unknown chip"):
        Isa.parse(text(), chip)


def test_two_targets_in_one_text() -> None:
    with pytest.raises(CompileError, match="for one chip, and gfx942 and gfx950 are named"):
        Isa.parse(text(after='.amdgcn_target "amdgcn-amd-amdhsa--gfx950"'))
    assert Isa.parse(text(after='.amdgcn_target "amdgcn-amd-amdhsa--gfx942"'), "gfx942").target.arch == "gfx942"


@pytest.mark.parametrize("value", [None, 5, b"", ["k:"]])
def test_what_is_no_text(value: Any) -> None:
    with pytest.raises(CompileError, match="assembly is text, and a"):
        Isa.parse(value)


def test_the_mark_that_some_editors_begin_a_file_with() -> None:
    assert list(Isa.parse("\ufeff" + text()).kernels) == ["k"]


@pytest.mark.parametrize("lines, value", [
    ("a: [1, 2]", {"a": [1, 2]}), ("a: [ ]\nb: {}", {"a": [], "b": {}}),
    ("k:\n  - { .name: p, .offset: 0,\n      .size: 8 }\n  - {.name: 'q, r'}\nz: 3",
     {"k": [{".name": "p", ".offset": 0, ".size": 8}, {".name": "q, r"}], "z": 3}),
    ('# words\n{a: 1, "b": [c, [d]],}', {"a": 1, "b": ["c", ["d"]]}),
    ("a: {x: std::y, z: -1}", {"a": {"x": "std::y", "z": -1}}),
])
def test_metadata_in_brackets(lines: str, value: object) -> None:
    assert read_metadata(enumerate(lines.split("\n"), 1)) == value


@pytest.mark.parametrize("lines", ["a: [1, 2", "a: [1}", "a: {b}", "a: {b: }", "a: [1] 2",
                                   "a: " + "[" * 1000 + "]" * 1000, "a: {[b]: 1}"])
def test_brackets_that_are_not_in_order(lines: str) -> None:
    with pytest.raises(CompileError, match="ISA line 1: the metadata"):
        read_metadata(enumerate(lines.split("\n"), 1))
