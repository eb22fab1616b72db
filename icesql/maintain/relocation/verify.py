"""Verify that every file that a table names exists and can be read, and count rows of its refs."""

from __future__ import annotations

from collections.abc import Callable

from icesql.catalog.table import Table
from icesql.context import Progress, QueryContext
from icesql.errors import CorruptFileError
from icesql.frozen import Frozen
from icesql.iceberg.manifest.data_file import FileContent
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.maintain.referenced import named_files
from icesql.scan.manifest_reader import ManifestReader
from icesql.storage.listing import list_files

# Counts the live rows of a table at a snapshot.
CountRows = Callable[[Table, Snapshot], int]

_SHOWN = 3


class RefRows(Frozen):
    """The content of a branch or tag; ``rows`` counts live rows."""

    name: str
    kind: str
    snapshot_id: int
    data_files: int
    delete_files: int
    rows: int


class Verified(Frozen):
    """The number and size of the files found, and the content of the refs."""

    files: int
    bytes: int
    refs: tuple[RefRows, ...]


def verify(table: Table, query: QueryContext, count: CountRows) -> Verified:
    """Look for every file of every snapshot in the folder of a table that is complete there.

    Decodes manifests, compares lengths and reads deletes. Raises CorruptFileError naming a file
    that differs from its manifest entry, and what reading a file raises.
    """
    location = table.metadata.location
    lengths = {each.path: each.size for each in list_files(table.storage, location, query)}
    files = total = 0
    problems: list[tuple[str, str]] = []
    for number, (path, length) in enumerate(named_files(table, query)):
        if number % 1000 == 0:
            query.report(Progress("verifying", number))
        found = lengths.get(path)
        if found is None:
            problems.append((path, "it is not there"))
        elif length not in (None, found):
            problems.append((path, f"it has {found} bytes, and is said to have {length}"))
        files, total = files + 1, total + (found or 0)
    if problems:
        path, problem = problems[0]
        more = "".join(f"; {each}: {what}" for each, what in problems[1:_SHOWN])
        left = len(problems) - _SHOWN
        raise CorruptFileError(path, f"{problem}{more}" + (f"; {left} more" if left > 0 else ""))
    return Verified(files, total, refs_of(table, query, count))


def refs_of(table: Table, query: QueryContext, count: CountRows) -> tuple[RefRows, ...]:
    """The content of a table's branches and tags, by name."""
    reader = ManifestReader(table, query)
    found, known = [], {}
    for name, ref in sorted(table.metadata.refs.items()):
        snapshot = table.metadata.snapshot(ref.snapshot_id)
        if snapshot is None:
            raise CorruptFileError(
                table.metadata_location, f"{ref.kind} {name} is of no snapshot of the table"
            )
        if ref.snapshot_id not in known:
            files = [0, 0]
            for entries, index in reader.live(reader.manifests_of(snapshot)):
                files[entries.content[index] != FileContent.DATA] += 1
            known[ref.snapshot_id] = (*files, count(table, snapshot))
        found.append(RefRows(name, ref.kind, ref.snapshot_id, *known[ref.snapshot_id]))
    return tuple(found)


def check_same(source: tuple[RefRows, ...], copy: tuple[RefRows, ...], path: str) -> None:
    """Raise CorruptFileError if the refs of a copy differ from those of the source."""
    for one, other in zip(source, copy, strict=False):
        if one != other:
            raise CorruptFileError(
                path,
                f"{other.kind} {other.name} has {other.rows} rows in {other.data_files} files with "
                f"{other.delete_files} delete files; in the source {one.kind} {one.name} has "
                f"{one.rows} in {one.data_files} with {one.delete_files}",
            )
    if len(source) != len(copy):
        raise CorruptFileError(path, f"{len(copy)} refs, where the source has {len(source)}")
