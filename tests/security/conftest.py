"""Payloads that would create a file if any of them ran, and Spark for the tests that need it."""

from __future__ import annotations

import base64
import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.spark import conftest as spark_fixtures
from tests.writer.fields import fields
from tests.writer.table import TableWriter

# The same Spark as the tests of the engine: it is started once in a process.
spark_here, connect = spark_fixtures.spark_here, spark_fixtures.connect
spark, server = spark_fixtures.spark, spark_fixtures.server


class Canary:
    """A file that code from data would make; ``payloads`` are texts that try to."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.path}",)

    @property
    def pickled(self) -> str:
        """A payload that once ran: a worker's error, pickled, behind a fixed mark."""
        text = base64.b64encode(pickle.dumps(self)).decode()
        return f"icesql-error:{text};"

    @property
    def payloads(self) -> dict[str, str]:
        """The payloads by their target."""
        python = f"__import__('os').system('touch {self.path}')"
        copy = f"COPY (SELECT 1) TO '{self.path}'"
        return {
            "pickle": self.pickled,
            "python": f"'+{python}+'",
            "format": f"{{{python}}} {{0}} %s %(x)s",
            "single quote": f"'; {copy}; --",
            "double quote": f'"; {copy}; --',
            "paren": f"') FROM (SELECT 1); {copy}; --",
            "backslash": f"\\'; {copy}; -- \\",
            "backtick": f"`; {copy}; --",
            "dollar": f"$$; {copy}; -- $tag$ $s0_0_files $1",
            "comment": f"*/ ; {copy}; /* -- \n",
            "java": f"${{script:js:{self.path}}} ${{jndi:ldap://127.0.0.1:1/x}} #{{T(java)}}",
            "scan name": '"__scan_0" __scan_0 "__scan_1" __scan_1 __stream_0',
            "controls": "a\tb\r\nc\x1b[2J\x7f\u2028\u202e é 日本 🦆",
        }

    def check(self) -> None:
        assert not self.path.exists(), "a payload ran"


def one_column(folder: Path, *values: int) -> TableWriter:
    """A table of one column ``a``; its values are in one file, and none is without any."""
    table = TableWriter(str(folder), fields=fields("a long"))
    if values:
        table.commit([table.data_file([{"a": value} for value in values])])
    return table


@pytest.fixture
def canary(tmp_path: Path) -> Iterator[Canary]:
    made = Canary(tmp_path / "canary")
    yield made
    made.check()
