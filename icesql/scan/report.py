"""ScanReport: the files that planning read, skipped and kept, as counts and as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import fields


class ScanCounts(Struct):
    """Counters while planning; each is named as in Java's ScanMetrics."""

    result_data_files: int = 0
    result_delete_files: int = 0
    scanned_data_manifests: int = 0
    scanned_delete_manifests: int = 0
    total_data_manifests: int = 0
    total_delete_manifests: int = 0
    total_file_size_in_bytes: int = 0
    total_delete_file_size_in_bytes: int = 0
    skipped_data_manifests: int = 0
    skipped_delete_manifests: int = 0
    skipped_data_files: int = 0
    skipped_delete_files: int = 0
    indexed_delete_files: int = 0
    equality_delete_files: int = 0
    positional_delete_files: int = 0
    dvs: int = 0


_BYTES: Final = frozenset({"total_file_size_in_bytes", "total_delete_file_size_in_bytes"})


class ScanReport(ScanCounts, frozen=True, kw_only=True):  # type: ignore[misc]
    """One scan, planned.

    A delete file that applies to several data files counts once for each in
    ``result_delete_files``, and once in ``distinct_delete_files``; the content of a deletion
    vector, not its Puffin file, is its size. ``projected_bytes`` are the stored bytes of the
    projected columns where the manifest knows them, else the whole file's. ``limit_reached`` means
    that the walk stopped because the files found hold enough rows. ``planning_seconds`` is wall
    time. Source: Java ``ScanReport``, ``ScanMetrics``.
    """

    table_name: str
    snapshot_id: int | None
    ref: str | None
    schema_id: int
    filter: str
    projected_field_ids: tuple[int, ...]
    projected_field_names: tuple[str, ...]
    planning_seconds: float
    projected_bytes: int
    distinct_data_files: int
    distinct_delete_files: int
    limit_reached: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values under the keys of Java's ScanReportParser.

        Values that Java does not report are under "metadata", as text.
        """
        metrics: dict[str, Any] = {
            "total-planning-duration": {
                "count": 1,
                "time-unit": "nanoseconds",
                "total-duration": round(self.planning_seconds * 1e9),
            }
        }
        for counter in fields(ScanCounts):
            metrics[counter.name.replace("_", "-")] = {
                "unit": "bytes" if counter.name in _BYTES else "count",
                "value": getattr(self, counter.name),
            }
        metadata = {
            "engine-name": "icesql",
            "projected-bytes": str(self.projected_bytes),
            "distinct-data-files": str(self.distinct_data_files),
            "distinct-delete-files": str(self.distinct_delete_files),
            "limit-reached": str(self.limit_reached).lower(),
        }
        if self.ref is not None:
            metadata["ref"] = self.ref
        return {
            "table-name": self.table_name,
            "snapshot-id": self.snapshot_id,
            "filter": self.filter,
            "schema-id": self.schema_id,
            "projected-field-ids": list(self.projected_field_ids),
            "projected-field-names": list(self.projected_field_names),
            "metrics": metrics,
            "metadata": metadata,
        }


# ------------------------------------------------------------------ texts


def scan_line(report: ScanReport) -> str:
    """Manifests and files read, each of all; files are those of the manifests that were read.

    Bytes are those of the columns needed.
    """
    manifests = report.scanned_data_manifests + report.scanned_delete_manifests
    all_manifests = report.total_data_manifests + report.total_delete_manifests
    files = report.distinct_data_files
    parts = [
        f"{report.table_name}: manifests {manifests}/{all_manifests}",
        f"files {files}/{files + report.skipped_data_files}",
        bytes_text(report.projected_bytes),
    ]
    if report.distinct_delete_files:
        parts.insert(2, f"delete files {report.distinct_delete_files}")
    if report.limit_reached:
        parts.append("stopped by LIMIT")
    return " · ".join(parts)


def scan_lines(report: ScanReport) -> Iterator[str]:
    """The details of a scan, a line each: the files read, and those left out."""
    yield f"{report.table_name}, snapshot {report.snapshot_id}" + (
        f" ({report.ref})" if report.ref else ""
    )
    rows = (
        ("filter", report.filter),
        ("columns", ", ".join(report.projected_field_names)),
        ("manifests", _of(report.scanned_data_manifests, report.total_data_manifests)),
        ("delete manifests", _of(report.scanned_delete_manifests, report.total_delete_manifests)),
        ("data files", _of(report.distinct_data_files,
                           report.distinct_data_files + report.skipped_data_files)),
        ("delete files", str(report.distinct_delete_files or "")),
        ("size of the files", bytes_text(report.total_file_size_in_bytes)),
        ("size of the columns", bytes_text(report.projected_bytes)),
        ("planning", f"{report.planning_seconds * 1000:.1f} ms"),
        ("stopped", "by LIMIT" if report.limit_reached else ""),
    )  # fmt: skip
    for name, text in rows:
        if text:
            yield f"  {name + ':':<21}{text}"


def _of(read: int, there: int) -> str:
    return f"{read:,} of {there:,}" if there else ""


def bytes_text(count: int) -> str:
    """A size with a binary unit and three figures, such as ``1.53 MB``."""
    size = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1024:
            return f"{size:.0f} B" if unit == "B" else f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:.3g} TB"
