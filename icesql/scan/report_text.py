"""A line for people about a scan: the files that it kept, of how many."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from icesql.scan.report import ScanReport


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
