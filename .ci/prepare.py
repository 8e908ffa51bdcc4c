"""Make the virtual environments of the Makefile's commands.

    python3 .ci/prepare.py lab|test|peer [--venv .venv] [--torch cpu|own]

Needs Python's standard library only, and installs what pyproject.toml lists. Running it again brings the environment up
to date. It is written for Python 3.6 and later, to be able to say that a Python is too old.
"""

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OLDEST, TOO_NEW = (3, 11), (3, 14)
EXTRAS = {"lab": "notebook,aot", "test": "test,aot,hip", "peer": "peer"}
LLVM = "llvm-22"
LLVM_TOOLS = ("opt-22", "llc-22", "llvm-mc-22")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def say(sentence):
    print(f"flylab: {sentence}", flush=True)


def stop(sentence):
    sys.exit(f"flylab: {sentence}")


def run(*command, **options):
    """Run a command without a standard input; end with its name where it fails."""
    try:
        subprocess.run([str(part) for part in command], check=True, stdin=subprocess.DEVNULL, **options)
    except (OSError, subprocess.CalledProcessError) as error:
        stop(f"this step failed: {' '.join(map(str, command))}\n{error}")


def succeeds(*command):
    """Whether a command ends well; what it prints is not shown."""
    silent = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.run([str(part) for part in command], **silent).returncode == 0


def check_python(version):
    """Stop where flylab does not run on this (major, minor) of Python, with a sentence that says what to do."""
    if not OLDEST <= version < TOO_NEW:
        stop(f"Python 3.11, 3.12 or 3.13 is needed, and this is {version[0]}.{version[1]}. "
             "Name one: make PYTHON=python3.12 ...")


def make_venv(folder):
    """The Python of the virtual environment in `folder`, which is made where it is not there."""
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if python.exists() and succeeds(python, "-m", "pip", "--version"):
        version = subprocess.check_output([str(python), "-c", "import sys; print(*sys.version_info[:2])"])
        check_python(tuple(int(part) for part in version.split()))
        return python
    if not succeeds(sys.executable, "-c", "import venv"):
        stop("this Python has no module venv. On Debian and Ubuntu: apt-get install python3-venv")
    say(f"making {folder}")
    if succeeds(sys.executable, "-c", "import ensurepip"):
        run(sys.executable, "-m", "venv", "--clear", folder)
    elif succeeds(sys.executable, "-m", "pip", "install", "--help"):
        # Debian keeps ensurepip in a package of its own; the pip that is there can fill the environment as well.
        run(sys.executable, "-m", "venv", "--clear", "--without-pip", folder)
        run(sys.executable, "-m", "pip", "--python", python, "install", "-qq", "pip")
    else:
        stop("this Python has neither pip nor ensurepip. On Debian and Ubuntu: apt-get install python3-venv")
    return python


def install_torch(pip):
    """Install the CPU build of the torch release in constraints.txt, unless some torch is there; never a CUDA build."""
    if succeeds(*pip, "show", "torch"):
        return
    release = re.search(r"^torch==(\S+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE).group(1)
    # The CPU builds for Linux carry this suffix, so that no CUDA build can answer. Other systems have CPU builds only.
    wanted = f"torch=={release}" + ("+cpu" if platform.system() == "Linux" else "")
    index = os.environ.get("TORCH_INDEX")
    install = [*pip, "install", "-qq", "--only-binary", "torch", wanted, *(["--index-url", index] if index else [])]
    say(f"installing {wanted}")
    if not succeeds(*install):
        say(f"pip finds no {wanted} here for this Python ({platform.python_version()}), so torch is left out: tensors "
            "can be numpy arrays, and tests that compare with torch are skipped. To bring it: make TORCH_INDEX=URL, "
            "with the URL of PyTorch's CPU wheels (its page \"Get started\" shows it)")


def install_with_apt(what, packages, without):
    """Install packages of Debian where that is ours to do; else say what `without` them is left out."""
    if shutil.which("apt-get") and os.geteuid() == 0:
        say(f"installing {what}")
        quiet = {"env": dict(os.environ, DEBIAN_FRONTEND="noninteractive"), "stdout": subprocess.DEVNULL}
        run("apt-get", "update", "-qq", **quiet)
        run("apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages, **quiet)
    else:
        say(f"no {what} on PATH: {without}")


def install_browser():
    """Install Debian's Chromium for the tests that draw in a real browser, where that is ours to do."""
    if not any(map(shutil.which, BROWSERS)):
        install_with_apt("Chromium", ["chromium", "fonts-dejavu-core"],
                         "the tests that need a browser will be skipped")


def install_llvm():
    """Install Debian's LLVM for the tests against its assembler and code generator, where that is ours to do."""
    if all(map(shutil.which, LLVM_TOOLS)):
        return
    if shutil.which("apt-cache") and not succeeds("apt-cache", "show", LLVM):
        say(f"this system has no package {LLVM}: the tests against its assembler will be skipped")
        return
    install_with_apt(LLVM, [LLVM], "the tests against its assembler will be skipped")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("purpose", choices=sorted(EXTRAS))
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv")
    parser.add_argument("--torch", choices=["cpu", "own"], default="cpu",
                        help="cpu: the CPU build of constraints.txt; own: leave torch to you, as for ROCm's build")
    options = parser.parse_args()
    check_python(sys.version_info[:2])
    python = make_venv(options.venv.absolute())
    pip = [python, "-m", "pip"]
    if options.torch == "cpu":
        install_torch(pip)
    wanted = f"{ROOT}[{EXTRAS[options.purpose]}]"
    say(f"installing {wanted}")
    run(*pip, "install", "-qq", "--editable", wanted)
    if options.purpose == "test":
        install_browser()
        install_llvm()


if __name__ == "__main__":
    main()
