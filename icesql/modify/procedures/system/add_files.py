"""add_files: add existing Parquet files to a table."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from icesql.errors import AccessDeniedError, ProgrammingError, UnsupportedSqlError
from icesql.modify.procedures.procedure import (
    TABLE,
    Parameter,
    Plan,
    Rows,
    Step,
    procedure,
    required,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from icesql.catalog.table import Table
    from icesql.iceberg.manifest.data_file import DataFile
    from icesql.maintain.import_folders import FoundFile
    from icesql.modify.procedures.call import Call
    from icesql.storage.open import Storage

_SOURCE: Final = re.compile(r"\s*`?(\w+)`?\s*\.\s*`(.+)`\s*", re.DOTALL)
_FOOTERS_AT_ONCE: Final = 16
_SHOWN: Final = 3


@procedure(
    "makes the Parquet files of a folder part of a table, without a copy",
    TABLE,
    required("source_table", "string"),
    Parameter("partition_filter", "map<string, string>"),
    Parameter("check_duplicate_files", "boolean", "true"),
    Parameter("parallelism", "int"),
    rows="added_files_count bigint, changed_partition_count bigint",
)
def add_files(call: Call) -> Plan:
    """Add Parquet files where they are, without a copy."""
    from copy import copy

    from icesql.commit.attempts import commit
    from icesql.commit.file_changes import FileChanges
    from icesql.maintain.import_files import AddFiles
    from icesql.maintain.import_folders import find_files

    catalog, table = call.target()
    source = _source(call)
    _check_access(call, source)
    # The storage of the table, without its location: the files may be elsewhere.
    storage = copy(table.storage)
    storage.reroot, storage.cache = None, table.storage.cache
    found = find_files(table, storage, source, call["partition_filter"] or {}, call.query)
    checks = call["check_duplicate_files"] is not False
    if checks:
        _check_new(table, found, call)
    files = _data_files(call, table, storage, found)

    def run() -> Rows:
        # The files belong to others until they are committed: a failed commit leaves them.
        changes = FileChanges("append", files, borrowed=True)
        operation = AddFiles(table, changes, call.query)
        commit(catalog, table, operation, call.query)
        changed = operation.summary.get("changed-partition-count")
        count = None if changed is None else int(changed)
        return Rows([(len(files), count)], snapshot_id=operation.snapshot_id)

    size = sum(each.file_size_in_bytes for each in files)
    rows = sum(each.record_count for each in files)
    return Plan(_steps(table, files), run, f"{len(files)} files, {rows} rows, {size} bytes")


def _steps(table: Table, files: Sequence[DataFile]) -> Iterator[Step]:
    from icesql.iceberg.metadata.name_mapping import PROPERTY

    if table.metadata.name_mapping is None:
        yield Step("set", "property", PROPERTY, "the files are read by the names of their columns")
    for each in files:
        where = ", ".join(map(repr, each.partition)) or "no partition"
        yield Step.of_file("set", "data file", each, f"added as it lies, {where}")


def _source(call: Call) -> str:
    """The folder or file in ```parquet`.`path```."""
    text: str = call["source_table"]
    source = _SOURCE.fullmatch(text)
    if source is None:
        raise call.wrong("source_table", f"is {text!r}; it can be `parquet`.`path`")
    if source[1].lower() != "parquet":
        raise UnsupportedSqlError(
            f"add_files of {source[1]} files",
            hint="Parquet files are added; INSERT … SELECT writes others anew",
        )
    return source[2].rstrip("/") or "/"


def _check_access(call: Call, source: str) -> None:
    """Raise AccessDeniedError for files that SQL may not read: every SELECT would read them."""
    from icesql.modify.procedures.call import check_path
    from icesql.storage.open import is_local, local_spellings
    from icesql.storage.roots import Roots

    access = call.services.state.access
    if is_local(source):
        files = access.files
        places = local_spellings(source)
        allowed = files is True or (
            isinstance(files, Roots) and all(files.hold_place(each) for each in places)
        )
        if not allowed:
            raise AccessDeniedError("SQL reads no such files", argument="files")
        return
    check_path(call, source)


def _check_new(table: Table, found: Sequence[FoundFile], call: Call) -> None:
    from icesql.scan.manifest_reader import ManifestReader

    snapshot = table.metadata.current_snapshot
    if snapshot is None:
        return
    reader = ManifestReader(table, call.query)
    same = table.storage.same_file_key
    listed = reader.live(reader.manifests_of(snapshot))
    live = {same(entries.path[index]) for entries, index in listed}
    there = [each.path for each in found if same(each.path) in live]
    if there:
        more = f" and {len(there) - _SHOWN} more" if len(there) > _SHOWN else ""
        raise ProgrammingError(
            f"{', '.join(there[:_SHOWN])}{more} are part of {table.name} already; "
            "check_duplicate_files => false adds them again, and all of their rows twice"
        )


def _data_files(
    call: Call, table: Table, storage: Storage, found: Sequence[FoundFile]
) -> tuple[DataFile, ...]:
    from icesql.engine.side_threads import thread_pool
    from icesql.maintain.import_files import data_file, mapping_of, spelled

    mapping, query = mapping_of(table), call.query

    def read(each: FoundFile) -> DataFile:
        query.check()
        return spelled(data_file(table, storage, each, mapping), table.metadata.location)

    with thread_pool(_FOOTERS_AT_ONCE, "icesql-footers") as pool:
        return tuple(pool.map(read, found))
