"""The process of a side: it opens an engine and then runs it once for each line of standard input.

The first line names the function that opens it, as ``module:function``, with its arguments; each
later line holds the arguments of one run. The reply to a line has seconds of wall and CPU time, the
peak of memory and the rows, or the error. Imports the standard library alone, as it runs in the
environments of peers.
"""

from __future__ import annotations

import contextlib
import datetime
import decimal
import hashlib
import importlib
import json
import os
import sys
import time
import uuid
from collections.abc import Callable, Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

MOST_ROWS = 20_000  # more come back as their digest


def main() -> None:
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the engine prints is no reply

    def reply(content: dict[str, Any]) -> None:
        replies.write(json.dumps(content) + "\n")
        replies.flush()

    asked = json.loads(sys.stdin.readline())
    sys.path.insert(0, asked["folder"])
    module, _, name = asked["make"].partition(":")
    try:
        run = getattr(importlib.import_module(module), name)(**asked["given"])
        reply({"versions": {each: metadata.version(each) for each in asked["packages"]}})
    except BaseException as error:
        reply(described(error))
        return
    for line in sys.stdin:
        reply(measured(run, json.loads(line)))


def measured(run: Callable[..., Any], arguments: list[Any]) -> dict[str, Any]:
    """Run once; a dict that it returns has figures beside or instead of those taken here."""
    below, cpu, wall = cpu_below(os.getpid()), time.process_time(), time.perf_counter()
    try:
        found = run(*arguments)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        taken = {"wall": wall, "cpu": cpu + cpu_below(os.getpid()) - below, "peak": peak()}
        if isinstance(found, dict):
            return taken | found
        return taken if found is None else taken | {"rows": encoded_rows(found)}
    except BaseException as error:  # Rust panics derive from BaseException
        return described(error)


def described(error: BaseException) -> dict[str, Any]:
    return {"error": type(error).__name__, "text": " ".join(str(error).split())[:600]}


def cpu_below(process: int) -> float:
    """The CPU seconds of the processes below one, such as a JVM and its workers."""
    total = 0.0
    for listed in Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # a thread or a process ended meanwhile
            for child in listed.read_text().split():
                fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
                total += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
                total += cpu_below(int(child))
    return total


def peak() -> int:
    """MB at most. Not ru_maxrss, which begins with the size of the process that started this one."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) >> 10 for line in status if line.startswith("VmHWM"))


def encoded_rows(found: Iterable[Any]) -> list[list[Any]]:
    rows = [[encoded(cell) for cell in row] for row in found]
    if len(rows) <= MOST_ROWS:
        return rows
    text = "\n".join(sorted(map(json.dumps, rows)))
    return [[str(len(rows)), hashlib.sha256(text.encode()).hexdigest()]]


def encoded(value: Any) -> Any:
    """A value as JSON: scalars as the text that the board's judge compares, NULL as null."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "0x" + bytes(value).hex()
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(datetime.UTC)
        return value.isoformat(sep=" ")
    if isinstance(value, (datetime.date, datetime.time, uuid.UUID)):
        return str(value)
    if hasattr(value, "asDict"):
        value = value.asDict()
    if isinstance(value, dict):
        return {_key(encoded(key)): encoded(each) for key, each in value.items()}
    if hasattr(value, "tolist"):
        return encoded(value.tolist())
    if isinstance(value, (list, tuple)):
        return [encoded(each) for each in value]
    return repr(value) if isinstance(value, float) else str(value)


def _key(key: Any) -> str:
    return key if isinstance(key, str) else json.dumps(key)


if __name__ == "__main__":
    main()
