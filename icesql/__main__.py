"""``icesql`` and ``python -m icesql``: run one command and end, as fast as possible."""

from __future__ import annotations

import gc
import os
import sys
from typing import NoReturn


def run() -> NoReturn:
    """Run the command line and leave the process with its exit code."""
    # A run mostly imports; garbage collection meanwhile finds nothing and takes a tenth of the
    # time. The collector is on again when rows are shown.
    gc.disable()
    try:
        from icesql.cli import main
        from icesql.postponed import postpone_imports

        postpone_imports()
        code = main()
    except KeyboardInterrupt:  # while it was still being imported
        os._exit(130)
    if "pyspark" in sys.modules or "prompt_toolkit" in sys.modules:
        sys.exit(code)
    # Everything is closed by now. Freeing all imported objects one by one would only take time.
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    finally:
        os._exit(code)


if __name__ == "__main__":
    run()
