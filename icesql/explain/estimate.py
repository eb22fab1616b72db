"""An estimate of the files that a scan would read, before it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from icesql.errors import plural
from icesql.iceberg.metadata_columns import METADATA_IDS
from icesql.iceberg.types import leaf_ids

if TYPE_CHECKING:
    from icesql.scan.plan import ScanPlan


def estimate(plan: ScanPlan) -> dict[str, Any]:
    """The rows, files and bytes of a plan, as JSON values.

    ``rows`` is the number of rows in the files before any filter, an upper bound of the result;
    None if a file's row count is unknown, or the rows come from metadata. ``columns`` are the
    stored bytes of each projected column, None if a manifest does not record them.
    """
    counts = [task.data_file.record_count for task in plan.files]
    known = plan.metadata is None and plan.changes is None and all(each >= 0 for each in counts)
    return {
        "rows": sum(counts) if known else None,
        "files": len(plan.files),
        "delete_files": plan.report.distinct_delete_files,
        "bytes": plan.projected_bytes,
        "delete_bytes": plan.counts.total_delete_file_size_in_bytes,
        "columns": _columns(plan),
    }


def _columns(plan: ScanPlan) -> dict[str, int | None]:
    found: dict[str, int | None] = {}
    for column in plan.scan.projection.fields:
        if column.field_id in METADATA_IDS or plan.metadata is not None:
            continue
        found[column.name] = None if plan.planned_by else _stored(plan, leaf_ids((column,)))
    return found


def _stored(plan: ScanPlan, leaves: tuple[int, ...]) -> int | None:
    total = 0
    for each in plan.survivors:
        sizes = [each.entries.values_of("column_sizes", leaf) for leaf in leaves]
        for index in each.indexes:
            known = [size for column in sizes if (size := column[index]) is not None]
            if not known:
                return None
            total += sum(known)
    return total


def estimate_text(plan: ScanPlan) -> str:
    """One line about the reads of a scan: rows, files, bytes by column."""
    found = estimate(plan)
    if plan.scan.frame is not None:
        return "estimate: unknown, it is a DataFrame"
    if plan.metadata is not None:
        return "estimate: from metadata alone"
    rows = "an unknown number of" if found["rows"] is None else f"at most {found['rows']:,}"
    known = [f"{name} {size:,}" for name, size in found["columns"].items() if size is not None]
    columns = f" ({', '.join(known)})" if known else ""
    deletes = f", {plural(found['delete_files'], 'delete file')}" if found["delete_files"] else ""
    files = plural(found["files"], "file")
    return f"estimate: {rows} rows, {files}{deletes}, {found['bytes']:,} bytes{columns}"
