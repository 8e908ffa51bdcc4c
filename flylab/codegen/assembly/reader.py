"""Reads assembly text: the code and data of its sections, symbols, kernel descriptors, source lines, metadata."""

from __future__ import annotations

import re

from flylab.codegen.assembly import predefined, sections
from flylab.codegen.assembly.descriptor import SETTINGS, unknown_setting
from flylab.codegen.assembly.encoding import size_of, with_implied
from flylab.codegen.assembly.expressions import BadExpression
from flylab.codegen.assembly.listing import BYTES, END, LABEL, Code, Function, Instruction, Mark
from flylab.codegen.assembly.macros import METADATA, Statement, Statements
from flylab.codegen.assembly.operand_text import fields, is_simple, is_symbolic, settled, settled_modifier
from flylab.codegen.assembly.sections import Section
from flylab.codegen.assembly.strings import files_of
from flylab.codegen.assembly.symbols import LDS, Place, Symbols
from flylab.errors import CompileError
from flylab.targets import Target

_LOC = re.compile(r"\.loc\s+(\d{1,9})\s+(\d{1,9})(?:\s+(\d{1,9}))?")
_BARRIER_PLACE = re.compile(r" at (.*):(\d{1,9}):(\d{1,9})$")
_ASSIGNMENT = re.compile(r'([\w.$@]+|"[^"]*")\s*==?\s*(?!=)(.*)')
_NAME = re.compile(r"[A-Za-z_.$@][^\s,]*")
_SECTION = re.compile(r'("[^"]*"|[^\s,]+)\s*(?:,\s*"([^"]*)")?')
# Directives that change nothing which is read here.
_NOTHING = {".amdgcn_target", ".amdhsa_code_object_version", ".globl", ".global", ".hidden", ".protected", ".internal",
            ".local", ".ident", ".addrsig", ".addrsig_sym", ".no_dead_strip", ".version", ".symver", ".cv_loc"}
_OLD = {".amd_kernel_code_t", ".hsa_code_object_version", ".amdgpu_hsa_kernel", ".hsa_code_object_isa"}
MOST_LDS = 1 << 20


