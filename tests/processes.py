"""Programs in processes of their own, started as users start them; ``tests.warm`` forks faster ones."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def ran(
    command: Sequence[str | Path], *, timeout: float = 60, check: bool = False, **given: Any
) -> subprocess.CompletedProcess[str]:
    """A program to its end: what it writes as text, and nothing to read unless it is given."""
    if "input" not in given:
        given["stdin"] = subprocess.DEVNULL
    if "stdout" not in given:
        given["capture_output"] = True
    return subprocess.run(command, text=True, timeout=timeout, check=check, **given)
