"""Count the modules that one statement enters, and its changes from one to another.

Each statement runs twice with other constants before, so that nothing is imported or first seen, and
nothing of it is prepared. Counted are calls of the package's Python functions in the thread of the
statement; a change is a call of a function of another module than the call before.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Any, Final

from tables import CACHE

# ``{0}`` is another number each time.
STATEMENTS: Final = {
    "SELECT": "SELECT b FROM s.t WHERE a = {0}",
    "join": "SELECT t.b, sum(u.c) FROM s.t JOIN s.u ON t.a = u.a WHERE u.c > {0} GROUP BY 1",
    "SHOW": "SHOW TABLES FROM s LIKE 't%'",
    "INSERT": "INSERT INTO s.t VALUES ({0}, 'x')",
    "DELETE": "DELETE FROM s.t WHERE a = {0}",
}


def counted(connection: Any, sql: str, package: str) -> list[str]:
    """The modules that the third statement of a kind enters, one after the other."""
    for number in range(2):
        connection.execute(sql.format(number)).fetchall()
    entered: list[str] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(package) and entered[-1:] != [name]:
            entered.append(name)

    text = sql.format(2)
    sys.setprofile(note)
    try:
        connection.execute(text).fetchall()
    finally:
        sys.setprofile(None)
    return entered


def rooms(cache: Path = CACHE) -> int:
    """Modules that one statement enters / changes from one module to another."""
    import icesql

    with tempfile.TemporaryDirectory() as folder, icesql.connect(warehouse=folder) as connection:
        connection.execute("CREATE SCHEMA s")
        connection.execute("CREATE TABLE s.t AS SELECT range AS a, 'x' AS b FROM range(100)")
        connection.execute("CREATE TABLE s.u AS SELECT range AS a, range AS c FROM range(100)")
        for name, sql in STATEMENTS.items():
            found = counted(connection, sql, str(Path(icesql.__file__).parent))
            print(f"{name}: {len(set(found))} / {len(found)}")
    return 0
