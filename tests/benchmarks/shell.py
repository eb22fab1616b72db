"""The shell on a pseudo-terminal: from start to prompt, and from a key to its echo.

    python tests/benchmarks/shell.py [--tables 5000] [--starts 9]

A REST catalog in this process has 10 namespaces with all tables. It prints medians and the worst
of: start to prompt (wall, and CPU of the process), a key of a statement until the terminal has its
echo, the same while the menu of names is open, and Tab until the menu is there. ``key-cpu`` is CPU
per key, which tells more where the machine does something else. Needs pexpect and /proc.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pexpect

ROOT = Path(__file__).parents[2]
PROMPT = "icesql>"
NAMESPACES = 10
STATEMENT = "SELECT id, sum(amount) AS total FROM ns3.table_42 WHERE region = 'eu' GROUP BY id"


@contextmanager
def catalog(tables: int) -> Iterator[str]:
    """The URI of a catalog of so many tables, none of which can be opened."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status, answer = _answer(urlsplit(self.path).path.split("/"), tables)
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def _answer(path: Sequence[str], tables: int) -> tuple[int, object]:
    if path[-1] == "config":
        return 200, {"defaults": {}, "overrides": {}}
    if path[-1] == "namespaces":
        return 200, {"namespaces": [[f"ns{number}"] for number in range(NAMESPACES)]}
    if path[-1] == "tables":
        names = [f"table_{number}" for number in range(tables // NAMESPACES)]
        return 200, {"identifiers": [{"namespace": [path[-2]], "name": each} for each in names]}
    return 404, {"error": {"message": "not here", "type": "NoSuchTableException", "code": 404}}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tables", type=int, default=5000)
    parser.add_argument("--starts", type=int, default=9)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, catalog(options.tables) as uri:
        starts = [_start(folder, uri) for _ in range(options.starts)]
        _told("start to prompt", [wall for wall, _ in starts])
        _told("start, CPU", [cpu for _, cpu in starts])
        child = _spawned(folder, uri)
        try:
            _keys(child)
        finally:
            _leave(child)
    return 0


def _keys(child: Any) -> None:
    child.send("SELECT * FROM ns1.t\t")  # the names are asked for
    child.expect_exact("table_1")
    _new_line(child)
    before = _cpu(child)
    _told("a key", [_key(child, key) for key in STATEMENT])
    print(f"{'key-cpu':<20} {(_cpu(child) - before) / len(STATEMENT):8.1f} ms")
    _new_line(child)
    opened, menu = [], []
    for number in range(9):
        for key in f"SELECT * FROM ns{number}.tab":
            _key(child, key)
        _drain(child)
        child.send("\t")
        began = time.perf_counter()
        child.expect_exact("table_1")
        opened.append((time.perf_counter() - began) * 1000)
        menu += [_key(child, key) for key in "le_4"]
        _new_line(child)
    _told("Tab to the menu", opened)
    _told("a key behind it", menu)


def _spawned(folder: str, uri: str) -> Any:
    child = pexpect.spawn(
        sys.executable,
        ["-m", "icesql", "--uri", uri],
        cwd=str(ROOT),
        env={
            **os.environ,
            "TERM": "xterm-256color",
            "PROMPT_TOOLKIT_NO_CPR": "1",
            "XDG_STATE_HOME": folder,
            "ICESQL_CONFIG": "",
        },
        encoding="utf-8",
        timeout=60,
        dimensions=(40, 110),
    )
    child.delaybeforesend = None
    child.expect_exact(PROMPT)
    return child


def _start(folder: str, uri: str) -> tuple[float, float]:
    """Milliseconds on the clock and of CPU."""
    began = time.perf_counter()
    child = _spawned(folder, uri)
    wall = (time.perf_counter() - began) * 1000
    cpu = _cpu(child)
    _leave(child)
    return wall, cpu


def _leave(child: Any) -> None:
    _new_line(child)
    child.send("\x04")
    while child.expect([pexpect.EOF, pexpect.TIMEOUT], timeout=2):
        child.send("\x04")  # it came between two prompts
    child.close()


def _key(child: Any, key: str) -> float:
    """Milliseconds until the first of what the key draws."""
    _drain(child)
    began = time.perf_counter()
    child.send(key)
    child.read_nonblocking(65536, timeout=30)
    return (time.perf_counter() - began) * 1000


def _drain(child: Any) -> None:
    child.buffer = ""
    while True:
        try:
            child.read_nonblocking(65536, timeout=0.03)
        except pexpect.TIMEOUT:
            return


def _new_line(child: Any) -> None:
    _drain(child)
    child.send("\x03")
    child.expect_exact(PROMPT)
    _drain(child)


def _cpu(child: Any) -> float:
    """Milliseconds of CPU that the process has taken."""
    fields = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def _told(name: str, values: Sequence[float]) -> None:
    print(f"{name:<20} {statistics.median(values):8.1f} ms, at most {max(values):.1f}")


if __name__ == "__main__":
    sys.exit(main())
