"""`python -m flylab`: the command line, where the program `flylab` is not on PATH."""

from __future__ import annotations

import sys

from flylab.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
