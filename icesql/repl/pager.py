"""A pager for results that are longer than the screen: ``$PAGER``, else ``less``."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import IO


def pager_command(environment: Mapping[str, str]) -> list[str]:
    """The words of the command; [] where there is none to run."""
    from shutil import which

    try:
        words = shlex.split(environment.get("PAGER", "less"))
    except ValueError:  # a quote that is not closed
        return []
    return words if words and which(words[0]) else []


def page(command: list[str], write: Callable[[IO[str]], int]) -> int:
    """Let ``write`` fill the pager; what it returns, or -1 where the reader left before the end.

    Ctrl-C belongs to the pager from here on: it stops what is still to come, and never the shell.
    Raises OSError where the command cannot be started.
    """
    # Long lines are not folded, colours are shown, and the text stays when the pager is left.
    environment = {"LESS": "-SRX", **os.environ}
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, env=environment, encoding="utf-8", errors="backslashreplace"
    )
    assert process.stdin is not None
    count = -1
    try:
        with suppress(BrokenPipeError, KeyboardInterrupt):
            count = write(process.stdin)
    finally:
        with suppress(BrokenPipeError):
            process.stdin.close()
        while True:
            try:
                process.wait()
                break
            except KeyboardInterrupt:
                continue
    return count
