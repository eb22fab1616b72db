"""``python -m icesql``: the same as the ``icesql`` command."""

from __future__ import annotations

import sys

from icesql.cli import main

if __name__ == "__main__":
    sys.exit(main())
