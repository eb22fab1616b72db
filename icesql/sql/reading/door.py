"""The interface to DuckDB's parser: a text goes in, its tree comes out as JSON.

A session parses its statements with the instance that runs them. Other texts are parsed by one
instance per process, which has no access to files and settings, as in a session.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import Any, Final

from icesql.context import reading_query

# Maps the text of a query to the JSON of DuckDB's ``json_serialize_sql``.
Serialize = Callable[[str], str]

_CLOSED_OFF: Final[dict[str, Any]] = {
    "enable_external_access": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "lock_configuration": True,
    "errors_as_json": True,
    "threads": 1,
}
_SERIALIZE: Final = "SELECT json_serialize_sql($1::VARCHAR)"

_lock = threading.Lock()
# By process id: the threads of an instance do not survive a fork.
_instances: dict[int, Any] = {}


def serialize(text: str) -> str:
    """Parse a text of SELECTs with DuckDB's parser; return the tree, or its error, as JSON."""
    query = reading_query()
    if query is not None and query.serialize is not None:
        return query.serialize(text)
    with _lock:
        root = _instances.get(os.getpid())
        if root is None:
            import _duckdb

            root = _instances[os.getpid()] = _duckdb.connect(":memory:", config=_CLOSED_OFF)
        cursor = root.cursor()
    try:
        return serialized(cursor, text)
    finally:
        cursor.close()


def serialized(cursor: Any, text: str) -> str:
    """Run ``serialize`` with one cursor."""
    return str(cursor.execute(_SERIALIZE, [text]).fetchall()[0][0])


@functools.cache
def makes_spaces_plain() -> bool:
    """True if DuckDB counts offsets after it has replaced Unicode spaces by ASCII spaces."""
    import _duckdb

    return str(_duckdb.__version__) == "2.0.0"
