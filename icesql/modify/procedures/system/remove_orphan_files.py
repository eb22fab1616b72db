"""remove_orphan_files: remove files in a table's folder that the table does not reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from icesql.errors import UnsupportedSqlError
from icesql.modify.procedures.procedure import (
    AT_ONCE,
    BELOW,
    TABLE,
    Parameter,
    Plan,
    Rows,
    Step,
    procedure,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from icesql.maintain.orphans import Orphans
    from icesql.maintain.referenced import Mismatch, Prefixes
    from icesql.modify.procedures.call import Call

_MODES: Final = ("ERROR", "IGNORE", "DELETE")


@procedure(
    "removes files in the folder of a table that nothing of the table names",
    TABLE,
    Parameter("older_than", "timestamp", "3 days ago"),
    Parameter("location", "string", "that of the table"),
    Parameter("dry_run", "boolean", "false"),
    AT_ONCE,
    Parameter("file_list_view", "string"),
    Parameter("equal_schemes", "map<string, string>"),
    Parameter("equal_authorities", "map<string, string>"),
    Parameter("prefix_mismatch_mode", "string", "ERROR"),
    Parameter("prefix_listing", "boolean"),
    Parameter("stream_results", "boolean"),
    BELOW,
    rows="orphan_file_location varchar",
)
def remove_orphan_files(call: Call) -> Plan:
    """Remove files that the table's metadata does not reference."""
    from icesql.maintain.orphans import DEFAULT_AGE_MS, LEAST_AGE_MS, find_orphans
    from icesql.modify.procedures.call import at_once_of, folders_below
    from icesql.storage.many_files import remove_listed

    if call["file_list_view"] is not None:
        raise UnsupportedSqlError(
            "file_list_view", hint="icesql lists the folder itself, in stores as well"
        )
    older_than = call["older_than"]
    dry_run = bool(call["dry_run"])
    if older_than is None:
        older_than = call.now_ms - DEFAULT_AGE_MS
    elif not dry_run and not call.explain and older_than > call.now_ms - LEAST_AGE_MS:
        raise call.wrong(
            "older_than", "is less than 24 hours ago, and may remove files of running writes"
        )
    call.services.state.access.check_removal(everything=False, named=bool(call["delete_below"]))
    at_once, prefixes = at_once_of(call), _prefixes(call)
    catalog, table = call.target()
    found = find_orphans(
        catalog,
        table,
        older_than_ms=older_than,
        folder=call["location"],
        delete_below=folders_below(call),
        only_look=call.explain,
        prefixes=prefixes,
        query=call.query,
    )

    def run() -> Rows:
        rows = [(each.shown,) for each in found.files]
        if dry_run:
            return Rows(rows, f"dry run: {_summary(found)}")
        left = remove_listed(found.table.storage, found.files, call.query, at_once=at_once)
        remark = f"; {len(left)} of them could not be removed" if left else ""
        return Rows(rows, _summary(found) + remark)

    return Plan(_steps(found), run, _summary(found))


def _steps(found: Orphans) -> Iterator[Step]:
    from icesql.modify.procedures.call import moment

    for each in found.files:
        reason = f"no snapshot, statistics or metadata names it; changed {moment(each.modified_ms)}"
        yield Step("remove", "file", each.shown, reason, each.size)


def _summary(found: Orphans) -> str:
    from icesql.modify.services import in_bytes

    young = f", {found.young} more are too young" if found.young else ""
    return (
        f"{len(found.files)} of {found.listed} files in {found.folder} are orphans, "
        f"{in_bytes(found.bytes)}{young}"
    )


def _prefixes(call: Call) -> Prefixes:
    """Schemes and authorities to treat as equal; a key may list several, ``s3a,s3n``."""
    from icesql.maintain.referenced import Prefixes

    mode = (call["prefix_mismatch_mode"] or "ERROR").upper()
    if mode not in _MODES:
        raise call.wrong("prefix_mismatch_mode", f"is {mode!r}; it can be {', '.join(_MODES)}")
    return Prefixes(
        {**Prefixes().schemes, **_flat(call["equal_schemes"])},
        _flat(call["equal_authorities"]),
        cast("Mismatch", mode.lower()),
    )


def _flat(given: Mapping[str, str] | None) -> dict[str, str]:
    found: dict[str, str] = {}
    for names, same in (given or {}).items():
        found |= dict.fromkeys((each.strip() for each in names.split(",")), same.strip())
    return found
