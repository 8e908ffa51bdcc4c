"""The code object as LLVM's own tools read it: type, metadata, descriptors and lines are what `Isa` and a launch say.

Source of the layouts: LLVM's AMDGPU usage guide, code object V5/V6 metadata and "Kernel Descriptor".
"""

from __future__ import annotations

import struct

import numpy as np
import pytest

import flylab
import flylab.compiler as flyc
from flylab.codegen.isa import Isa
from flylab.errors import FlylabError
from flylab.passes.host import Launch
from flylab.runtime.packing import packed
from flylab.settings import DEBUG_INFO
from tests.codegen.readobj import Elf, line_table
from tests.codegen.test_hsaco import MACHINES, needs_linker
from tests.samples import cell

pytest.importorskip("torch")  # the arguments of some launches are its tensors

from tests.kernels.every import CHIPS, ROOT, compiled  # noqa: E402

pytestmark = needs_linker
NAMES = ["vector add", "total", "tiles in LDS", "mfma direct", "spmm staged", "transpose f16 through LDS",
         "preshuffle GEMM f16"]
FIXED = {"hidden_block_count_x": (0, 4), "hidden_block_count_y": (4, 4), "hidden_block_count_z": (8, 4),
         "hidden_group_size_x": (12, 2), "hidden_group_size_y": (14, 2), "hidden_group_size_z": (16, 2),
         "hidden_remainder_x": (18, 2), "hidden_remainder_y": (20, 2), "hidden_remainder_z": (22, 2),
         "hidden_global_offset_x": (40, 8), "hidden_global_offset_y": (48, 8), "hidden_global_offset_z": (56, 8),
         "hidden_grid_dims": (64, 2)}
"""Offset behind the user's arguments, and size, of what the runtime adds."""
KERNEL = """
@flyc.kernel
def k(A: fx.Tensor, n: fx.Int32, y: fx.Int16, null: fx.Float32, true: fx.Int64, grün: fx.Int8, no: fx.Constexpr[int],
      nan: fx.Float64):
    A[fx.thread_idx.x] = (fx.Float32(n + y + grün) + null + fx.Float32(true) + fx.Float32(nan) + no
                          + fx.Float32(fx.block_dim.x))

@flyc.jit
def launch(A: fx.Tensor, n: fx.Int32, y: fx.Int16, f: fx.Float32, m: fx.Int64, b: fx.Int8, d: fx.Float64):
    k(A, n, y, f, m, b, 7, d).launch(grid=1, block=n)
"""


def bits(word, first, count=1):
    return word >> first & (1 << count) - 1


def decoded(data):
    """What a kernel descriptor says, under the names of the `.amdhsa_` directives."""
    lds, scratch, kernargs = struct.unpack_from("<III", data, 0)
    rsrc3, rsrc1, rsrc2, properties, preload = struct.unpack_from("<IIIHH", data, 44)
    return {
        "group_segment_fixed_size": lds, "private_segment_fixed_size": scratch, "kernarg_size": kernargs,
        "accum_offset": 4 * (bits(rsrc3, 0, 6) + 1), "tg_split": bits(rsrc3, 16),
        "vgpr_granules": bits(rsrc1, 0, 6) + 1, "float_round_mode_32": bits(rsrc1, 12, 2),
        "float_round_mode_16_64": bits(rsrc1, 14, 2), "float_denorm_mode_32": bits(rsrc1, 16, 2),
        "float_denorm_mode_16_64": bits(rsrc1, 18, 2), "dx10_clamp": bits(rsrc1, 21), "ieee_mode": bits(rsrc1, 23),
        "fp16_overflow": bits(rsrc1, 26), "enable_private_segment": bits(rsrc2, 0),
        "user_sgpr_count": bits(rsrc2, 1, 5), "system_sgpr_workgroup_id_x": bits(rsrc2, 7),
        "system_sgpr_workgroup_id_y": bits(rsrc2, 8), "system_sgpr_workgroup_id_z": bits(rsrc2, 9),
        "system_sgpr_workgroup_info": bits(rsrc2, 10), "system_vgpr_workitem_id": bits(rsrc2, 11, 2),
        "user_sgpr_dispatch_ptr": bits(properties, 1), "user_sgpr_queue_ptr": bits(properties, 2),
        "user_sgpr_kernarg_segment_ptr": bits(properties, 3), "user_sgpr_dispatch_id": bits(properties, 4),
        "user_sgpr_private_segment_size": bits(properties, 6), "uses_dynamic_stack": bits(properties, 11),
        "user_sgpr_kernarg_preload_length": bits(preload, 0, 7)}


