"""pytest runs the notebooks that belong to the project, not those that someone tries things out in."""

import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).parent


def _tried_out() -> list[str]:
    if not shutil.which("git"):
        return []
    listed = subprocess.run(["git", "ls-files", "*.ipynb"], cwd=HERE, capture_output=True, text=True)
    if listed.returncode:  # no checkout: an unpacked archive has the project's notebooks alone
        return []
    return [notebook.name for notebook in HERE.glob("*.ipynb") if notebook.name not in listed.stdout.split("\n")]


collect_ignore = _tried_out()
