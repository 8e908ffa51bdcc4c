"""The ready kernels, by domain: `from flylab.kernels import elementwise`.

Their files live in `kernels/` at the top of the repository. A wheel carries them in this folder; in a checkout they are
reached where they are, so that an edit shows at once.
"""

from __future__ import annotations

from pathlib import Path

_checkout = Path(__file__).resolve().parents[2]
# pyproject.toml tells a checkout from site-packages, where a folder `kernels` is another project's.
if (_checkout / "pyproject.toml").is_file():
    __path__.append(str(_checkout / "kernels"))