@pytest.fixture(params=[(name, chip) for name in NAMES for chip in CHIPS], ids=lambda pair: " ".join(pair))
def made(request):
    return compiled(*request.param)


def test_type_and_chip(made, tmp_path):
    header = Elf(made.save_hsaco(tmp_path / "k.hsaco")).header
    assert header["Type"] == "SharedObject (0x3)" and header["Machine"]["Name"] == "EM_AMDGPU"
    assert header["Ident"]["OS/ABI"]["Name"] == "AMDGPU_HSA"
    assert header["Flags"]["Value"] & 0xFF == MACHINES[str(made.target)]


def test_metadata(made, tmp_path):
    elf = Elf(made.save_hsaco(tmp_path / "k.hsaco"))
    notes = elf.metadata()
    assert "NT_AMDGPU_METADATA" in elf.notes and notes["amdhsa.target"].endswith(str(made.target))
    kernels = {kernel[".name"]: kernel for kernel in notes["amdhsa.kernels"]}
    assert list(kernels) == list(made.isa.kernels) == list(made.functions)
    for name, kernel in made.isa.kernels.items():
        found = kernels[name]
        parameters = [p.name for p in made.functions[name].signature.parameters]
        block = made.blocks[name]
        own = [a for a in found[".args"] if not a[".value_kind"].startswith("hidden_")]
        assert [a[".name"] for a in own] == [p for p in parameters if p in {a[".name"] for a in own}]
        assert len(own) == len(made.operand_types[name])
        assert found[".symbol"] == f"{name}.kd" and found[".wavefront_size"] == 64
        assert found[".max_flat_workgroup_size"] == kernel.max_workgroup == np.prod(block)
        assert tuple(found[".reqd_workgroup_size"]) == kernel.required_workgroup == block
        assert found[".group_segment_fixed_size"] == kernel.lds_bytes
        assert found[".private_segment_fixed_size"] == kernel.scratch_bytes
        assert found[".kernarg_segment_size"] == kernel.kernarg_size
        # What the object says takes in all, and at least, is what the instructions name.
        assert found[".agpr_count"] == kernel.agprs and found[".vgpr_count"] == kernel.vector_registers
        assert (found[".sgpr_count"], found[".vgpr_spill_count"] + found[".sgpr_spill_count"]) == (kernel.sgprs, 0)
        for given, known in zip(found[".args"], kernel.args, strict=True):
            assert (given.get(".name", ""), given[".offset"], given[".size"], given[".value_kind"]) == (
                known.name, known.offset, known.size, known.kind)


