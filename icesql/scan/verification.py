"""Checks of ``SET verify = 'full'``: manifest lists, manifests and the snapshot's totals.

Other engines do not check any of this, and neither does icesql without this setting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from icesql.context import QueryContext
from icesql.errors import CorruptFileError, UnsupportedTableError
from icesql.iceberg.manifest.data_file import FileContent
from icesql.iceberg.manifest.entries import ADDED, DELETED, EXISTING, ManifestEntries
from icesql.iceberg.manifest.manifest import ManifestContent, ManifestFile
from icesql.iceberg.metadata.property_numbers import whole_number
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.scan.manifest_reader import ManifestReader
from icesql.scan.table_scan import TableScan


def verify_snapshot(scan: TableScan, query: QueryContext) -> int:
    """Compare the manifests of a scan's snapshot with their list and the snapshot's summary.

    Reads every manifest and returns their number. Raises CorruptFileError for the first mismatch,
    and what planning raises.
    """
    snapshot = scan.snapshot
    if snapshot is None:
        return 0
    if scan.table.planning is not None:
        raise UnsupportedTableError(
            "verify = full where the catalog plans the scans", table=scan.table.name
        )
    storage = scan.table.storage
    reader = ManifestReader(scan.table, query)
    manifests = reader.manifests_of(snapshot)

    totals = Counter[str]()
    for manifest, entries in reader.entries_of(manifests):
        path = storage.location(manifest.manifest_path)
        length = storage.size(manifest.manifest_path)
        if manifest.manifest_length not in (None, length):
            raise CorruptFileError(
                path, f"{length} bytes long, its list says {manifest.manifest_length}"
            )
        for problem in (*_miscounts(manifest, entries), *_numbers(manifest, entries, snapshot)):
            raise CorruptFileError(path, problem)
        _count(totals, manifest, entries)
    place = snapshot.manifest_list or scan.table.metadata_location
    _compare(totals, snapshot, place)
    return len(manifests)


def _miscounts(manifest: ManifestFile, entries: ManifestEntries) -> Iterator[str]:
    for status, name in ((ADDED, "added"), (EXISTING, "existing"), (DELETED, "deleted")):
        files, rows = manifest.counts[status]
        counts = [
            count
            for each, count in zip(entries.status, entries.record_count, strict=True)
            if each == status
        ]
        if files not in (None, len(counts)):
            yield f"{len(counts)} {name} files, its list says {files}"
        if rows not in (None, sum(counts)):
            yield f"{sum(counts)} {name} rows, its list says {rows}"


def _numbers(manifest: ManifestFile, entries: ManifestEntries, snapshot: Snapshot) -> Iterator[str]:
    number = manifest.sequence_number
    if 0 < snapshot.sequence_number < number:
        yield f"sequence number {number}, that of its snapshot is {snapshot.sequence_number}"
    newest = max(entries.sequence_number, default=0)
    if 0 < number < newest:
        yield f"an entry of sequence number {newest}, that of the manifest is {number}"
    adders = {
        adder
        for adder, status in zip(entries.snapshot_id, entries.status, strict=True)
        if status == ADDED
    }
    if manifest.added_snapshot_id is not None and not adders <= {manifest.added_snapshot_id}:
        yield f"files that snapshot {manifest.added_snapshot_id}, its writer, did not add"


_TOTALS: Final = (
    "total-data-files",
    "total-records",
    "total-delete-files",
    "total-position-deletes",
    "total-equality-deletes",
)


def _count(totals: Counter[str], manifest: ManifestFile, entries: ManifestEntries) -> None:
    """Add the live files and rows of a manifest to those of its snapshot."""
    for index, live in enumerate(entries.live):
        if not live:
            continue
        kind, what = "data", "records"
        if manifest.content is ManifestContent.DELETES:
            by_position = entries.content[index] == FileContent.POSITION_DELETES
            kind, what = "delete", f"{'position' if by_position else 'equality'}-deletes"
        totals[f"total-{kind}-files"] += 1
        totals[f"total-{what}"] += entries.record_count[index]


def _compare(totals: Counter[str], snapshot: Snapshot, place: str) -> None:
    """Raises CorruptFileError where the summary has another total."""
    for name in _TOTALS:
        recorded = snapshot.summary.get(name, "")
        if whole_number(recorded) not in (None, totals[name]):
            raise CorruptFileError(
                place,
                f"{name} is {totals[name]}, the summary of snapshot {snapshot.snapshot_id} "
                f"says {recorded}",
            )
