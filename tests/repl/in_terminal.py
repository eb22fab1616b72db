"""A shell on a pseudo-terminal: keys are sent, and its screen is read."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pexpect

ROOT = Path(__file__).parents[2]
PROMPT = "icesql>"


def spawned(
    tmp_path: Path,
    *arguments: str,
    size: tuple[int, int] = (40, 120),
    environment: dict[str, str] | None = None,
    program: Sequence[str] = ("-m", "icesql"),
) -> Any:
    """A shell that keeps its history below ``tmp_path``, at its first prompt."""
    child = pexpect.spawn(
        sys.executable,
        [*program, *arguments],
        cwd=str(ROOT),
        # Nobody answers requests for the cursor position.
        env={
            # The size is that of the terminal.
            **{key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")},
            "TERM": "xterm",
            "PROMPT_TOOLKIT_NO_CPR": "1",
            "XDG_STATE_HOME": str(tmp_path),
            **(environment or {}),
        },
        encoding="utf-8",
        timeout=100,
        dimensions=size,
    )
    # A shell that is killed may take a while to end.
    child.ptyproc.delayafterterminate = 5
    child.expect_exact(PROMPT)
    return child


def talk(child: Any, *lines: Sequence[str]) -> None:
    """Send keys, and wait for a pattern after each; without keys or a pattern, only the other.

    ⏎ is Enter, ``^C`` and ``^D`` stand alone, ``EOF`` is the end of the shell.
    """
    for keys, shown in lines:
        match keys:
            case "^C":
                child.sendintr()
            case "^D":
                child.sendeof()
            case _:
                child.send(keys.replace("⏎", "\r"))
        if shown:
            child.expect(pexpect.EOF if shown == "EOF" else shown)
