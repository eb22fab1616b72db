"""The common part of procedures of tables at another place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from icesql.errors import AccessDeniedError
from icesql.maintain.relocation.folder import target_location
from icesql.maintain.relocation.verify import CountRows
from icesql.modify.procedures.call import Call
from icesql.modify.rows.delete import rows_at
from icesql.storage.roots import Roots

if TYPE_CHECKING:
    pass


def row_counter(call: Call) -> CountRows:
    """Count the live rows of a snapshot of a table."""
    query = call.services.query

    return lambda table, snapshot: rows_at(replace(table, planning=None), snapshot, query)


def check_place(call: Call, location: str) -> Roots | None:
    """The roots that a place named in SQL has to lie below; raises AccessDeniedError."""
    access = call.services.state.access
    by_path = access.tables_by_path
    if access.service or access.confine is True:
        argument = "service" if access.service else "confine"
        raise AccessDeniedError("SQL cannot copy tables to another place", argument=argument)
    for allowed, argument in ((by_path, "tables_by_path"), (access.confine, "confine")):
        denied = allowed is False and argument == "tables_by_path"
        if denied or (isinstance(allowed, Roots) and not allowed.hold(target_location(location))):
            raise AccessDeniedError("SQL names no such paths", argument=argument)
    return access.confine if isinstance(access.confine, Roots) else None
