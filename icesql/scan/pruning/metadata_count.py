"""Count rows from metadata alone, where that is exact."""

from __future__ import annotations

from collections.abc import Sequence

from icesql.context import QueryContext
from icesql.frozen import Frozen
from icesql.iceberg.expressions.predicate import ALWAYS_FALSE, ALWAYS_TRUE
from icesql.iceberg.manifest.entries import ADDED, EXISTING
from icesql.iceberg.manifest.manifest import ManifestContent, ManifestFile
from icesql.scan.manifest_reader import ManifestReader
from icesql.scan.plan import TableScan
from icesql.scan.pruning.extremes import Candidate, null_count


def count_rows(scan: TableScan, query: QueryContext) -> int | None:
    """The number of rows of ``scan``; None if the files have to be read.

    None with a row filter, which is weaker than the WHERE it came from; with a limit; where the
    catalog plans the scans; with live delete files; and when a file's row count is not known. The
    row counts of the manifest list are used if it has them and its files are newer than v1, else
    those of the files. Raises what planning raises.
    """
    if scan.row_filter is ALWAYS_FALSE or scan.snapshot is None:
        return 0
    if scan.row_filter is not ALWAYS_TRUE or scan.limit is not None:
        return None
    if scan.table.planning is not None:
        return None
    reader = ManifestReader(scan.table, query)
    manifests = [each for each in reader.manifests_of(scan.snapshot) if each.has_live_files]
    if any(each.content is ManifestContent.DELETES for each in manifests):
        return None
    listed = [_listed_rows(each) for each in manifests]
    unknown = [each for each, rows in zip(manifests, listed, strict=True) if rows is None]
    total = sum(rows for rows in listed if rows is not None)

    seen: set[str] = set()
    for _, entries in reader.entries_of(unknown):
        for live, rows, path in zip(entries.live, entries.record_count, entries.path, strict=True):
            if live:
                if rows < 0 or path in seen:
                    return None  # planning reports the problem of a file listed twice
                seen.add(path)
                total += rows
    return total


def _listed_rows(manifest: ManifestFile) -> int | None:
    """The live rows of a manifest by its list, None if they are unknown."""
    if manifest.min_sequence_number == 0:
        # Files of v1 may have come from an import that counted an unknown as -1, and a sum
        # hides that.
        return None
    total = 0
    for files, rows in (manifest.counts[ADDED], manifest.counts[EXISTING]):
        # Writers that do not count rows write zero: no rows in some files must be checked.
        if files is None or rows is None or rows < 0 or (files > 0) != (rows > 0):
            return None
        total += rows
    return total


# ------------------------------------------------------------------ the rows of files
# A file whose rows all satisfy the WHERE counts with all its rows, minus those that a deletion
# vector removes, whose number is known.


class Counted(Frozen):
    """An output that counts rows: those in which a column is not NULL, or all of them for None."""

    field_id: int | None = None


def count_of(file: Candidate, wanted: Sequence[Counted | None]) -> tuple[int, ...] | None:
    """The part of each output that a file adds if every row matches; None if unknown.

    An output without a count, which is None, gets 0.
    """
    left = live_rows(file.rows, file.deleted)
    if left is None:
        return None
    counts = []
    for each in wanted:
        if each is None or each.field_id is None:
            counts.append(0 if each is None else left)
            continue
        nulls = null_count(file, each.field_id)
        # It is not known here which rows are deleted.
        if nulls is None or (nulls and file.deleted):
            return None
        counts.append(left - nulls)
    return tuple(counts)


def live_rows(rows: int, deleted: int | None) -> int | None:
    """The rows of a file that are not deleted; None if either number is unknown."""
    return None if deleted is None or not 0 <= deleted <= rows else rows - deleted
