"""README's Python runs as it stands, and prints what the comments after `print` say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.house.rules import ROOT

BLOCKS = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)


def test_the_python_of_the_readme_runs_and_prints_what_it_says(tmp_path: Path) -> None:
    script = tmp_path / "readme.py"
    script.write_text("\n".join(BLOCKS), encoding="utf-8")
    done = subprocess.run([sys.executable, str(script)], cwd=ROOT, env={"PYTHONPATH": str(ROOT), "HOME": str(tmp_path)},
                          text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    promised = re.findall(r"^print\(.*\)\s*# (.*)$", "\n".join(BLOCKS), re.MULTILINE)
    assert promised
    assert done.stdout.splitlines() == promised
