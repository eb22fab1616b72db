"""Resolve the local files of a query: expand globs, and check that each file is allowed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from icesql.query.bound import FileScan
from icesql.sql.positions import unsupported
from icesql.storage.roots import Roots

if TYPE_CHECKING:
    from icesql.context import QueryContext
    from icesql.sql.statement import FileReference


def bind_files(
    references: Iterable[FileReference], allowed: bool | Roots, query: QueryContext
) -> tuple[FileScan, ...]:
    """Bind each reference to its files.

    Raises AccessDeniedError, StorageError, QueryCancelledError, and UnsupportedSqlError if the
    setting ``engine`` is not "local", because other engines do not read files.
    """
    from icesql.storage.local_files import local_files

    scans = []
    for reference in references:
        if query.settings.engine != "local":
            raise unsupported(
                f"{reference.function}() where engine = '{query.settings.engine}'",
                reference.offset,
                "files are read with engine = 'local'",
            )
        found = [
            file for path in reference.paths for file in local_files(path, allowed, query.check)
        ]
        if isinstance(allowed, Roots):
            folders = frozenset(real for _, real in allowed.local)
        else:
            folders = frozenset(os.path.dirname(file) for file in found)
        scans.append(
            FileScan(reference.name, reference.function, tuple(found), reference.options, folders)
        )
    return tuple(scans)