def test_descriptor(made, tmp_path):
    elf = Elf(made.save_hsaco(tmp_path / "k.hsaco"))
    for name, kernel in made.isa.kernels.items():
        at, data = elf.content(f"{name}.kd")
        code, text = elf.content(name)
        assert len(data) == 64 and at % 64 == 0 and code % 256 == 0
        assert at + struct.unpack_from("<q", data, 16)[0] == code, "where the code begins"
        assert len(text) == kernel.size
        found = decoded(data)
        assert found.pop("vgpr_granules") == -(-kernel.descriptor["next_free_vgpr"] // 8)
        assert found == {key: kernel.descriptor.get(key, 0) for key in found}
        assert found["group_segment_fixed_size"] == kernel.lds_bytes
        assert found["kernarg_size"] == kernel.kernarg_size


@pytest.mark.parametrize("chip", CHIPS)
def test_arguments_lie_where_a_launch_puts_them(chip, tmp_path):
    """The bytes that a launch packs, read by the object's metadata, are its arguments; hidden ones follow them."""
    with flylab.use(chip):
        made = flyc.compile(cell(KERNEL)["launch"], np.zeros(64, np.float32), 64, 2, 3.5, 1 << 40, -5, 0.1)
    given = {"A": 0x123456789ABCDEF0, "n": 64, "y": -2, "null": 3.5, "true": 1 << 40, "grün": -5, "nan": 0.1}
    data = packed(made, Launch("k", (1, 1, 1, 64, 1, 1), tuple(given.values())))
    (kernel,) = Elf(made.save_hsaco(tmp_path / "k.hsaco")).metadata()["amdhsa.kernels"]
    codes = {"A": "Q", "n": "i", "y": "h", "null": "f", "true": "q", "grün": "b", "nan": "d"}
    own = [a for a in kernel[".args"] if not a[".value_kind"].startswith("hidden_")]
    assert [a[".name"] for a in own] == list(given), "names that YAML would take for something else are quoted"
    for argument in own:
        code = codes[argument[".name"]]
        assert argument[".size"] == struct.calcsize(code) and argument[".offset"] % argument[".size"] == 0
        (value,) = struct.unpack_from(f"<{code}", data, argument[".offset"])
        assert value == pytest.approx(given[argument[".name"]], rel=1e-7)
    assert [a[".value_kind"] for a in own] == ["global_buffer", *["by_value"] * 6]
    hidden = {a[".value_kind"]: (a[".offset"], a[".size"]) for a in kernel[".args"][len(own):]}
    begin = hidden["hidden_block_count_x"][0]
    assert begin % 8 == 0 and begin >= own[-1][".offset"] + own[-1][".size"]
    assert {kind: (at - begin, size) for kind, (at, size) in hidden.items()} == FIXED
    assert len(data) == kernel[".kernarg_segment_size"] >= begin + 66


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", ["tree divergent", "total", "tiled MMA f16"])
def test_lines_in_the_object(name, chip, tmp_path, monkeypatch):
    """With debug info each address has the line of the instruction there; without, the object is lean."""
    made = compiled(name, chip)
    for variable in DEBUG_INFO.names:
        monkeypatch.delenv(variable, raising=False)
    lean = made.save_hsaco(tmp_path / "lean.hsaco")
    monkeypatch.setenv("FLYDSL_DEBUG_ENABLE_DEBUG_INFO", "1")
    full = made.save_hsaco(tmp_path / "full.hsaco")
    assert not [section for section in Elf(lean).sections if section.startswith(".debug")]
    assert lean.stat().st_size < full.stat().st_size
    elf, rows = Elf(full), line_table(full)
    assert {".debug_line", ".debug_info"} <= set(elf.sections)
    for name, kernel in made.isa.kernels.items():
        assert Elf(lean).content(name)[1] == elf.content(name)[1], "the code is the same"
        at = elf.symbols[name]["Value"]
        # LLVM's own listing leaves out what `codegen.lines` adds.
        plain = Isa.parse(made.code._emit("assembly")).kernels[name].instructions
        seen = 0
        for own, instruction in zip(plain, kernel.instructions, strict=True):
            before = [row for row in rows if row[0] <= at + own.address and not row[3]]
            _, file, line, _ = max(before, key=lambda row: row[0])
            assert line == (own.source[1] if own.source else 0), own
            if own.source:
                assert (file, line) == instruction.source[:2] and file.startswith(str(ROOT / "kernels"))
                seen += 1
        assert seen >= 0.9 * len(plain)


def test_a_wrong_word_for_debug_info(monkeypatch):
    made = compiled("vector add", "gfx942")
    monkeypatch.setenv("FLYLAB_DEBUG_ENABLE_DEBUG_INFO", "perhaps")
    with pytest.raises(FlylabError, match="FLYLAB_DEBUG_ENABLE_DEBUG_INFO='perhaps' is neither yes nor no"):
        _ = made.hsaco
