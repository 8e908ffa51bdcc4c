"""The set-up behind the commands: what it refuses, and that it never asks for a CUDA build. It installs nothing."""

from __future__ import annotations

import os
import shutil
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

FILE = Path(__file__).resolve().parents[2] / ".ci" / "prepare.py"
SPEC = spec_from_file_location("prepare", FILE)
assert SPEC and SPEC.loader
prepare = module_from_spec(SPEC)
SPEC.loader.exec_module(prepare)


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The commands that would have been run: every question is answered with no, every order is obeyed."""
    said: list[str] = []

    def note(*command: object, **options: object) -> bool:
        said.append(" ".join(map(str, command)))
        return False

    monkeypatch.setattr(prepare, "run", note)
    monkeypatch.setattr(prepare, "succeeds", note)
    return said


@pytest.mark.parametrize("version", [(3, 10), (3, 14), (2, 7)])
def test_a_python_that_does_not_fit_is_refused(version: tuple[int, int]) -> None:
    with pytest.raises(SystemExit, match=rf"Python 3\.11, 3\.12 or 3\.13 is needed, and this is {version[0]}\."):
        prepare.check_python(version)


@pytest.mark.parametrize("version", [(3, 11), (3, 12), (3, 13)])
def test_a_python_that_fits_is_taken(version: tuple[int, int]) -> None:
    prepare.check_python(version)


def test_a_python_without_venv_is_refused(commands: list[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no module venv. On Debian and Ubuntu: apt-get install python3-venv"):
        prepare.make_venv(tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_torch_is_asked_for_as_a_cpu_build_only(commands: list[str], monkeypatch: pytest.MonkeyPatch,
                                                capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(prepare.platform, "system", lambda: "Linux")
    monkeypatch.delenv("TORCH_INDEX", raising=False)
    prepare.install_torch(["pip"])
    monkeypatch.setenv("TORCH_INDEX", "index-of-the-user")
    prepare.install_torch(["pip"])
    installs = [command for command in commands if " install " in command]
    assert [command.split("torch ")[1] for command in installs] == [
        "torch==2.13.0+cpu", "torch==2.13.0+cpu --index-url index-of-the-user"]
    assert "torch is left out" in capsys.readouterr().out


def test_a_torch_that_is_there_is_kept(commands: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "succeeds", lambda *command: True)
    prepare.install_torch(["pip"])
    assert commands == []


@pytest.mark.skipif(os.name == "nt", reason="asks for the user's number")
@pytest.mark.parametrize("user, installs", [(0, 2), (1000, 0)])
@pytest.mark.parametrize("part, package", [("browser", "chromium"), ("llvm", "llvm-22")])
def test_packages_of_the_system_are_installed_by_root_alone(
        part: str, package: str, user: int, installs: int, commands: list[str], monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/apt-get" if name == "apt-get" else None)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    getattr(prepare, f"install_{part}")()
    assert len(commands) == installs
    assert all(command.startswith("apt-get ") for command in commands)
    assert not installs or package in commands[-1].split()
    assert ("will be skipped" in capsys.readouterr().out) == (not installs)


def test_a_system_without_the_package_is_told_so(commands: list[str], monkeypatch: pytest.MonkeyPatch,
                                                 capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}" if name.startswith("apt-") else None)
    prepare.install_llvm()
    assert commands == ["apt-cache show llvm-22"]
    assert "this system has no package llvm-22" in capsys.readouterr().out
