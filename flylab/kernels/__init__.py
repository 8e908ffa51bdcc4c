"""The ready kernels, by domain: `from flylab.kernels import elementwise`.

Their files live in `kernels/` at the top of the repository. A wheel carries them in this folder; in a checkout they are
reached where they are, so that an edit shows at once.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module
from pathlib import Path
from typing import Any

_checkout = Path(__file__).resolve().parents[2]
# pyproject.toml tells a checkout from site-packages, where a folder `kernels` is another project's.
if (_checkout / "pyproject.toml").is_file():
    __path__.append(str(_checkout / "kernels"))


def __getattr__(name: str) -> Any:
    """The domain `name`, imported when it is first named."""
    if name not in __dir__():
        raise AttributeError(f"flylab.kernels has no {name!r}; it has {', '.join(__dir__())}")
    return import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(__path__))
