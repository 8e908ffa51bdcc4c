"""The words after an instruction's operands."""

from __future__ import annotations

import re
from functools import lru_cache

from flylab.codegen.assembly.encoding import base_name, encoding_of
from flylab.codegen.isa import Instruction
from flylab.emulator.decoding.encodings import HAS_OP_SEL
from flylab.emulator.decoding.operands import (
    OperandError,
    bounded,
)
from flylab.emulator.decoding.table import MIXED_FAMILY, PACKED_FAMILY, TYPES, Row
from flylab.emulator.handlers.lanes import is_control, lanes_of, sources_of
from flylab.locks import cached_property

_SCALES = {"mul:2": 2.0, "mul:4": 4.0, "div:2": 0.5}
_LIST = re.compile(r"(op_sel|op_sel_hi|neg_lo|neg_hi):\[([01](?:,[01]){0,3})\]")
_SELECT = re.compile(r"(?:(dst_sel|src0_sel|src1_sel):(BYTE_[0-3]|WORD_[01]|DWORD)|"
                     r"(dst_unused):(UNUSED_(?:PAD|SEXT|PRESERVE)))")


class Modifiers:
    """The words after an instruction's operands; never changed once read, as many instructions share it."""

    def __init__(self, words: tuple[str, ...]):
        self.words = words
        self.clamp, self.scale = False, 1.0
        self.lists: dict[str, list[bool]] = {}
        self.selects: dict[str, str] = {}
        self.control, self.masks, self.zero_fill = "", {"row_mask": 15, "bank_mask": 15}, False
        for word in words:
            if word == "clamp":
                self.clamp = True
            elif word in _SCALES:
                self.scale = _SCALES[word]
            elif found := _LIST.fullmatch(word):
                self.lists[found[1]] = [bit == "1" for bit in found[2].split(",")]
            elif found := _SELECT.fullmatch(word):
                name, value = (part for part in found.groups() if part)
                self.selects[name] = "" if value == "DWORD" else value
            elif not self._read_dpp(word):
                raise OperandError(f"the modifier '{word}' is not one that the software device knows here")

    @staticmethod
    @lru_cache(maxsize=4096)
    def of(words: tuple[str, ...]) -> Modifiers:
        """The modifiers that the words spell. Raises `OperandError` for a word that is none."""
        return Modifiers(words)

    def _read_dpp(self, word: str) -> bool:
        """Takes a word of DPP. The assembler writes `bound_ctrl:0` and `bound_ctrl:1` for the same encoding."""
        name, _, value = word.partition(":")
        if name in self.masks:
            self.masks[name] = bounded(value, 0, 15, f"the {name}")
        elif name == "bound_ctrl":
            self.zero_fill = bounded(value, 0, 1, "the bound_ctrl") in (0, 1)
        elif is_control(word) and not self.control:
            sources_of(word)
            self.control = word
        else:
            return False
        return True

    @cached_property
    def lanes(self) -> int:
        """The lanes that DPP's masks let through."""
        return lanes_of(self.masks["row_mask"], self.masks["bank_mask"])

    def check(self, row: Row, instruction: Instruction, own_words: bool = True) -> None:
        """Raises `OperandError` for words that the instruction's encoding has no room for.

        Words that are not the text's own may pick parts of registers in any encoding.
        """
        if not self.words and not instruction.mnemonic.endswith("_dpp"):
            return
        encoding = encoding_of(instruction.mnemonic, instruction.operands, instruction.modifiers)
        dpp, packed = encoding == "_dpp", row.family in (PACKED_FAMILY, MIXED_FAMILY)
        if dpp and not self.control:
            raise OperandError("it names no lanes, as row_shr:1 would")
        if dpp and (self.clamp or self.scale != 1.0 or self.lists):
            raise OperandError("its DPP encoding neither clamps nor scales, and picks no halves of registers")
        if not dpp and (self.control or self.zero_fill or self.lanes != lanes_of(15, 15)):
            raise OperandError("only an instruction with the suffix _dpp moves lanes")
        if dpp and "newbcast" not in self.control and any(
                TYPES[t].registers == 2 and t != "mask" for t in (*row.named_results, *row.named_sources)):
            raise OperandError("with 64-bit operands DPP has row_newbcast only")
        if self.selects and own_words and encoding != "_sdwa":
            raise OperandError("only an instruction with the suffix _sdwa picks parts of registers")
        if packed and self.scale != 1.0:
            raise OperandError("its encoding does not scale results")
        picks = base_name(instruction.mnemonic) in HAS_OP_SEL or not own_words
        lists = {"op_sel", "op_sel_hi"} if row.family == MIXED_FAMILY else {
            "op_sel", "op_sel_hi", "neg_lo", "neg_hi"} if packed else {"op_sel"} if picks else set()
        if self.lists.keys() - lists:
            raise OperandError(f"it takes no {' nor '.join(sorted(self.lists.keys() - lists))}")
        if not row.clamps_floats and (self.scale != 1.0 or self.clamp and not row.clamped):
            raise OperandError("its result is no float that could be scaled or clamped")

    def bit(self, name: str, n: int, default: int = 0) -> bool:
        """Entry `n` of a list such as `op_sel:[0,1]`."""
        bits = self.lists.get(name)
        return bits[n] if bits is not None and n < len(bits) else bool(default)

    def select(self, n: int, type_name: str, family: str) -> str:
        """Which part of source `n` is taken."""
        if family == MIXED_FAMILY:
            return f"WORD_{int(self.bit('op_sel', n))}" if type_name == "f16" else ""
        if self.bit("op_sel", n):
            return "WORD_1"
        return self.selects.get(f"src{n}_sel", "")

    def placement(self, sources: int, results: tuple[str, ...], packed: bool) -> tuple[str, str]:
        """Which part of the result's register is written, and what becomes of the rest."""
        if not packed and self.bit("op_sel", sources):
            return "WORD_1", "UNUSED_PRESERVE"
        select = self.selects.get("dst_sel", "")
        return select, self.selects.get("dst_unused", "UNUSED_PRESERVE") if select else ""