class Reader:
    """One pass over the statements of a text, for a chip where it is known."""

    def __init__(self, text: str, chip: Target | None = None):
        self.symbols = Symbols()
        self.sections: dict[str, Section] = {}
        self.codes: dict[str, Code] = {}
        self.section = self.previous = self._section(".text", None)
        self.pushed: list[tuple[Section, Section]] = []
        self.function_names: set[str] = set()
        self.object_names: set[str] = set()
        self.settings: dict[str, dict[str, tuple[Statement, str]]] = {}
        self.descriptor = ""
        self.files: dict[int, str] = {}
        self.metadata: list[tuple[int, str]] = []
        self.source: tuple[str, int, int] | None = None
        self.barriers: tuple[tuple[str, int, int] | None, ...] = ()
        self.lds_bytes = 0
        self.counts_registers = predefined.PREFIX in text
        if self.counts_registers:
            predefined.define(self.symbols, chip)
        statements = Statements(text, self.symbols.number_of, self.symbols.defined)
        for statement in statements:
            if self.descriptor and not statement.text.startswith((".amdhsa_", ".end_amdhsa_kernel")):
                raise statement.error(f"'{statement.text[:80]}' stands in the descriptor of kernel '{self.descriptor}'",
                                      hint="a descriptor ends with .end_amdhsa_kernel")
            if statement.text[-1] == ":":
                self._label(statement, statement.text[:-1])
            elif statement.text[0] not in ".;" and not _ASSIGNMENT.match(statement.text):
                self._instruction(statement)
            elif statement.text[0] == ";":
                found = _BARRIER_PLACE.search(statement.text)
                self.barriers += ((found[1], int(found[2]), int(found[3])) if found else None,)
            elif statement.text == METADATA:
                self.metadata += statements.metadata(statement)
            else:
                self._directive(statement)
        if self.descriptor:
            raise CompileError(f"the descriptor of kernel '{self.descriptor}' has no .end_amdhsa_kernel")
        self._name_objects()

    def functions(self) -> dict[str, Function]:
        """The functions by name, kernels among them, in the order of the text."""
        names = self.function_names | self.settings.keys()
        return {f.name: f for code in self.codes.values() for f in code.functions(names)}

    def descriptors(self) -> dict[str, dict[str, int]]:
        """Of each kernel the values of its descriptor, by their names without `.amdhsa_`."""
        return {kernel: {name: self._setting(name, *found) for name, found in settings.items()}
                for kernel, settings in self.settings.items()}

    def _number(self, statement: Statement, text: str) -> int:
        try:
            return self.symbols.number_of(text)
        except BadExpression as error:
            raise statement.error(f"the kernel descriptor holds an expression, {text[:80]!r}, without a value: {error}",
                                  hint="compile the kernel and the functions it calls as one module") from None

    def _setting(self, name: str, statement: Statement, text: str) -> int:
        value = self._number(statement, text)
        low, high = SETTINGS[name]
        if not low <= value <= high:
            hint = "the waves of these chips have 64 lanes" if name == "wavefront_size32" else None
            raise statement.error(f".amdhsa_{name} is {value}, and {low} to {high} are possible", hint=hint)
        return value

    def _section(self, name: str, flags: str | None) -> Section:
        if name not in self.sections:
            section = self.sections[name] = Section.of(name, flags)
            if section.code:
                self.codes[name] = Code(name)
        return self.sections[name]

    def _enter(self, section: Section) -> None:
        self.previous, self.section, self.descriptor = self.section, section, ""

    def _mark(self, kind: str, name: str, statement: Statement) -> None:
        code = self.codes[self.section.name]
        code.marks.append(Mark(kind, len(code.instructions), self.section.size, name, statement))

    def _label(self, statement: Statement, name: str) -> None:
        if self.section.code:
            self._mark(LABEL, name, statement)
        self._define(statement, name, Place(self.section.name, self.section.size))

    def _define(self, statement: Statement, name: str, place: Place) -> None:
        if self.symbols.defined(name):
            raise statement.error(f"the symbol '{name[:80]}' is defined twice")
        self.symbols.places[name] = place

    def _instruction(self, statement: Statement) -> None:
        if not self.section.code:
            raise statement.error(f"'{statement.text[:80]}' belongs to no function",
                                  hint="a kernel's code begins at its label, in a section of code")
        mnemonic, *rest = statement.text.split(None, 1)
        operands, modifiers = fields(rest[0]) if rest else ((), ())
        symbolic: tuple[int, ...] = ()
        if not all(map(is_simple, operands)):
            operands = tuple(settled(text, self.symbols) for text in operands)
            symbolic = tuple(n for n, text in enumerate(operands) if is_symbolic(mnemonic, text))
        if modifiers:
            modifiers = tuple(settled_modifier(text, self.symbols) for text in modifiers)
        if self.counts_registers:
            predefined.count(self.symbols, operands)
        operands = with_implied(mnemonic, operands)
        code = self.codes[self.section.name].instructions
        code.append(Instruction(len(code), self.section.size, " ".join(statement.text.split()), mnemonic, operands,
                                modifiers, statement.number, self.source, symbolic, self.barriers))
        self.barriers = ()
        self.section.size += size_of(mnemonic, operands, modifiers)

    def _directive(self, statement: Statement) -> None:
        text = statement.text
        word, _, rest = text.replace("\t", " ").partition(" ")
        rest = rest.strip()
        if action := _ACTIONS.get(word):
            action(self, statement, word, rest)
        elif word in (".text", ".data", ".bss", ".rodata"):
            self._enter(self._section(word, None))
        elif word.startswith(".amdhsa_") and self.descriptor:
            self._descriptor_line(statement, word.removeprefix(".amdhsa_"), rest)
        elif word in sections.ALIGNMENTS:
            self.section.align(sections.alignment_of(statement, word, rest, self.symbols))
        elif word in sections.DATA:
            self._data(statement, word, rest)
        elif found := _ASSIGNMENT.fullmatch(text):
            self._set(statement, found[1], found[2])
        elif word in _OLD:
            raise statement.error(f"{word} belongs to code objects of version 2, which no such chip loads",
                                  hint="give an .amdhsa_kernel block and metadata of version 3 or later")
        elif (self.section.code or self.section.kept) and word not in _NOTHING and not word.startswith(".cfi_"):
            raise statement.error(f"the directive {word} cannot be read here",
                                  hint="give the instructions themselves, as LLVM's own listing does")

    def _data(self, statement: Statement, word: str, rest: str) -> None:
        if self.section.kept:
            sections.add_data(self.section, statement, word, rest, self.symbols)
        elif self.section.code:
            self._mark(BYTES, word, statement)
            filler = Section(".filler")
            sections.add_data(filler, statement, word, rest, self.symbols)
            self.section.size += filler.size

    def _loc(self, statement: Statement, word: str, rest: str) -> None:
        found = _LOC.match(statement.text)
        if found is None:
            raise statement.error(f"'{statement.text[:80]}' is no place in a file",
                                  hint="it takes a file, a line and a column")
        file, line, column = (int(g or 0) for g in found.groups())
        self.source = (self.files.get(file, f"file {file}"), line, column) if line else None

    def _kernel(self, statement: Statement, word: str, rest: str) -> None:
        if self.section.code:
            self._mark(END, "", statement)
        self.descriptor = rest.strip('"')
        if not self.descriptor:
            raise statement.error(f"{word} names no kernel")
        if self.descriptor in self.settings:
            raise statement.error(f"kernel '{self.descriptor}' has a second descriptor")
        self.settings[self.descriptor] = {}

    def _descriptor_line(self, statement: Statement, name: str, rest: str) -> None:
        if (hint := unknown_setting(name)) is not None:
            raise statement.error(f".amdhsa_{name} is no setting of a descriptor for these chips", hint=hint)
        settings = self.settings[self.descriptor]
        if name in settings:
            raise statement.error(f"kernel '{self.descriptor}' has .amdhsa_{name} a second time")
        if predefined.PREFIX in rest:  # counted up to here
            rest = str(self._number(statement, rest))
        settings[name] = statement, rest

    def _end_kernel(self, statement: Statement, word: str, rest: str) -> None:
        if not self.descriptor:
            raise statement.error(f"{word} ends nothing here")
        self.descriptor = ""

    def _file(self, statement: Statement, word: str, rest: str) -> None:
        self.files.update(files_of(statement.text))

    def _type(self, statement: Statement, word: str, rest: str) -> None:
        name, _, sort = (part.strip(' "') for part in rest.partition(","))
        if sort[1:] == "function":
            self.function_names.add(name)
        elif sort[1:] == "object":
            self.object_names.add(name)

    def _weak(self, statement: Statement, word: str, rest: str) -> None:
        self.symbols.weak.add(rest.strip('"'))

    def _size(self, statement: Statement, word: str, rest: str) -> None:
        if self.section.code:
            self._mark(END, rest.partition(",")[0].strip(' "'), statement)
            self.source = None

    def _assign(self, statement: Statement, word: str, rest: str) -> None:
        name, _, expression = rest.partition(",")
        self._set(statement, name, expression)

    def _set(self, statement: Statement, name: str, expression: str) -> None:
        name = name.strip(' "')
        if name in self.symbols.places or name in self.symbols.numbers and statement.text.startswith(".equiv"):
            raise statement.error(f"the symbol '{name[:80]}' is defined twice")
        if not _NAME.fullmatch(name):
            raise statement.error(f"'{statement.text[:80]}' names no symbol")
        try:
            self.symbols.define(name, expression.strip())
        except BadExpression as error:
            raise statement.error(f"{name} is set to what is no value: {error}") from None

    def _switch(self, statement: Statement, word: str, rest: str) -> None:
        found = _SECTION.match(rest)
        if found is None:
            raise statement.error(f"'{statement.text[:80]}' names no section")
        if word == ".pushsection":
            self.pushed.append((self.section, self.previous))
        self._enter(self._section(found[1].strip('"'), found[2]))

    def _back(self, statement: Statement, word: str, rest: str) -> None:
        if word == ".previous":
            self._enter(self.previous)
        elif self.pushed:
            self.section, self.previous = self.pushed.pop()
        else:
            raise statement.error(".popsection has no .pushsection")

    def _common(self, statement: Statement, word: str, rest: str) -> None:
        """`.comm` and `.lcomm` reserve zeros, `.amdgpu_lds` bytes of LDS.

        The last number is an alignment: an exponent on this target, for LDS bytes.
        """
        lds = word == ".amdgpu_lds"
        name, *numbers = (part.strip(' "') for part in rest.split(","))
        try:
            size, step = (*map(self.symbols.number_of, numbers), 4)[:2]
        except (BadExpression, ValueError):
            size = step = -1
        if not lds:
            step = 1 << step if 0 <= step <= sections.MOST_EXPONENT else -1
        if not 0 <= size <= (MOST_LDS if lds else sections.MOST_BYTES) or step < 1 or step & (step - 1):
            raise statement.error(f"'{statement.text[:80]}' does not give a name, a size and an alignment")
        if lds:
            at = -(-self.lds_bytes // step) * step
            self._define(statement, name, Place(LDS, at))
            self.lds_bytes = at + size
            return
        section = self._section(".bss", None)
        section.align(step)
        self._define(statement, name, Place(section.name, section.size))
        self.object_names.add(name)
        section.add(bytes(size))

    def _name_objects(self) -> None:
        for name in self.object_names & self.symbols.places.keys():
            place = self.symbols.places[name]
            self.sections.get(place.section, self.section).objects[place.offset] = name


_ACTIONS = {
    ".loc": Reader._loc, ".file": Reader._file, ".type": Reader._type, ".weak": Reader._weak, ".size": Reader._size,
    ".amdhsa_kernel": Reader._kernel, ".end_amdhsa_kernel": Reader._end_kernel,
    **dict.fromkeys((".set", ".equ", ".equiv"), Reader._assign),
    **dict.fromkeys((".section", ".pushsection"), Reader._switch),
    **dict.fromkeys((".popsection", ".previous"), Reader._back),
    **dict.fromkeys((".comm", ".lcomm", ".amdgpu_lds"), Reader._common)}
