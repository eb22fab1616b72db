"""A file that cannot be opened is not reported as corrupt: no descriptors, or no permission."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.writer.fields import fields
from tests.writer.table import TableWriter

FILES = 40
# Arguments: metadata files of a corrupt and of an intact table, the reader, and the problem. Prints
# the error. The corrupt table comes first, so that all modules are loaded before files cannot be
# opened.
PROGRAM = """
import os, resource, sys, icesql
corrupt, path, reader, problem = sys.argv[1:]
with icesql.connect(settings={"local_reader": reader}) as connection:
    connection.register_table("t", path)
    connection.register_table("corrupt", corrupt)
    try:
        connection.execute("SELECT sum(a + length(s)), max(s) FROM corrupt").fetchall()
    except icesql.CorruptFileError as error:
        str(error)
    held = []
    if problem == "permission" and os.getuid() == 0:
        os.seteuid(65534)
    if problem == "descriptors":
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
        try:
            while True:
                held.append(open(os.devnull))
        except OSError:
            pass
    try:
        print(connection.execute("SELECT sum(a + length(s)), max(s) FROM t").fetchall())
    except icesql.Error as error:
        for each in held:
            each.close()
        print(type(error).__name__, error)
"""


@pytest.fixture
def table() -> Iterator[TableWriter]:
    # No parent folder may be restricted to its owner.
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    made = TableWriter(folder, fields("a long, s string"))
    made.commit([made.data_file([{"a": 1, "s": "x"}])])
    made.write_metadata()
    Path(made.live[0].record["file_path"]).write_bytes(b"PAR1" + b"\0" * 400 + b"PAR1")
    made.corrupt = made.metadata_path
    made.commit(
        [made.data_file([{"a": at, "s": "x"}] * 50) for at in range(FILES)], removed=made.live
    )
    yield made
    shutil.rmtree(folder)


@pytest.mark.skipif(sys.platform != "linux", reason="limits and users as Linux has them")
@pytest.mark.parametrize("reader", ["auto", "arrow"])
@pytest.mark.parametrize("problem", ["descriptors", "permission"])
def test_what_cannot_be_opened_is_not_corrupt(
    table: TableWriter, reader: str, problem: str
) -> None:
    if problem == "permission":
        for path in Path(table.folder, "data").iterdir():
            path.chmod(0)
    command = [
        sys.executable,
        "-c",
        PROGRAM,
        *map(str, (table.corrupt, table.metadata_path)),
        reader,
        problem,
    ]
    environment = os.environ | {"HOME": tempfile.gettempdir(), "XDG_CACHE_HOME": table.folder}
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
    words = {"descriptors": "open files", "permission": "ermission denied"}[problem]
    assert words in done.stdout, done.stdout + done.stderr
    assert "orrupt" not in done.stdout
