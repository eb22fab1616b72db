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

# ``{0}`` is another number each time.
STATEMENTS: Final = {
    "SELECT": "SELECT b FROM s.t WHERE a = {0}",
    "join": "SELECT t.b, sum(u.c) FROM s.t JOIN s.u ON t.a = u.a WHERE u.c > {0} GROUP BY 1",
    "SHOW": "SHOW TABLES FROM s LIKE 't%'",
    "INSERT": "INSERT INTO s.t VALUES ({0}, 'x')",
    "DELETE": "DELETE FROM s.t WHERE a = {0}",
}


class Rooms:
    """A profile function: the modules that were entered, and the changes between them."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.entered: set[str] = set()
        self.changes = 0
        self._last = ""

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        """Note one call or return."""
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(self.package):
            self.entered.add(name)
            self.changes += name != self._last
            self._last = name


def counted(connection: Any, sql: str, package: str) -> Rooms:
    """Count over the third statement of a kind."""
    for number in range(2):
        connection.execute(sql.format(number)).fetchall()
    rooms = Rooms(package)
    text = sql.format(2)
    sys.setprofile(rooms)
    try:
        connection.execute(text).fetchall()
    finally:
        sys.setprofile(None)
    return rooms


def rooms(cache: Path) -> int:
    """Modules that one statement enters / changes from one module to another."""
    import icesql

    with tempfile.TemporaryDirectory() as folder, icesql.connect(warehouse=folder) as connection:
        connection.execute("CREATE SCHEMA s")
        connection.execute("CREATE TABLE s.t AS SELECT range AS a, 'x' AS b FROM range(100)")
        connection.execute("CREATE TABLE s.u AS SELECT range AS a, range AS c FROM range(100)")
        for name, sql in STATEMENTS.items():
            found = counted(connection, sql, str(Path(icesql.__file__).parent))
            print(f"{name}: {len(found.entered)} / {found.changes}")
    return 0
